internal import Coffer
internal import CofferCore

/// Uses a value inside and outside of a scope of a test, and prints what became of each use.
enum ScopeScenario {
  private static let token = SecurelyStoredValue<String>(key: "token", service: "probe")

  @Sendable private static func use(_ place: String) {
    do throws(SecretError) {
      try token.set(place)
      Probe.write("\(place): stored\n")
    } catch {
      Probe.write("\(place): \(error.code): \(error.advice ?? "")\n")
    }
  }

  static func run() async {
    let memory = MemoryBackend()
    let gate = AsyncStream<Void>.makeStream()
    let late = await DefaultBackend.withOnly(memory) {
      use("inside")
      await Task.detached { use("detached") }.value
      return Task.detached {
        for await _ in gate.stream { break }
        use("late")
      }
    }
    gate.continuation.yield()
    await late.value
    use("after")
    DefaultBackend.replace(with: memory)
    use("replaced")
    DefaultBackend.replace(with: nil)
    use("restored")
    DefaultBackend.withOnly(memory) { use("again") }
  }
}
