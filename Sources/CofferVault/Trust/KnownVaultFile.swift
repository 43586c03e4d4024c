internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

/// The file of one known-vault record: what was seen of the vault at one path, or of one vault at any path.
///
/// The file begins with two slots. A change overwrites one slot in place, without a barrier. The other slot is on the
/// disk, so a power loss leaves at least one of them.
struct KnownVaultFile {
  /// What a record is about: a path, or the vault with an id, in hexadecimal digits. No path begins with a NUL.
  struct Subject: Hashable {
    let text: String

    static func path(_ path: String) -> Subject { Subject(text: path) }
    static func vault(_ id: String) -> Subject { Subject(text: "\0" + id) }

    var isVault: Bool { text.utf8.first == 0 }

    /// The name of the record's file.
    var fileName: String { BLAKE2b.hash(text.utf8.span, count: 16).withUnsafeBytes { Bytes16($0) }.hex }
  }

  let subject: Subject
  /// The path of the vault that is compared with the record.
  let path: String
  let location: StorageLocation
  private let environment: VaultEnvironment

  /// How long a process tries to lock a record that another one may be changing, and the pause between two attempts.
  private static let (lockTime, lockPause) = (Duration.milliseconds(100), Duration.milliseconds(5))
  /// The largest file in bytes: two slots, and a text with its length.
  private static let maximumSize = 2 * KnownVaultRecord.slotLength + 2 + Int(UInt16.max)

  /// The record about `subject` in the open `directory`, for the vault at `path`.
  init(about subject: Subject, of path: String, in directory: StorageLocation, environment: VaultEnvironment) {
    (self.subject, self.path, self.environment) = (subject, path, environment)
    location = StorageLocation(named: subject.fileName, beside: directory, path: path)
  }

  /// The text at the end of the file: `path`; for a vault, the subject's text before it.
  private func ending(_ path: String) -> String { subject.isVault ? subject.text + path : path }

  /// Returns the record, or `nil` if there is none. Throws `.unverifiable` if it cannot be read or is damaged.
  ///
  /// An invalid slot may be one that another process is writing: the file is then read again under a lock.
  func load() throws(SecretError) -> Slots? {
    guard let opened = try open() else { return nil }
    do throws(SecretError) {
      let slots = try slots(of: opened)
      if !slots.isHalfDamaged { return slots }
    } catch {
      // Reading again, below, decides.
    }
    do throws(SecretError) {
      if let locked = try lock(exclusive: false) { return try slots(of: locked) }
    } catch {
      // If the file cannot be locked, the open one is read again.
    }
    return try slots(of: opened)
  }

  /// The records of paths below `parent` that are beside this one. Those that cannot be read are left out.
  func records(below parent: String) -> [KnownVaultRecord] {
    let directory = Path.parent(of: location.resolvedPath)
    var names: [String] = []
    do throws(FileSystemError) { names = try Path.names(inDirectory: directory) } catch {}
    return names.compactMap { name in
      let bytes = beginning(ofFile: "\(directory)/\(name)", count: Self.maximumSize) ?? []
      let other = String(decoding: bytes.dropFirst(2 * KnownVaultRecord.slotLength + 2), as: UTF8.self)
      guard other.hasPrefix(parent + "/") else { return nil }
      let record = KnownVaultFile(about: .path(other), of: other, in: location, environment: environment)
      do throws(SecretError) { return try record.load()?.newest.record } catch { return nil }
    }
  }

  /// The open file of the record.
  struct Opened {
    fileprivate let file: StorageFile
    fileprivate let status: FileStatus
  }

  /// Locks the file, or returns `nil` if there is none. Throws `.timedOut` if other processes keep it locked for
  /// `timeout`.
  func lock(exclusive: Bool = true, timeout: Duration = Self.lockTime) throws(SecretError) -> Opened? {
    let attempts = Int(timeout / Self.lockPause)
    for attempt in 0...attempts {
      guard let opened = try open() else { return nil }
      if try opened.file.tryLock(exclusive: exclusive) {
        let now = try location.status()
        if now.isSameFile(as: opened.status) { return Opened(file: opened.file, status: now) }
      }
      if attempt < attempts { environment.sleep(Self.lockPause) }
    }
    throw SecretError(
      .timedOut, "Another process keeps the record of what was seen of the vault at \(path) locked.",
      advice: "Try again.")
  }

  /// Opens the file, or returns `nil` if there is none.
  private func open() throws(SecretError) -> Opened? {
    let (file, status): (StorageFile, FileStatus)
    do throws(SecretError) {
      file = try location.open().file
      status = try file.status()
      // An interrupted rename may have left a second name of the file, the temporary one.
      if status.links > 1 { location.removeAbandoned(of: environment.user) }
    } catch {
      if error.code == .vaultNotFound, isVacant { return nil }
      throw .unread(error, vault: path, location.resolvedPath)
        ?? .unverifiable(path: path, "its record cannot be read")
    }
    guard status.isRegular, status.owner == environment.user, status.mode & 0o077 == 0 else {
      throw .unverifiable(path: path, "its record is not a private file of this user")
    }
    return Opened(file: file, status: status)
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
    /// The path at the end of the file. In the record of a vault: where its key was seen last.
    let path: String

    /// `nil` if neither slot is valid.
    init?(_ first: SeenState?, _ second: SeenState?, path: String) {
      let sequences = [first, second].map { $0?.record.checkpoint.sequence ?? -1 }
      newestIndex = sequences[0] >= sequences[1] ? 0 : 1
      let (newest, other) = newestIndex == 0 ? (first, second) : (second, first)
      guard let newest else { return nil }
      (self.newest, self.other, self.path) = (newest, other, path)
    }

    var isHalfDamaged: Bool { other == nil }
  }

