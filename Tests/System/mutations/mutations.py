"""The mutations. Each is a realistic mistake in one function, with the harm that it would do.

`function` is the types that the function is in and its name: `VaultSession.commit`. If there are several of that name,
the labels follow: `Sodium.open(_:associatedData:key:)`. In which file the function is makes no difference. `change` is a
small edit of its body (edits.py). `tests` is a filter of `swift test`, and one of the tests that it selects must fail; or
it is a command, which must fail. In a command, SECRET stands for the built tool, and STATIC for the one of Scripts/static.
"""

from dataclasses import dataclass
from typing import Callable

from edits import always, argument, before, body, fails, first, instead, never, omit, operator, passes


@dataclass
class Mutation:
    name: str
    function: str
    change: Callable
    tests: str
    reason: str
    number: int = 0


M = Mutation
ATTACK = "Tests/System/attacks/attack.py SECRET "
STOPS = "Tests/System/stops/every_stop.py STATIC "
CRASHES = "CrashTests"
FAULTS = "FaultTests"
FORMAT = "VectorTests|FormatStructureTests|FormatBoundaryTests"
PINS = "PinTests|PinVectorTests"
INDEX = "IndexTests|VectorTests"
TAMPERING = "TamperingTests"
TRUST = "RollbackTests|RevokedKeyTests|KnownVaultRecordTests|KnownVaultVectorTests"
KEYS = "KeySlotTests|OpeningTests|DerivationBudgetTests"
SHARING = "CofferVaultTests.SharingTests|CofferVaultTests.LockTests|ConcurrentReadTests|FreshnessTests"
SYSTEM = "CofferSystemTests"
TOOL = "CofferToolTests.(ScenarioTests|PureRulesTests|LeakTests)"

