internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

/// Refuses a vault that is not the one that was seen at its path, or not a later state of it.
///
/// This process remembers the state that it saw. With a directory, it also keeps a record for each of up to three paths of
/// the vault: the path as the user wrote it; the path with the links in its directory resolved; and the path with all links
/// resolved. A link or a renamed directory therefore cannot put an older copy in the vault's place. The first use of a path
/// is trusted.
struct KnownVaults {
  private let environment: VaultEnvironment
  /// The directory of the records. `nil`: only the memory of this process is compared with the vault.
  private let directory: KnownVaultDirectory?
  private let firstUsePolicy: KnownVaultRecord.Policy
  private let pins: [String]
  private let namedPath: String
  /// What this process has accepted is in it.
  private let shared: SharedSnapshot
  private var places: [KnownVaultFile] = []
  /// The state that was recorded last, or `nil` if that failed, and the time of the last attempt.
  private var recorded: (checkpoint: Checkpoint?, time: Duration)?
  /// The states that other programs write are recorded at most once in this time: it needs barriers.
  private static let recordingPeriod = Duration.seconds(1)
  /// Whether there was no record of the vault at its first use by this process.
  private(set) var isFirstUse = false
  /// Whether a slot of a record was damaged. The other slot was used.
  private(set) var isRecordDamaged = false
  /// Whether a record could not be written.
  private(set) var isUnrecorded = false

  init(path: String, options: VaultOptions, environment: VaultEnvironment, shared: SharedSnapshot) {
    self.shared = shared
    directory = options.knownVaultsDirectory.map { KnownVaultDirectory($0, environment: environment) }
    firstUsePolicy = (options.firstUsePolicy ?? .strict).recorded
    self.environment = environment
    pins = options.pins
    namedPath = Self.absolute(path)
  }

  // MARK: Checking

  /// Checks before a key is tried that the file is the vault that was seen. Throws `.unexpectedVault` or
  /// `.unverifiable`.
  mutating func identify(_ file: VaultFile) throws(SecretError) {
    try requirePin(of: file) { pin throws(SecretError) in try pin.requireIdentity(file) }
    try locate(file)
    if let accepted = shared.accepted, accepted.record.vault != file.header.vaultID {
      throw .unexpectedVault(path: file.path)
    }
    for place in places {
      if let known = try place.load(), known.newest.record.vault != file.header.vaultID {
        throw .unexpectedVault(path: place.path)
      }
    }
  }

  /// Admits a file that was just opened, after ``identify(_:)``, and publishes it. Throws `.rolledBack`,
  /// `.unexpectedVault`, `.unexpectedKey` or `.unverifiable`.
  ///
  /// The records are read again, because a prompt may have lasted since ``identify(_:)``, and another process may have
  /// recorded a later state.
  mutating func admitAndPublish(_ opened: VaultSnapshot) throws(SecretError) {
    try requirePins(of: opened)
    let accepted = shared.accepted
    if let accepted { try Self.check(opened, against: accepted, path: opened.file.path) }
    var known: [KnownVaultFile.Slots?] = []
    for place in places {
      let found = try place.load()
      if let found { try Self.check(opened, against: found.newest, path: place.path) }
      known.append(found)
    }
    guard opened.keys.isVouchedFor || !pins.isEmpty || accepted != nil || known.contains(where: { $0 != nil })
    else { throw .untrusted(path: opened.file.path) }
    let policy =
      known.compactMap { $0?.newest.record.policy }.min() ?? accepted?.record.policy ?? firstUsePolicy
    let record = Self.record(of: opened, policy)
    shared.publish(opened, SeenState(record, opened.keys))
    isUnrecorded = directory != nil && places.isEmpty
    if accepted == nil { isFirstUse = !places.isEmpty && known.allSatisfy { $0 == nil } }
    for (place, known) in zip(places, known) { remember(record, in: known, at: place, opened) }
    // A record that could not be written is tried again with the next state.
    recorded = (record.checkpoint, environment.uptime())
  }

