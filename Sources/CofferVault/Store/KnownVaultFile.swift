internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

/// The file of one known-vault record: what was seen of the vault at one path.
///
/// The file begins with two slots. A change overwrites one slot in place and without a barrier, while the other is on the
/// disk, so that a power loss leaves at least one of them.
struct KnownVaultFile {
  /// The path of the vault, which the record is about.
  let path: String
  private let location: StorageLocation
  private let user: UInt32
  private let randomness: any Randomness

  /// A record with the bytes that its MAC is of.
  struct Content: Equatable {
    let record: KnownVaultRecord
    let mac: [UInt8]
    let message: [UInt8]
  }

  /// A slot's sequence must be so much higher than the other's before the two change roles, which costs a barrier.
  private static let roleChangeDistance = 64

  /// The record about the vault at `path` in `directory`, which must exist. Throws `.unverifiable`.
  init(
    about path: String, in directory: String, user: UInt32, environment: VaultEnvironment
  ) throws(SecretError) {
    self.path = path
    self.user = user
    randomness = environment.randomness
    let name = Sodium.hash(path.utf8.span, count: 16).withUnsafeBytes { Bytes16($0) }.hex
    do throws(SecretError) {
      location = try StorageLocation(
        "\(directory)/\(name)", in: environment.fileSystem, followingLink: false)
    } catch { throw .unverifiable(path: path, "the directory of the records cannot be opened") }
  }

  /// Returns the record, or `nil` if there is none. Throws `.unverifiable` if it cannot be read or is damaged.
  func load() throws(SecretError) -> Content? {
    guard let file = try open() else { return nil }
    return try slots(of: file).newest
  }

  /// Opens the file, or returns `nil` if there is none.
  private func open() throws(SecretError) -> StorageFile? {
    let (file, status): (StorageFile, FileStatus)
    do throws(SecretError) {
      file = try location.open().file
      status = try file.status()
    } catch {
      if error.code == .vaultNotFound { return nil }
      throw .unverifiable(path: path, "its record cannot be read")
    }
    guard status.isRegular, status.owner == user, status.mode & 0o077 == 0 else {
      throw .unverifiable(path: path, "its record is not a private file of this user")
    }
    return file
  }

  // MARK: Slots

  private struct Slots {
    /// `nil` for a slot that is not valid.
    let contents: [Content?]

    /// The valid slot with the higher sequence.
    var newestIndex: Int? {
      switch (contents[0]?.record.checkpoint.sequence, contents[1]?.record.checkpoint.sequence) {
      case (let first?, let second?): first >= second ? 0 : 1
      case (_?, nil): 0
      case (nil, _?): 1
      case (nil, nil): nil
      }
    }
    var newest: Content? { newestIndex.flatMap { contents[$0] } }
  }

  private var trailer: [UInt8] { encode(Text(path)) }

  /// Reads both slots. Throws `.unverifiable` if neither is valid, or if the file is not about this path.
  private func slots(of file: StorageFile) throws(SecretError) -> Slots {
    let length = KnownVaultRecord.slotLength
    let bytes: [UInt8]
    do throws(SecretError) { bytes = try file.read(try file.size(), at: 0) } catch {
      throw .unverifiable(path: path, "its record cannot be read")
    }
    guard bytes.count == 2 * length + trailer.count, bytes[(2 * length)...].elementsEqual(trailer) else {
      throw .unverifiable(path: path, "its record is damaged")
    }
    let slots = Slots(
      contents: [0, 1].map { content(Array(bytes[$0 * length..<($0 + 1) * length])) })
    guard slots.newest != nil else { throw .unverifiable(path: path, "its record is damaged") }
    return slots
  }

  private func content(_ slot: [UInt8]) -> Content? {
    let hashed = Array(slot[..<KnownVaultRecord.hashedLength])
    guard Self.withHash(hashed) == slot else { return nil }
    do throws(SecretError) {
      let (record, mac) = try KnownVaultRecord.parse(hashed)
      return Content(record: record, mac: mac, message: message(record))
    } catch {
      return nil
    }
  }

  private func message(_ record: KnownVaultRecord) -> [UInt8] {
    HashedMessage.knownVault(path: path, fields: record.fields)
  }

  private func slot(_ record: KnownVaultRecord, _ keys: DerivedKeys) -> [UInt8] {
    Self.withHash(record.hashedBytes(mac: keys.knownVaultMAC(of: message(record))))
  }

  private static func withHash(_ bytes: [UInt8]) -> [UInt8] { bytes + Sodium.hash(bytes.span, count: 16) }

  // MARK: Writing

  /// Creates the file, or replaces it by a new one. Returns when it is on the disk.
  func replace(with record: KnownVaultRecord, _ keys: DerivedKeys) throws(SecretError) {
    let temporaryName = location.temporaryName(randomness)
    let file = try location.create(temporaryName)
    do throws(SecretError) {
      let slot = slot(record, keys)
      try file.write(slot + slot + trailer, at: 0)
      try file.synchronize()
      try location.rename(from: temporaryName, replacing: true)
    } catch {
      do throws(SecretError) { try location.remove(temporaryName) } catch {
        // An unfinished record stays, and is never read.
      }
      throw error
    }
    try location.synchronize()
  }

  /// Changes the record to `record` if that is newer. The state that it names must be on the disk.
  ///
  /// If another process is changing the record, or the change fails, the record stays as it was.
  func raise(to record: KnownVaultRecord, _ keys: DerivedKeys) {
    do throws(SecretError) {
      guard let file = try open(), try file.tryLock(exclusive: true) else { return }
      let slots = try slots(of: file)
      guard let newest = slots.newestIndex, let known = slots.contents[newest]?.record,
        record.checkpoint.sequence >= known.checkpoint.sequence
      else { return }
      var target = 1 - newest
      if let other = slots.contents[target]?.record {
        guard record != known else { return }
        let distance = known.checkpoint.sequence - other.checkpoint.sequence
        if distance >= Self.roleChangeDistance {
          try file.synchronizeData()
        } else if distance > 0 {
          target = newest
        }
      } else {
        try file.synchronizeData()
      }
      try file.write(slot(record, keys), at: target * KnownVaultRecord.slotLength)
    } catch {
      // What was seen before is remembered.
    }
  }
}
