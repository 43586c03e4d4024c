internal import CSodium

/// The hash function BLAKE2b (RFC 7693) of libsodium. Hashes have 16…64 bytes, and keys 16…64. Thread-safe.
package enum BLAKE2b {
  /// Returns the hash of `message` with `count` bytes, under `key` if there is one.
  package static func hash(_ message: Span<UInt8>, key: SecretBytes? = nil, count: Int) -> [UInt8] {
    var output = [UInt8](repeating: 0, count: count)
    output.withUnsafeMutableBytes { hash(message, key: key, into: $0) }
    return output
  }

  /// Fills `output` with the hash of `message`, under `key` if there is one.
  package static func hash(
    _ message: Span<UInt8>, key: SecretBytes? = nil, into output: UnsafeMutableRawBufferPointer
  ) {
    guard let key else { return hash(message, UnsafeBufferPointer(start: nil, count: 0), output) }
    key.withBytes { $0.withUnsafeBufferPointer { hash(message, $0, output) } }
  }

  private static func hash(
    _ message: Span<UInt8>, _ key: UnsafeBufferPointer<UInt8>, _ output: UnsafeMutableRawBufferPointer
  ) {
    _ = GuardedMemory.isReady
    defer { Residue.clear() }
    let output = output.bindMemory(to: UInt8.self)
    let result = message.withUnsafeBufferPointer { message in
      output.baseAddress.map {
        crypto_generichash($0, output.count, message.baseAddress, UInt64(message.count), key.baseAddress, key.count)
      }
    }
    precondition(result == 0, "a hash or its key has a wrong length")
  }
}
