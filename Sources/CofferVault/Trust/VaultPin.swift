internal import CofferCore
internal import CofferVaultFormat

/// Names one vault under one master key, and a state that it must have reached: `coffer-pin-v1:`, then base64url.
///
/// A pin is compared with a vault before anything of it is used. It protects only if it comes by another way than the
/// vault itself: whoever replaces a vault replaces a pin beside it as well. A pin is not secret. `VaultFormat`
/// specifies it.
struct VaultPin: Hashable, Sendable, CustomStringConvertible {
  let vault: Bytes16
  private let masterCommitment: [UInt8]
  /// The smallest number of changes that the vault may have; 0 for an *identity pin*, which accepts every state.
  let sequence: Int
  private let digest: Bytes16

  private static let prefix = "coffer-pin-v1:"
  /// The number of bytes before the checksum, of bytes in the checksum, and of characters in the text of both.
  private static let (length, checksumLength, textLength) = (72, 3, 100)

  /// The pin of the state that `vault` is in.
  init(_ vault: VaultSnapshot) {
    self.init(vault.file.header.vaultID, vault.keys, vault.state.checkpoint)
  }

  /// The pin of the state `state` of the vault with the id `vault` and the master key of `keys`.
  init(_ vault: Bytes16, _ keys: DerivedKeys, _ state: Checkpoint) {
    let commitment = keys.masterCommitment(vault)
    let message = HashedMessage.pin(fields: encode(vault, commitment, state.sequence), tag: state.tailTag)
    self.init(vault, commitment, state.sequence, keys.pinDigest(of: message))
  }

  /// The pin of the same vault and master key that accepts every state.
  var identity: VaultPin { VaultPin(vault, masterCommitment, 0, .zero) }

  private init(_ vault: Bytes16, _ masterCommitment: [UInt8], _ sequence: Int, _ digest: Bytes16) {
    (self.vault, self.masterCommitment, self.sequence, self.digest) = (vault, masterCommitment, sequence, digest)
  }

  /// Parses the text of a pin. Throws `.configuration` if it is malformed or mistyped.
  init(_ text: String) throws(SecretError) {
    if text.isEmpty {
      throw SecretError(
        .configuration, "A pin is empty.", advice: "Give COFFER_PIN or the option the pin, or leave it out.")
    }
    let malformed = SecretError(
      .configuration, "That is not a pin of a vault, or it is mistyped.",
      advice: "A pin begins with \(Self.prefix) and has 114 characters; copy it again.")
    let body = Array(text.utf8.dropFirst(Self.prefix.utf8.count))
    guard text.utf8.starts(with: Self.prefix.utf8), body.count == Self.textLength,
      let decoded = SecretBytes.decodingBase64(body.span, isURLSafe: true)
    else { throw malformed }
    let bytes = decoded.withUnsafeBytes { Array($0) }
    guard bytes.count > Self.length,
      Self.checksum(of: Array(bytes[..<Self.length])) == Array(bytes[Self.length...])
    else { throw malformed }
    do throws(SecretError) {
      var reader = ByteReader(bytes, part: "a pin")
      (vault, masterCommitment) = (try reader.bytes16(), try reader.array(32))
      (sequence, digest) = (try reader.number(), try reader.bytes16())
    } catch { throw malformed }
    guard sequence > 0 || digest == .zero else { throw malformed }
  }

  /// The text of the pin.
  var description: String {
    let bytes = encode(vault, masterCommitment, sequence, digest)
    let all = bytes + Self.checksum(of: bytes)
    let text = SecretBytes(all.span).base64(isURLSafe: true)
    return Self.prefix + text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
  }

  private static func checksum(of bytes: [UInt8]) -> [UInt8] {
    let message = Array(prefix.utf8) + bytes
    return Array(BLAKE2b.hash(message.span, count: 32)[..<checksumLength])
  }

  // MARK: Comparing

  /// Whether the pin names the vault and the master key of `file`.
  func names(_ file: VaultFile) -> Bool {
    vault == file.header.vaultID && masterCommitment == file.header.masterCommitment
  }

  /// Whether `vault` has been in the pinned state, or `nil` if its file does not show that any more. Throws
  /// `.rolledBack` if it has not.
  func isShown(by vault: VaultSnapshot) throws(SecretError) -> Bool? {
    if sequence == 0 { return true }
    let shown = try vault.shows(sequence) { tag in
      VaultPin(vault.file.header.vaultID, vault.keys, Checkpoint(sequence: sequence, tailTag: tag)) == self
    }
    guard shown != false else {
      throw SecretError(
        .rolledBack,
        "The vault at \(vault.file.path) is older than the pin says, or has another history: it is at change "
          + "\(vault.state.sequence), and the pin is of change \(sequence).",
        advice: "An older copy or a fork may have been put in its place.")
    }
    return shown
  }
}
