public import CofferCore
internal import CofferVaultFormat

/// The public key of a person or a machine that can open a vault: `age1…`, or `age1pq1…`.
///
/// Its ``VaultIdentity`` opens the vault. The texts have the format of age; its `age-keygen` makes them too. A
/// recipient is not encrypted in the vault's header. Add one with ``VaultCredential/recipient(_:)``.
public struct VaultRecipient: Hashable, Sendable, CustomStringConvertible {
  let key: [UInt8]
  /// `true` for a hybrid recipient (X-Wing: ML-KEM-768 and X25519), whose slot a large quantum computer cannot open.
  /// `false` for a recipient of X25519 alone.
  package let isPostQuantum: Bool

  init(key: [UInt8], isPostQuantum: Bool) { (self.key, self.isPostQuantum) = (key, isPostQuantum) }

  private static let prefixes = (x25519: "age", hybrid: "age1pq")

  /// The recipient with the given text. Throws `.invalidKey` if it is malformed or mistyped.
  public init(_ text: String) throws(SecretError) {
    let bytes = Array(text.utf8)
    // Without the separator, one X25519 recipient in 1,024 would begin like this, too.
    isPostQuantum = text.utf8.starts(with: (Self.prefixes.hybrid + "1").utf8)
    let key = Bech32.decode(
      bytes.span, prefix: isPostQuantum ? Self.prefixes.hybrid : Self.prefixes.x25519,
      count: isPostQuantum ? KeySlotParameters.hybridLengths.recipient : 32)
    guard let key else {
      throw SecretError(
        .invalidKey,
        VaultCredential.isSecret(text)
          ? "That is an identity, the secret half of a recipient, and other programs may have seen it."
          : "That is not a recipient, or it is mistyped.",
        advice: "A recipient begins with age1, as age-keygen prints it; copy it again.")
    }
    self.key = key.withUnsafeBytes { Array($0) }
  }

  /// The recipient's text: 62 characters, or 1,959 if it is post-quantum.
  public var description: String {
    Bech32.encode(key.span, prefix: isPostQuantum ? Self.prefixes.hybrid : Self.prefixes.x25519)
      .withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns the recipients in a text with one on each line. Empty lines, and those that begin with `#`, have no
  /// meaning. Lines end with LF or CR LF. Throws `.invalidKey` if there is none, for another line, and for a character
  /// that another program may take for the end of a line: a recipient after it would be hidden in a comment.
  package static func parse(lines text: String) throws(SecretError) -> [VaultRecipient] {
    var recipients: [VaultRecipient] = []
    let lineEnds: [Unicode.GeneralCategory] = [.control, .lineSeparator, .paragraphSeparator]
    let lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false)
    for (number, line) in lines.enumerated() {
      let line = line.last == "\r" ? line.dropLast() : line
      do throws(SecretError) {
        if let control = line.first(where: { lineEnds.contains($0.properties.generalCategory) }) {
          throw SecretError(
            .invalidKey,
            "There is a control character, U+\(String(control.value + 0x10000, radix: 16, uppercase: true).dropFirst()).",
            advice: "Lines end with LF or CR LF. Remove the character, and look at what follows it.")
        }
        if line.isEmpty || line.first == "#" { continue }
        recipients.append(try VaultRecipient(String(line)))
      } catch {
        throw SecretError(error.code, "In line \(number + 1): \(error.reason)", advice: error.advice)
      }
    }
    if recipients.isEmpty {
      throw SecretError(.invalidKey, "There is no recipient in the text.", advice: "Write one on each line.")
    }
    return recipients
  }
}

/// The secret key of a ``VaultRecipient``: `AGE-SECRET-KEY-1…`, or `AGE-SECRET-KEY-PQ-1…`. Copies share it; it is wiped
/// with the last one.
public struct VaultIdentity: Sendable {
  let secret: SecretBytes
  /// As ``VaultRecipient/isPostQuantum``.
  package let isPostQuantum: Bool
  /// `nil` for a post-quantum identity if the libsodium at hand is older than 1.0.22.
  public let recipient: VaultRecipient?

  /// Whether the libsodium in use has post-quantum recipients. They need version 1.0.22.
  package static var supportsPostQuantum: Bool { Sodium.hasXWing }

  private static let length = 32
  private static let (prefix, hybridPrefix) = ("AGE-SECRET-KEY-", "AGE-SECRET-KEY-PQ-")

  private init(_ secret: SecretBytes, isPostQuantum: Bool) {
    let key = isPostQuantum ? Sodium.hybridPublicKey(of: secret) : Sodium.publicKey(of: secret)
    recipient = key.map { VaultRecipient(key: $0, isPostQuantum: isPostQuantum) }
    self.isPostQuantum = isPostQuantum
    self.secret = secret
  }

  /// Returns a new random identity. Throws `.unsupported` for a post-quantum one if libsodium is too old.
  package static func generate(isPostQuantum: Bool) throws(SecretError) -> VaultIdentity {
    if isPostQuantum && !supportsPostQuantum { throw .noXWing }
    return VaultIdentity(.random(count: length), isPostQuantum: isPostQuantum)
  }

  /// The text of the identity, without a line feed.
  package func text() -> SecretBytes {
    secret.withBytes { Bech32.encode($0, prefix: isPostQuantum ? Self.hybridPrefix : Self.prefix) }
  }

  /// Whether `text` is that of identities rather than of a key: it begins with `#` or like an identity.
  static func isText(_ text: SecretBytes) -> Bool {
    text.withUnsafeBytes { $0.starts(with: prefix.utf8) || $0.first == UInt8(ascii: "#") }
  }

  /// Returns the identities in a text with one on each line, as `age-keygen` writes it. Empty lines, and those that
  /// begin with `#`, have no meaning. Throws `.invalidKey` if there is none, or another line.
  public static func parse(_ text: SecretBytes) throws(SecretError) -> [VaultIdentity] {
    var identities: [VaultIdentity] = []
    var start = 0
    while start < text.count {
      let (range, next) = text.withBytes { bytes in
        let end = (start..<bytes.count).first { bytes[$0] == 0x0A } ?? bytes.count
        return (start..<(end > start && bytes[end - 1] == 0x0D ? end - 1 : end), end + 1)
      }
      start = next
      let line = text.withBytes { SecretBytes($0.extracting(range)) }
      if line.isEmpty || line.withUnsafeBytes({ $0.first == UInt8(ascii: "#") }) { continue }
      let isPostQuantum = line.withUnsafeBytes { $0.starts(with: hybridPrefix.utf8) }
      let secret = line.withBytes {
        Bech32.decode($0, prefix: isPostQuantum ? hybridPrefix : prefix, count: length)
      }
      guard let secret else { throw invalid }
      identities.append(VaultIdentity(secret, isPostQuantum: isPostQuantum))
    }
    if identities.isEmpty { throw invalid }
    return identities
  }

  private static var invalid: SecretError {
    SecretError(
      .invalidKey, "That is not an identity, or it is mistyped.",
      advice: "An identity begins with \(prefix), as age-keygen writes it; copy it again.")
  }
}

extension SecretError {
  /// The error for a post-quantum recipient whose vault must be opened or encrypted with a libsodium that is too old.
  static var noXWing: SecretError {
    SecretError(
      .unsupported,
      "Post-quantum recipients (age1pq1…) need libsodium 1.0.22 or later, and this program uses \(Sodium.version).",
      advice: "Use a program with a newer libsodium, or a slot of another kind.")
  }
}