DURABILITY = [
    M("no barrier before the first slot", "VaultSnapshot.commit", omit("storage.synchronizeData"), CRASHES,
      "a slot names frames that a power loss takes away"),
    M("no barrier after the first slot", "VaultSnapshot.commit", omit("storage.synchronizeData", 2), CRASHES,
      "an acknowledged change is lost"),
    M("both slots before the second barrier", "VaultSnapshot.commit",
      before("storage.synchronizeData",
             "try storage.write(pages[second], at: file.headerLength + second * Layout.pageSize)", 2),
      CRASHES, "a power loss tears both slots, and no valid one is left"),
    M("the second slot not written", "VaultSnapshot.commit", omit("storage.write", 2),
      ATTACK + "one_flipped_bit", "one damaged slot takes the last change back"),
    M("failed write not taken back", "VaultTransaction.write", omit("removeWritten"), "VaultSystemCallTests",
      "a full disk keeps the bytes of a change that failed"),
    M("remains not cut off", "VaultTransaction.write", never(1), "CofferVaultTests.SharingTests|TamperingTests/bytesAfterTheEnd|CrashTests",
      "bytes of an interrupted commit stay behind the end"),
    M("what a failed transaction wrote stays", "VaultTransaction.abandon", never(1), "LargeTransactionTests",
      "a large transaction that failed keeps its room in the file"),
    M("new file not on the disk before its name", "NewFile.takeName", omit("uninterrupted"), CRASHES,
      "a power loss leaves a name without content"),
    M("rename not made durable", "VaultFileWriter.finishReplace", body(""), CRASHES, "a power loss brings the old file back"),
    M("name of the file not made durable", "VaultFile.synchronizeName", omit("location.synchronize"), CRASHES,
      "a power loss brings back a file without the changes that followed"),
    M("failed barrier forgotten", "VaultSession.replacement", operator("condition.now.didFailSync", "false"), FAULTS,
      "changes are written to pages that the system has dropped"),
    M("failed transaction committed", "VaultSession.transaction",
      instead("body", "try { () throws(SecretError) -> R in do throws(SecretError) { return try body(transaction) } "
              "catch { try commit(transaction, to: vault); throw error } }()"),
      "CofferVaultTests.ConformanceTests", "a transaction that threw is committed"),
    M("unchanged secret not on the disk", "VaultSession.transaction", omit("vault.file.synchronize"), FAULTS,
      "a power loss takes back what a command reported as stored"),
    M("record before the barrier of a new file", "VaultSession.finish",
      before("replacement.writer.finishReplace",
             "if var record = shared.accepted?.record { record.checkpoint = replacement.state.checkpoint\n"
             "record.masterCommitment = newKeys.masterCommitment(record.vault)\n"
             "knownVaults.recordCommit(record, from: vault, newKeys) }"),
      CRASHES, "a vault that only lost power is reported as rolled back"),
    M("state remembered before it is on the disk", "KnownVaults.remember", omit("opened.file.synchronize"),
      CRASHES + "|" + TRUST, "a power loss makes an honest vault look rolled back"),
    M("spared slot of a record not on the disk", "KnownVaultFile.raise", instead("file.synchronizeData", "()"),
      CRASHES + "|" + TRUST, "a power loss destroys both slots of a record"),
    M("versions from before a purge kept", "HistoryRule.kept", operator("records.lastIndex(where: { $0.keepsNothing }) ?? 0", "0"),
      "HistoryTests|VectorTests", "what was erased on one machine comes back from another"),
    M("version that lost in a merge dropped", "BlockEntry.lost", body("return false"), "HistoryTests|VectorTests",
      "one of two concurrent changes is lost"),
    M("new limit ignored", "VaultSnapshot.rewrite", argument("HistoryRule", 1, "base.settings.history", 2), "HistoryTests",
      "versions beyond a lowered limit stay in the file"),
    M("old limit ignored", "VaultSnapshot.rewrite", argument("HistoryRule", 1, "changes.history"), "HistoryTests|CrashTests",
      "a higher limit brings dropped versions back"),
    M("short write taken for a whole one", "File.writeAll", operator("while", "if"), FAULTS,
      "a signal leaves half of a change"),
    M("short read taken for a whole one", "StorageFile.read", passes(1), "TamperingTests",
      "a file that is cut short ends the process"),
]

SHARED_USE = [
    M("vault written without a lock", "VaultSession.acquireLock", body(""), "CofferVaultTests.LockTests|CrashTests",
      "two writers overwrite each other's frames"),
    M("lock of processes without effect", "LinuxFile.tryLock", body("return true"),
      "Tests/System/stress/many_processes.py SECRET 300", "two processes overwrite each other's frames"),
    M("exclusive lock is shared", "LinuxFile.tryLock", operator("exclusive", "false"), SYSTEM, "two writers have the lock"),
    M("replaced file used after waiting", "VaultSession.withLock", always(1), SHARING,
      "a change goes to a file that is no longer the vault"),
    M("lock is waited for without end", "VaultSession.acquireLock", passes(1), "CofferVaultTests.LockTests", "a command hangs"),
    M("changes of others not read", "VaultSnapshot.refreshed", body("return nil"), SHARING, "an old value is returned"),
    M("accepted state not held", "KnownVaults.admitAndPublish", omit("Self.check"), "ConcurrentReadTests|RollbackTests|CloseTests",
      "a program sees a change taken back"),
    M("failed check not repeated under a lock", "VaultSession.read", fails(2), "ConcurrentReadTests|CofferVaultTests.SharingTests",
      "a reader reports damage while another process writes"),
    M("temporary file of another process removed", "NewFile.isAbandoned", instead("tryLock", ".status().isRegular"),
      "TemporaryFileTests", "a rewrite of another process loses its file"),
    M("abandoned files stay", "NewFile.removeAbandoned", body(""), "TemporaryFileTests",
      "each killed process leaves a copy of the vault"),
    M("lost version not noticed", "SecretValueStore.store", always(1), "MigrationTests", "a current value is converted once more"),
    M("old value not put back", "SecretValueStore.store", omit("transaction.store", 2), "MigrationTests",
      "a refused change replaces the value"),
]

