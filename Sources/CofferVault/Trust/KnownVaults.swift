internal import CofferCore
internal import CofferVaultFormat

/// Refuses a vault in three cases: it is not the one that was seen at its path, it is not a later state of that one, or
/// its master key does not follow from the one that was seen of this vault at any path.
///
/// This process remembers the state that it saw. With a directory, it also keeps a record for each of up to three paths
/// of the vault: the path as the user wrote it; the path with the links in its directory resolved; and the path with
/// all links resolved. A link or a renamed directory therefore cannot put an older copy in the vault's place. The first
/// use of a path is trusted. One more record has the vault's master key, so that a copy that a removed key opens is
/// refused at other paths.
struct KnownVaults {
  private let options: VaultOptions
  private let environment: VaultEnvironment
  private var parsedPins: VaultPins?
  /// Holds the state that this process has accepted.
  private let shared: SharedSnapshot
  private var paths: [String] = []
  private var pathRecords: [KnownVaultFile] = []
  private var vaultRecord: KnownVaultFile?
  /// The records that are locked during a change of the master key.
  private var locked: [KnownVaultFile.Subject: KnownVaultFile.Opened] = [:]
  /// The state that was recorded last, or `nil` if that failed, and the time of the last attempt.
  private var recorded: (checkpoint: Checkpoint?, time: Duration)?
  /// The states that other programs write are recorded at most once in this time: it needs barriers.
  private static let recordingPeriod = Duration.seconds(1)
  /// Whether there was no record of the vault at its first use by this process.
  private(set) var isFirstUse = false
  /// Whether a slot of a record was damaged. The other slot was used.
  private(set) var isRecordDamaged = false
  private(set) var isUnrecorded = false
  /// Whether the state was accepted for this process only.
  private var recordsNothing = false
  private(set) var compared = VaultComparison.nothing
  /// Whether the newest state that was seen of the vault, at any path, is none of the states of its file.
  private(set) var isBehind = false
  /// Whether this is so, and the state that was seen last at the path is another one.
  private(set) var isBehindAnew = false
  /// The path at which the key of this vault was seen last, if it is another one.
  private(set) var otherPath: String?

  init(options: VaultOptions, environment: VaultEnvironment, shared: SharedSnapshot) {
    (self.options, self.environment, self.shared) = (options, environment, shared)
  }

  /// The directory of the records. `nil`: only the memory of this process is compared with the vault.
  private var directory: String? { options.isBackup ? nil : options.knownVaultsDirectory }
  private var pinTexts: [String] { options.isBackup ? [] : options.pins }
  private var firstUsePolicy: KnownVaultRecord.Policy { (options.firstUsePolicy ?? .strict).recorded }

  // MARK: Checking

  /// Checks before a key is tried that the file is the vault that was seen. Throws `.unexpectedVault`, `.unexpectedKey`
  /// or `.unverifiable`, and `.configuration` for wrong pins.
  mutating func identify(_ file: VaultFile) throws(SecretError) {
    try locate(file)
    try requirePins(of: file)
    if let accepted = shared.accepted, accepted.record.vault != file.header.vaultID {
      throw .unexpectedVault(path: file.path)
    }
    for pathRecord in pathRecords {
      if let known = try pathRecord.load(), known.newest.record.vault != file.header.vaultID {
        throw .unexpectedVault(path: pathRecord.path)
      }
    }
  }

  /// Whether there are records of the vault of `file` at its path, or only at other paths: see
  /// ``VaultBackend/isKnown()``.
  mutating func isKnown(_ file: VaultFile) -> Bool? {
    do throws(SecretError) { try locate(file) } catch { return nil }
    func isRecorded(_ record: KnownVaultFile?) -> Bool {
      do throws(SecretError) { return try record?.load()?.newest.record.vault == file.header.vaultID } catch {
        return false
      }
    }
    return isRecorded(pathRecords.first) ? true : isRecorded(vaultRecord) ? false : nil
  }

