import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Foundation

extension Vector {
  /// Checks the vector on a copy of its vault, whose base file is in `folder`. Returns the path of the copy.
  @discardableResult
  func check(from folder: URL = directory, in scratch: TemporaryDirectory) throws -> String {
    let bytes = try bytes(in: folder)
    let path = scratch.file("vector")
    try Data(bytes).write(to: URL(filePath: path))
    guard chmod(path, 0o600) == 0 else { throw Mismatch(description: "chmod failed") }

    // Without a time the vault has no limit of age.
    let environment = VaultEnvironment(now: { Timestamp.date(now ?? .max) })
    let backend = VaultBackend(
      path: path, credentials: [VaultCredentialSource(credential)], options: options,
      environment: environment)
    let report: VaultReport
    do throws(SecretError) {
      // A vault that only an identity opens must be trusted first.
      if credential.identity != nil { try backend.trust() }
      report = try backend.verify()
    } catch {
      guard Self.outcomes[error.code] == expect.outcome else {
        throw Mismatch(description: "expected \(expect.outcome), and got \(error.code): \(error)")
      }
      return path
    }
    let outcome = report.isRecovered ? "recovered" : "ok"
    guard outcome == expect.outcome else {
      throw Mismatch(description: "expected \(expect.outcome), and got \(outcome)")
    }
    guard report.pin == expect.pin, try report.sequence == expect.sequence else {
      throw Mismatch(description: "the pin is \(report.pin)")
    }
    let items = try backend.items(inService: nil)
    guard items.count == expect.items?.count else {
      throw Mismatch(description: "there are \(items.count) items")
    }
    for (item, expected) in zip(items, expect.items ?? []) {
      try compare(
        item, expected, value: backend.lookUp(item.identifier)?.array(),
        namesCollide: name == "ok-attributes-nfc-nfd")
    }
    // Reading changes nothing.
    guard try [UInt8](Data(contentsOf: URL(filePath: path))) == bytes else {
      throw Mismatch(description: "the file was changed by reading it")
    }
    // A `Date` that far from now is not exact enough.
    guard now.map({ Timestamp.milliseconds(Timestamp.date($0)) == $0 }) ?? true else { return path }
    try compareHistory(backend, hidesVersions: report.excessVersionCount > 0)
    return path
  }

  /// Checks the values of all expected secrets. The vault may have others.
  func checkValues(in backend: VaultBackend) throws {
    for item in expect.items ?? [] {
      let found = try backend.lookUp(SecretIdentifier(service: item.service, account: item.account))
      try compare(
        value: found?.array(), of: item.account, item.value, item.valueLength, item.valueBlake2b256)
    }
  }

  private func compareHistory(_ backend: VaultBackend, hidesVersions: Bool) throws {
    let limit = try backend.historyLimit()
    guard limit.versions == expect.history?.versions ?? 0, limit.days == expect.history?.days ?? 0 else {
      throw Mismatch(description: "the history limit is \(limit)")
    }
    let removed = try backend.removedItems(inService: nil)
    guard removed.count == expect.removed?.count ?? 0 else {
      throw Mismatch(description: "the removed secrets are \(removed)")
    }
    for (found, expected) in zip(removed, expect.removed ?? []) {
      let newest = try backend.versions(of: found.identifier).first
      guard
        found.identifier == (try SecretIdentifier(service: expected.service, account: expected.account)),
        found.removed == Timestamp.date(expected.removed), newest?.kind == .removal,
        newest?.number == expected.sequence, newest?.date == found.removed
      else { throw Mismatch(description: "\(found) is not \(expected)") }
    }
    var expectedVersions = (expect.versions ?? [])[...]
    let names = try backend.items(inService: nil).map(\.identifier) + removed.map(\.identifier)
    for name in names.sorted() {
      let versions = try backend.versions(of: name)
      for (newer, version) in zip(versions, versions.dropFirst()) where [.earlier, .conflict].contains(version.kind) {
        guard let expected = expectedVersions.popFirst(),
          name == (try SecretIdentifier(service: expected.service, account: expected.account)),
          version.number == expected.sequence, version.date == Timestamp.date(expected.stored),
          // Versions beyond the limit may lie between two that count.
          max(newer.date, version.date) == Timestamp.date(expected.superseded) || hidesVersions
        else { throw Mismatch(description: "\(name) has the version \(version)") }
        try compare(
          value: backend.secret(name, version: version.number)?.value.array(), of: expected.account,
          expected.value,
          expected.valueLength, expected.valueBlake2b256)
      }
    }
    guard expectedVersions.isEmpty else { throw Mismatch(description: "missing: \(expectedVersions)") }
  }

  private func compare(
    _ item: SecretItem, _ expected: Vector.Item, value: [UInt8]?, namesCollide: Bool
  ) throws {
    // A `Date` has 53 bits of precision, so times far from now are rounded before they are compared.
    func date(_ milliseconds: Int64?) -> Date? { milliseconds.map(Timestamp.date) }
    let metadata = item.metadata
    guard item.identifier == (try SecretIdentifier(service: expected.service, account: expected.account)),
      metadata.label.map({ Array($0.utf8) }) == expected.label.map({ Array($0.utf8) }),
      metadata.created == date(expected.created), metadata.modified == date(expected.modified),
      metadata.expires == date(expected.expires),
      Set(metadata.attributes.keys) == Set(expected.attributes.keys),
      // A Swift dictionary treats two spellings of one text as one key and keeps the last.
      metadata.attributes == expected.attributes || namesCollide
    else { throw Mismatch(description: "\(item) is not \(expected)") }
    try compare(
      value: value, of: expected.account, expected.value, expected.valueLength, expected.valueBlake2b256)
  }

  private func compare(
    value: [UInt8]?, of account: String, _ expected: String?, _ length: Int?, _ hash: String?
  ) throws {
    if let expected {
      guard value == (try Hex.bytes(expected)) else { throw Mismatch(description: "the value of \(account)") }
    } else {
      guard let value, value.count == length,
        BLAKE2b.hash(value.span, count: 32) == (try Hex.bytes(hash ?? ""))
      else { throw Mismatch(description: "the large value of \(account)") }
    }
  }
}