AUTHENTICATION = [
    M("seal not authenticated", "Sodium.open(_:associatedData:key:into:)", operator("== 0", "!= 7"), FORMAT,
      "every forgery is accepted"),
    M("no associated data", "Sodium.open(_:associatedData:key:into:)", operator("associatedData.count", "0"), FORMAT,
      "parts can be exchanged"),
    M("no chain in a frame's associated data", "SealContext.metadata", argument("encode", 4, ""), FORMAT,
      "frames can be reordered"),
    M("no offset in a frame's associated data", "SealContext.metadata", argument("encode", 2, ""), FORMAT, "frames can be moved"),
    M("value not bound to its name", "SealContext.value", argument("encode", 2, ""), FORMAT,
      "the value of one secret is returned for another"),
    M("value not bound to its version", "SealContext.value", argument("encode", 3, ""), FORMAT,
      "an older value is returned for the newest"),
    M("part not bound to its kind", "SealContext.base", argument("encode", 2, ""), FORMAT, "a node is taken for a block"),
    M("part not bound to its file", "SealContext.base", argument("encode", 3, ""), FORMAT, "a part of an older file fits"),
    M("part not bound to its place", "SealContext.base", argument("encode", 4, ""), FORMAT, "parts can be moved"),
    M("commit slot not bound to the header", "SealContext.commitSlot", argument("encode", 3, ""),
      FORMAT + "|TamperingTests/parts", "commit slots of an older file fit"),
    M("both slots sealed alike", "SealContext.commitSlot", argument("encode", 2, " UInt8(0)"), FORMAT, "slots can be exchanged"),
    M("key slot not bound to the vault", "HashedMessage.wrappedKey", argument("encode", 1, ""), FORMAT,
      "a key slot of another vault fits"),
    M("lengths not in a lookup id", "HashedMessage.lookupID", argument("encode", 1, ""), FORMAT,
      "two names have one id"),
    M("frame length not masked", "DerivedKeys.frameMask", body("return 0"), FORMAT,
      "the number of changes and the size of each can be read without the key"),
    M("header not authenticated", "DerivedKeys.authenticate(_:)", passes(1, 2), FORMAT + "|" + TAMPERING,
      "key slots are exchanged without notice"),
    M("master key not compared", "DerivedKeys.isCommitted", body("return true"), KEYS + "|" + FORMAT + "|" + TRUST,
      "a cached key opens another file"),
    M("key slot without commitment", "SlotKey.unwrap", passes(1), KEYS + "|" + FORMAT,
      "one file opens with two credentials to two contents"),
    M("tag of a part ignored", "DerivedKeys.open(_:tag:_:)", passes(1, 2), FORMAT, "an older block is accepted"),
    M("tag of a value ignored", "DerivedKeys.openPaddedValue", passes(1, 2), FORMAT, "an older value is accepted"),
    M("lineage not authenticated", "DerivedKeys.openLineage", passes(1), TRUST + "|" + FORMAT,
      "an attacker names his own former keys"),
    M("remains accepted", "Tail.read", first("var state = state\nstate.end = try vault.storage.size()"),
      "CofferVaultTests.SharingTests|TamperingTests/bytesAfterTheEnd", "bytes that were never acknowledged count"),
    M("end of the tail not compared", "Tail.read", passes(4), FORMAT, "the last changes are cut off"),
    M("sequence of a frame ignored", "Tail.read", passes(2), FORMAT, "a frame is left out"),
    M("tail without a limit", "Tail.read", passes(3), FORMAT, "a hostile file keeps every lookup busy"),
    M("foreign lookup id accepted", "VaultSnapshot.named", passes(1), FORMAT, "a record hides behind another name"),
    M("version of another name accepted", "VaultSnapshot.forEachSecret(_:_:)", passes(2), FORMAT,
      "a value is shown as an earlier version of another secret"),
    M("removal of nothing accepted", "VaultSnapshot.forEachSecret(_:_:)", passes(3), FORMAT,
      "the value before a removal is left out unnoticed"),
    M("overlap of blocks accepted", "VaultSnapshot.forEachBlock", passes(1), FORMAT, "the newest version is not found"),
    M("gap in the base accepted", "VaultSnapshot.forEachBlock", passes(2), FORMAT, "a part of the base is left out"),
    M("contradicting slots accepted", "CommitSlots.init(reading:keys:)", passes(3), FORMAT, "one of two contents is chosen by chance"),
    M("older slot preferred", "CommitSlots.init(reading:keys:)", operator(">", "<"), FORMAT + "|CofferVaultTests.SharingTests", "the last change disappears"),
    M("end behind the file accepted", "CommitSlots.init(reading:keys:)", passes(4), FORMAT + "|" + TAMPERING, "a cut file is read"),
    M("reserved bytes ignored", "ByteReader.zeros", passes(1), FORMAT, "a file has two spellings"),
    M("bytes after the end ignored", "ByteReader.expectEnd", body(""), FORMAT, "a part has two spellings"),
    M("numbers without a limit", "ByteReader.number", passes(1), FORMAT, "a sum overflows and ends the process"),
    M("unknown critical field ignored", "ByteReader.taggedFields", passes(2), FORMAT, "a later version's rule is broken"),
    M("later version opened", "Header.length", passes(2), FORMAT, "bytes of a later version are misread"),
    M("two slots with one id accepted", "Header.init(parsing:)", never(1), FORMAT, "a removed slot stays"),
    M("padding not checked", "Padding.unpaddedCount", passes(1, 3), FORMAT, "a value has several lengths"),
    M("order of a block not checked", "Block.items", passes(2), FORMAT, "a search misses the newest version"),
    M("item newer than its base accepted", "Block.items", passes(2, 2), FORMAT, "a change is stored under a sequence twice"),
    M("values of a block do not fill their place", "Block.items", passes(3), FORMAT, "a value is left out of its block"),
    M("value behind its block accepted", "Block.item", passes(2), "FormatStructureTests", "a value is read from another part"),
    M("another node accepted", "BaseIndex.entries(ofNode:_:start:)", passes(1), INDEX, "blocks are left out of the index"),
    M("only the first node searched", "VaultSnapshot.block(for:)", operator("base.entries.index(for: id)", "0"), INDEX,
      "secrets are not found"),
    M("versions of one secret end with their block", "VaultSnapshot.block(before:)", body("return nil"), "HistoryTests|IndexTests|VectorTests",
      "earlier versions are lost"),
    M("root does not add up", "BaseIndex.init(parsing:start:rootOffset:)", passes(2), FORMAT, "blocks are left out"),
    M("bytes of a part without a limit", "BaseIndex.entries(_:count:from:to:)", passes(1, 3), FORMAT,
      "a hostile file reserves all memory"),
]