  /// Compares a file with the records of the place to which it is about to go: see ``VaultBackend/compare(at:below:)``.
  mutating func compare(
    _ copy: VaultSnapshot, at names: [String], below workTree: String?
  ) throws(SecretError) -> (isStrict: Bool, isBehind: Bool) {
    try locate(copy.file, at: names)
    var seen: [SeenState] = []
    for record in pathRecords {
      do throws(SecretError) { if let found = try record.load() { seen.append(found.newest) } } catch {}
    }
    if seen.isEmpty, let found = try vaultRecord?.load() { seen = [found.newest] }
    var isBehind = false
    for one in seen where try one.isShown(by: copy) != true { isBehind = true }
    let vault = copy.file.header.vaultID
    if recordedPolicy(of: vault).policy == .strict { return (true, isBehind) }
    // git gives a renamed file another path.
    let others = workTree.flatMap { vaultRecord?.records(below: $0) } ?? []
    return (others.contains { $0.vault == vault && $0.policy == .strict }, isBehind)
  }

  /// Judges a file that was just opened, after ``identify(_:)``, and changes nothing. Throws `.rolledBack`,
  /// `.unexpectedVault`, `.unexpectedKey`, `.unverifiable` or `.untrusted`.
  ///
  /// The records are read again, because a prompt may have lasted since ``identify(_:)``, and another process may have
  /// recorded a later state.
  private mutating func judge(
    _ opened: VaultSnapshot
  ) throws(SecretError) -> (VaultPins, [KnownVaultFile.Slots?], isDetached: Bool, vault: KnownVaultFile.Slots?) {
    let pins = try requirePins(of: opened.file)
    _ = try pins.areShown(by: opened)
    let accepted = shared.accepted
    if let accepted { try accepted.requireSuccessor(opened, path: opened.file.path) }
    var known: [KnownVaultFile.Slots?] = []
    for pathRecord in pathRecords {
      let found = try pathRecord.load()
      if let found { try check(opened, against: found, in: pathRecord) }
      known.append(found)
    }
    // Every record must say so: a link must not lead from another path to one that counts by itself.
    let isDetached = !known.isEmpty && known.allSatisfy { $0?.newest.record.isDetached == true }
    let vault = isDetached ? nil : try vaultRecord?.load()
    if let vault, let vaultRecord { try check(opened, against: vault, in: vaultRecord) }
    // A link at a new path may lead to a path that has a record of an older state.
    let isNewPlace = accepted == nil && known.contains { $0 == nil }
    if let vault, isNewPlace, policy(known) == .strict, !options.readsBackups {
      try vault.newest.requireShown(by: opened, path: opened.file.path, isNewPlace: true)
    }
    let isKnownKey = opened.keys.origin == .secret || opened.keys.origin == .kept && directory == nil
    let isVouchedFor = isKnownKey && !opened.file.storage.isRemote
    let wasSeen = accepted != nil || known.contains { $0 != nil }
    guard isVouchedFor || options.isBackup || vouches(pins) || wasSeen else {
      throw .untrusted(path: opened.file.path, isRemote: opened.file.storage.isRemote, opened.keys.origin)
    }
    return (pins, known, isDetached, vault)
  }

  /// The policy of the records that the paths have, which `known` are, and of those that they get.
  private func policy(_ known: [KnownVaultFile.Slots?]) -> KnownVaultRecord.Policy {
    known.compactMap { $0?.newest.record.policy }.min() ?? shared.accepted?.record.policy ?? firstUsePolicy
  }

  /// Admits a file that was just opened, after ``identify(_:)``, and publishes it. Throws as ``judge(_:)`` does.
  mutating func admitAndPublish(_ opened: VaultSnapshot) throws(SecretError) {
    let (pins, known, isDetached, vault) = try judge(opened)
    let accepted = shared.accepted
    let record = Self.record(of: opened, policy(known), isDetached: isDetached)
    let isFirstUse = known.allSatisfy { $0 == nil }
    isBehind = false
    if let vault { isBehind = try vault.newest.isShown(by: opened) != true }
    // What was told stays told, although another program may change the file.
    var isNew = isBehind && !known.contains { $0?.newest.record.checkpoint == opened.state.checkpoint }
    for case let one? in known where try one.newest.isShown(by: opened) != true { isNew = true }
    isBehindAnew = isBehindAnew || isNew
    shared.publish(opened, SeenState(record, opened.keys))
    isUnrecorded = directory != nil && pathRecords.isEmpty
    if accepted == nil {
      self.isFirstUse = !pathRecords.isEmpty && isFirstUse
      compared = !pins.isEmpty ? .pin : isFirstUse && vault == nil ? .nothing : .record
    }
    otherPath = vault.flatMap { vault in paths.hasBytes(of: vault.path) ? nil : vault.path }
    let isBackup = options.readsBackups && known.contains { $0 == nil }
    recordsNothing = isNew && options.tellsNobody || isBehind && isBackup
    if recordsNothing { return }
    for (file, known) in zip(records(isDetached), known + [vault]) {
      self.record(record, in: file, having: known, opened)
    }
    // A record that could not be written is tried again with the next state.
    recorded = (record.checkpoint, environment.uptime())
  }

