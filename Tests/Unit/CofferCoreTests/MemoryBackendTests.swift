import CofferCore
import CofferTesting
import Testing

@Suite struct MemoryBackendTests {
  @Test func passesTheConformanceSuite() async throws {
    let report = try await SecretBackendConformance { MemoryBackend() }.run()
    #expect(report.skipped.isEmpty)
    #expect(report.passed == SecretBackendConformance.checkNames)
  }

  @Test func passesTheConformanceSuiteBesideOtherSecrets() async throws {
    let shared = MemoryBackend()
    let other = try SecretIdentifier(service: "other", account: "other")
    try await shared.store(SecretBytes(copying: "untouched"), for: other)
    try await SecretBackendConformance { shared }.run()
    #expect(try await shared.items(inService: nil).map(\.identifier) == [other])
    #expect(try await shared.lookUp(other)?.string() == "untouched")
  }
}
