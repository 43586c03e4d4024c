internal import CofferCore

/// One requirement of the protocols, and the code that checks it.
struct Check: Sendable {
  let name: String
  /// The features that a backend must report, so that the check applies.
  var features: SecretFeatures = []
  var omittedBy: SecretBackendConformance.Omissions = []
  /// Whether the check needs ``SecretBackendConformance/Options/setHistoryVersions``.
  var setsHistoryLimit = false
  /// The code of the check. Gets the backend, and the identifier of a secret with the account `a`. Runs on a thread
  /// that may block, and calls the synchronous methods of the backend.
  let body: @Sendable (ConformanceContext, any SecretBackend, _ a: SecretIdentifier) throws -> Void

  static let all: [Check] =
    valueChecks + identifierChecks + overwriteChecks + metadataChecks + listChecks + errorChecks
    + storeChecks + concurrencyChecks + changeChecks + transactionChecks + versionChecks + historyChecks + asyncChecks

  /// Returns bytes without a short period, so that a lost, repeated or moved part changes the value.
  static func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      for index in 0..<count {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        buffer.initializeElement(at: index, to: UInt8(truncatingIfNeeded: state))
      }
      initialized = count
    }
  }
}

extension SecretFeatures {
  /// The features that the checks of earlier versions need.
  static let versions: SecretFeatures = [.history, .transactions]
}

/// The failure of a check: the situation, what the protocol requires in it, and what happened. Values of secrets are
/// described by their size.
struct Expectation: Error {
  let message: String

  init(_ situation: String, expected: String, found: String) {
    message = "\(situation): expected \(expected), found \(found)"
  }
}

/// The backend under test, a service for one check, and the expectations that checks share.
struct ConformanceContext: Sendable {
  let backend: any SecretBackend
  let options: SecretBackendConformance.Options
  /// The check's own service. A check may append to it to get further services.
  let service: String

  func identifier(_ account: String, serviceSuffix: String = "") throws -> SecretIdentifier {
    try SecretIdentifier(service: service + serviceSuffix, account: account)
  }

  func identifiers(_ first: String, _ second: String) throws -> (SecretIdentifier, SecretIdentifier) {
    (try identifier(first), try identifier(second))
  }

  // MARK: Calls

  func store(_ bytes: [UInt8], _ identifier: SecretIdentifier, _ metadata: SecretMetadata? = nil) throws {
    try backend.store(SecretBytes(bytes), for: identifier, metadata: metadata.map { .replace($0) } ?? .keep)
  }

  func store(_ text: String, _ identifier: SecretIdentifier, _ metadata: SecretMetadata? = nil) throws {
    try store(Array(text.utf8), identifier, metadata)
  }

  /// Stores the texts one after the other, so that each secret has them as versions.
  func store(_ texts: [String], in identifiers: SecretIdentifier..., metadata: SecretMetadata? = nil) throws {
    for identifier in identifiers { for text in texts { try store(text, identifier, metadata) } }
  }

  func value(_ identifier: SecretIdentifier) throws -> [UInt8]? {
    try backend.lookUp(identifier)?.array()
  }

  func isOwn(_ identifier: SecretIdentifier) -> Bool { identifier.service.utf8.starts(with: service.utf8) }

  /// Removes every secret that the check stored, with its earlier versions.
  func removeEverything() throws {
    let stored = try backend.items(inService: nil).map(\.identifier).filter(isOwn)
    let removed = try backend.removedItems(inService: nil).map(\.identifier).filter(isOwn)
    for identifier in stored + removed { try backend.erase(identifier) }
  }

  // MARK: Expectations

  func expect(_ condition: Bool, _ situation: String, expected: String, found: String) throws {
    if !condition { throw Expectation(situation, expected: expected, found: found) }
  }

