"""The mutations: small breakages of the code, each with the tests that must notice it.

`find` must be in the file exactly once. `tests` is a filter of `swift test`, and one of the tests that it selects must
fail; or it is a command as typed at the root of the repository, which must fail. In a command, SECRET stands for the
tool built from the broken sources, and STATIC for the static one. `reason` is the harm that the broken code would do.
"""

FORMAT = "Sources/CofferVaultFormat/"
VAULT = "Sources/CofferVault/"
CHAIN = VAULT + "Keys/CredentialChain.swift"
COMMIT = VAULT + "Store/Commit.swift"
DERIVED_KEYS = VAULT + "Crypto/DerivedKeys.swift"
FILE = VAULT + "Store/VaultFile.swift"
KNOWN_VAULT_FILE = VAULT + "Store/KnownVaultFile.swift"
KNOWN_VAULTS = VAULT + "Store/KnownVaults.swift"
LOCK = VAULT + "Store/VaultLock.swift"
PASSPHRASE = VAULT + "Keys/PassphraseScheme.swift"
SEAL_CONTEXT = FORMAT + "SealContext.swift"
SESSION = VAULT + "Store/VaultSession.swift"
STORAGE = VAULT + "Store/StorageFile.swift"
UNLOCKED = VAULT + "Store/UnlockedVault.swift"
WRITER = VAULT + "Store/VaultFileWriter.swift"

BARRIER = "try storage.synchronizeData()"
CRASHES = "CrashTests/acknowledgedChangesSurvive"
VECTORS = "VectorTests/everyVector"


def mutation(name, file, find, replace, tests, reason):
    return {"name": name, "file": file, "find": find, "replace": replace, "tests": tests, "reason": reason}


