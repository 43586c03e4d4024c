package import CofferCore
package import CofferSystem
internal import CofferLibc
internal import Synchronization

/// The place of a vault's file on this machine: a path.
package final class LocalMedium: VaultMedium {
  package let path: String
  private let environment: VaultEnvironment
  /// What is known of the file that was opened last.
  private let facts = Mutex<FileFacts?>(nil)

  package init(path: String, environment: VaultEnvironment) {
    (self.path, self.environment) = (path, environment)
  }

  package func open() throws(SecretError) -> any MediumFile {
    let location = try StorageLocation(path, in: environment.fileSystem)
    let (storage, isOpenForWriting) = try location.open()
    let status = try storage.status()
    guard status.isRegular else { throw .notAVault(path: path) }
    let facts = facts.withLock { facts in
      if let known = facts, known.now.status.isSameFile(as: status) {
        // Another file may have the same inode by now.
        known.change { ($0.status, $0.isNameDurable) = (status, false) }
        return known
      }
      let new = FileFacts(status)
      facts = new
      return new
    }
    return try LocalFile(storage, at: location, isOpenForWriting: isOpenForWriting, facts, environment)
  }

  private func newLocation() throws(SecretError) -> StorageLocation {
    do throws(SecretError) {
      return try StorageLocation(path, in: environment.fileSystem, to: "make")
    } catch {
      guard error.code == .vaultNotFound else { throw error }
      throw SecretError(.io, "There is no directory for a vault at \(path).", advice: "Make it first, with mode 700.")
    }
  }

  package func requireVacant() throws(SecretError) { try newLocation().requireVacant() }

  package func newFile() throws(SecretError) -> any MediumDraft {
    try LocalDraft(at: newLocation(), environment)
  }

  package func watch(_ onChange: @escaping @Sendable () -> Void) throws(SecretError) -> any DirectoryWatch {
    try StorageLocation(path, in: environment.fileSystem).watch(onChange)
  }

  package func isSamePlace(as other: any VaultMedium) -> Bool { Path.isSameFile(path, other.path) }

  /// The absolute path, without empty and `.` components. Links are not resolved.
  static func absolute(_ path: String) -> String {
    let full: String
    do throws(SecretError) { full = try Path.absolute(path) } catch { full = path }
    return "/" + full.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
  }
}

extension [String] {
  /// Whether one of the texts has the bytes of `text`. Swift's `==` ignores how characters are encoded.
  func hasBytes(of text: String) -> Bool { contains { $0.utf8.elementsEqual(text.utf8) } }
}

/// What this process knows of one file apart from its bytes. It outlives the descriptors of the file. Thread-safe.
final class FileFacts: Sendable {
  struct Values {
    /// The newest status, which identifies the file.
    var status: FileStatus
    /// Whether the directory's entry for the file is known to be on the disk.
    var isNameDurable = false
    /// Whether a barrier failed. The system may have dropped the pages that it could not write and report them as
    /// clean, so the next change must write a new file.
    var didFailSync = false
  }
  private let values: Mutex<Values>

  init(_ status: FileStatus) { values = Mutex(Values(status: status)) }

  var now: Values { values.withLock { $0 } }
  func change(_ body: (inout Values) -> Void) { values.withLock { body(&$0) } }
}
