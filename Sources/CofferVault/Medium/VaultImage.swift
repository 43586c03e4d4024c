package import CofferCore
internal import CofferSystem
internal import CofferVaultFormat
internal import CofferLibc

/// A copy of a vault as it was at one moment: bytes that came through a pipe, or a file. It is only read. Thread-safe.
package final class VaultImage: MediumFile {
  package let path: String
  /// The whole file, or its beginning with the header, the commit slots and the leases.
  private let bytes: [UInt8]
  private let file: (any MediumFile)?

  /// `path` is for messages.
  init(_ bytes: [UInt8], path: String) { (self.bytes, file, self.path) = (bytes, nil, path) }

  /// `file`, in the state that it has now. Others may go on to append to it.
  init(of file: any MediumFile) throws(SecretError) {
    bytes = try file.beginning(Layout.maximumHeaderLength + Layout.pagesLength)
    (self.file, path) = (file, file.path)
  }

  package var names: [String] { [path] }
  package func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    let known = Array(bytes.dropFirst(offset).prefix(count))
    if known.count == count { return known }
    guard let file else { throw .tampered("the file is cut short") }
    return try known + file.read(count - known.count, at: offset + known.count)
  }
  package func beginning(_ count: Int) throws(SecretError) -> [UInt8] {
    try read(min(count, bytes.count), at: 0)
  }
  package func size() throws(SecretError) -> Int { try file?.size() ?? bytes.count }
  package func current() throws(SecretError) -> (any MediumFile)? { self }

  package let isWritable = false
  package let isReadableByOthers = false
  package func prepareForChange(allowingReaders: Bool) throws(SecretError) { throw unchangeable }
  package func tryLock(exclusive: Bool) throws(SecretError) -> Bool { true }
  package func unlock() throws(SecretError) {}
  package func tryLease(_ number: Int64) throws(SecretError) -> (any Sendable)? { throw unchangeable }
  package let mustBeReplaced = false
  package func synchronize() throws(SecretError) {}
  package func draft() throws(SecretError) -> any MediumDraft { throw unchangeable }
  package func publish(_ appendix: Appendix) throws(SecretError) -> (Publication, any MediumFile) {
    throw unchangeable
  }

  private var unchangeable: SecretError { .io(FileSystemError(EROFS), "write", path: path) }
}
