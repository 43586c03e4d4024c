import CofferTestSupport
import Foundation
import Testing

/// Searches the whole memory and the core dump of a process that uses secrets.
@Suite(.long, .timeLimit(.minutes(30))) struct MemoryTests {
  @Test func valuesAreOnlyInGuardedMemoryAndAreWipedOnRelease() throws {
    try check("values", Setting(key: .file))
  }

  @Test(arguments: Setting.Credential.allCases)
  func credentialsAreWipedAfterTheVaultIsOpened(_ credential: Setting.Credential) throws {
    try check("unlocking", Setting(key: credential))
  }

  @Test func changesOfKeySlotsLeaveNoSecretInMemory() throws { try check("slots", Setting(key: .file)) }

  @Test(arguments: [Setting.Credential.file, .passphraseFile])
  func errorsLeaveNoSecretInMemory(_ credential: Setting.Credential) throws {
    try check("errors", Setting(key: credential))
  }

  @Test func aCoreDumpContainsNoSecret() throws {
    let found = try hitsInCoreDump("values", at: "32 looked up") ?? []
    #expect(found.isEmpty, "\(found)")
  }

  @Test func aLeakIsFoundInACoreDump() throws {
    let found = try hitsInCoreDump("leak-array", at: "leaked to an array")
    #expect(found?.isEmpty != true)
  }

  /// `SecretBytes.isMemoryLocked` agrees with the kernel, if locking is allowed and if it is not.
  @Test(arguments: [false, true]) func isMemoryLockedAgreesWithTheKernel(isRefused: Bool) throws {
    let setting = try Setting(key: .file)
    let search = MemorySearch(setting.secrets)
    // Root may lock memory beyond the limit with a capability, which is dropped.
    let refusing =
      (geteuid() == 0 ? ["setpriv", "--bounding-set=-ipc_lock"] : []) + ["prlimit", "--memlock=0"]
    let probe = try setting.start("locking", prefix: isRefused ? refusing : [])
    while let step = try probe.next() {
      let found = try probe.search(search)
      #expect(!found.isEmpty && found.allSatisfy(\.mapping.isGuarded))
      let isLocked = found.allSatisfy(\.mapping.isLocked)
      #expect(isLocked == (step.name == "locked"))
      if isRefused { #expect(!isLocked) }
      probe.resume()
    }
  }

  @Test func printsTheCopiesOutsideGuardedMemory() throws {
    let setting = try Setting(key: .file)
    let search = MemorySearch([("value", setting.canary)])
    let probe = try setting.start("text")
    while let step = try probe.next() {
      let copies = try probe.search(search).filter { !$0.mapping.isGuarded }
      print("\(step.name): \(copies.count) copies outside guarded memory")
      probe.resume()
    }
  }

  @Test func theSearchFindsLeaks() throws {
    let setting = try Setting(key: .file)
    let found = [
      try violations(setting.start("leak-array"), setting),
      try violations(setting.start("leak-release"), setting),
    ]
    #expect(found.allSatisfy { !$0.isEmpty })
  }

  /// Searches a core dump of the probe at a step. Returns `nil` if this machine writes no core dump; in CI that is a
  /// failure.
  private func hitsInCoreDump(_ scenario: String, at name: String) throws -> [MemorySearch.Hit]? {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
    guard geteuid() == 0 || limit.rlim_max == rlim_t.max else {
      return withoutCoreDump(
        "this process has a hard limit for them, as sudo sets one, and only root may raise it.")
    }
    let setting = try Setting(key: .file)
    let probe = try setting.start(scenario, prefix: ["prlimit", "--core=unlimited"])
    while let step = try probe.next(), step.name != name { probe.resume() }
    guard let core = try probe.coreDump(in: setting.workingDirectory) else {
      return withoutCoreDump("core_pattern passes it to a program, and gcore wrote none.")
    }
    return try MemorySearch(setting.secrets).hits(inCoreDump: core)
  }

  private func withoutCoreDump(_ reason: String) -> [MemorySearch.Hit]? {
    let text = "There is no core dump: \(reason)"
    if ProcessInfo.processInfo.environment["CI"] == nil {
      print("Skipped. \(text)")
    } else {
      Issue.record("\(text)")
    }
    return nil
  }

  /// Runs a scenario to its end and reports each secret that is in a wrong place at one of the steps.
  private func check(_ scenario: String, _ setting: Setting) throws {
    for violation in try violations(setting.start(scenario), setting) {
      Issue.record("\(violation)")
    }
  }

  private func violations(_ probe: ProbeProcess, _ setting: Setting) throws -> [String] {
    let search = MemorySearch(setting.secrets)
    var violations: [String] = []
    while let step = try probe.next() {
      let environment = try probe.environmentBlock()
      let found = try probe.search(search).filter {
        setting.key != .variable || !environment.contains($0.hit.address)
      }
      for (hit, mapping) in found where !mapping.isGuarded || step.gone.contains(hit.secret) {
        violations.append("\(step.name): \(hit), in \(mapping.isGuarded ? "guarded memory" : mapping.name)")
      }
      for name in step.held where !found.contains(where: { $0.hit.secret == name && $0.mapping.isGuarded }) {
        violations.append("\(step.name): \(name) is not in guarded memory")
      }
      probe.resume()
    }
    return violations
  }
}
