internal import CofferCore
internal import Dispatch
internal import Synchronization

/// One promise, and how it is tried.
struct ConformanceCheck: Sendable {
  let name: String
  var omittedBy: SecretBackendConformance.Omissions = []
  var applies: @Sendable (any SecretBackend) -> Bool = { _ in true }
  /// Runs on a thread that may be blocked. The synchronous calls of the backend are the ones under test.
  let body: @Sendable (ConformanceContext) throws -> Void

  static let all: [ConformanceCheck] =
    valueChecks + identifierChecks + overwriteChecks + metadataChecks + listChecks + errorChecks
    + concurrencyChecks + changeChecks + transactionChecks + asyncChecks
}

/// What a check works with.
struct ConformanceContext: Sendable {
  let backend: any SecretBackend
  let options: SecretBackendConformance.Options
  /// The check's own service. Others may be made of it by putting something behind it.
  let service: String
  private let clean = CleanUp()

  init(backend: any SecretBackend, options: SecretBackendConformance.Options, service: String) {
    self.backend = backend
    self.options = options
    self.service = service
  }

  /// What an expectation found to be otherwise.
  struct Expectation: Error {
    let message: String
    init(_ message: String) { self.message = message }
  }

  /// An error as text. Of errors other than the suite's own only the code is given: a backend under test
  /// may have put a value into the rest.
  static func sentence(for error: any Error) -> String {
    switch error {
    case let error as Expectation: error.message
    case let error as SecretError: "a call threw the error \(error.code)"
    default: "a call threw an error of type \(type(of: error))"
    }
  }

  func identifier(_ account: String, serviceSuffix: String = "") throws -> SecretIdentifier {
    try SecretIdentifier(service: service + serviceSuffix, account: account)
  }

  func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
    if !condition { throw Expectation(message()) }
  }

  /// Expects `body` to throw an error of one of `codes`, and that the error gives away nothing.
  @discardableResult
  func expectError(
    _ codes: Set<SecretError.Code>?,
    from call: String,
    canary: String? = nil,
    _ body: () throws(SecretError) -> Void
  ) throws -> SecretError {
    do throws(SecretError) {
      try body()
    } catch {
      if let codes, !codes.contains(error.code) {
        let expected = codes.map(\.description).sorted().joined(separator: " or ")
        throw Expectation("\(call) threw \(error.code) and not \(expected)")
      }
      if let canary { try expectNothingOf(canary, in: error, from: call) }
      return error
    }
    throw Expectation("\(call) threw no error")
  }

  func expectNothingOf(_ canary: String, in error: SecretError, from call: String) throws {
    var dumped = ""
    dump(error, to: &dumped)
    let hexadecimal = canary.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let decimal = canary.utf8.map(String.init).joined(separator: ", ")
    for text in ["\(error)", String(reflecting: error), dumped, error.reason, error.advice ?? ""] {
      for form in [canary, hexadecimal, decimal] where text.contains(form) || text.lowercased().contains(form)
      {
        throw Expectation("the error that \(call) threw has the secret in it")
      }
    }
  }

  // MARK: Calls

  func store(_ bytes: [UInt8], _ identifier: SecretIdentifier, _ metadata: SecretMetadata? = nil) throws {
    try backend.store(SecretBytes(copying: bytes), for: identifier, metadata: metadata)
  }

  func store(_ text: String, _ identifier: SecretIdentifier, _ metadata: SecretMetadata? = nil) throws {
    try store(Array(text.utf8), identifier, metadata)
  }

  func value(_ identifier: SecretIdentifier) throws -> [UInt8]? {
    guard let secret = try backend.lookUp(identifier) else { return nil }
    return secret.array
  }

  func expectValue(_ expected: [UInt8]?, _ identifier: SecretIdentifier, _ when: String) throws {
    try Self.expect(try value(identifier), toBe: expected, when)
  }

  func expectValue(_ expected: String, _ identifier: SecretIdentifier, _ when: String) throws {
    try expectValue(Array(expected.utf8), identifier, when)
  }

  static func expect(_ found: [UInt8]?, toBe expected: [UInt8]?, _ when: String) throws {
    if found == expected { return }
    switch (found, expected) {
    case (nil, .some(let expected)):
      throw Expectation("\(when): there is no secret, where one of \(expected.count) bytes was expected")
    case (.some(let found), nil):
      throw Expectation("\(when): there is a secret of \(found.count) bytes, where none was expected")
    case (.some(let found), .some(let expected)):
      if found.count != expected.count {
        throw Expectation("\(when): the secret is \(found.count) bytes long and not \(expected.count)")
      }
      let first = zip(found, expected).prefix { $0 == $1 }.count
      throw Expectation("\(when): the secret is a different one, from byte \(first) on")
    case (nil, nil): break
    }
  }

  /// The accounts that are listed for the check's service, as UTF-8 bytes.
  func listedAccounts(serviceSuffix: String = "") throws -> [[UInt8]] {
    try backend.items(inService: service + serviceSuffix).map { Array($0.identifier.account.utf8) }
  }

  /// Removes what the check stored.
  func removeEverything() throws {
    for item in try backend.items(inService: nil)
    where item.identifier.service.utf8.starts(with: service.utf8) {
      try backend.remove(item.identifier)
    }
  }

  // MARK: Threads

  /// Runs `body` on `count` threads at a time and throws the first error that one of them threw.
  func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let group = DispatchGroup()
    let failure = FirstError()
    for index in 0..<count {
      // A queue each: threads of one concurrent queue may be too few to be in each other's way.
      DispatchQueue(label: "conformance.\(index)").async(group: group) {
        do { try body(index) } catch { failure.note(error) }
      }
    }
    if group.wait(timeout: .now() + options.checkDeadline) == .timedOut {
      throw Expectation("\(count) threads had not ended after \(options.checkDeadline) seconds")
    }
    try failure.rethrow()
  }

  /// Has `action` run when the check is over, however it ends.
  func atEnd(_ action: @escaping @Sendable () -> Void) { clean.add(action) }
  func forget() { clean.run() }

  private final class CleanUp: Sendable {
    private let actions = Mutex<[@Sendable () -> Void]>([])
    func add(_ action: @escaping @Sendable () -> Void) { actions.withLock { $0.append(action) } }
    func run() {
      let actions = actions.withLock { actions in
        defer { actions = [] }
        return actions
      }
      for action in actions { action() }
    }
  }

  private final class FirstError: Sendable {
    private let error = Mutex<(any Error)?>(nil)
    func note(_ new: any Error) { error.withLock { $0 = $0 ?? new } }
    func rethrow() throws { if let error = error.withLock({ $0 }) { throw error } }
  }
}

extension SecretBytes {
  /// A copy outside guarded memory: what the suite stores is no secret.
  var array: [UInt8] { withBytes { $0.withUnsafeBytes { Array($0) } } }
}
