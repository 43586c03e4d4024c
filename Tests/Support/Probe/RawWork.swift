internal import CSodium
internal import Glibc

/// The calls of libsodium that a vault makes, without the vault.
struct RawSodium {
  private var key = [UInt8](repeating: 1, count: 32)
  private var nonce = [UInt8](repeating: 2, count: 24)
  private var plaintext: [UInt8]
  private var sealed: [UInt8]

  init(size: Int) {
    plaintext = [UInt8](repeating: 3, count: size)
    sealed = [UInt8](repeating: 0, count: size + 16)
    seal()
  }

  mutating func seal() {
    crypto_aead_xchacha20poly1305_ietf_encrypt(
      &sealed, nil, plaintext, UInt64(plaintext.count), nil, 0, nil, nonce, key)
  }

  mutating func open() {
    _ = crypto_aead_xchacha20poly1305_ietf_decrypt(
      &plaintext, nil, nil, sealed, UInt64(sealed.count), nil, 0, nonce, key)
  }
}

/// Reads a file from front to back, writes a copy, and waits until the copy is on the disk.
func copyDurably(_ path: String, to copy: String) {
  let (source, target) = (open(path, O_RDONLY), open(copy, O_RDWR | O_CREAT | O_TRUNC, 0o600))
  guard source >= 0, target >= 0 else { fatalError("\(path) cannot be copied") }
  var bytes = [UInt8](repeating: 0, count: 1 << 20)
  while case let count = read(source, &bytes, bytes.count), count > 0 {
    guard write(target, bytes, count) == count else { fatalError("\(copy) cannot be written") }
  }
  fsync(target)
  close(source)
  close(target)
}

/// The system calls of one durable change: an append with a barrier, a page with a barrier, and a second page.
final class RawCommit {
  private let file: Int32
  private var end: Int
  private let page = [UInt8](repeating: 5, count: 4096)
  private var slot = 0

  init(path: String) {
    file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
    end = pwrite(file, [UInt8](repeating: 1, count: 3 * page.count), 3 * page.count, 0)
    fsync(file)
  }

  deinit { close(file) }

  func commit(_ frame: [UInt8]) {
    end += pwrite(file, frame, frame.count, end)
    fdatasync(file)
    slot = 1 - slot
    pwrite(file, page, page.count, 4096 * (1 + slot))
    fdatasync(file)
    pwrite(file, page, page.count, 4096 * (2 - slot))
  }
}
