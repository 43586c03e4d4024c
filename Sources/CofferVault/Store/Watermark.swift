internal import CofferSystem
internal import CofferVaultFormat
internal import CofferCore

/// The newest state of a vault that this user has seen, remembered between runs in a file outside it.
///
/// It is raised only to states that are on the disk, so that a power loss cannot make the vault look older than
/// its watermark. It is best effort: where it cannot be read or written there is one promise less, and the
/// vault works. Who can write it can also read the key file, so it guards against a changed vault, not
/// against the user's own programs.
struct Watermark {
  private let file: any File
  private let vaultID: Bytes16
  private let keys: DerivedKeys

  /// The watermark of a vault at its place, in `directory`. `nil` where it cannot be had.
  ///
  /// A copy elsewhere has a watermark of its own: looking into a backup is no rollback.
  init?(in directory: String, of vault: VaultFile, keys: DerivedKeys, environment: VaultEnvironment) {
    let vaultID = vault.header.vaultID
    let place = Sodium.hash(vault.location.path.utf8.span, count: 16).withUnsafeBytes { Bytes16($0) }
    do throws(FileSystemError) {
      let location = try environment.fileSystem.locate("\(directory)/\(vaultID.hex)-\(place.hex)")
      do throws(FileSystemError) {
        file = try location.directory.open(location.name, writable: true)
      } catch {
        file = try location.directory.create(location.name)
      }
    } catch {
      return nil
    }
    self.vaultID = vaultID
    self.keys = keys
  }

  /// The checkpoint it holds, or `nil` where it holds none, as when it is new, or torn by a power loss.
  ///
  /// It is not authentic under another master key: either this vault was rekeyed since, or this is a copy from
  /// before it was. The sequence tells them apart, since rekeying never sets it back.
  func checkpoint() -> (Checkpoint, isAuthentic: Bool)? {
    do throws(SecretError) {
      let bytes = try file.readFully(WatermarkFormat.length, at: 0, path: "the watermark")
      let hashed = Array(bytes[..<WatermarkFormat.hashedLength])
      guard Self.withHash(hashed) == bytes else { return nil }
      let (checkpoint, mac) = try WatermarkFormat.parse(hashed)
      return (checkpoint, Sodium.isEqual(mac, keys.watermarkMAC(checkpoint, vaultID: vaultID)))
    } catch {
      return nil
    }
  }

  /// Remembers a state that is on the disk.
  func raise(to checkpoint: Checkpoint) {
    do throws(FileSystemError) {
      let mac = keys.watermarkMAC(checkpoint, vaultID: vaultID)
      try file.writeFully(Self.withHash(WatermarkFormat.hashedBytes(checkpoint, mac: mac)), at: 0)
    } catch {
      // It stays where it was, and promises less.
    }
  }

  private static func withHash(_ bytes: [UInt8]) -> [UInt8] { bytes + Sodium.hash(bytes.span, count: 16) }
}