  /// Throws unless one of the pins accepts the vault, if there are any.
  private func requirePins(of opened: VaultSnapshot) throws(SecretError) {
    try requirePin(of: opened.file) { pin throws(SecretError) in
      try pin.requireIdentity(opened.file)
      _ = try pin.isShown(by: opened)
    }
  }

  private func requirePin(
    of file: VaultFile, _ check: (VaultPin) throws(SecretError) -> Void
  ) throws(SecretError) {
    var refusal: SecretError?
    // A mistyped pin is an error even if another one accepts the vault.
    for pin in try pins.map({ text throws(SecretError) in try VaultPin(text) }) {
      do throws(SecretError) {
        try check(pin)
        return
      } catch {
        // What the pin of this vault says is more than that another pin is not of it.
        if refusal == nil || error.code != .unexpectedVault { refusal = error }
      }
    }
    guard let refusal else { return }
    // This process changed the master key after a pin had accepted the vault.
    let isOwnKey = shared.accepted?.record.masterCommitment == file.header.masterCommitment
    if refusal.code != .unexpectedKey || !isOwnKey { throw refusal }
  }

  /// Throws unless `opened` is the vault that `known` is about, or a later state of it.
  private static func check(
    _ opened: VaultSnapshot, against known: SeenState, path: String
  ) throws(SecretError) {
    let (header, record) = (opened.file.header, known.record)
    guard record.vault == header.vaultID else { throw .unexpectedVault(path: path) }
    if record.masterCommitment == header.masterCommitment {
      guard Sodium.isEqual(opened.keys.knownVaultMAC(of: known.message), known.mac) else {
        throw .unverifiable(path: path, "its record is not authentic")
      }
    } else {
      // Only a program that knew the master key that was seen could seal its lineage under another one.
      guard let lineage = opened.base.settings.lineage,
        try opened.keys.isFormerMAC(known.mac, of: known.message, lineage: lineage, vault: header.vaultID)
      else { throw .unexpectedKey(path: path) }
      guard record.policy == .versioned || opened.base.sequence > record.checkpoint.sequence else {
        throw .unexpectedKey(path: path)
      }
    }
    if record.policy == .versioned { return }
    let seen = record.checkpoint
    if try opened.shows(seen.sequence, isTag: { $0 == seen.tailTag }) == false {
      throw .rolledBack(
        path: path, seen: seen, found: opened.state.checkpoint, isRecovered: opened.slots.isRecovered)
    }
  }

  // MARK: Remembering

  /// Records a state that this process wrote and that is on the disk. `vault` is the vault in that state or in the one
  /// before, and decides whether a record that another process has changed may be raised.
  mutating func recordCommit(_ record: KnownVaultRecord, from vault: VaultSnapshot, _ keys: DerivedKeys) {
    var isRecorded = true
    for place in places { isRecorded = raise(place, to: record, keys, vault) && isRecorded }
    recorded = (isRecorded ? record.checkpoint : nil, environment.uptime())
  }

  /// Records the state of `opened`, unless it is recorded. If nothing is urgent, this happens at most once in
  /// ``recordingPeriod``.
  mutating func recordRead(_ opened: VaultSnapshot, isUrgent: Bool) {
    let policy = shared.accepted?.record.policy ?? .strict
    let record = Self.record(of: opened, policy)
    if record.checkpoint != recorded?.checkpoint {
      if !isUrgent, let recorded, environment.uptime() - recorded.time < Self.recordingPeriod { return }
      var isRecorded = true
      for place in places {
        do throws(SecretError) {
          isRecorded = remember(record, in: try place.load(), at: place, opened) && isRecorded
        } catch {
          // The record is damaged or may not be opened: the next program that opens the vault refuses it.
          isRecorded = false
        }
      }
      recorded = (isRecorded ? record.checkpoint : nil, environment.uptime())
    }
    if let checkpoint = recorded?.checkpoint { shared.noteRecorded(checkpoint) }
  }