MUTATIONS = [
    # Durability
    mutation("no first barrier", COMMIT, BARRIER + "\n      try storage.write(page", "try storage.write(page", CRASHES,
             "a commit slot names frames that never reached the disk"),
    mutation("no second barrier", COMMIT, "first * Layout.pageSize)\n      " + BARRIER, "first * Layout.pageSize)", CRASHES,
             "an acknowledged change is lost"),
    mutation("no barrier after a new file", WRITER, "    try file.synchronize()\n", "", CRASHES,
             "a file of zeros takes the vault's place"),
    mutation("no directory barrier", WRITER, "{ try location.synchronize() }", "{ _ = try location.status() }", CRASHES,
             "the rename is lost, and every change after it"),
    mutation("failed barrier acknowledged", COMMIT, "didFailSync = true\n      throw error", "didFailSync = true",
             "FaultTests/afterAFailedBarrier", "a change is acknowledged that a power loss undoes"),
    mutation("current slot overwritten", COMMIT, "let slot = 1 - slots.current", "let slot = slots.current", CRASHES,
             "a torn write leaves no valid slot"),
    mutation("fixed nonce", VAULT + "Crypto/Sodium.swift",
             "randomness.fill(UnsafeMutableRawBufferPointer(rebasing: output[..<Layout.nonceLength]))",
             "UnsafeMutableRawBufferPointer(rebasing: output[..<Layout.nonceLength]).initializeMemory(as: UInt8.self, repeating: 0)",
             CRASHES + "|SharingTests/twoBackends", "two plaintexts under one key stream"),
    mutation("transaction in part", COMMIT, "for change in transaction.changes {",
             "for change in transaction.changes.prefix(1) {", CRASHES, "half of a transaction is stored"),
    mutation("failed transaction kept", SESSION, "let result = try body(transaction, vault)\n      if",
             "let result: R\n      do throws(SecretError) { result = try body(transaction, vault) } catch {\n"
             "        try commit(transaction, to: vault)\n        throw error\n      }\n      if",
             "ConformanceTests", "a transaction that threw is committed"),
    mutation("appended after a failed barrier", SESSION, "condition.didFailSync || !transaction", "!transaction",
             "FaultTests/afterAFailedBarrier", "pages that the system dropped count as written"),
    mutation("name of the file not made durable", FILE, "if condition.isNameDurable { return }",
             "if headerLength > 0 { return }", "CrashTests/changesAcknowledgedAfterAKill",
             "changes go to a file that a power loss removes from the directory"),
    mutation("record before the directory's barrier", KNOWN_VAULTS, "      try opened.file.synchronizeName()\n", "",
             "CrashTests/seedsThatFailed", "a vault that only lost power is reported as rolled back"),
    mutation("torn record accepted", KNOWN_VAULT_FILE, "guard Self.withHash(hashed) == slot else { return nil }", "",
             "RollbackTests/aHalfDamaged|KnownVaultVectorTests", "a power loss makes a vault's record unusable"),
    mutation("temporary file left behind", WRITER, "    } catch {\n      abandon()\n      throw", "    } catch {\n      throw",
             "FaultTests/everyCallCanFailOnce", "files pile up"),
    mutation("interruption not retried", STORAGE, "if error.number != EINTR { throw error }", "throw error",
             "FaultTests/interruptions", "a signal makes a change fail"),
    mutation("short write taken for a whole one", STORAGE, "        return count\n", "        return bytes.count\n",
             "FaultTests/interruptions", "the end of a frame is missing"),
    # Sharing
    mutation("lock not taken", LOCK, "try acquireLock(of: file.storage, exclusive: exclusive)", "",
             CRASHES, "two writers overwrite each other's frames"),
    mutation("truncated before the lock is taken", SESSION, "      return vault.file\n",
             "      try vault.file.storage.truncate(to: vault.state.end)\n      return vault.file\n",
             CRASHES + "|LockTests", "another writer's frames are cut off"),
    mutation("path not compared with the open file", LOCK, "if try file.isCurrent() {",
             "if try file.isCurrent() || true {", "LockTests/theLockOf|LockTests/aReader",
             "the lock of a replaced file admits a second writer"),
    mutation("rollback not detected", KNOWN_VAULTS,
             "throw .rolledBack(path: path, seen: record.checkpoint, found: opened.state.checkpoint)", "return",
             "SharingTests", "an old copy is accepted"),
    mutation("record not raised by a change", KNOWN_VAULTS,
             "    for place in places { raise(place, to: record, keys, vault) }\n", "", "RollbackTests", "a later run accepts an old copy"),
    mutation("remains not cut off", COMMIT, "if try storage.size() > state.end {", "if try storage.size() < 0 {",
             "SharingTests/theRemains", "bytes that were never acknowledged stay in the file"),
    mutation("remains accepted", UNLOCKED, "from: offset, to: state.end,",
             "from: offset, to: (try? file.storage.size()) ?? state.end,",
             "SharingTests/theRemains|TamperingTests/bytesAfterTheEnd", "bytes that were never acknowledged count"),
    # Authentication
    mutation("key slot commitment unchecked", VAULT + "Crypto/SlotKey.swift",
             "guard Sodium.isEqual(derived.commitment, slot.commitment) else { return nil }", "",
             "OpeningTests/aMissingKey|VectorTests/everyVector", "one wrapped key opens under two credentials"),
    mutation("master key commitment unchecked", DERIVED_KEYS, "guard isCommitted(to: header), Sodium", "guard Sodium",
             VECTORS, "one file opens under two master keys"),
    mutation("header MAC unchecked", DERIVED_KEYS, "Sodium.isEqual(mac(of: header), header.mac)", "header.mac.count == 32",
             VECTORS, "key slots are changed without a key"),
    mutation("header padding unchecked", FORMAT + "Header.swift", "    try reader.zeros(bytes.count - length)\n", "", VECTORS,
             "a header has two spellings"),
    mutation("no chain in associated data", SEAL_CONTEXT, "encode(file, offset, UInt32(length), previousTag)",
             "encode(file, offset, UInt32(length))", VECTORS, "frames can be reordered"),
    mutation("no offset in a frame's associated data", SEAL_CONTEXT, "encode(file, offset, UInt32(length), previousTag)",
             "encode(file, UInt32(length), previousTag)", VECTORS, "frames can be moved"),
    mutation("value tag unchecked", DERIVED_KEYS,
             "guard sealed.count > Layout.sealOverhead, Bytes16(tagOf: sealed) == record.valueTag else {",
             "guard sealed.count > Layout.sealOverhead else {", "VectorTests/everyVector|TamperingTests/everyExchanged",
             "a value of another history is accepted"),
    mutation("commit slot not bound to the header", SEAL_CONTEXT, 'encode("coffer-commit", UInt8(index), headerHash)',
             'encode("coffer-commit", UInt8(index))', "TamperingTests/parts|VectorTests/everyVector",
             "commit slots of an older file fit"),
    mutation("end beyond the file accepted", VAULT + "Store/CommitSlots.swift",
             'guard states.allSatisfy({ $0.state.end <= size }) else { throw .tampered("the file is cut short") }', "_ = size",
             "VectorTests/everyVector|TamperingTests/everyTruncation", "a truncated file is read in part"),
    mutation("frame sequence unchecked", VAULT + "Store/TailReader.swift", "metadata.record.sequence == sequence + 1, ", "",
             VECTORS,
             "frames can have any number"),
    mutation("lookup id unchecked", VAULT + "VaultReport.swift", "guard keys.lookupID(identifier) == entry.record.id else {",
             "guard keys.lookupID(identifier) == entry.record.id || true else {", VECTORS, "a secret is returned under another name"),
    mutation("number of secrets unchecked", UNLOCKED,
             'guard items.count == state.secretCount else { throw .tampered("the number of secrets is wrong") }', "",
             "HostileWriterTests", "missing secrets are not noticed"),
    mutation("memory reserved before bounds are checked", FORMAT + "BaseIndex.swift",
             "block.itemCount <= block.length / BlockEntry.minimumLength,", "", "HostileWriterTests",
             "a number in the file takes all memory"),
    mutation("padding length unchecked", FORMAT + "Padding.swift", "bytes[count] == mark,\n      Layout.padded(count) == bytes.count\n",
             "bytes[count] == mark\n", VECTORS, "a value has two spellings"),
    mutation("padding mark unchecked", FORMAT + "Padding.swift", "bytes[count] == mark,\n      Layout", "Layout",
             VECTORS, "a value has two spellings"),
    mutation("reserved bytes unchecked", FORMAT + "ByteReader.swift",
             "guard bytes[try range(count)].allSatisfy({ $0 == 0 }) else {", "guard try range(count).count == count else {", VECTORS,
             "the meaning that a later version gives to them is ignored"),
    # Keys, limits and permissions
    mutation("cost limits unchecked", PASSPHRASE,
             "guard options.permits(VaultKeySlot.Cost(memory: bytes, passes: Int(passes))) else {",
             "guard options.permits(VaultKeySlot.Cost(memory: bytes, passes: Int(passes))) || passes > 0 else {", "OpeningTests/aLoweredCostLimit",
             "a hostile header takes all memory"),
    mutation("slot above the cost limit ends the search", CHAIN,
             "guard error.code == .costLimitExceeded else { throw error }\n          misses", "throw error\n          misses", "KeySlotTests/aSlotAbove", "a costly slot cannot be removed"),
    mutation("every passphrase slot tried", CHAIN, "costlySlots < Self.maximumCostlySlots", "costlySlots < 16",
             "KeySlotTests/unlockingTries", "a hostile header costs sixteen derivations"),
    mutation("obsolete master key accepted", CHAIN, "guard candidate.isCommitted(to: file.header) else { return true }", "",
             "KeySlotTests/aKeptMasterKey", "a key kept from before a rekey looks like damage"),
    mutation("memory limit unchecked", PASSPHRASE, "guard bytes <= left ?? .max,\n      let", "guard let", "OpeningTests/aPassphraseIsNot",
             "the kernel kills the process in a container"),
    mutation("permissions unchecked", FILE, "guard status.mode & 0o022 == 0 else {", "guard status.mode != 0xFFFF else {",
             "OpeningTests/aVaultThatOthersMayChange", "others may have changed the file"),
    mutation("permissions of an open file unchecked", FILE,
             "try Self.requireTrustworthy(now, to: user, path: path)", "",
             "OpeningTests/anOpenVault", "others may have changed the open file"),
    mutation("owner unchecked", FILE, "guard status.owner == user || status.owner == 0 else {",
             "guard status.owner != 0xFFFF_FFFF else {", "OpeningTests/aVaultOfRoot", "another user's file is accepted"),
    mutation("another spelling of a key accepted", VAULT + "Crypto/VaultKey.swift",
             "guard given.isEqual(to: Self.text(of: key)) else {",
             "let found = checksum(of: key)\n    guard given.count > 0, found.indices.allSatisfy({ index in\n"
             "      both.withBytes { $0[length + index] } == found[index]\n    }) else {",
             "KeySlotTests/keyText", "a mistyped key is accepted"),
    # Memory
    mutation("no wipe on release", "Sources/CofferCore/GuardedMemory.swift", "    sodium_memzero(block, count)\n    switch",
             "    switch", "MemoryTests", "secrets stay in memory after their use"),
    # With the built tool
    mutation("lock not taken by processes", LOCK, "try acquireLock(of: file.storage, exclusive: exclusive)", "",
             "Tests/System/stress/many_processes.py SECRET 300", "two writers overwrite each other's frames"),
    mutation("signal of a file size limit", "Sources/CofferTool/App/ProcessHardening.swift", "[SIGPIPE, SIGXFSZ]", "[SIGPIPE]",
             "Tests/System/environment/mounts_and_limits.py STATIC", "the tool is killed without a message"),
    mutation("header padding unchecked by a parser that is fuzzed", FORMAT + "Header.swift",
             "    try reader.zeros(bytes.count - length)\n", "", "Fuzz/fuzz.sh 20 header", "a header has two spellings"),
    mutation("read past the end of a block", "Sources/CEarlyInit/CEarlyInit.c", "  count = argc;\n",
             "  volatile char *block = malloc(1);\n  if (block[1] != 7) count = argc;\n", "Tests/System/valgrind/memcheck.sh SECRET",
             "memory that was not allocated is read"),
]