  /// The records that count: those of the paths and, unless only the vault's path counts, that of the vault.
  private func records(_ isDetached: Bool) -> [KnownVaultFile] {
    pathRecords + (isDetached ? [] : [vaultRecord].compactMap(\.self))
  }

  /// Throws unless the pins that apply to the file name its vault and its master key. Returns them.
  @discardableResult
  mutating func requirePins(of file: VaultFile) throws(SecretError) -> VaultPins {
    if parsedPins == nil { parsedPins = try VaultPins(pinTexts) }
    try parsedPins?.requireBound(for: file)
    let pins = try parsedPins?.applying(to: file, at: paths) ?? VaultPins()
    do throws(SecretError) { try pins.requireIdentity(file) } catch {
      // This process changed the master key after a pin had accepted the vault.
      let isOwnKey = shared.accepted?.record.masterCommitment == file.header.masterCommitment
      if error.code != .unexpectedKey || !isOwnKey { throw error }
    }
    return pins
  }

  /// Whether the pins that apply are for this place. A pin for another place can only refuse the vault.
  private func vouches(_ pins: VaultPins) -> Bool { !pins.isEmpty && pins.areFor(paths) }

  /// Throws `.unexpectedVault` if one of `pins` is for another path than those of the file.
  mutating func requirePlace(of file: VaultFile, in pins: VaultPins) throws(SecretError) {
    try locate(file)
    if pins.areFor(paths) { return }
    throw SecretError(
      .unexpectedVault, "The pin is for another path than \(file.path).",
      advice: "Give only the pin if it is that of this vault, or trust the vault at that path.")
  }

  /// Throws unless `opened` follows from `known`, the content of `file`. If `file` is the record of a vault, the error
  /// names the path at which its key was seen.
  private func check(
    _ opened: VaultSnapshot, against known: KnownVaultFile.Slots, in file: KnownVaultFile
  ) throws(SecretError) {
    do throws(SecretError) { try known.newest.requireSuccessor(opened, path: file.path) } catch {
      throw error.code == .unexpectedKey && file.subject.isVault && !paths.hasBytes(of: known.path)
        ? .unexpectedKey(path: file.path, seenAt: known.path) : error
    }
  }

  // MARK: Recording

  /// Records a state that this process wrote and that is on the disk. `vault` is the vault in that state or in the one
  /// before. A record is changed only if `vault` follows from it.
  mutating func recordCommit(_ record: KnownVaultRecord, from vault: VaultSnapshot, _ keys: DerivedKeys) {
    var isRecorded = true
    let isNewKey = keys !== vault.keys
    for file in records(record.isDetached) {
      isRecorded = recordLater(record, in: file, keys, vault) && isRecorded
    }
    // Without a record, a removed key would be accepted again.
    if isNewKey && !isRecorded { isUnrecorded = true }
    recorded = (isRecorded ? record.checkpoint : nil, environment.uptime())
  }

  /// Locks the records of `vault`, whose master key is about to change, until ``unlockRecords()``. Throws `.timedOut`
  /// if another process keeps one locked for `timeout`, and the error of the check if the vault no longer follows from
  /// a record. A record that does not exist or cannot be locked is passed over.
  mutating func lockRecords(of vault: VaultSnapshot, timeout: Duration) throws(SecretError) {
    // Each process locks them in the same order, so no two wait for each other.
    let files = records(shared.accepted?.record.isDetached ?? false)
    for file in files.sorted(by: { $0.subject.fileName < $1.subject.fileName }) {
      do throws(SecretError) { locked[file.subject] = try file.lock(timeout: timeout) } catch {
        if error.code == .timedOut { throw error }
      }
      if let held = locked[file.subject] { try check(vault, against: file.slots(of: held), in: file) }
    }
  }

  mutating func unlockRecords() { locked = [:] }

