import CofferSystem
import CofferTestSupport
import CofferVault
import Glibc
import Testing

/// Temporary files that interrupted processes left beside a vault or beside its records.
@Suite struct TemporaryFileTests {
  private static let digits = String(repeating: "0123456789abcdef", count: 2)

  private func touch(_ path: String) {
    let descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600)
    #expect(descriptor >= 0)
    #expect(close(descriptor) == 0)
  }

  @Test func aRewriteRemovesAbandonedFilesOfTheVaultAndNoOthers() throws {
    let vault = try TestVault()
    let directory = vault.directory
    let abandoned = [".test.vault.\(Self.digits)", ".test.vault.\(String(repeating: "f", count: 32))"]
    var others = [
      ".test.vault.\(Self.digits.uppercased())", ".test.vault.\(Self.digits)0", ".test.vault.0",
      ".test.vault.\(Self.digits.dropLast())", ".other.vault.\(Self.digits)", "test.vault.\(Self.digits)",
      "..test.vault.\(Self.digits)", ".test.vault.\(Self.digits.dropLast())g", "notes",
    ]
    for name in abandoned + others { touch(directory.file(name)) }
    // A second name of the vault itself, as an interrupted rename leaves it where renaming is linking.
    #expect(link(vault.path, directory.file(".test.vault.\(String(repeating: "1", count: 32))")) == 0)
    let linked = ".test.vault.\(String(repeating: "2", count: 32))"
    #expect(symlink("notes", directory.file(linked)) == 0)
    let below = ".test.vault.\(String(repeating: "3", count: 32))"
    #expect(mkdir(directory.file(below), 0o700) == 0)
    others += [linked, below]
    if geteuid() == 0 {
      let foreign = ".test.vault.\(String(repeating: "4", count: 32))"
      touch(directory.file(foreign))
      #expect(chown(directory.file(foreign), 1234, 1234) == 0)
      others.append(foreign)
    }
    // A file in use is locked.
    let used = ".test.vault.\(String(repeating: "5", count: 32))"
    touch(directory.file(used))
    let lock = open(directory.file(used), O_RDONLY | O_CLOEXEC)
    #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
    try vault.open().set("a", [1])
    #expect(Set(abandoned).isSubset(of: try Path.names(inDirectory: directory.path)), "no rewrite yet")
    try vault.open().compact()
    #expect(try Set(Path.names(inDirectory: directory.path)) == Set(others + [used, "test.vault"]))
    #expect(close(lock) == 0)
    try vault.open().compact()
    #expect(try Set(Path.names(inDirectory: directory.path)) == Set(others + ["test.vault"]))
    #expect(try vault.open().get("a") == [1])
  }

  /// Where renaming is linking, an interrupted rename leaves a record with two names.
  @Test func aRecordWithTheNameOfItsTemporaryFileIsAccepted() throws {
    let vault = try TestVault()
    let records = try TemporaryDirectory()
    var options = VaultOptions.cheap
    options.knownVaultsDirectory = records.path
    try vault.open(options: options).set("a", [1])
    let record = try #require(Path.names(inDirectory: records.path).first)
    let left = records.file(".\(record).\(Self.digits)")
    #expect(link(records.file(record), left) == 0)
    #expect(try vault.open(options: options).get("a") == [1])
    #expect(try Path.names(inDirectory: records.path) == [record])
    touch(left)
    try vault.open(options: options).trust()
    #expect(try Path.names(inDirectory: records.path) == [record])
  }
}