REMEMBERED = [
    M("another master key accepted", "KnownVaults.check(_:against:path:)", operator("throw .unexpectedKey(path: path)", "return"),
      ATTACK + "removed_key old_master_key", "a removed key comes back with an old copy"),
    M("older state accepted", "KnownVaults.check(_:against:path:)", never(3), TRUST, "a change is taken back unnoticed"),
    M("record not authenticated", "KnownVaults.check(_:against:path:)", passes(2), ATTACK + "damaged_record",
      "a damaged record switches the protection off"),
    M("succession to an older change accepted", "KnownVaults.check(_:against:path:)", passes(4), TRUST,
      "a rekeyed older copy takes changes back"),
    M("versioned policy is strict", "KnownVaults.check(_:against:path:)", never(2), ATTACK + "version_control",
      "a checkout of an older commit is refused"),
    M("versioned policy holds nothing", "KnownVaults.check(_:against:path:)",
      first("if known.record.policy == .versioned { return }"), ATTACK + "version_control", "a checkout brings a removed key back"),
    M("fork not noticed", "VaultSnapshot.shows", body("return nil"), ATTACK + "fork",
      "another history is taken for a later state"),
    M("what is below the floor is contradicted", "VaultSnapshot.shows", never(4), PINS + "|" + TRUST,
      "a vault with many changes is reported as an attack"),
    M("floor not raised", "VaultSnapshot.changesBeforeRewrite", operator("floor", "base.recent.floor", 4), "RollbackTests|PinTests",
      "states that a rewrite dropped are contradicted"),
    M("rewrite forgets the root before", "VaultSnapshot.changesBeforeRewrite",
      operator("[Checkpoint(sequence: base.sequence, tailTag: state.rootTag)]", "[]"), "RollbackTests|PinTests",
      "an honest vault is reported as rolled back"),
    M("order of recent changes ignored", "Checkpoint.list", passes(1), FORMAT, "a list has two spellings"),
    M("pin of another vault accepted", "VaultPin.requireIdentity", passes(1), ATTACK + "exchanged_vaults_under_a_pin",
      "a job in CI uses another vault"),
    M("pin of another master key accepted", "VaultPin.requireIdentity", passes(2), ATTACK + "leaver_and_pins",
      "somebody whose key was removed fills the vault"),
    M("fork accepted under a pin", "VaultPin.isShown", passes(1), ATTACK + "fork", "another history is taken for a later state"),
    M("pin not asked before a key is tried", "KnownVaults.identify", omit("requirePin"), PINS,
      "a passphrase is tried on a file that was exchanged"),
    M("pin that shows nothing is verified", "VaultReport.init", never(4, 2), PINS, "a verification vouches for what it did not see"),
    M("empty pin is none", "CofferConfiguration.recording", never(3), "CofferConfigurationTests",
      "a job without its pin takes any vault"),
    M("vault of an identity trusted", "KnownVaults.admitAndPublish", passes(1), ATTACK + "vault_for_a_recipient",
      "anyone who knows a recipient fills its vault"),
    M("any lineage accepted", "DerivedKeys.isFormerMAC", always(1), ATTACK + "forged_lineage",
      "the holder of an older key claims to succeed the present one"),
    M("lineage cut off", "VaultSnapshot.rewrite", argument("newKeys.lineage", 2, " nil"), "RevokedKeyTests",
      "a machine that missed two rekeys refuses the vault"),
    M("vault not identified before a key is tried", "KnownVaults.identify", never(2, 2), TRUST,
      "a passphrase is tried on a file that was exchanged"),
    M("path as it was named not recorded", "KnownVaults.locate", operator("[namedPath]", "[String]()"),
      ATTACK + "rollback_by_link rollback_by_directory", "a link puts an older copy in the vault's place"),
    M("path without links not recorded", "KnownVaults.locate", operator("file.location.resolvedPath", "namedPath"),
      "RollbackTests", "an older copy is accepted by another name"),
    M("path in its directory not recorded", "KnownVaults.locate", operator("file.location.linkPath", "namedPath"),
      "RollbackTests", "a link puts an older copy in the vault's place"),
    M("exposed record accepted", "KnownVaultFile.open", passes(1, 3), ATTACK + "damaged_record",
      "others may have changed what was seen"),
    M("directory of others accepted", "KnownVaultDirectory.location", passes(2), TRUST, "others can remove a record"),
    M("hash of a record ignored", "KnownVaultFile.content", passes(1), TRUST, "a torn record is believed"),
    M("damaged record passed over", "KnownVaultFile.load", instead("slots", "nil", 2), "KnownVaultRecordTests",
      "one flipped bit switches the protection off"),
    M("record of a writer not raised", "KnownVaults.recordCommit", instead("raise", "true"), TRUST, "an older copy of one's own changes is accepted"),
    M("trust not recorded", "KnownVaults.trustAndPublish", omit("place.make"), TRUST, "what was confirmed is asked again"),
    M("damage not named with a rollback", "KnownVaults.check(_:against:path:)",
      operator("opened.slots.isRecovered", "false"), ATTACK + "only_an_older_slot", "a bad sector is reported as an attack"),
    M("exposed vault written", "VaultFile.requireWritable", passes(1), ATTACK + "open_to_others",
      "an exposed file is taken for a private one"),
    M("vault of another user read", "VaultFile.requireTrustworthy", body(""), "OpeningTests|CofferVaultTests.SharingTests|HostileWriterTests|TrustTests",
      "another user chooses the contents"),
    M("links to the working directory resolved", "Path.workingDirectory", never(1, 3), ATTACK + "rollback_by_directory",
      "a link puts an older copy in the vault's directory"),
]

