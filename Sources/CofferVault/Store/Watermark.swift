internal import CofferCore
internal import CofferSystem
internal import CofferVaultFormat

/// The newest checkpoint of a vault that this user has seen, remembered between runs in a file outside the
/// vault.
///
/// It is best effort: if it cannot be read or written, a rollback between runs is not noticed, and the vault
/// works. A program that can write it can also read the key file, so it protects against a changed vault and
/// not against the user's own programs.
struct Watermark {
  private let file: StorageFile
  private let vault: Bytes16

  /// Opens or creates the watermark of a vault in `directory`. Returns `nil` if that fails.
  ///
  /// Each place of a vault has a watermark of its own, so that reading a backup elsewhere is no rollback.
  init?(in directory: String, of vault: VaultFile, fileSystem: any FileSystem) {
    self.vault = vault.header.vaultID
    let place = Sodium.hash(vault.location.resolvedPath.utf8.span, count: 16)
      .withUnsafeBytes { Bytes16($0) }
    do throws(SecretError) {
      let location = try StorageLocation("\(directory)/\(self.vault.hex)-\(place.hex)", in: fileSystem)
      do throws(SecretError) { file = try location.open().file } catch {
        file = try location.create(location.name)
      }
    } catch {
      return nil
    }
  }

  /// Returns the checkpoint, or `nil` if the file is new or was torn by a power loss.
  ///
  /// The checkpoint is not authentic under another master key than the one it was written with: either the
  /// vault was rekeyed since, or this is a copy from before it was. Rekeying never lowers the sequence, so
  /// the sequence tells the two cases apart.
  func checkpoint(_ keys: DerivedKeys) -> (Checkpoint, isAuthentic: Bool)? {
    do throws(SecretError) {
      let bytes = try file.read(WatermarkFormat.length, at: 0)
      let hashed = Array(bytes[..<WatermarkFormat.hashedLength])
      guard Self.withHash(hashed) == bytes else { return nil }
      let (checkpoint, mac) = try WatermarkFormat.parse(hashed)
      return (checkpoint, Sodium.isEqual(mac, keys.watermarkMAC(checkpoint, vault: vault)))
    } catch {
      return nil
    }
  }

  /// Stores a checkpoint whose state is on the disk. A power loss must not make the vault look older than its
  /// watermark.
  func store(_ checkpoint: Checkpoint, _ keys: DerivedKeys) {
    let mac = keys.watermarkMAC(checkpoint, vault: vault)
    do throws(SecretError) {
      try file.write(Self.withHash(WatermarkFormat.hashedBytes(checkpoint, mac: mac)), at: 0)
    } catch {
      // The watermark keeps its earlier checkpoint.
    }
  }

  private static func withHash(_ bytes: [UInt8]) -> [UInt8] { bytes + Sodium.hash(bytes.span, count: 16) }
}
