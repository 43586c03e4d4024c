internal import CofferSystem
internal import CofferVaultFormat
internal import CofferCore

extension UnlockedVault {
  /// An item for a new file, and where its sealed value is now.
  private struct Source {
    let id: Bytes16
    let record: ItemRecord
    let value: Value

    enum Value {
      case file(offset: Int, length: Int)
      case memory([UInt8])
    }
  }

  /// Whether the file should be written anew instead of growing by so much: a reader goes through the whole
  /// tail, so it is kept to the larger of `compactionThreshold` and a 32nd of the base; and at most half the file, or
  /// `compactionThreshold`, is dead.
  func isDueForRewrite(addedCost: Int, addedDeadBytes: Int, compactionThreshold: Int) -> Bool {
    let baseSize = state.baseEnd - vault.headerLength
    return tailReplayBytes + addedCost > max(compactionThreshold, baseSize / 32)
      || state.deadBytes + addedDeadBytes > max(compactionThreshold, state.end / 2)
  }

  /// Writes what the vault holds, with the transaction's changes, to a new file that has `header`'s key
  /// slots and is sealed under `newKeys`, and puts it in the vault's place. The exclusive lock is held.
  ///
  /// When it throws, nothing was changed. When it returns, the new file is in place and locked for as long as
  /// the result lives; it must be settled before anything is acknowledged.
  func rewrite(
    header: Header,
    keys newKeys: DerivedKeys,
    transaction: VaultTransaction?,
    randomness: any Randomness
  ) throws(SecretError) -> VaultFileWriter {
    let isSameKey = newKeys === keys
    let changes = transaction?.latestChanges ?? [:]
    var sources: [Source] = []
    for item in try allItems() where changes[item.record.id] == nil {
      let id = isSameKey ? item.record.id : newKeys.lookupID(try item.record.identifier())
      sources.append(
        Source(id: id, record: item.record, value: .file(offset: item.valueOffset, length: item.valueLength))
      )
    }
    for case let (id, change) in changes {
      guard let record = change.record else { continue }
      sources.append(Source(id: id, record: record, value: .memory(change.sealedValue)))
    }
    sources.sort { $0.id < $1.id }

    var new = try VaultFileWriter(
      at: vault.location,
      path: vault.path,
      temporaryName: ".\(vault.location.name).new",
      header: header,
      keys: newKeys,
      sequence: state.sequence + (transaction?.changes.count ?? 0) + 1,
      randomness: randomness
    )
    do throws(SecretError) {
      // Values of the base lie in the order they are wanted in; those of the tail do not.
      var window = BufferedFileReader(vault.file, path: vault.path, end: state.baseEnd)
      for source in sources {
        let sealed: [UInt8]
        switch source.value {
        case .memory(let bytes): sealed = bytes
        case .file(let offset, let length) where offset < state.baseEnd:
          sealed = try window.array(at: offset, count: length)
        case .file(let offset, let length):
          sealed = try vault.file.readFully(length, at: offset, path: vault.path)
        }
        guard Bytes16(tagOf: sealed) == source.record.valueTag else {
          throw .tampered("a value is not the one its record names")
        }
        if isSameKey {
          try new.append(.init(id: source.id, record: source.record.bytes, sealedValue: sealed))
        } else {
          let value = try keys.openValue(sealed, vault: vault.header.vaultID, record: source.record)
          let resealed = newKeys.sealValue(
            value,
            vault: header.vaultID,
            id: source.id,
            sequence: source.record.sequence,
            randomness: randomness
          )
          let record = source.record.encoded(id: source.id, valueTag: Bytes16(tagOf: resealed))
          try new.append(.init(id: source.id, record: record, sealedValue: resealed))
        }
      }
      try new.commit(replacing: true)
    } catch {
      new.abandon()
      throw error
    }
    return new
  }
}