CREDENTIALS = [
    M("cost without a limit", "DerivationBudget.spend", passes(1), KEYS, "a hostile header keeps a process busy for minutes"),
    M("memory without a limit", "DerivationBudget.spend", passes(1, 1), KEYS, "a hostile header takes all memory"),
    M("cost not added up", "DerivationBudget.spend", operator("-=", "&="), KEYS, "sixteen slots cost sixteen times the limit"),
    M("sources asked although the vault is open", "CredentialChain.open", never(1), KEYS, "a person is asked in vain"),
    M("prompt although none may be shown", "CredentialChain.open", never(2), "RepairTests", "a program hangs at a prompt"),
    M("last slot removed", "VaultSession.rekey", passes(1), KEYS, "no credential opens the vault any more"),
    M("slots that stay without the new key", "VaultSession.wrap", passes(1), KEYS, "a credential is lost by a rekey"),
    M("rekey over a changed vault", "VaultSession.requireUnchanged", body(""), "ConcurrentKeyChangeTests|KeySlotTests",
      "a slot holds an obsolete master key"),
    M("checksum of a key ignored", "VaultKey.parse", always(2), KEYS, "a mistyped key is accepted"),
    M("another spelling of a key accepted", "SecretBytes.decodingBase64", passes(3), KEYS,
      "a mistyped key is accepted"),
    M("text of a key taken for its bytes", "VaultKey.requireBytes", body(""), KEYS, "a key is cut to its first bytes"),
    M("one nonce for every seal", "SystemRandomness.fill", body("bytes.initializeMemory(as: UInt8.self, repeating: 7)"),
      KEYS + "|CofferCoreTests|VaultBackendTests", "two plaintexts under one nonce reveal each other"),
    M("one subkey for everything", "Sodium.subkey", operator("subkey.rawValue", "1"), FORMAT, "a MAC can be used as another"),
]