  /// Records the state of `opened`, unless it is recorded already. If not `isUrgent`, this happens at most once in
  /// ``recordingPeriod``.
  mutating func recordRead(_ opened: VaultSnapshot, isUrgent: Bool) {
    if recordsNothing { return }
    let accepted = shared.accepted?.record
    let record = Self.record(of: opened, accepted?.policy ?? .strict, isDetached: accepted?.isDetached ?? false)
    if record.checkpoint != recorded?.checkpoint {
      if !isUrgent, let recorded, environment.uptime() - recorded.time < Self.recordingPeriod { return }
      var isRecorded = true
      for file in records(record.isDetached) {
        do throws(SecretError) {
          isRecorded = self.record(record, in: file, having: try file.load(), opened) && isRecorded
        } catch {
          // The record is damaged or may not be opened: the next program that opens the vault refuses it.
          isRecorded = false
        }
      }
      recorded = (isRecorded ? record.checkpoint : nil, environment.uptime())
    }
    if let checkpoint = recorded?.checkpoint { shared.recorded(checkpoint) }
  }

  /// Records the state of `merged`, which is about to go to a place: see ``VaultBackend/recordMerge(at:)``.
  mutating func recordMerge(_ merged: VaultSnapshot, at names: [String]) throws(SecretError) {
    try locate(merged.file, at: names)
    let isDetached = recordedPolicy(of: merged.file.header.vaultID).isDetached
    let record = Self.record(of: merged, .strict, isDetached: isDetached)
    for file in records(isDetached) { _ = recordLater(record, in: file, merged.keys, merged, ifItFollows: true) }
  }

  /// Accepts `opened` as it is from now on, with `policy` if it is given, and publishes it. `isDetached`: whether it is
  /// accepted only at its path; `nil`: as its records say. If `knowsOtherKey` is `false`, the vault's record must not
  /// name another master key. Throws `.io` or `.denied` if a record cannot be written.
  mutating func trustAndPublish(
    _ opened: VaultSnapshot, _ policy: KnownVaultRecord.Policy?, isDetached: Bool?, knowsOtherKey: Bool = true
  ) throws(SecretError) {
    try locate(opened.file)
    _ = try requirePins(of: opened.file).areShown(by: opened)
    let known = recordedPolicy(of: opened.file.header.vaultID)
    let record = Self.record(
      of: opened, policy ?? known.policy ?? shared.accepted?.record.policy ?? firstUsePolicy,
      isDetached: isDetached ?? known.isDetached)
    // Another process may have recorded another key while a person was asked.
    if !record.isDetached && !knowsOtherKey { try requireKey(of: opened) }
    if let directory, pathRecords.isEmpty { throw .undecided(.io, vault: opened.file.path, directory: directory) }
    for file in records(record.isDetached) {
      do throws(SecretError) { try file.make(record, opened.keys, replacing: true) } catch {
        throw .undecided(error.code, vault: opened.file.path, directory: directory ?? file.path)
      }
    }
    shared.publish(opened, SeenState(record, opened.keys))
    recorded = (record.checkpoint, environment.uptime())
    (isRecordDamaged, isUnrecorded) = (false, false)
  }

  /// What a person should know before ``trustAndPublish(_:_:isDetached:knowsOtherKey:)``: see
  /// ``VaultBackend/unconfirmed(pin:)``. Changes nothing.
  mutating func unconfirmed(_ opened: VaultSnapshot) throws(SecretError) -> UnconfirmedVault {
    var (refusal, keyRefusal, isBehind): (SecretError?, SecretError?, Bool) = (nil, nil, false)
    try locate(opened.file)
    let isPinned = try vouches(requirePins(of: opened.file))
    do throws(SecretError) {
      try identify(opened.file)
      if let vault = try judge(opened).vault { isBehind = try vault.newest.isShown(by: opened) != true }
    } catch { refusal = error }
    do throws(SecretError) { try requireKey(of: opened) } catch { keyRefusal = error }
    return UnconfirmedVault(
      pin: VaultPin(opened).description, isPinned: isPinned, refusal: refusal, keyRefusal: keyRefusal,
      isBehind: isBehind)
  }

  /// Throws unless the master key is the one in the vault's record, or follows from it.
  private func requireKey(of opened: VaultSnapshot) throws(SecretError) {
    if let vaultRecord, let known = try vaultRecord.load() {
      try check(opened, against: known, in: vaultRecord)
    }
  }

