internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

/// The file of one known-vault record: the state that was seen of the vault at one path.
///
/// The file begins with two slots. A change overwrites one slot in place and without a barrier, while the
/// other is on the disk, so that a power loss leaves at least one of them.
struct KnownVaultFile {
  /// The path of the vault, which the record is about.
  let path: String
  private let location: StorageLocation
  private let environment: VaultEnvironment

  /// How often a process tries to lock a record that another one may be changing, and the pause in between.
  private static let lockAttempts = 20
  private static let lockPause = Duration.milliseconds(5)

  /// The record about the vault at `path` in `directory`. Returns `nil` if there is no such directory. Throws
  /// `.unverifiable` if it cannot be opened, or if another user can write to it.
  init?(
    about path: String, in directory: KnownVaultDirectory, environment: VaultEnvironment
  ) throws(SecretError) {
    self.path = path
    self.environment = environment
    guard let location = try directory.location(of: Self.name(for: path), about: path) else { return nil }
    self.location = location
  }

  /// The name of the file about the vault at `path`.
  static func name(for path: String) -> String {
    BLAKE2b.hash(path.utf8.span, count: 16).withUnsafeBytes { Bytes16($0) }.hex
  }

  /// The ids of the vaults in the slots of a file that are not damaged.
  static func vaults(in bytes: [UInt8]) -> [String] {
    [0, KnownVaultRecord.slotLength].compactMap { start in
      let hashed = Array(bytes.dropFirst(start).prefix(KnownVaultRecord.hashedLength))
      do throws(SecretError) { return try KnownVaultRecord.parse(hashed).0.vault.hex } catch { return nil }
    }
  }

  /// Returns the record, or `nil` if there is none. Throws `.unverifiable` if it cannot be read or is
  /// damaged.
  ///
  /// Another process may be writing to a slot that is not valid, so that the file is then read again under a
  /// lock.
  func load() throws(SecretError) -> Slots? {
    guard let (file, status) = try open() else { return nil }
    do throws(SecretError) {
      let slots = try slots(of: file, status)
      if !slots.isHalfDamaged { return slots }
    } catch {
      // Reading again decides.
    }
    do throws(SecretError) { _ = try lock(file, exclusive: false) } catch {
      // The file is then read without the lock.
    }
    return try slots(of: file, status)
  }

  /// Returns `false` if other processes keep the record locked.
  private func lock(_ file: StorageFile, exclusive: Bool) throws(SecretError) -> Bool {
    for attempt in 1...Self.lockAttempts {
      if try file.tryLock(exclusive: exclusive) { return true }
      if attempt < Self.lockAttempts { environment.sleep(Self.lockPause) }
    }
    return false
  }

  /// Opens the file, or returns `nil` if there is none.
  private func open() throws(SecretError) -> (StorageFile, FileStatus)? {
    let (file, status): (StorageFile, FileStatus)
    do throws(SecretError) {
      file = try location.open().file
      status = try file.status()
      // An interrupted rename may have left the name of the temporary file as well.
      if status.links > 1 { location.removeAbandoned(of: environment.user) }
    } catch {
      if error.code == .vaultNotFound, isVacant { return nil }
      throw .unverifiable(path: path, "its record cannot be read")
    }
    guard status.isRegular, status.owner == environment.user, status.mode & 0o077 == 0 else {
      throw .unverifiable(path: path, "its record is not a private file of this user")
    }
    return (file, status)
  }

  /// Whether there is nothing with the name, not even a link.
  private var isVacant: Bool {
    do throws(SecretError) { try location.requireVacant() } catch { return false }
    return true
  }

  // MARK: Slots

  /// What the file holds.
  struct Slots {
    /// The index of the valid slot with the higher sequence.
    let newestIndex: Int
    let newest: SeenState
    /// The other slot; `nil` if it is not valid.
    let other: SeenState?

    /// `nil` if neither slot is valid.
    init?(_ first: SeenState?, _ second: SeenState?) {
      switch (first, second) {
      case (let first?, let second?):
        let isFirst = first.record.checkpoint.sequence >= second.record.checkpoint.sequence
        (newestIndex, newest, other) = isFirst ? (0, first, second) : (1, second, first)
      case (let first?, nil): (newestIndex, newest, other) = (0, first, nil)
      case (nil, let second?): (newestIndex, newest, other) = (1, second, nil)
      case (nil, nil): return nil
      }
    }