  /// Reads both slots. Throws `.unverifiable` if neither is valid, or if the file is about something else, and
  /// `.unsupportedVersion` if a later version of Coffer wrote it.
  func slots(of opened: Opened) throws(SecretError) -> Slots {
    let length = KnownVaultRecord.slotLength
    let bytes: [UInt8]
    do throws(SecretError) {
      let size = opened.status.size
      bytes = size <= Self.maximumSize ? try opened.file.read(size, at: 0) : []
    } catch {
      throw .unread(error, vault: path, location.resolvedPath)
        ?? .unverifiable(path: path, "its record cannot be read")
    }
    let ending = String(decoding: bytes.dropFirst(2 * length + 2), as: UTF8.self)
    let rest = ending.utf8.dropFirst(subject.text.utf8.count)
    // Of a record of a later version, only the place of the slots is known.
    let slots =
      bytes.count < 2 * length
      ? nil
      : Slots(
        try content(Array(bytes[..<length]), ending), try content(Array(bytes[length..<2 * length]), ending),
        path: subject.isVault ? String(rest) ?? "" : path)
    guard let slots, bytes.dropFirst(2 * length).elementsEqual(sized(ending)),
      ending.utf8.starts(with: subject.text.utf8), subject.isVault || rest.isEmpty
    else { throw .unverifiable(path: path, "its record is damaged") }
    return slots
  }

  /// Returns `nil` if the slot is invalid. Throws `.unsupportedVersion`.
  private func content(_ slot: [UInt8], _ ending: String) throws(SecretError) -> SeenState? {
    let hashed = Array(slot[..<KnownVaultRecord.hashedLength])
    guard Self.withHash(hashed) == slot else { return nil }
    do throws(SecretError) {
      let (record, mac) = try KnownVaultRecord.parse(hashed)
      let isOfSubject = record.policy == .key ? subject == .vault(record.vault.hex) : !subject.isVault
      return isOfSubject ? SeenState(record, text: ending, mac: mac) : nil
    } catch {
      if error.code == .unsupportedVersion {
        throw SecretError(
          error.code,
          "A later version of Coffer wrote \(location.resolvedPath), the record of what was seen of the vault at \(path).",
          advice: error.advice)
      }
      return nil
    }
  }

  private func slot(_ record: KnownVaultRecord, _ keys: DerivedKeys, _ path: String) -> [UInt8] {
    Self.withHash(record.hashedBytes(mac: SeenState(record, text: ending(path), keys).mac))
  }

  private static func withHash(_ bytes: [UInt8]) -> [UInt8] { bytes + BLAKE2b.hash(bytes.span, count: 16) }

  // MARK: Writing

  /// Creates the file, or replaces it by a new one, which ends with the path of the vault, or with `place`. Returns
  /// when it is on the disk. Throws `.alreadyExists` if the file exists and `replacing` is `false`.
  func make(
    _ record: KnownVaultRecord, _ keys: DerivedKeys, replacing: Bool, place: String? = nil
  ) throws(SecretError) {
    var record = record
    if subject.isVault { (record.policy, record.isDetached) = (.key, false) }
    location.removeAbandoned(of: environment.user)
    let new = try location.createNew(environment.randomness)
    do throws(SecretError) {
      let slot = slot(record, keys, place ?? path)
      try StorageFile(new.file, path: path).write(slot + slot + sized(ending(place ?? path)), at: 0)
      try location.put(new, replacing: replacing)
    } catch {
      new.abandon()
      throw error
    }
    try location.synchronize()
  }

  /// Writes `record` to the file if it is newer, or if a slot is damaged. Keeps the file's policy and scope. The state
  /// that `record` names must be on the disk. `locked` is the file if it is locked already.
  ///
  /// `judge` gets the file's present slots, and throws if the vault is not a later state of them. With `false`, they
  /// stay. Returns `false` if there is no record.
  func record(
    later record: KnownVaultRecord, _ keys: DerivedKeys, _ locked: Opened?,
    judge: (Slots) throws(SecretError) -> Bool
  ) throws(SecretError) -> Bool {
    var locked = locked
    if locked == nil { locked = try lock() }
    guard let locked else { return false }
    let slots = try slots(of: locked)
    guard try judge(slots) else { return true }
    let known = slots.newest.record
    var record = record
    (record.policy, record.isDetached) = (known.policy, known.isDetached)
    let (old, new) = (known.checkpoint.sequence, record.checkpoint.sequence)
    // A record that says that a key was removed must be on the disk before the removal is acknowledged.
    let isNewKey = known.masterCommitment != record.masterCommitment
    let contradicts = isNewKey || known.policy == .versioned && new <= old && record != known
    guard contradicts || new > old || (new == old && slots.other == nil) else { return true }
    // A second name of the file may be that of a backup, so the file is not changed in place.
    if contradicts || locked.status.links > 1 {
      try make(record, keys, replacing: true, place: isNewKey ? nil : slots.path)
      return true
    }
    // The slot that is not overwritten must be on the disk.
    var target = 1 - slots.newestIndex
    switch slots.other.map({ old - $0.record.checkpoint.sequence }) {
    case 0?: break
    case let distance? where distance < environment.recordRoleChangeDistance: target = slots.newestIndex
    default: try locked.file.synchronizeData()
    }
    try locked.file.write(slot(record, keys, slots.path), at: target * KnownVaultRecord.slotLength)
    return true
  }
}
