import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Testing

/// Several processes use one vault through the library.
@Suite(.timeLimit(.minutes(30))) struct LibraryProcessTests {
  private let directory: TemporaryDirectory
  private let path: String
  private let key = [UInt8](repeating: 7, count: 32)

  init() throws {
    directory = try TemporaryDirectory(inMemory: true)
    path = directory.file("test.vault")
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
  }

  private static func program() throws -> String {
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let program = (tests as NSString).deletingLastPathComponent + "/CofferProbe"
    try #require(
      FileManager.default.isExecutableFile(atPath: program), "there is no built probe at \(program)")
    return program
  }

  @Test func aChainThatIsNotRunIsNamedInADebugBuild() throws {
    let result = try ChildProcess.run(
      [Self.program(), "chain"], environment: directory.environment([:]), timeout: .seconds(60))
    #expect(result.status == 0 && result.outputText == "[\"run\"]\n")
    #if DEBUG
    #expect(result.errorText == "A chain of changes to a Store was never run: end it with run().\n")
    #endif
  }

  /// Runs `CofferProbe` once for each list of arguments, all at a time, and returns what each printed.
  private func probes(_ arguments: [[String]], _ more: [String: String] = [:]) async throws -> [String] {
    let text = try VaultKey.text(of: SecretBytes(key)).string()
    let environment = directory.environment(more.merging(["COFFER_KEY": text]) { $1 })
    let program = try Self.program()
    return try await withThrowingTaskGroup(of: (Int, String).self) { group in
      for (index, arguments) in arguments.enumerated() {
        group.addTask {
          // On a thread of its own, because it waits for the process.
          try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
              continuation.resume(
                with: Result {
                  let result = try ChildProcess.run(
                    [program] + arguments, environment: environment, timeout: .seconds(900))
                  #expect(result.status == 0, "\(result.errorText)")
                  return (index, result.outputText)
                })
            }
          }
        }
      }
      return try await group.reduce(into: Array(repeating: "", count: arguments.count)) { $0[$1.0] = $1.1 }
    }
  }

  private func open() -> VaultBackend { VaultBackend(path: path, key: SecretBytes(key)) }

  /// Each refresh needs the token of the one before: of plain reads and stores most would be lost.
  @Test func ofTheRefreshesOfATokenByFourProcessesNoneIsLost() async throws {
    _ = try await probes(Array(repeating: ["refresh", path, "25"], count: 4))
    #expect(try open().text("token", service: "probe") == "100")
  }

  @Test func twoProcessesWithOneStoreLoseNoChangeAndSeeEachOthers() async throws {
    let outputs = try await probes(["a", "b"].map { ["items", path, $0, "100", "200"] })
    let ids = outputs.map { $0.split(separator: "\n").first?.split(separator: " ").map(String.init) ?? [] }
    let all = ["a", "b"].flatMap { prefix in (0..<100).map { "\(prefix)\($0)" } }
    for ids in ids {
      #expect(ids.count == 200 && Set(ids) == Set(all))
      for prefix in ["a", "b"] {
        // Each process's items are in the order in which it inserted them.
        #expect(ids.filter { $0.hasPrefix(prefix) } == all.filter { $0.hasPrefix(prefix) })
      }
    }
    #expect(ids[0] == ids[1])
  }

  // MARK: What a scope of a test means for the rest of its process

  private func usesOfScopes(_ more: [String: String]) async throws -> [String: String] {
    let output = try await probes([["scope"]], more)[0]
    let lines = output.split(separator: "\n").map { $0.split(separator: ":", maxSplits: 1) }
    return Dictionary(uniqueKeysWithValues: lines.map { (String($0[0]), String($0[1])) })
  }

  @Test func afterTheFirstScopeNothingReachesTheRealStore() async throws {
    let uses = try await usesOfScopes(["COFFER_VAULT": path])
    for place in ["inside", "replaced", "again"] { #expect(uses[place] == " stored") }
    for place in ["detached", "late", "after", "restored"] {
      let text = uses[place] ?? ""
      #expect(text.hasPrefix(" noBackend: ") && text.contains("DefaultBackend.withOnly(_:)"), "\(place):\(text)")
    }
    #expect(try open().items().isEmpty)
  }

  @Test func aNamedBackendIsUsedOutsideOfAScope() async throws {
    let uses = try await usesOfScopes(["COFFER_VAULT": path, "COFFER_BACKEND": "memory"])
    #expect(uses.count == 7 && uses.values.allSatisfy { $0 == " stored" })
  }
}