    var isHalfDamaged: Bool { other == nil }
  }

  private var trailer: [UInt8] { encode(Text(path)) }

  /// Reads both slots. Throws `.unverifiable` if neither is valid, or if the file is not about this path.
  private func slots(of file: StorageFile, _ status: FileStatus) throws(SecretError) -> Slots {
    let length = KnownVaultRecord.slotLength
    let bytes: [UInt8]
    let size = 2 * length + trailer.count
    do throws(SecretError) { bytes = status.size == size ? try file.read(size, at: 0) : [] } catch {
      throw .unverifiable(path: path, "its record cannot be read")
    }
    guard bytes.count == size, bytes[(2 * length)...].elementsEqual(trailer),
      let slots = Slots(content(Array(bytes[..<length])), content(Array(bytes[length..<2 * length])))
    else { throw .unverifiable(path: path, "its record is damaged") }
    return slots
  }

  private func content(_ slot: [UInt8]) -> SeenState? {
    let hashed = Array(slot[..<KnownVaultRecord.hashedLength])
    guard Self.withHash(hashed) == slot else { return nil }
    do throws(SecretError) {
      let (record, mac) = try KnownVaultRecord.parse(hashed)
      return SeenState(record, path: path, mac: mac)
    } catch {
      return nil
    }
  }

  private func slot(_ record: KnownVaultRecord, _ keys: DerivedKeys) -> [UInt8] {
    Self.withHash(record.hashedBytes(mac: SeenState(record, path: path, keys).mac))
  }

  private static func withHash(_ bytes: [UInt8]) -> [UInt8] { bytes + BLAKE2b.hash(bytes.span, count: 16) }

  // MARK: Writing

  /// Creates the file, or replaces it by a new one. Returns when it is on the disk. Throws `.alreadyExists`
  /// if there is a file and it is not to be replaced.
  func make(_ record: KnownVaultRecord, _ keys: DerivedKeys, replacing: Bool) throws(SecretError) {
    location.removeAbandoned(of: environment.user)
    let new = try location.createNew(environment.randomness)
    do throws(SecretError) {
      let slot = slot(record, keys)
      try StorageFile(new.file, path: path).write(slot + slot + trailer, at: 0)
      try location.put(new, replacing: replacing)
    } catch {
      new.abandon()
      throw error
    }
    try location.synchronize()
  }

  /// Changes the record to `record`, except for the policy, if that is newer or if a slot is damaged. The
  /// state that `record` names must be on the disk.
  ///
  /// `judge` throws if the vault does not follow from what the record says by now. Returns `false` if the record stays
  /// as it is because another process keeps it locked or replaces it.
  func raise(
    to record: KnownVaultRecord, _ keys: DerivedKeys, judge: (SeenState) throws(SecretError) -> Void
  ) throws(SecretError) -> Bool {
    guard let (file, opened) = try open(), try lock(file, exclusive: true) else { return false }
    let status = try location.status()
    guard status.isSameFile(as: opened) else { return false }
    let slots = try slots(of: file, status)
    try judge(slots.newest)
    let known = slots.newest.record
    var record = record
    record.policy = known.policy
    let (old, new) = (known.checkpoint.sequence, record.checkpoint.sequence)
    if known.policy == .versioned, new <= old, record != known {
      try make(record, keys, replacing: true)
      return true
    }
    guard new > old || (new == old && slots.other == nil) else { return true }
    // The other name may be that of a backup.
    if status.links > 1 {
      try make(record, keys, replacing: true)
      return true
    }
    // The spared slot must be on the disk.
    var target = 1 - slots.newestIndex
    switch slots.other.map({ old - $0.record.checkpoint.sequence }) {
    case 0?: break
    case let distance? where distance < environment.recordRoleChangeDistance: target = slots.newestIndex
    default: try file.synchronizeData()
    }
    try file.write(slot(record, keys), at: target * KnownVaultRecord.slotLength)
    return true
  }
}