  /// The strictest policy in the records of the paths, and whether all of them say that the vault counts only there. A
  /// record that cannot be read may have been strict.
  private func recordedPolicy(of vault: Bytes16) -> (policy: KnownVaultRecord.Policy?, isDetached: Bool) {
    var (policies, isDetached): ([KnownVaultRecord.Policy], Bool) = ([], !pathRecords.isEmpty)
    for pathRecord in pathRecords {
      var record: KnownVaultRecord?
      do throws(SecretError) {
        record = try pathRecord.load()?.newest.record
        if let record { policies.append(record.policy) }
      } catch { policies.append(.strict) }
      isDetached = isDetached && record?.isDetached == true && record?.vault == vault
    }
    return (policies.min(), isDetached)
  }

  /// Records the state of `opened` in `file`, which has `known` now. Returns `false` if that failed.
  @discardableResult
  private mutating func record(
    _ record: KnownVaultRecord, in file: KnownVaultFile, having known: KnownVaultFile.Slots?,
    _ opened: VaultSnapshot
  ) -> Bool {
    if known?.isHalfDamaged == true { isRecordDamaged = true }
    if let known, !known.isHalfDamaged, known.newest.record.isSameState(as: record) { return true }
    do throws(SecretError) {
      // The writer of this state may have been killed before its last barriers, so they are repeated: of a file, only
      // what is on the disk may be recorded. What an engine has shown is always recorded: it could refuse to confirm a
      // state, and then show an older one again.
      if !opened.file.storage.isRemote { try opened.file.storage.synchronize() }
      if known == nil {
        try file.make(record, opened.keys, replacing: false)
        return true
      }
      return recordLater(record, in: file, opened.keys, opened)
    } catch {
      // Another process may have made the record since it was looked up.
      if error.code != .alreadyExists { isUnrecorded = true }
      return false
    }
  }

  /// Returns `false` if the state could not be recorded. The record of a vault stays if `vault` is on another branch.
  private mutating func recordLater(
    _ record: KnownVaultRecord, in file: KnownVaultFile, _ keys: DerivedKeys, _ vault: VaultSnapshot,
    ifItFollows: Bool = false
  ) -> Bool {
    do throws(SecretError) {
      return try file.record(later: record, keys, locked[file.subject]) { slots throws(SecretError) in
        try slots.newest.requireSuccessor(vault, path: file.path)
        if slots.newest.record.masterCommitment != record.masterCommitment { return true }
        let follows = try slots.newest.isShown(by: vault)
        return ifItFollows ? follows == true : !file.subject.isVault || follows != false
      }
    } catch {
      // The earlier record stays. That is right if another process has recorded a later state.
      if [.io, .denied, .timedOut].contains(error.code) { isUnrecorded = true }
      return false
    }
  }

  private static func record(
    of opened: VaultSnapshot, _ policy: KnownVaultRecord.Policy, isDetached: Bool
  ) -> KnownVaultRecord {
    KnownVaultRecord(
      policy: policy, isDetached: isDetached, vault: opened.file.header.vaultID,
      masterCommitment: opened.file.header.masterCommitment, checkpoint: opened.state.checkpoint)
  }

  // MARK: Files

  /// Finds the records of the vault of `file`, at the names of the file or at those to which it is about to go.
  private mutating func locate(_ file: VaultFile, at names: [String]? = nil) throws(SecretError) {
    let directory = names == nil ? directory : options.knownVaultsDirectory
    let (names, vault) = (names ?? file.storage.names, KnownVaultFile.Subject.vault(file.header.vaultID.hex))
    if paths == names, directory == nil || vaultRecord?.subject == vault { return }
    (paths, pathRecords, vaultRecord) = (names, [], nil)
    guard let directory,
      let opened = try KnownVaultDirectory.open(directory, about: file.path, environment)
    else { return }
    func record(_ subject: KnownVaultFile.Subject, _ path: String) -> KnownVaultFile {
      KnownVaultFile(about: subject, of: path, in: opened, environment: environment)
    }
    pathRecords = paths.map { record(.path($0), $0) }
    vaultRecord = record(vault, paths[0])
  }
}

extension KnownVaultRecord {
  /// Whether both records name one state, whatever their policies and scopes.
  fileprivate func isSameState(as other: Self) -> Bool {
    vault == other.vault && masterCommitment == other.masterCommitment && checkpoint == other.checkpoint
  }
}

extension KnownVaultRecord.Policy: Comparable {
  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
