package import CofferCore
internal import CofferSystem
package import CofferVaultFormat
internal import Glibc
internal import Synchronization

/// A vault's file, open, with its header parsed. Nothing in it is authenticated or decrypted.
package struct VaultFile: Sendable {
  let location: StorageLocation
  let storage: StorageFile
  /// `false` if the file belongs to another user, or if the system permits only reading.
  let isWritable: Bool
  private let user: UInt32
  package let header: Header
  /// The length of the header with its padding: the offset of the commit slots.
  package let headerLength: Int
  let condition: FileCondition

  var path: String { location.path }
  /// Whether other users may read the file.
  var isReadableByOthers: Bool { condition.now.status.mode & 0o044 != 0 }
  /// The offset of the first byte after the commit slots.
  package var baseStart: Int { headerLength + 2 * Layout.pageSize }

  /// Opens the file at `path`. `known` is the condition of the file that was open before; it is kept if the
  /// file is the same. Throws `.vaultNotFound`, `.notAVault`, `.denied`, `.unsupportedVersion`, `.tampered`
  /// or `.io`.
  package init(path: String, environment: VaultEnvironment, known: FileCondition? = nil) throws(SecretError) {
    location = try StorageLocation(path, in: environment.fileSystem)
    let (storage, isOpenForWriting) = try location.open()
    self.storage = storage
    let status = try storage.status()
    isWritable = isOpenForWriting && status.owner == environment.user
    guard status.isRegular else { throw .notAVault(path: path) }
    try Self.requireTrustworthy(status, to: environment.user, path: path)
    user = environment.user
    condition = known.flatMap { $0.now.status.isSameFile(as: status) ? $0 : nil } ?? FileCondition(status)
    let start = try storage.read(min(status.size, Layout.pageSize), at: 0)
    guard start.starts(with: Layout.magic) else {
      throw Layout.convertedMagics.contains(where: start.starts)
        ? .convertedLineEnds(path: path) : .notAVault(path: path)
    }
    headerLength = Header.paddedLength(try Header.length(ofHeaderBeginning: start))
    let bytes = headerLength == start.count ? start : try storage.read(headerLength, at: 0)
    header = try Header(parsing: bytes)
  }

  package var description: VaultDescription {
    VaultDescription(path: path, id: header.vaultID.hex, slots: header.slots)
  }

  /// Throws `.denied` unless the vault can be changed: by nobody else, and if not `allowingReaders`, read by nobody else.
  func requireWritable(allowingReaders: Bool) throws(SecretError) {
    if header.readOnlyCompatible != 0 {
      throw SecretError(
        .denied,
        "The vault at \(path) was last written by a later version of Coffer, and this one may only read it.",
        advice: "Update Coffer to change it.")
    }
    if !isWritable { throw .io(FileSystemError(EACCES), "write", path: path) }
    guard condition.now.status.mode & (allowingReaders ? 0o033 : 0o077) == 0 else {
      throw SecretError(
        .denied, "The vault at \(path) is open to other users, so it was not changed.",
        advice: "Close it with `chmod 600 \(path.quotedForShell)` first.")
    }
  }

  /// Throws `.denied` for a file that another user than this one and root owns or could change. Nobody but
  /// the two may have written what this user reads.
  private static func requireTrustworthy(
    _ status: FileStatus, to user: UInt32, path: String
  ) throws(SecretError) {
    guard status.owner == user || status.owner == 0 else {
      throw SecretError(
        .denied, "The vault at \(path) belongs to another user.",
        advice: "Use it as its owner, or copy it to a file of your own.")
    }
    guard status.mode & 0o022 == 0 else {
      throw SecretError(
        .denied, "Other users can change the vault at \(path).",
        advice: "Run `chmod go-w \(path.quotedForShell)`, and consider who may have changed it.")
    }
  }

  /// Whether the path still names this file. Throws `.denied` if other users have become able to change it.
  func isCurrent() throws(SecretError) -> Bool {
    guard let now = try location.statusOfPath(), now.isSameFile(as: condition.now.status) else {
      return false
    }
    condition.change { $0.status = now }
    try Self.requireTrustworthy(now, to: user, path: path)
    return true
  }

  /// Ensures that the file's name is on the disk, once for each file.
  ///
  /// The process that moved the file here may have failed before its last barrier. Without this one a power
  /// loss could bring the old file back, without the changes that are acknowledged from now on.
  func synchronizeName() throws(SecretError) {
    if condition.now.isNameDurable { return }
    try location.synchronize()
    condition.change { $0.isNameDurable = true }
  }

  /// Waits until the file and its name are on the disk.
  func synchronize() throws(SecretError) {
    do throws(SecretError) { try storage.synchronizeData() } catch {
      condition.change { $0.didFailSync = true }
      throw error
    }
    try synchronizeName()
  }
}

/// What this process knows of one file apart from its bytes. It outlives the descriptors of the file. Thread-safe.
package final class FileCondition: Sendable {
  struct Values {
    /// The newest status, which identifies the file.
    var status: FileStatus
    /// Whether the directory's entry for the file is known to be on the disk.
    var isNameDurable = false
    /// Whether a barrier failed. The system may have dropped the pages that it could not write and report them
    /// as clean, so the next change must write a new file.
    var didFailSync = false
    /// After a failed rewrite: the tail's replay length from which the next rewrite is tried.
    var nextRewrite = 0
  }
  private let values: Mutex<Values>

  init(_ status: FileStatus) { values = Mutex(Values(status: status)) }

  var now: Values { values.withLock { $0 } }
  func change(_ body: (inout Values) -> Void) { values.withLock { body(&$0) } }
}
