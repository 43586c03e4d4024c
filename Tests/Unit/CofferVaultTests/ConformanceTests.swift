import CofferTestSupport
import CofferVault
import CofferTesting
import Testing

@Suite struct ConformanceTests {
  @Test func theVaultPassesTheConformanceSuite() async throws {
    let vault = try TestVault()
    try await SecretBackendConformance { vault.open() }.run()
    #expect(try vault.open().verify().secretCount == 0)
  }
}