  func expect<Value: Equatable>(_ found: Value?, toBe expected: Value?, _ situation: String) throws {
    func text(_ value: Value?) -> String { value.map { "\($0)" } ?? "nil" }
    try expect(found == expected, situation, expected: text(expected), found: text(found))
  }

  func expectValue(_ expected: [UInt8]?, _ identifier: SecretIdentifier, _ situation: String) throws {
    try expect(try value(identifier), toBe: expected, situation)
  }

  func expectValue(_ expected: String, _ identifier: SecretIdentifier, _ situation: String) throws {
    try expectValue(Array(expected.utf8), identifier, situation)
  }

  func expect(_ found: [UInt8]?, toBe expected: [UInt8]?, _ situation: String) throws {
    if found == expected { return }
    func text(_ bytes: [UInt8]?) -> String {
      bytes.map { "a secret of \($0.count) byte\($0.count == 1 ? "" : "s")" } ?? "no secret"
    }
    var difference = text(found)
    if let found, let expected, found.count == expected.count {
      difference = "one that differs from byte \(zip(found, expected).prefix { $0 == $1 }.count) on"
    }
    throw Expectation(situation, expected: text(expected), found: difference)
  }

  /// Expects `items(inService:)` to return the secrets with these accounts, in this order.
  func expectListed(_ expected: [String], _ situation: String, serviceSuffix: String = "") throws {
    let found = try backend.items(inService: service + serviceSuffix).map(\.identifier.account)
    if found.elementsEqual(expected, by: { $0.utf8.elementsEqual($1.utf8) }) { return }
    func text(_ accounts: [String]) -> String {
      accounts.count > 5 ? "a list of \(accounts.count) accounts" : "a list of the accounts \(accounts)"
    }
    var difference = text(found)
    if found.count == expected.count, found.count > 5 {
      let same = zip(found, expected).prefix { $0.utf8.elementsEqual($1.utf8) }
      difference = "one that differs from position \(same.count) on"
    }
    throw Expectation(situation, expected: text(expected), found: difference)
  }

  /// Expects `remove` to return `expected`, which says whether there was a secret.
  func expectRemoval(of identifier: SecretIdentifier, toReturn expected: Bool, _ situation: String) throws {
    try expect(try backend.remove(identifier), toBe: expected, "remove, \(situation)")
  }

  /// Expects `body` to throw an error with one of `codes`, in which `canary` does not occur. `nil` stands for any code.
  @discardableResult
  func expectError(
    _ codes: Set<SecretError.Code>?, _ situation: String, canary: String? = nil, _ body: () throws -> Void
  ) throws -> SecretError {
    let expected = codes.map { "the error " + $0.map(\.description).sorted().joined(separator: " or ") } ?? "an error"
    do {
      try body()
    } catch let error as SecretError {
      try expect(codes?.contains(error.code) ?? true, situation, expected: expected, found: "the error \(error.code)")
      if let canary { try expectNoSecret(canary, in: error, situation) }
      return error
    }
    throw Expectation(situation, expected: expected, found: "no error")
  }

  private func expectNoSecret(_ canary: String, in error: SecretError, _ situation: String) throws {
    var dumped = ""
    dump(error, to: &dumped)
    let hexadecimal = canary.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let decimal = canary.utf8.map(String.init).joined(separator: ", ")
    for text in ["\(error)", String(reflecting: error), dumped, error.reason, error.advice ?? ""] {
      let hasSecret = [canary, hexadecimal, decimal].contains {
        text.contains($0) || text.lowercased().contains($0)
      }
      try expect(!hasSecret, situation, expected: "an error without the secret", found: "the secret in the error")
    }
  }
}

extension SecretBytes {
  /// A copy in ordinary memory. The values of the suite are not secret.
  func array() -> [UInt8] { withBytes { $0.withUnsafeBytes { Array($0) } } }
}

extension SecretTransaction {
  func store(_ text: String, _ identifier: SecretIdentifier) throws(SecretError) {
    try store(SecretBytes(text), for: identifier)
  }
}
