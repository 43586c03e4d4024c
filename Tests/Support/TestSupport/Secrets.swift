package import CofferCore

package func identifier(_ account: String, service: String = "tests") throws(SecretError) -> SecretIdentifier {
  try SecretIdentifier(service: service, account: account)
}

extension SecretBytes {
  package borrowing func array() -> [UInt8] { withBytes { $0.withUnsafeBytes { Array($0) } } }
}

extension SecretBackend {
  package func get(_ account: String, service: String = "tests") throws -> [UInt8]? {
    try lookUp(identifier(account, service: service))?.array()
  }

  package func set(_ account: String, _ value: [UInt8], service: String = "tests") throws {
    try store(SecretBytes(value), for: identifier(account, service: service))
  }

  package func text(_ account: String, service: String = "tests") throws -> String? {
    try lookUp(identifier(account, service: service))?.string()
  }

  /// Stores a text directly, as another process does, so that no `SecurelyStoredValue` of this process knows of it.
  package func write(_ text: String, _ account: String, service: String = "tests") throws {
    try store(SecretBytes(text), for: identifier(account, service: service))
  }
}
