import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite struct FileExposureTests {
  private static let root: UInt32 = 0
  private static let user: UInt32 = 1000
  private static let stranger: UInt32 = 1001

  @Test(arguments: [UInt32(0o600), 0o400, 0o700, 0o000, 0o4600])
  func aFileWithoutPermissionsForOthersIsPrivateToItsOwner(mode: UInt32) {
    for owner in [Self.user, Self.root] {
      #expect(FileExposure(mode: mode, owner: owner, user: owner) == nil)
    }
    #expect(FileExposure(mode: mode, owner: Self.root, user: Self.user) == nil)
  }

  @Test(arguments: [UInt32(0o640), 0o604, 0o644, 0o610, 0o601, 0o444, 0o440])
  func readPermissionForOthersExposesTheUsersOwnFileAndNotOneOfRoot(mode: UInt32) {
    #expect(FileExposure(mode: mode, owner: Self.user, user: Self.user) == .openToOthers)
    #expect(FileExposure(mode: mode, owner: Self.root, user: Self.root) == .openToOthers)
    #expect(FileExposure(mode: mode, owner: Self.root, user: Self.user) == nil)
  }

  @Test(arguments: [UInt32(0o620), 0o602, 0o622, 0o666, 0o777])
  func writePermissionForOthersExposesEveryFile(mode: UInt32) {
    for (owner, user) in [(Self.user, Self.user), (Self.root, Self.root), (Self.root, Self.user)] {
      #expect(FileExposure(mode: mode, owner: owner, user: user) == .openToOthers)
    }
  }

  @Test(arguments: [UInt32(0o600), 0o400, 0o644, 0o666])
  func aFileOfAnotherUserIsExposedToRootAsWell(mode: UInt32) {
    #expect(FileExposure(mode: mode, owner: Self.stranger, user: Self.user) == .foreignOwner)
    #expect(FileExposure(mode: mode, owner: Self.stranger, user: Self.root) == .foreignOwner)
    #expect(FileExposure(mode: mode, owner: Self.user, user: Self.root) == .foreignOwner)
  }

  @Test(arguments: [UInt32(0o600), 0o644, 0o755, 0o444])
  func aFileThatIsNotSecretMayBeReadByOthers(mode: UInt32) {
    for (owner, user) in [(Self.user, Self.user), (Self.root, Self.root), (Self.root, Self.user)] {
      #expect(FileExposure(mode: mode, owner: owner, user: user, isSecret: false) == nil)
      for bit in [UInt32(0o020), 0o002] {
        #expect(
          FileExposure(mode: mode | bit, owner: owner, user: user, isSecret: false) == .writableByOthers)
      }
    }
    for user in [Self.user, Self.root] {
      #expect(FileExposure(mode: mode, owner: Self.stranger, user: user, isSecret: false) == .foreignOwner)
    }
  }

  @Test func theFileTypeInTheModeHasNoEffect() {
    #expect(FileExposure(mode: S_IFREG | 0o600, owner: Self.user, user: Self.user) == nil)
    #expect(FileExposure(mode: S_IFREG | 0o604, owner: Self.user, user: Self.user) == .openToOthers)
  }

  @Test func theFileAtAPathIsJudgedForTheCurrentUser() throws {
    let directory = try TemporaryDirectory()
    func exposure(_ path: String) throws -> FileExposure? {
      FileExposure(of: try #require(FileStatus(of: path)))
    }
    #expect(try exposure(directory.write("x", to: "private")) == nil)
    #expect(try exposure(directory.write("x", to: "open", mode: 0o640)) == .openToOthers)
    #expect(FileStatus(of: directory.file("missing")) == nil)
    if geteuid() != 0 { #expect(try exposure("/etc/passwd") == nil) }
  }
}
