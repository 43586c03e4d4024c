internal import Coffer

extension SecretBackend {
  /// A secret. Throws a failure if it does not exist.
  func existing(_ identifier: SecretIdentifier) throws -> Secret {
    guard let secret = try secret(identifier) else { throw MissingSecret.failure(identifier, in: self) }
    return secret
  }
}

/// The failure of a command whose secret does not exist.
enum MissingSecret {
  /// The failure for `identifier`. If another store has the secret, the message names that store. Otherwise, for a
  /// vault, it suggests a similar name: a vault is open already, but listing a keyring could cause another prompt.
  static func failure(_ identifier: SecretIdentifier, in backend: any SecretBackend) -> Failure {
    var message = "There is no secret “\(identifier.account)” in the service “\(identifier.service)”."
    let other: BackendName = backend is VaultBackend ? .keyring : .vault
    if OtherStores.has(other, where: { other throws(SecretError) in try other.item(identifier) != nil }) {
      message += " The \(other) has it: add --backend \(other), or copy it with secret copy."
    } else if backend is VaultBackend, let suggestion = suggestion(for: identifier, in: backend) {
      message += " " + suggestion
    }
    return Failure(.noSuchSecret, message)
  }

  /// The failure for a version of a secret that the backend does not have.
  static func failure(_ identifier: SecretIdentifier, version: Int?) -> Failure {
    let what = version.map { "version \($0)" } ?? "earlier version"
    return Failure(
      .noSuchSecret, "There is no \(what) of “\(identifier.account)” in the service “\(identifier.service)”.",
      advice: "To see the versions: secret history")
  }

  private static func suggestion(for identifier: SecretIdentifier, in backend: any SecretBackend) -> String? {
    // The command reports the missing secret in any case.
    guard let others = try? backend.identifiers(inService: nil) else { return nil }
    let names = others.filter { $0.service == identifier.service }.map(\.account)
    // Swift compares texts by canonical equivalence, and a store by bytes.
    if names.contains(identifier.account) {
      return "A name that looks the same has other bytes. Copy it from secret list."
    }
    if let near = nearest(to: identifier.account, among: names) { return "Did you mean “\(near)”?" }
    if let other = others.first(where: { $0.account == identifier.account }) {
      return "The service “\(other.service)” has one: select it with --service."
    }
    return nil
  }

  /// The name with the fewest edits, if they are at most two and at most a third of the length of `name`.
  static func nearest(to name: String, among names: [String]) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars)
    let most = min(2, wanted.count / 3)
    var best: (distance: Int, name: String)?
    for candidate in names {
      let scalars = Array(candidate.lowercased().unicodeScalars)
      guard abs(scalars.count - wanted.count) <= most else { continue }
      let distance = editDistance(wanted, scalars)
      if distance <= most && distance < best?.distance ?? .max { best = (distance, candidate) }
    }
    return best?.name
  }

  /// The least number of insertions, deletions, replacements and swaps of neighbors between the two.
  private static func editDistance(_ left: [Unicode.Scalar], _ right: [Unicode.Scalar]) -> Int {
    var beforePrevious: [Int] = []
    var previous = Array(0...right.count)
    for row in left.indices {
      var current = [row + 1]
      for column in right.indices {
        let same = left[row] == right[column]
        var cost = min(previous[column] + (same ? 0 : 1), previous[column + 1] + 1, current[column] + 1)
        if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
          cost = min(cost, beforePrevious[column - 1] + 1)
        }
        current.append(cost)
      }
      (beforePrevious, previous) = (previous, current)
    }
    return previous[right.count]
  }
}
