"""The mutations: small breakages of the vault, each with the tests that must notice it.

`find` must be in the file exactly once. `tests` is a filter of `swift test`; one of the tests that it names has to
fail. Or it is a command, as one would type it here, which must fail: SECRET is the tool, built from the broken
sources, and STATIC the one that needs no library. `reason` says what the broken code would do to somebody.
"""

VAULT = "Sources/CofferVault/"
FORMAT = "Sources/CofferVaultFormat/"
COMMIT = VAULT + "Store/Commit.swift"
SESSION = VAULT + "Store/VaultSession.swift"
NEW_FILE = VAULT + "Store/VaultFileWriter.swift"
LOCKED = VAULT + "Store/VaultFile.swift"
OPEN = VAULT + "Store/UnlockedVault.swift"
KEYS = VAULT + "Crypto/DerivedKeys.swift"
SLOT_SECRET = VAULT + "Keys/SlotKey.swift"
SODIUM = VAULT + "Crypto/Sodium.swift"
BARRIER = "try uninterrupted { () throws(FileSystemError) in try file.synchronizeData() }"
CRASHES = "CrashTests/nothingAcknowledged"
VECTORS = "VectorTests/everyVector"


def mutation(name, file, find, replace, tests, reason):
    return {"name": name, "file": file, "find": find, "replace": replace, "tests": tests, "reason": reason}