  /// Accepts `opened` as it is from now on, with `policy` if it is given, and publishes it. Throws `.io` or `.denied` if
  /// a record cannot be written.
  mutating func trustAndPublish(_ opened: VaultSnapshot, _ policy: KnownVaultRecord.Policy?)
    throws(SecretError)
  {
    try requirePins(of: opened)
    try locate(opened.file)
    let record = Self.record(of: opened, policy ?? self.policy())
    if let directory, places.isEmpty {
      throw .undecided(.io, vault: opened.file.path, directory: directory.path)
    }
    for place in places {
      do throws(SecretError) { try place.make(record, opened.keys, replacing: true) } catch {
        throw .undecided(error.code, vault: opened.file.path, directory: directory?.path ?? place.path)
      }
    }
    shared.publish(opened, SeenState(record, opened.keys))
    recorded = (record.checkpoint, environment.uptime())
    (isRecordDamaged, isUnrecorded) = (false, false)
  }

  /// The strictest policy in the records, or that of a first use if there are none. A record that cannot be read may
  /// have been strict.
  private func policy() -> KnownVaultRecord.Policy {
    let policies = places.compactMap { place -> KnownVaultRecord.Policy? in
      do throws(SecretError) { return try place.load()?.newest.record.policy } catch { return .strict }
    }
    return policies.min() ?? shared.accepted?.record.policy ?? firstUsePolicy
  }

  /// Records the state of `opened` at `place`, where `known` is recorded now. Returns `false` if that failed.
  @discardableResult
  private mutating func remember(
    _ record: KnownVaultRecord, in known: KnownVaultFile.Slots?, at place: KnownVaultFile,
    _ opened: VaultSnapshot
  ) -> Bool {
    if known?.isHalfDamaged == true { isRecordDamaged = true }
    if let known, !known.isHalfDamaged, known.newest.record.isSameState(as: record) { return true }
    do throws(SecretError) {
      // The writer of this state may have been killed before its last barriers, so they are repeated: only
      // what is on the disk may be remembered.
      try opened.file.synchronize()
      if known == nil {
        try place.make(record, opened.keys, replacing: false)
        return true
      }
      return raise(place, to: record, opened.keys, opened)
    } catch {
      // Another process may have made the record since it was looked up.
      if error.code != .alreadyExists { isUnrecorded = true }
      return false
    }
  }

  /// Returns `false` if the record could not be raised.
  private mutating func raise(
    _ place: KnownVaultFile, to record: KnownVaultRecord, _ keys: DerivedKeys, _ vault: VaultSnapshot
  ) -> Bool {
    do throws(SecretError) {
      return try place.raise(to: record, keys) { content throws(SecretError) in
        try Self.check(vault, against: content, path: place.path)
      }
    } catch {
      // What was seen before is remembered. If another process has recorded a later state, that is right.
      if [.io, .denied].contains(error.code) { isUnrecorded = true }
      return false
    }
  }

  private static func record(
    of opened: VaultSnapshot, _ policy: KnownVaultRecord.Policy
  ) -> KnownVaultRecord {
    KnownVaultRecord(
      policy: policy, vault: opened.file.header.vaultID,
      masterCommitment: opened.file.header.masterCommitment, checkpoint: opened.state.checkpoint)
  }

  // MARK: Places

  private mutating func locate(_ file: VaultFile) throws(SecretError) {
    guard let directory else { return }
    var paths = [namedPath]
    for path in [file.location.linkPath, file.location.resolvedPath] where !paths.contains(path) {
      paths.append(path)
    }
    if places.map(\.path) == paths { return }
    places = []
    for path in paths {
      guard let place = try KnownVaultFile(about: path, in: directory, environment: environment) else {
        continue
      }
      places.append(place)
    }
  }

  /// The path from the root on, without empty and `.` components. Links are not resolved.
  private static func absolute(_ path: String) -> String {
    let full: String
    do throws(SecretError) { full = try Path.absolute(path) } catch { full = path }
    return "/" + full.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
  }
}

extension KnownVaultRecord {
  /// Whether both records name one state, whatever their policies.
  fileprivate func isSameState(as other: Self) -> Bool {
    var other = other
    other.policy = policy
    return self == other
  }
}

extension KnownVaultRecord.Policy: Comparable {
  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
