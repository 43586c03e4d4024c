internal import CofferCore
internal import CofferVaultFormat

/// A new file that is in the vault's place, and not yet known to be there after a power loss.
///
/// The file is locked for as long as this value lives.
struct Replacement {
  let writer: VaultFileWriter
  let state: CommitState
}

extension UnlockedVault {
  /// An item of the new file. Its sealed value is in the old file, or in memory if it is of a transaction.
  private struct Source {
    let id: Bytes16
    let record: ItemRecord
    var stored: BlockEntry?
    var pending: [UInt8] = []
  }

  /// Whether a rewrite is due before `transaction` is appended.
  ///
  /// Every reader reads the whole tail without its values, so that part is limited to `threshold` bytes or a
  /// 32nd of the base, whichever is larger. Dead bytes are limited to `threshold` or half of the file.
  func isDueForRewrite(before transaction: VaultTransaction, threshold: Int) -> Bool {
    let baseLength = state.baseEnd - file.headerLength
    return replayLength + transaction.addedReplayLength > max(threshold, baseLength / 32)
      || state.deadBytes + transaction.addedDeadBytes > max(threshold, state.end / 2)
  }

  /// Writes the content of the vault with the changes of `transaction` to a new file that has the key slots
  /// `slots` and is sealed under `newKeys`, and moves it into place. The caller holds the exclusive lock.
  ///
  /// If it throws, nothing was changed. The caller must finish the replacement before it acknowledges
  /// anything.
  func rewrite(
    slots: [KeySlot], keys newKeys: DerivedKeys, transaction: VaultTransaction? = nil
  ) throws(SecretError) -> Replacement {
    var header = file.header
    header.slots = slots
    let sources = try sources(transaction, newKeys)
    var writer = try VaultFileWriter(
      at: file.location, temporaryName: ".\(file.location.name).new", header: header, keys: newKeys,
      sequence: state.sequence + (transaction?.changes.count ?? 0) + 1)
    do throws(SecretError) {
      // The base has its values in the order of the new file; the tail does not.
      var reader = BufferedFileReader(file.storage, end: state.baseEnd)
      for source in sources {
        var sealed = source.pending
        if let item = source.stored {
          sealed =
            item.valueOffset < state.baseEnd
            ? try reader.array(at: item.valueOffset, count: item.valueLength) : try sealedValue(of: item)
        }
        try copy(source, sealed, under: newKeys, to: &writer)
      }
      let state = try writer.replace(existing: true)
      return Replacement(writer: writer, state: state)
    } catch {
      writer.abandon()
      throw error
    }
  }

  /// The items of the new file in its order.
  private func sources(
    _ transaction: VaultTransaction?, _ newKeys: DerivedKeys
  ) throws(SecretError) -> [Source] {
    let changes = transaction?.latestChanges ?? [:]
    var sources: [Source] = []
    for item in try allItems() where changes[item.record.id] == nil {
      let id = newKeys === keys ? item.record.id : newKeys.lookupID(try item.record.identifier())
      sources.append(Source(id: id, record: item.record, stored: item))
    }
    for case let (id, change) in changes {
      guard let record = change.record else { continue }
      sources.append(Source(id: id, record: record, pending: change.sealedValue))
    }
    return sources.sorted { $0.id < $1.id }
  }

  /// Copies an item to the new file, and seals its value again if the keys differ.
  private func copy(
    _ source: Source, _ sealed: [UInt8], under newKeys: DerivedKeys, to writer: inout VaultFileWriter
  ) throws(SecretError) {
    let record = source.record
    if newKeys === keys {
      guard Bytes16(tagOf: sealed) == record.valueTag else {
        throw .tampered("a value is not the one that its record names")
      }
      return try writer.append(id: source.id, record: record.bytes, sealedValue: sealed)
    }
    let vault = file.header.vaultID
    let value = try keys.openValue(sealed, vault: vault, record: record)
    let resealed = newKeys.sealValue(
      value, .value(vault: vault, lookupID: source.id, sequence: record.sequence))
    try writer.append(
      id: source.id, record: record.encoded(id: source.id, valueTag: Bytes16(tagOf: resealed)),
      sealedValue: resealed)
  }
}