MUTATIONS = [
    # Durability
    mutation("no first barrier", COMMIT, BARRIER + "\n      try file.writeFully(page", "try file.writeFully(page", CRASHES,
             "a slot points at frames that never arrived"),
    mutation("no second barrier", COMMIT, "slot * Layout.pageSize)\n      " + BARRIER, "slot * Layout.pageSize)", CRASHES,
             "an acknowledged change is lost"),
    mutation("no barrier after a new file", NEW_FILE,
             "try uninterrupted { () throws(FileSystemError) in try file.synchronize() }", "", CRASHES,
             "a file of zeros takes the vault's place"),
    mutation("no directory barrier", NEW_FILE,
             "try uninterrupted { () throws(FileSystemError) in try location.directory.synchronize() }",
             "_ = try location.directory.status(of: location.name)", CRASHES, "the rename is lost, and what came after it"),
    mutation("failed barrier acknowledged", COMMIT,
             "isSuspect = true\n      throw .io(error, \"write\", path: vault.path)", "isSuspect = true",
             "FaultTests/afterAFailedBarrier", "a change is acknowledged that a power loss takes back"),
    mutation("current slot overwritten", COMMIT, "let slot = 1 - currentSlot", "let slot = currentSlot", CRASHES,
             "a torn write leaves no slot"),
    mutation("fixed nonce", SODIUM,
             "randomness.fill(UnsafeMutableRawBufferPointer(rebasing: output[..<Layout.nonceLength]))",
             "UnsafeMutableRawBufferPointer(rebasing: output[..<Layout.nonceLength]).initializeMemory(as: UInt8.self, repeating: 0)",
             "CrashTests/nothingAcknowledged|SharingTests/twoBackends", "two plaintexts under one key stream"),
    mutation("transaction in part", COMMIT, "for change in transaction.changes {",
             "for change in transaction.changes.prefix(1) {", CRASHES, "half a transaction is kept"),
    mutation("failed transaction kept", SESSION, "let result = try body(transaction)\n      if",
             "let result: R\n      do throws(SecretError) { result = try body(transaction) } catch {\n"
             "        try commit(transaction, to: vault)\n        throw error\n      }\n      if",
             "ConformanceTests", "a transaction that threw is committed"),
    mutation("suspect file appended to", SESSION, "if isSuspect || (isDue && ", "if (isDue && ",
             "FaultTests/afterAFailedBarrier", "pages that the system dropped are taken for written"),
    mutation("unsettled rename forgotten", SESSION, "if settled?.isSameFile(as: vault.status) ?? false { return }",
             "if vault.status.size >= 0 { return }", "CrashTests/whatIsAcknowledged", "changes go to a file that a power loss unnames"),
    mutation("watermark before the directory's barrier", SESSION, "      try settle(vault.vault)\n    } catch { return }",
             "    } catch { return }", "CrashTests/whatHasFailed", "a vault that has only lost power is called an old copy"),
    mutation("torn watermark believed", VAULT + "Store/Watermark.swift",
             "guard Self.withHash(hashed) == bytes else { return nil }", "", "RollbackTests/aTorn",
             "a vault that has only lost power is called an old copy"),
    mutation("temporary file left behind", NEW_FILE, "    } catch {\n      abandon()\n      throw", "    } catch {\n      throw",
             "FaultTests/everyCallMayFail", "files pile up"),
    mutation("interruption not retried", VAULT + "Store/FileIO.swift", "if error.number != EINTR { throw error }\n    }\n  }\n}\n\nex",
             "throw error\n    }\n  }\n}\n\nex", "FaultTests/interruptions", "a signal makes a store fail"),
    # Sharing
    mutation("lock not taken", SESSION, "try acquireLock(of: vault.file, exclusive: exclusive)", "",
             CRASHES, "two writers overwrite each other's frames"),
    mutation("truncated before the lock is taken", SESSION, "      return vault.vault\n",
             "      do throws(FileSystemError) { try vault.vault.file.truncate(to: vault.state.end) } catch {}\n"
             "      return vault.vault\n",
             CRASHES, "another writer's frames are cut off under it"),
    mutation("path not compared with the open file", SESSION, "if try vault.isCurrent() {",
             "if try vault.isCurrent() || true {", "LockTests/theLockOf|LockTests/aReader",
             "the lock of a file that is gone lets two writers in"),
    mutation("rollback not remembered", SESSION, "throw .rolledBack(path: path, seen: newest, found: state.checkpoint)",
             "return self.newest = state.checkpoint", "SharingTests", "an old copy is taken for the vault"),
    mutation("leftovers not cut off", COMMIT, "if try file.status().size > state.end {", "if try file.status().size < 0 {",
             "SharingTests/whatAnInterrupted", "what was never acknowledged stays in the file"),
    mutation("leftovers trusted", OPEN, "      to: state.end,", "      to: (try? vault.file.status().size) ?? state.end,",
             "SharingTests/whatAnInterrupted|TamperingTests/whatFollows", "what was never acknowledged counts"),
    # Authentication
    mutation("key slot commitment unchecked", SLOT_SECRET,
             "guard Sodium.isEqual(derived.commitment, slot.commitment) else { return nil }", "", "OpeningTests/noKey|VectorTests/everyVector",
             "one wrapped key opens under two credentials"),
    mutation("master key commitment unchecked", KEYS, "guard isCommitted(to: header),\n      Sodium", "guard Sodium", VECTORS,
             "one file opens under two master keys"),
    mutation("header MAC unchecked", KEYS, """      Sodium.isEqual(
        Sodium.keyedHash(header.authenticatedBytes, key: headerMAC, count: 32),
        header.mac
      )
""", "      header.mac.count == 32\n", VECTORS, "key slots are changed by who has no key"),
    mutation("header padding unchecked", FORMAT + "Header.swift", "    try reader.zeros(bytes.count - length)\n", "", VECTORS,
             "a header has two spellings"),
    mutation("no chain in associated data", KEYS, "    previousTag.append(to: &data)\n", "", VECTORS, "frames can be reordered"),
    mutation("no offset in a frame's associated data", KEYS,
             "    file.append(to: &data)\n    data.append(little: UInt64(offset))\n    data += header.bytes",
             "    file.append(to: &data)\n    data += header.bytes", VECTORS, "frames can be moved"),
    mutation("value tag unchecked", KEYS, "guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == record.valueTag else {",
             "guard sealed.count > Layout.sealOverhead else {", "VectorTests/everyVector|TamperingTests/aValue",
             "a value from another history is taken for this one's"),
    mutation("commit slot not bound to the header", KEYS, 'Array("coffer-commit".utf8) + [UInt8(slot)] + headerHash',
             'Array("coffer-commit".utf8) + [UInt8(slot)]', "TamperingTests/parts|VectorTests/everyVector", "slots of another time fit"),
    mutation("end beyond the file accepted", VAULT + "Store/CommitSlots.swift",
             'guard states.allSatisfy({ $0.state.end <= size }) else { throw .tampered("the file is cut short") }', "_ = size",
             "VectorTests/everyVector|TamperingTests/everyTruncation", "a truncated file is read in part"),
    mutation("frame sequence unchecked", VAULT + "Store/TailReader.swift", "header.sequence == sequence + 1, ", "", VECTORS,
             "frames can be numbered at will"),
    mutation("lookup id unchecked", VAULT + "VaultReport.swift",
             "      guard keys.lookupID(identifier) == item.record.id else {\n        throw .tampered(\"a record has the lookup id of another name\")\n      }\n",
             "", VECTORS, "a secret is given out under another's name"),
    mutation("number of secrets unchecked", OPEN,
             'guard items.count == state.itemCount else { throw .tampered("the number of secrets does not agree") }', "",
             "HostileWriterTests", "secrets that are missing are not missed"),
    mutation("room before bounds", FORMAT + "BaseIndex.swift", "block.itemCount <= block.length / BlockEntry.minimumLength,",
             "", "HostileWriterTests", "a number in the file takes all memory"),
    mutation("padding unchecked", SODIUM, "sodium_unpad(&count, bytes.start, bytes.count, Layout.paddingUnit) == 0,",
             "bytes.count > 0, { count = bytes.lastIndex(of: 0x80) ?? 0; return true }(),", VECTORS, "a value has two spellings"),
    mutation("reserved bytes unchecked", FORMAT + "ByteReader.swift",
             "guard bytes[try range(count)].allSatisfy({ $0 == 0 }) else {", "guard try range(count).count == count else {", VECTORS,
             "what a later version means is ignored"),
    # Limits and permissions
    mutation("cost limits unchecked", SLOT_SECRET,
             "guard bytes <= limits.maximumPassphraseMemory, passes <= limits.maximumPassphrasePasses else {",
             "guard bytes <= limits.maximumPassphraseMemory || passes > 0 else {", "OpeningTests/aLimitThat",
             "a hostile header costs all memory"),
    mutation("permissions unchecked", LOCKED, "guard status.mode & 0o077 == 0 else {", "guard status.mode != 0xFFFF else {",
             "OpeningTests/aVaultThatIsOpen", "others may have changed the file"),
    mutation("others let in meanwhile", LOCKED, "try Self.requirePrivate(now, to: status.owner, path: path)", "",
             "OpeningTests/aVaultThatIsOpenedTo", "others may have changed the file that is open"),
    mutation("memory left unasked", SLOT_SECRET, "guard bytes <= left ?? .max,\n       ", "guard", "ControlGroupsTests",
             "a container's limit kills the process without a word"),
    mutation("owner unchecked", LOCKED, "guard status.owner == user else {", "guard status.owner != 0xFFFF_FFFF else {",
             "OpeningTests/aVaultOfAnother", "another user's file is taken for one's own"),
    mutation("a key's text in another spelling", VAULT + "Crypto/VaultKey.swift", "agrees, isCanonical else", "agrees else",
             "KeySlotTests/keyText", "a mistyped key is taken"),
    # Memory
    mutation("no wipe on release", "Sources/CofferCore/GuardedMemory.swift", "    sodium_memzero(block, count)\n    switch",
             "    switch", "MemoryTests", "secrets stay in memory after their use"),
    # What is tried on the built tool
    mutation("lock not taken by processes", SESSION, "try acquireLock(of: vault.file, exclusive: exclusive)", "",
             "Tests/System/stress/many_processes.py SECRET 300", "two writers overwrite each other's frames"),
    mutation("signal of a file size limit", "Sources/CofferTool/App/ProcessHardening.swift", "[SIGPIPE, SIGXFSZ]", "[SIGPIPE]",
             "Tests/System/environment/mounts_and_limits.py STATIC", "the tool is killed without a word"),
    mutation("header padding unchecked by a parser that is fuzzed", FORMAT + "Header.swift",
             "    try reader.zeros(bytes.count - length)\n", "", "Fuzz/fuzz.sh 20 header", "a header has two spellings"),
    mutation("a byte beyond its block read", "Sources/CEarlyInit/CEarlyInit.c", "  count = argc;\n",
             "  volatile char *block = malloc(1);\n  if (block[1] != 7) count = argc;\n", "Tests/System/valgrind/memcheck.sh SECRET",
             "what is not there is read"),
]
