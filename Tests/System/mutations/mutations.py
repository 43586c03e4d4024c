"""Mutations that generated.py cannot make: of other code, of several lines, or noticed by a command alone.

`find` must be in the file exactly once. `tests` is a filter of `swift test`, and one of the tests that it selects must
fail; or it is a command as typed at the root of the repository, which must fail. In a command, SECRET stands for the
tool built from the broken sources, and STATIC for the one of Scripts/static. `reason` is the harm that the broken code
would do.
"""

STOPS = "Tests/System/stops/every_stop.py STATIC "
FORMAT = "Sources/CofferVaultFormat/"
VAULT = "Sources/CofferVault/"
COMMIT = VAULT + "Writing/Commit.swift"
DERIVED_KEYS = VAULT + "Crypto/DerivedKeys.swift"
FILE = VAULT + "Snapshot/VaultFile.swift"
KNOWN_VAULT_FILE = VAULT + "Trust/KnownVaultFile.swift"
KNOWN_VAULTS = VAULT + "Trust/KnownVaults.swift"
LOCK = VAULT + "Backend/VaultLock.swift"
REWRITE = VAULT + "Writing/Rewrite.swift"
SEAL_CONTEXT = FORMAT + "SealContext.swift"
SESSION = VAULT + "Backend/VaultSession.swift"
SLOT_CHANGES = VAULT + "Keys/KeySlotChanges.swift"
UNLOCKED = VAULT + "Snapshot/VaultSnapshot.swift"

BARRIER = "try storage.synchronizeData()"
ATTACK = "Tests/System/attacks/attack.py SECRET "
CRASHES = "CrashTests/acknowledgedChangesSurvive"
VECTORS = "VectorTests/everyVector"


def mutation(name, file, find, replace, tests, reason):
    return {"name": name, "file": file, "find": find, "replace": replace, "tests": tests, "reason": reason}