MEMORY = [
    M("no wipe on release", "GuardedMemory.deallocate", omit("sodium_memzero"), "MemoryTests", "secrets stay in memory after their use"),
    M("registers not cleared", "Residue.clearRegisters", body(""), STOPS + "key-file",
      "a handler of a signal copies a value to the stack"),
    M("stack not wiped", "Residue.clear", omit("sodium_stackzero"), STOPS + "rekey",
      "a key stays below the stack pointer and may be written to swap space"),
    M("secrets compared by their length", "SecretBytes.isEqual", body("return count == other.count"), "CofferCoreTests",
      "every secret of the same length is equal"),
    M("process can be dumped", "ProcessHardening.init", omit("coffer_set_undumpable"), "CofferToolTests.LeakTests|SystemCallTests",
      "another program of the user reads the memory"),
    M("values inherited by the command", "OwnProgram.runPart", instead("fcntl", "0"), "LeakTests",
      "the command reads every value from its descriptor"),
    M("block read past its end", "ProcessHardening.occupyStandardDescriptors",
      first("let block = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)\nif block[1] == 7 { exit(1) }\nblock.deallocate()"),
      "Tests/System/valgrind/memcheck.sh SECRET", "memory that was not allocated is read"),
]

EXPOSURE = [
    M("readable secret accepted", "FileExposure.init(mode:owner:user:isSecret:)", operator("0o077", "0o022"), SYSTEM + "|CofferConfigurationTests",
      "others have read the key"),
    M("writable configuration accepted", "FileExposure.init(mode:owner:user:isSecret:)", operator("0o022", "0o002"), SYSTEM,
      "a group chooses the configuration"),
    M("file of another user accepted", "FileExposure.init(mode:owner:user:isSecret:)", passes(1), SYSTEM, "another user chooses the key"),
    M("key file not checked", "PrivateFile.read(_:as:limit:isSecret:)", instead("FileExposure", "nil as FileExposure?"),
      SYSTEM + "|CofferConfigurationTests", "an exposed key is used without a word"),
    M("size of a key file without a limit", "PrivateFile.read(_:as:limit:isSecret:)", argument("readToEnd", 3, " limit: 1 << 40"), SYSTEM,
      "a wrong path takes all memory"),
    M("exchanged directory wiped", "PrivateTree.wipe", passes(1), SYSTEM, "another directory is removed for an edited value"),
    M("links counted without end", "PathWalk.follow", never(1), SYSTEM, "a loop of links hangs a command"),
    M("new file with the mode of the umask", "LinuxFile.setMode", body(""), SYSTEM, "others read a new secret"),
    M("existing file overwritten", "LinuxDirectory.rename", always(1), SYSTEM, "a key file is lost"),
    M("standard stream used for a vault", "Descriptor.init(opened:)", always(2), SYSTEM + "|SystemCallTests",
      "output is written into the vault"),
    M("link in the vault's place opened", "LinuxDirectory.open", operator("O_NOFOLLOW", "0"), SYSTEM, "a link leads to another file"),
    M("ignored signals not restored", "ProcessHardening.lift", operator("restored", "[Int32]()"), TOOL + "|RunTests",
      "a command does not end when its pipe is closed"),
]

