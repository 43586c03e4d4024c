package import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import Glibc

/// A vault's file as bytes in memory, such as a copy that came through a pipe. It is only read. Thread-safe.
package final class VaultImage: MediumFile {
  package let path: String
  private let bytes: [UInt8]

  /// `path` is for messages.
  init(_ bytes: [UInt8], path: String) { (self.bytes, self.path) = (bytes, path) }

  /// Reads `file` while others may append to it: its beginning says how much of it counts.
  init(of file: any MediumFile) throws(SecretError) {
    let beginning = try file.beginning(Layout.maximumHeaderLength + 2 * Layout.pageSize)
    let rest = try file.read(max(0, file.size() - beginning.count), at: beginning.count)
    (bytes, path) = (beginning + rest, file.path)
  }

  package var names: [String] { [path] }
  package func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    guard offset <= bytes.count, count <= bytes.count - offset else {
      throw .tampered("the file is cut short")
    }
    return Array(bytes[offset..<offset + count])
  }
  package func beginning(_ count: Int) throws(SecretError) -> [UInt8] {
    try read(min(count, bytes.count), at: 0)
  }
  package func size() throws(SecretError) -> Int { bytes.count }
  package func isCurrent() throws(SecretError) -> Bool { true }

  package let isWritable = false
  package let isReadableByOthers = false
  package func prepareForChange(allowingReaders: Bool) throws(SecretError) { throw unchangeable }
  package func tryLock(exclusive: Bool) throws(SecretError) -> Bool { true }
  package func unlock() throws(SecretError) {}
  package func tryLease(_ number: Int64) throws(SecretError) -> (any Sendable)? { throw unchangeable }
  package let mustBeReplaced = false
  package func synchronize() throws(SecretError) {}
  package func draft(_ purpose: DraftPurpose) throws(SecretError) -> any MediumDraft { throw unchangeable }
  package func publish(_ appendix: Appendix) throws(SecretError) -> Publication { throw unchangeable }

  private var unchangeable: SecretError { .io(FileSystemError(EROFS), "write", path: path) }
}