MUTATIONS = [
    # Durability
    mutation("both slots written before the second barrier", COMMIT,
             "first * Layout.pageSize)\n      " + BARRIER,
             "first * Layout.pageSize)\n"
             "      try storage.write(pages[second], at: file.headerLength + second * Layout.pageSize)\n      " + BARRIER,
             CRASHES, "a power loss tears both slots, and no valid one is left"),
    mutation("transaction in part", COMMIT, "for change in transaction.changes {",
             "for change in transaction.changes.prefix(1) {", CRASHES, "half of a transaction is stored"),
    mutation("failed transaction kept", SESSION, "let result = try body(transaction, vault)\n      if",
             "let result: R\n      do throws(SecretError) { result = try body(transaction, vault) } catch {\n"
             "        try commit(transaction, to: vault)\n        throw error\n      }\n      if",
             "ConformanceTests", "a transaction that threw is committed"),
    mutation("record before the barrier of a new file", SESSION,
             "    do throws(SecretError) { try replacement.writer.finishReplace() } catch {\n",
             "    knownVaults.advance(to: replacement.state.checkpoint, newKeys, from: vault)\n"
             "    do throws(SecretError) { try replacement.writer.finishReplace() } catch {\n",
             CRASHES, "a vault that only lost power is reported as rolled back"),
    mutation("new limit ignored", REWRITE, "HistoryRule(changes.history, now: now)]", "HistoryRule(base.settings.history, now: now)]",
             "HistoryTests", "versions beyond a lowered limit stay in the file"),
    mutation("old limit ignored", REWRITE, "let rules = [HistoryRule(base.settings.history, now: now), HistoryRule",
             "let rules = [HistoryRule(changes.history, now: now), HistoryRule", "HistoryTests|" + CRASHES,
             "a higher limit brings dropped versions back"),
    # Sharing
    mutation("truncated before the lock is taken", SESSION, "      return vault.file\n",
             "      try vault.file.storage.truncate(to: vault.state.end)\n      return vault.file\n",
             CRASHES + "|LockTests", "another writer's frames are cut off"),
    mutation("lineage cut off", REWRITE, "settings.lineage = try newKeys.lineage(after: keys, settings.lineage,",
             "settings.lineage = try newKeys.lineage(after: keys, nil,", "RevokedKeyTests/aMachine",
             "a machine that missed two rekeys refuses the vault"),
    mutation("place named by a link not remembered", KNOWN_VAULTS, "var paths = [namedPath]\n", "var paths: [String] = []\n",
             "RollbackTests/anOlderCopy", "a link puts an older copy in the vault's place"),
    mutation("place behind a link not remembered", KNOWN_VAULTS, ", file.location.resolvedPath]", "]",
             "RollbackTests/aPlaceReached", "an older copy is accepted by another name"),
    mutation("damaged record passed over", KNOWN_VAULT_FILE, "    return try slots(of: file).seen\n",
             "    do throws(SecretError) { return try slots(of: file).seen } catch { return nil }\n",
             "KnownVaultRecordTests/aDamagedRecord", "one flipped bit switches the protection off"),
    mutation("remains accepted", UNLOCKED, "from: offset, to: state.end,",
             "from: offset, to: (try? file.storage.size()) ?? state.end,",
             "SharingTests/theRemains|TamperingTests/bytesAfterTheEnd", "bytes that were never acknowledged count"),
    # Authentication
    mutation("no chain in associated data", SEAL_CONTEXT, "encode(file, offset, UInt32(length), previousTag)",
             "encode(file, offset, UInt32(length))", VECTORS, "frames can be reordered"),
    mutation("no offset in a frame's associated data", SEAL_CONTEXT, "encode(file, offset, UInt32(length), previousTag)",
             "encode(file, UInt32(length), previousTag)", VECTORS, "frames can be moved"),
    mutation("frame length not masked", DERIVED_KEYS, ".withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(as: UInt32.self)) }",
             ".withUnsafeBytes { _ in 0 }", VECTORS, "the number of changes and the size of each can be read without the key"),
    mutation("commit slot not bound to the header", SEAL_CONTEXT, 'encode("coffer-commit", UInt8(index), headerHash)',
             'encode("coffer-commit", UInt8(index))', "TamperingTests/parts|VectorTests/everyVector",
             "commit slots of an older file fit"),
    # Keys, limits and permissions
    mutation("missing credentials not all named", SLOT_CHANGES, "let missing = staying.filter { rewrapped[$0.id] == nil }",
             "let missing = staying.filter { rewrapped[$0.id] == nil }.prefix(1)", "KeySlotTests/everySlotWhose",
             "each attempt names one more missing credential"),
    mutation("another spelling of a key accepted", VAULT + "Crypto/VaultKey.swift",
             "guard try given.isEqual(to: Self.text(of: key)) else {",
             "let found = checksum(of: key)\n    guard given.count > 0, found.indices.allSatisfy({ index in\n"
             "      both.withBytes { $0[length + index] } == found[index]\n    }) else {",
             "KeySlotTests/keyText", "a mistyped key is accepted"),
    # Memory
    mutation("no wipe on release", "Sources/CofferCore/Memory/GuardedMemory.swift", "    sodium_memzero(block, count)\n    switch",
             "    switch", "MemoryTests", "secrets stay in memory after their use"),
    mutation("registers not cleared", "Sources/CofferCore/Memory/Residue.swift", "{ coffer_clear_vector_registers() }", "{}",
             STOPS + "key-file", "a handler of a signal copies a value to the stack"),
    mutation("stack not wiped", "Sources/CofferCore/Memory/Residue.swift", "    sodium_stackzero(stackSize)\n", "    _ = stackSize\n",
             STOPS + "rekey", "a key stays below the stack pointer and may be written to swap space"),
    # With the built tool
    mutation("lock not taken by processes", LOCK, "try acquireLock(of: file.storage, exclusive: exclusive)", "",
             "Tests/System/stress/many_processes.py SECRET 300", "two writers overwrite each other's frames"),
    mutation("signal of a file size limit", "Sources/CofferTool/App/ProcessHardening.swift",
             "!Self.isIgnoring(signal(SIGXFSZ, SIG_IGN))", "false",
             "Tests/System/environment/mounts_and_limits.py STATIC", "the tool is killed without a message"),
    mutation("header padding unchecked by a parser that is fuzzed", FORMAT + "Header.swift",
             "    try reader.zeros(bytes.count - length)\n", "", "Fuzz/fuzz.sh 20 header", "a header has two spellings"),
    mutation("read past the end of a block", "Sources/CEarlyInit/CEarlyInit.c", "  count = argc;\n",
             "  volatile char *block = malloc(1);\n  if (block[1] != 7) count = argc;\n", "Tests/System/valgrind/memcheck.sh SECRET",
             "memory that was not allocated is read"),
    # Attacks on a vault
    mutation("another master key accepted", KNOWN_VAULTS,
             "      try opened.keys.isFormerMAC(known.mac, of: known.message, lineage: lineage, vault: header.vaultID)\n"
             "    else { throw .unexpectedKey(path: path) }",
             "      lineage.isEmpty\n    else { return }", ATTACK + "removed_key old_master_key",
             "a removed key comes back with an old copy"),
    mutation("any lineage accepted", DERIVED_KEYS, "count: 32), mac) { isFound = true }", "count: 32), mac) {}\n      isFound = true",
             ATTACK + "forged_lineage", "the holder of an older key claims to succeed the present one"),
    mutation("succession to an older change accepted", KNOWN_VAULTS,
             "record.policy == .versioned || opened.base.sequence > record.checkpoint.sequence", "opened.base.sequence > 0",
             ATTACK + "genuine_lineage_at_an_older_change", "a rekeyed older copy takes changes back"),
    mutation("place as it was named not recorded", KNOWN_VAULTS, "var paths = [namedPath]\n    for path in [inDirectory.resolvedPath, ",
             "var paths: [String] = []\n    for path in [", ATTACK + "rollback_by_link", "a link puts an older copy in the vault's place"),
    mutation("place in its directory not recorded", KNOWN_VAULTS, "[inDirectory.resolvedPath, ", "[",
             "RollbackTests/anOlderCopyBehindALinkIsDetectedBy", "a link puts an older copy in the vault's place"),
    mutation("links to the working directory resolved", "Sources/CofferSystem/Files/Path.swift", "isSameFile(named, \".\")", "false",
             ATTACK + "rollback_by_directory", "a link puts an older copy in the vault's directory"),
    mutation("fork not noticed", KNOWN_VAULTS, "return tag == earlier.tailTag", "return true", ATTACK + "fork",
             "another history is taken for a later state"),
    mutation("second slot not written, by an attack", COMMIT, "try storage.write(pages[second], at: file.headerLength + second * Layout.pageSize)",
             "_ = try storage.size()", ATTACK + "one_flipped_bit", "one damaged slot takes the last change back"),
    mutation("damaged slot passed over", "Sources/CofferTool/Output/VaultNotes.swift", "if condition.isRecovered {",
             "if condition.isRecovered && false {", ATTACK + "only_an_older_slot", "a lost change is not reported"),
    mutation("damaged slot not named with a rollback", KNOWN_VAULTS,
             "          isRecovered: opened.slots.isRecovered)", "          isRecovered: false)",
             ATTACK + "only_an_older_slot", "a bad sector is reported as an attack"),
    mutation("vault id unchecked by its record", KNOWN_VAULTS, "known.content.record.vault != file.header.vaultID",
             "known.content.record.vault == .zero", ATTACK + "exchanged_vaults", "another vault is reported as another key"),
    mutation("versioned policy holds nothing", KNOWN_VAULTS, "    let (header, record) = (opened.file.header, known.record)\n",
             "    let (header, record) = (opened.file.header, known.record)\n    if record.policy == .versioned { return }\n",
             ATTACK + "version_control", "a checkout brings a removed key back"),
    mutation("versioned policy is strict", KNOWN_VAULTS, "record.policy == .versioned || opened.mayFollow", "opened.mayFollow",
             ATTACK + "version_control", "a checkout of an older commit is refused"),
    mutation("exposed vault written", FILE, "guard condition.status.mode & 0o077 == 0 else {",
             "guard condition.status.mode != 0xFFFF else {", ATTACK + "open_to_others", "an exposed file is taken for a private one"),
    mutation("record not authenticated", KNOWN_VAULTS,
             "guard Sodium.isEqual(opened.keys.knownVaultMAC(of: known.message), known.mac) else {", "guard known.mac.count == 32 else {",
             ATTACK + "damaged_record", "a damaged record switches protection off"),
    mutation("exposed record accepted", KNOWN_VAULT_FILE, ", status.mode & 0o077 == 0 else {", " else {", ATTACK + "damaged_record",
             "others may have changed what was seen"),
]
