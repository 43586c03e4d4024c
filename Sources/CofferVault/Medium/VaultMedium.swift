package import CofferCore
package import CofferSystem

/// A place where a vault's file lies. A vault reads and changes its file only through this. Thread-safe.
///
/// ``LocalMedium`` is a file of this machine, ``RemoteMedium`` an object of an engine. Errors are about ``path``.
package protocol VaultMedium: AnyObject, Sendable {
  /// The place as the user named it.
  var path: String { get }

  /// Opens the file that is there now. Throws `.vaultNotFound`, `.notAVault`, `.denied` or `.io`.
  func open() throws(SecretError) -> any MediumFile

  /// Begins the file of a new vault. Throws `.alreadyExists` if there is anything at the place, and `.io` or `.denied`
  /// if nothing can be written there.
  func newFile() throws(SecretError) -> any MediumDraft

  /// Writes nothing. Throws like ``newFile()`` if the place is taken or does not exist.
  func requireVacant() throws(SecretError)

  /// Calls `onChange` after each change of the file, until the result is released. `onChange` must not block. Throws
  /// `.io` if the place does not exist yet or cannot be watched.
  func watch(_ onChange: @escaping @Sendable () -> Void) throws(SecretError) -> any DirectoryWatch

  /// Whether the same file is at the place of `other`.
  func isSamePlace(as other: any VaultMedium) -> Bool
}

/// An open vault file. It stays the same file when another one takes its place. Thread-safe.
package protocol MediumFile: AnyObject, Sendable {
  /// The place as the user named it.
  var path: String { get }
  /// The names of the place, for records: the absolute ``path``, then the path with the links of its directory
  /// resolved, then the path with all links resolved. Each name occurs once.
  var names: [String] { get }

  /// Reads `count` bytes at `offset`. Throws `.tampered` if the file ends before them, and `.io`.
  func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8]
  /// Reads the first bytes of the file, `count` of them or fewer if there are no more. Throws `.io`.
  func beginning(_ count: Int) throws(SecretError) -> [UInt8]
  /// The size of the file in bytes.
  func size() throws(SecretError) -> Int

  /// Returns the file that is at the place now if it is this one, perhaps with later changes, or `nil` if another one
  /// is there. Throws `.denied` if others have become able to change it, and `.io`.
  func current() throws(SecretError) -> (any MediumFile)?
  /// Whether the file is on another machine. Then nobody vouches for it at its first use, and a change of a state that
  /// is not the newest is refused instead of kept out by a lock.
  var isRemote: Bool { get }
  /// The same for two objects that are one file in one state.
  var identity: ObjectIdentifier { get }
  /// Keeps a copy of the file, which was just accepted, if that is remote.
  func keepCopy()

  // MARK: Rights

  /// `false` if this user may only read the file.
  var isWritable: Bool { get }
  /// Whether other users may read the file.
  var isReadableByOthers: Bool { get }
  /// Throws `.denied` unless this user may change the file and nobody else may. Without `allowingReaders`, nobody else
  /// may read it either. Prepares the change as far as that needs no lock.
  func prepareForChange(allowingReaders: Bool) throws(SecretError)

  // MARK: Locks

  /// Takes the lock that keeps other programs from changing the file, and with `exclusive` also from reading it under
  /// the lock. Returns `false` if another program has it. A medium that refuses late changes needs no lock, and returns
  /// `true`.
  func tryLock(exclusive: Bool) throws(SecretError) -> Bool
  func unlock() throws(SecretError)
  /// Takes a lease by its number, 0…2⁶²−1. Returns an object that holds it until released, or `nil` if it is taken.
  func tryLease(_ number: Int64) throws(SecretError) -> (any Sendable)?

  // MARK: Changes

  /// Whether the next change must write a whole new file, because what is written to this one may be lost.
  var mustBeReplaced: Bool { get }
  /// Waits until what others have written to the file cannot be lost any more.
  func synchronize() throws(SecretError)
  /// Begins a file that takes the place of this one when it is published.
  func draft() throws(SecretError) -> any MediumDraft
  /// Publishes a change at the end of the file. Returns how that ended, and the file with the change. If it throws,
  /// nothing was changed, unless it throws `.outcomeUnknown`.
  func publish(_ appendix: Appendix) throws(SecretError) -> (Publication, any MediumFile)
}

extension MediumFile {
  package var isRemote: Bool { false }
  package var identity: ObjectIdentifier { ObjectIdentifier(self) }
  package func keepCopy() {}
}

/// A file that is being written and is not yet a vault. It is removed with its last reference, unless it was published.
/// Not thread-safe.
package protocol MediumDraft: AnyObject {
  /// Throws `.tooLarge` if the medium holds no file of that size, and `.io`.
  func write(_ bytes: [UInt8], at offset: Int) throws(SecretError)
  /// Puts the file in its place. If it throws, nothing was changed, unless it throws `.outcomeUnknown`. Nobody else
  /// changes a new file of this machine as long as the draft exists.
  func publish() throws(SecretError) -> Publication
}

/// What a commit adds to a file: bytes behind the end of the last commit, and the commit slots that make them count. Or
/// no bytes, and in place of the slots the page of leases of a vault on an engine.
package struct Appendix {
  /// The end of the last commit. The bytes after it were never acknowledged.
  package let offset: Int
  package let bytes: [UInt8]
  /// Both commit slots. The other slot of the file must stay whole until the first of them is safe.
  package let slots: [(offset: Int, page: [UInt8])]
}

/// How the publishing of a change has ended.
package enum Publication {
  /// The change counts and cannot be lost any more.
  case done
  /// The file has changed since it was opened. If it is remote, this change may be what changed it: a request can
  /// come twice.
  case refused
  /// The change counts, but may be lost if the power fails, because of the error.
  case unconfirmed(SecretError)
}
