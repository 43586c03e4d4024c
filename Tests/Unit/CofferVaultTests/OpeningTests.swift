import CofferCore
import CofferSimulation
import CofferSystem
import CofferTestSupport
import CofferVault
import Foundation
import Glibc
import Testing

/// Anything can be at a vault's path. Each case fails at once with its own error, and nothing is changed.
@Suite struct OpeningTests {
  private func code(_ body: () throws -> Void) -> SecretError.Code? {
    do {
      try body()
      return nil
    } catch let error as SecretError {
      #expect(!error.reason.isEmpty)
      return error.code
    } catch { return SecretError.Code("not a SecretError: \(error)") }
  }

  private func code(ofOpening path: String) -> SecretError.Code? {
    code { try VaultBackend(path: path, credentials: [FixedCredential.key]).unlock() }
  }

  @Test func aPassphraseIsNotStretchedBeyondTheMemoryLimit() throws {
    let vault = try TestVault(FixedCredential(kind: .passphrase("pass")))
    var environment = VaultEnvironment()
    environment.memoryLeft = { 65_535 }
    let error = #expect(throws: SecretError.self) {
      try vault.open(FixedCredential(kind: .passphrase("pass")), environment: environment).unlock()
    }
    #expect(error?.code == .io)
    #expect("\(error.map { "\($0)" } ?? "")".contains("0 MiB are left"))
    environment.memoryLeft = { 65_536 }
    try vault.open(FixedCredential(kind: .passphrase("pass")), environment: environment).unlock()
  }

  @Test func aMissingFileIsNotFound() throws {
    let directory = try TemporaryDirectory()
    #expect(code(ofOpening: directory.file("no.vault")) == .vaultNotFound)
    #expect(code(ofOpening: directory.file("no/directory/no.vault")) == .vaultNotFound)
    #expect(code(ofOpening: "") == .vaultNotFound)
  }

  /// The message says whether the vault was being opened or made.
  @Test func aDirectoryThatMayNotBeEnteredIsNamed() throws {
    let vault = try TestVault()
    let environment = VaultEnvironment(fileSystem: RefusingFileSystem(directory: vault.directory.path))
    let opening = #expect(throws: SecretError.self) { try vault.open(environment: environment).unlock() }
    #expect(opening?.code == .denied)
    #expect(opening?.reason.hasPrefix("The system does not let this user open the vault") == true)
    let making = #expect(throws: SecretError.self) {
      try VaultBackend.create(
        at: vault.directory.file("new.vault"), credential: FixedCredential.key.credential, label: "",
        options: .cheap, environment: environment)
    }
    #expect(making?.code == .denied)
    #expect(making?.reason.hasPrefix("The system does not let this user make the vault") == true)
  }

  @Test func aVaultNeedsADirectory() throws {
    let directory = try TemporaryDirectory()
    let error = #expect(throws: SecretError.self) {
      try VaultBackend.create(
        at: directory.file("none/new.vault"), credential: FixedCredential.key.credential, options: .cheap)
    }
    #expect(error?.code == .io)
    #expect(error?.reason.hasPrefix("There is no directory for a vault") == true)
  }

  /// If the path cannot be looked at, there may be a vault.
  @Test func nothingIsMadeIfThePathCannotBeLookedAt() throws {
    struct Blind: FileSystem {
      func locate(_ path: String, followingLink: Bool) throws(FileSystemError) -> Location {
        let location = try LinuxFileSystem().locate(path, followingLink: followingLink)
        return Location(
          directory: BlindDirectory(directory: location.directory), name: location.name, path: location.path)
      }
    }
    struct BlindDirectory: PassingDirectory {
      let directory: any Directory
      func status(of name: String) throws(FileSystemError) -> FileStatus { throw FileSystemError(EACCES) }
    }
    let directory = try TemporaryDirectory()
    let making = code {
      try VaultBackend.create(
        at: directory.file("new.vault"), credential: FixedCredential.key.credential, label: "",
        options: .cheap, environment: VaultEnvironment(fileSystem: Blind()))
    }
    #expect(making == .denied)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [])
  }

  @Test(arguments: [0, 31, 33]) func aKeyOfAnotherLengthOpensNothing(_ length: Int) throws {
    let vault = try TestVault()
    let key = FixedCredential(kind: .key([UInt8](repeating: 7, count: length)))
    #expect(code { try vault.open(key).unlock() } == .invalidKey)
    let master = VaultCredentialSource("a kept master key") { _ throws(SecretError) in
      .masterKey(SecretBytes([UInt8](repeating: 7, count: length)))
    }
    let error = thrown { () throws(SecretError) in
      try VaultBackend(path: vault.path, credentials: [master]).unlock()
    }
    #expect(error?.code == .invalidKey)
    #expect(error?.reason == "The master key is \(length) bytes long instead of 32.")
  }

  @Test func anOpenVaultStaysOpenWhenTheWorkingDirectoryChanges() throws {
    let vault = try TestVault()
    let values = try withWorkingDirectory(vault.directory.path) {
      let backend = VaultBackend(path: "test.vault", credentials: [FixedCredential.key], options: .cheap)
      try backend.set("a", [1])
      guard chdir("/") == 0 else { throw TestFailure("chdir(2) failed") }
      return try backend.get("a")
    }
    #expect(values == [1])
  }

  /// A link in the vault's path is switched to another directory, as Kubernetes does with a mounted secret.
  @Test(arguments: [false, true]) func anOpenVaultFollowsItsPath(_ isKept: Bool) throws {
    let vault = try TestVault()
    let files = FileManager.default
    let (link, one, two) = (
      vault.directory.file("data"), vault.directory.file("one"), vault.directory.file("two")
    )
    try vault.directory.makeDirectory("one")
    try files.moveItem(atPath: vault.path, toPath: one + "/v")
    try files.createSymbolicLink(atPath: link, withDestinationPath: "one")
    let backend = VaultBackend(path: link + "/v", credentials: [FixedCredential.key], options: .cheap)
    try backend.set("a", [1])
    try files.copyItem(atPath: one, toPath: two)
    try VaultBackend(path: two + "/v", credentials: [FixedCredential.key], options: .cheap).set("a", [2])
    try files.removeItem(atPath: link)
    try files.createSymbolicLink(atPath: link, withDestinationPath: "two")
    if !isKept { try files.removeItem(atPath: one) }
    #expect(try backend.get("a") == [2])
    try backend.set("b", [3])
    #expect(
      try VaultBackend(path: two + "/v", credentials: [FixedCredential.key], options: .cheap).get("b") == [3])
  }

  @Test func creationSaysThatNothingWasRecordedWithoutADirectoryForRecords() throws {
    let directory = try TemporaryDirectory()
    let isRecorded = try VaultBackend.create(
      at: directory.file("new.vault"), credential: FixedCredential.key.credential, label: "", options: .cheap,
      environment: VaultEnvironment())
    #expect(!isRecorded)
  }

  @Test func theErrorNamesThePartThatIsNotAuthentic() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    try backend.compact()
    try backend.set("b", [2])
    let bytes = try vault.bytes
    let anatomy = try VaultAnatomy(bytes)
    for (part, name) in [
      (anatomy.root, "the root"), (anatomy.blocks[0], "the block"), (anatomy.sealedMetadata[0], "a frame"),
      (anatomy.values[0], "a value"), (anatomy.values[1], "a value"),
    ] {
      var damaged = bytes
      damaged[part.lowerBound + 30] ^= 1
      try Data(damaged).write(to: URL(filePath: vault.path))
      let error = #expect(throws: SecretError.self) { _ = try vault.open().verify() }
      #expect(error?.code == .tampered)
      #expect(error?.reason.contains("\(name) is not authentic") == true, "\(error?.reason ?? "")")
    }
  }

  @Test func aDirectoryAFIFOAndADeviceAreNotVaults() throws {
    let directory = try TemporaryDirectory()
    #expect(code(ofOpening: directory.path) == .notAVault)
    #expect(mkfifo(directory.file("fifo"), 0o600) == 0)
    #expect(code(ofOpening: directory.file("fifo")) == .notAVault)
    #expect(code(ofOpening: "/dev/null") == .notAVault)
  }

  @Test func aDanglingLinkIsNotFoundAndNotFollowed() throws {
    let directory = try TemporaryDirectory()
    #expect(symlink(directory.file("gone"), directory.file("link")) == 0)
    #expect(code(ofOpening: directory.file("link")) == .vaultNotFound)
    #expect(
      code {
        try VaultBackend.create(at: directory.file("link"), credential: FixedCredential.key.credential)
      } == .alreadyExists
    )
    #expect(access(directory.file("gone"), F_OK) == -1)
  }

  @Test func aLinkToAVaultIsFollowedAndKept() throws {
    let vault = try TestVault()
    let link = vault.directory.file("link")
    #expect(symlink(vault.path, link) == 0)
    let backend = VaultBackend(path: link, credentials: [FixedCredential.key])
    try backend.set("name", [1])
    try backend.compact()
    #expect(try vault.open().get("name") == [1])
    var status = stat()
    #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
  }

  @Test(arguments: [[], Array("hello, world\n".utf8), [0x89, 0x43], [UInt8](repeating: 0, count: 20_000)])
  func otherFilesAreNotVaultsAndStayUnchanged(_ content: [UInt8]) throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("file")
    try Data(content).write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0)
    #expect(code(ofOpening: path) == .notAVault)
    #expect(try Array(Data(contentsOf: URL(filePath: path))) == content)
  }

  @Test func aVaultThatOthersMayReadCanBeReadAndNotChanged() throws {
    let vault = try TestVault()
    try vault.open().set("a", [1])
    for mode: mode_t in [0o640, 0o604, 0o644, 0o601] {
      #expect(chmod(vault.path, mode) == 0)
      let backend = vault.open()
      #expect(try backend.get("a") == [1])
      #expect(try backend.notices().contains(.readableByOthers) == (mode & 0o044 != 0))
      #expect(code { try backend.set("a", [2]) } == .denied)
      #expect(code { try backend.compact() } == .denied)
    }
  }

  /// A checkout creates files with such permissions.
  @Test func inAWorkTreeAVaultThatOthersMayReadIsChangedAndStaysReadable() throws {
    let vault = try TestVault()
    var options = VaultOptions.cheap
    options.isInWorkTree = true
    for mode: mode_t in [0o644, 0o640, 0o604] {
      #expect(chmod(vault.path, mode) == 0)
      let backend = vault.open(options: options)
      try backend.set("a", [UInt8(mode & 0xFF)])
      try backend.compact()
      // The new file may have another group, so mode 640 becomes 600.
      #expect(FileStatus(of: vault.path)?.mode == (mode == 0o640 ? 0o600 : UInt32(mode)))
      #expect(try backend.get("a") == [UInt8(mode & 0xFF)])
    }
    #expect(chmod(vault.path, 0o645) == 0)
    #expect(code { try vault.open(options: options).set("a", [2]) } == .denied)
    #expect(chmod(vault.path, 0o664) == 0)
    #expect(code(ofOpening: vault.path) == .denied)
    #expect(chmod(vault.path, 0o600) == 0)
    try vault.open(options: options).compact()
    #expect(FileStatus(of: vault.path)?.mode == 0o600)
  }

  @Test func aVaultThatOthersMayChangeIsRefused() throws {
    let vault = try TestVault()
    for mode: mode_t in [0o620, 0o602, 0o666] {
      #expect(chmod(vault.path, mode) == 0)
      #expect(code(ofOpening: vault.path) == .denied)
    }
  }

  /// The permissions are checked again before each use.
  @Test func anOpenVaultIsRefusedOnceOthersGetPermissions() throws {
    let vault = try TestVault()
    let backend = vault.open()
    try backend.set("a", [1])
    #expect(chmod(vault.path, 0o660) == 0)
    #expect(code { _ = try backend.get("a") } == .denied)
    #expect(code { try backend.set("a", [2]) } == .denied)
    #expect(chmod(vault.path, 0o640) == 0)
    #expect(try backend.get("a") == [1])
    #expect(code { try backend.set("a", [2]) } == .denied)
    #expect(chmod(vault.path, 0o600) == 0)
    #expect(try backend.get("a") == [1])
    try backend.set("a", [2])
    #expect(try vault.open().get("a") == [2])
  }

  @Test func aVaultOfRootCanBeReadAndOfAnotherUserOnlyWithAPin() throws {
    let vault = try TestVault()
    try vault.open().set("a", [1])
    func open(owner: UInt32, mode: UInt32, pins: [String] = [], user: UInt32 = 1000) -> VaultBackend {
      let disk = AlteredFileSystem { status in (status.owner, status.mode) = (owner, mode) }
      var options = VaultOptions.cheap
      options.pins = pins
      return vault.open(options: options, environment: VaultEnvironment(fileSystem: disk, user: user))
    }
    let stranger = try TestVault()
    let (pin, other) = (try vault.open().pin(), try stranger.open().pin())
    for user in [0, 1000] as [UInt32] {
      let pinned = open(owner: 1001, mode: 0o644, pins: [pin], user: user)
      #expect(try pinned.get("a") == [1])
      #expect(code { try pinned.set("a", [2]) } == .denied)
      #expect(code { try open(owner: 1001, mode: 0o644, user: user).unlock() } == .denied)
      #expect(code { try open(owner: 1001, mode: 0o664, pins: [pin], user: user).unlock() } == .denied)
      for path in ["", vault.path + "="] {
        let wrong = open(owner: 1001, mode: 0o644, pins: [path + other], user: user)
        #expect(code { try wrong.unlock() } == .unexpectedVault)
      }
    }
    #expect(try open(owner: 0, mode: 0o444).get("a") == [1])
    #expect(code { try open(owner: 0, mode: 0o444).set("a", [2]) } == .denied)
    #expect(code { try open(owner: 0, mode: 0o600).set("a", [2]) } == .denied)
    #expect(code { try open(owner: 0, mode: 0o664).unlock() } == .denied)
    #expect(code { try open(owner: 1001, mode: 0o444).unlock() } == .denied)
    #expect(try open(owner: 1000, mode: 0o600).get("a") == [1])
    try open(owner: 1000, mode: 0o600).set("a", [2])
  }

  @Test func aNewVaultIsOpenedByItsCredential() throws {
    let directory = try TemporaryDirectory()
    let vault = try VaultBackend.create(
      at: directory.file("new.vault"), credential: .passphrase(SecretBytes("pass")), options: .cheap)
    try vault.set("a", [1])
    #expect(try vault.get("a") == [1])
  }

  /// A source that always returns the same wrong credential is asked once per attempt: at least 1, at most 100 times.
  @Test(arguments: [(1, 1), (3, 3), (0, 1), (Int.max, 100)])
  func aSourceIsAskedAsOftenAsItSays(_ attempts: Int, _ expected: Int) throws {
    let vault = try TestVault()
    let asked = Count()
    let source = VaultCredentialSource("a wrong key", attempts: attempts) { request throws(SecretError) in
      #expect(request.failures == asked.value && request.vault.path == vault.path)
      asked.add()
      return FixedCredential.otherKey.credential
    }
    #expect(
      code { try VaultBackend(path: vault.path, credentials: [source], options: .cheap).unlock() }
        == .wrongKey)
    #expect(asked.value == expected)
  }

  @Test func aMissingKeyIsLockedAndAnotherKeyIsWrong() throws {
    let vault = try TestVault()
    #expect(code { try vault.open(nil).unlock() } == .locked)
    #expect(code { try vault.open(.otherKey).unlock() } == .wrongKey)
    #expect(code { try vault.open(FixedCredential(kind: .passphrase("guess"))).unlock() } == .wrongKey)
  }

  @Test func aHeaderWithAnExcessiveCostIsRefused() throws {
    let vault = try TestVault(FixedCredential(kind: .passphrase("pass")))
    var bytes = try vault.bytes
    // The first slot begins at 64. Its passes follow type, version, length, id, time and an empty label.
    let passes = 64 + 1 + 1 + 2 + 16 + 8 + 1
    for offsets in [[passes], [passes + 4], [passes, passes + 4]] {
      var changed = bytes
      for offset in offsets { changed.replaceSubrange(offset..<offset + 4, with: [255, 255, 255, 255]) }
      try Data(changed).write(to: URL(filePath: vault.path))
      #expect(chmod(vault.path, 0o600) == 0)
      #expect(
        code { try vault.open(FixedCredential(kind: .passphrase("pass"))).unlock() } == .costLimitExceeded
      )
      // A key is not stretched, so the limit does not apply to it.
      #expect(code { try vault.open(.key).unlock() } == .wrongKey)
    }
    bytes[passes..<passes + 4] = [0, 0, 0, 0]
    try Data(bytes).write(to: URL(filePath: vault.path))
    #expect(chmod(vault.path, 0o600) == 0)
    #expect(code { try vault.open(FixedCredential(kind: .passphrase("pass"))).unlock() } == .tampered)
  }

  /// Another process creates a vault of the same name before a creation and at each of its steps.
  @Test func creationDoesNotReplaceAVaultThatAppears() throws {
    var refused = 0
    for call in 1...40 {
      let disk = SimulatedDisk()
      func create(_ credential: FixedCredential) throws {
        try VaultBackend.create(
          at: "vault", credential: credential.credential, label: "", options: .cheap,
          environment: VaultEnvironment(fileSystem: disk, user: 0))
      }
      var other: [UInt8]?
      disk.interrupt(atCall: call) {
        if code({ try create(.otherKey) }) == nil { other = disk.content(of: "vault") }
      }
      let result = code { try create(.key) }
      disk.interrupt(atCall: nil)
      guard let other else { continue }
      #expect(result == .alreadyExists && disk.content(of: "vault") == other, "call \(call)")
      #expect(disk.names == ["vault"], "call \(call)")
      refused += 1
    }
    #expect(refused > 2)
  }

  @Test func aReadOnlyVaultCanBeReadAndNotChanged() throws {
    let vault = try TestVault()
    try vault.open().set("name", [1])
    var environment = VaultEnvironment()
    environment.fileSystem = ReadOnlyFileSystem()
    let backend = vault.open(environment: environment)
    #expect(try backend.get("name") == [1])
    #expect(code { try backend.set("name", [2]) } == .denied)
    #expect(code { try backend.remove(identifier("name")) } == .denied)
    #expect(try backend.get("name") == [1])
  }
}
