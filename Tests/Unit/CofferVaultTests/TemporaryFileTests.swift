import CofferCore
import CofferSystem
import CofferTestSupport
import CofferVault
import Glibc
import Synchronization
import Testing

/// Temporary files that interrupted processes left beside a vault or beside its records.
@Suite struct TemporaryFileTests {
  private static let digits = "0123456789abcdef"

  private static func left(_ digits: some StringProtocol, of name: String = "test.vault") -> String {
    ".\(name).\(digits).unfinished"
  }

  private func touch(_ path: String) {
    let descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    #expect(descriptor >= 0)
    #expect(close(descriptor) == 0)
  }

  /// Which names count is tested with ``NewFile``.
  @Test func aRewriteRemovesAbandonedFilesOfTheVaultAndNoOthers() throws {
    let vault = try TestVault()
    let directory = vault.directory
    let (abandoned, used) = (Self.left(Self.digits), Self.left("5555555555555555"))
    let others = [Self.left(Self.digits, of: "other.vault"), "notes", "test.vault"]
    for name in [abandoned, used] + others where name != "test.vault" { touch(directory.file(name)) }
    // Where a rename is done by linking, an interrupted rename leaves a second name of the vault itself.
    #expect(link(vault.path, directory.file(Self.left("1111111111111111"))) == 0)
    // A file in use is locked.
    let lock = open(directory.file(used), O_RDONLY | O_CLOEXEC)
    #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
    try vault.open().set("a", [1])
    #expect(try Path.names(inDirectory: directory.path).contains(abandoned), "no rewrite yet")
    try vault.open().compact()
    #expect(try Set(Path.names(inDirectory: directory.path)) == Set(others + [used]))
    #expect(close(lock) == 0)
    try vault.open().compact()
    #expect(try Set(Path.names(inDirectory: directory.path)) == Set(others))
    #expect(try vault.open().get("a") == [1])
  }

  /// In a directory where others may make files, such as `/tmp`, they can take every name that they can foresee.
  enum Planted: CaseIterable { case file, directory, link, linkToNothing }

  @Test(arguments: Planted.allCases) func plantedNamesStopNoWriterAndAreNotTouched(_ kind: Planted) throws {
    let (directory, records) = (try TemporaryDirectory(), try TemporaryDirectory())
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = records.path
    let path = directory.file("v")
    func open() -> VaultBackend {
      VaultBackend(path: path, credentials: [FixedCredential.key], options: options)
    }
    let victim = directory.file("victim")
    touch(victim)
    var planted: [String] = []
    func plant(besides name: String, in place: TemporaryDirectory) throws {
      let number = getpid()
      for other in [
        ".\(name).new", "\(name).new", ".\(name).tmp", "\(name).tmp", "\(name)~", ".\(name).swp",
        ".\(name).\(number)",
        ".\(name).\(number).new", "\(name).unfinished", ".\(name).unfinished", "\(name).0.unfinished",
        ".\(name).lock",
        ".\(name).", ".\(name).\(String(repeating: "0", count: 32))", ".\(name).\(Self.digits)",
        "\(name).bak", Self.left(String(repeating: "0", count: 16), of: name),
        Self.left(Self.digits, of: name),
      ] {
        let taken = place.file(other)
        switch kind {
        case .file: touch(taken)
        case .directory: #expect(mkdir(taken, 0o700) == 0)
        case .link: #expect(symlink(victim, taken) == 0)
        case .linkToNothing: #expect(symlink(directory.file("nothing"), taken) == 0)
        }
        // A file of another user. Only root can make one here.
        if geteuid() == 0 { #expect(lchown(taken, 1234, 1234) == 0) }
        // This user's own abandoned files are removed.
        if kind != .file || geteuid() == 0 { planted.append(taken) }
      }
    }
    try plant(besides: "v", in: directory)
    try VaultBackend.create(at: path, credential: FixedCredential.key.credential, options: options)
    for record in try Path.names(inDirectory: records.path) { try plant(besides: record, in: records) }
    try open().set("a", [1])
    try open().compact()
    try open().rekey()
    try open().setHistoryLimit(.none)
    try open().addKeySlot(FixedCredential.otherKey.credential)
    try open().trust(.versioned)
    try open().trust(.strict)
    #expect(try open().get("a") == [1] && !open().notices().contains(.unrecorded))
    try plant(besides: "key", in: directory)
    for isThere in [false, true] {
      try PrivateFile.write([1].span, to: directory.file("key"), replacing: isThere)
    }
    var status = stat()
    for taken in planted {
      #expect(lstat(taken, &status) == 0, "\(taken)")
      let type = kind == .file ? S_IFREG : kind == .directory ? S_IFDIR : S_IFLNK
      #expect(status.st_mode & S_IFMT == type)
      if kind == .file { #expect(status.st_size == 0) }
    }
    #expect(stat(victim, &status) == 0 && status.st_size == 0)
    #expect(stat(directory.file("nothing"), &status) != 0)
  }

  /// Without the lock, another process would take the file for an abandoned one, or change it before it is finished.
  @Test func aFileIsLockedUntilItHasItsName() throws {
    let records = try TemporaryDirectory()
    let disk = LockObservingFileSystem()
    let environment = VaultEnvironment(fileSystem: disk)
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = records.path
    let vault = try TestVault(environment: environment)
    let backend = vault.open(options: options, environment: environment)
    try backend.set("a", [1])
    try backend.compact()
    try backend.trust()
    let seen = disk.wasLocked.withLock { $0 }
    #expect(seen.count >= 4 && seen.allSatisfy { $0 })
  }

  /// Where a rename is done by linking, an interrupted rename leaves a record with two names.
  @Test func aRecordWithTheNameOfItsTemporaryFileIsAccepted() throws {
    let vault = try TestVault()
    let records = try TemporaryDirectory()
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = records.path
    try vault.open(options: options).set("a", [1])
    let names = try Set(Path.names(inDirectory: records.path))
    let record = try #require(names.first)
    let left = records.file(Self.left(Self.digits, of: record))
    #expect(link(records.file(record), left) == 0)
    #expect(try vault.open(options: options).get("a") == [1])
    #expect(try Set(Path.names(inDirectory: records.path)) == names)
    touch(left)
    try vault.open(options: options).trust()
    #expect(try Set(Path.names(inDirectory: records.path)) == names)
  }
}
