internal import Coffer
internal import CofferSystem
internal import Glibc

/// A value in a file for an editor, on a file system in memory and in a private directory.
struct EditingFile {
  var directory: String { tree.path }
  var path: String { directory + "/value" }
  /// Locked until this process ends. ``leftBehind()`` returns unlocked directories.
  private let tree: PrivateTree

  /// Creates the file. With `allowsDisk`, uses the directory for temporary files if there is no file system
  /// in memory; otherwise throws `.unsupported` in that case.
  init(_ value: borrowing SecretBytes, allowsDisk: Bool) throws(SecretError) {
    Environment.noteIgnored(["XDG_RUNTIME_DIR"] + (allowsDisk ? ["TMPDIR"] : []))
    var created: PrivateTree?
    for place in Self.memoryPlaces + (allowsDisk ? Self.diskPlaces : []) where created == nil {
      do throws(FileSystemError) { created = try PrivateTree(in: place, prefix: Self.prefix) } catch {}
    }
    guard let created else {
      throw SecretError(
        .unsupported,
        "There is no file system in memory at XDG_RUNTIME_DIR or /dev/shm, so an editor would write the value to a disk.",
        advice: "Use secret set, or accept the disk with --insecure-storage.")
    }
    tree = created
    do throws(SecretError) {
      let path = path
      try value.withBytes { bytes throws(SecretError) in
        try PrivateFile.write(bytes, to: path, replacing: false)
      }
    } catch {
      wipe()
      throw error
    }
  }

  /// Overwrites and removes every file in the directory and below it, because an editor may have left copies.
  /// Prints a message if the directory cannot be removed. May be called again.
  func wipe() {
    do throws(FileSystemError) { try tree.wipe(first: "value") } catch {
      note("secret: \(directory) could not be removed: \(error). Remove it: it may contain the value.")
    }
  }

  /// The directories on a file system in memory, in order of preference.
  static var memoryPlaces: [String] {
    places("XDG_RUNTIME_DIR", "/dev/shm").filter { FileSystemKind(of: $0) == .memory }
  }

  private static var diskPlaces: [String] { places("TMPDIR", "/tmp") }

  private static func places(_ variable: String, _ common: String) -> [String] {
    [BaseDirectories(environment: Environment.value).given(variable), common].compactMap(\.self)
  }

  private static let prefix = "secret-edit-"

  private static func tryLock(_ directory: String) -> Descriptor? {
    do throws(FileSystemError) { return try PrivateDirectory.tryLock(directory) } catch { return nil }
  }

  /// The directories of this user that no running `edit` uses: `edit` was killed, or kept the edited text.
  static func leftBehind() -> [String] {
    var found: Set<String> = []
    for place in memoryPlaces + diskPlaces {
      var names: [String] = []
      do throws(FileSystemError) { names = try Path.names(inDirectory: place) } catch {}
      for name in names where name.hasPrefix(prefix) {
        let path = "\(place)/\(name)"
        let owner = FileStatus(of: path, followingLink: false)?.owner
        if owner == geteuid(), tryLock(path) != nil { found.insert(path) }
      }
    }
    return found.sorted()
  }
}