OUTCOMES = [
    M("other value taken for the same", "SecretTransaction.storeIfChanged", always(2, 3), TOOL, "a new value is not stored"),
    M("history erased without a question", "HistoryLimitCommand.confirm", body(""), TOOL,
      "a lower limit erases every removed secret"),
    M("missing secret is success", "GetCommand.run", body(""), TOOL, "a script goes on without a value"),
    M("project's file needs no permission", "Project.requireAllowed", body(""), TOOL,
      "a cloned repository gets the person's secrets"),
    M("changed project's file stays allowed", "AllowedProjects.contains", body("return try declarations(of: project) != nil"),
      TOOL, "a later commit gets the person's secrets"),
    M("damage has the status of a wrong key", "ExitStatus.init", operator(".damaged", ".refused"), TOOL, "an attack looks like a typing error"),
    M("lock has the status of damage", "ExitStatus.init", operator(".busy", ".damaged"), TOOL, "a busy vault is restored from a backup"),
    M("refusal has the status of a missing secret", "ExitStatus.init", operator(".refused", ".noSuchSecret"), TOOL,
      "a locked vault looks empty"),
    M("damaged slot passed over", "VaultNotes.print(_:of:)", never(1), ATTACK + "only_an_older_slot", "a lost change is not reported"),
    M("signal of a file size limit", "ProcessHardening.init", instead("Self.isIgnoring", "true", 2),
      "Tests/System/environment/mounts_and_limits.py STATIC limits", "the tool is killed without a message"),
]

MUTATIONS = DURABILITY + SHARED_USE + AUTHENTICATION + REMEMBERED + CREDENTIALS + MEMORY + EXPOSURE + OUTCOMES
