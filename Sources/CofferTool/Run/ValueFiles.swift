internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// Values in files for another program, on a file system in memory and in a private directory.
final class ValueFiles {
  /// The command that makes the files, and the prefix of the directory's name.
  enum Command: String, CaseIterable {
    case edit = "secret-edit-", run = "secret-run-"
  }

  var directory: String { tree.path }
  /// Locked until this process ends. ``leftBehind(by:)`` returns unlocked directories.
  private let tree: PrivateTree
  private var names: [String] = []

  /// Creates the directory. If there is no file system in memory, throws `.unsupported` unless `allowsDisk`.
  init(for command: Command, allowsDisk: Bool = false) throws(SecretError) {
    Environment.noteIgnored(["XDG_RUNTIME_DIR"] + (allowsDisk ? ["TMPDIR"] : []))
    var created: PrivateTree?
    for place in Self.memoryPlaces + (allowsDisk ? Self.diskPlaces : []) where created == nil {
      do throws(FileSystemError) { created = try PrivateTree(in: place, prefix: command.rawValue) } catch {}
    }
    guard let created else {
      throw SecretError(
        .unsupported,
        "There is no file system in memory at XDG_RUNTIME_DIR or /dev/shm, so the value would be written to a disk.",
        advice: command == .edit
          ? "Use secret set, or accept the disk with --insecure-storage."
          : "Pass it with --set, or set XDG_RUNTIME_DIR to a directory of yours on a tmpfs.")
    }
    tree = created
  }

  func add(_ value: SecretBytes, named name: String, mode: mode_t) throws(SecretError) -> String {
    let path = "\(directory)/\(name)"
    names.append(name)
    try PrivateFile.write(value, to: path, replacing: false)
    if chmod(path, mode) != 0 { throw .system(FileSystemError(errno), "The mode of \(path) cannot be set") }
    return path
  }

  /// Overwrites and removes every file in the directory and below it, because a program may have left copies. Prints a
  /// message if the directory cannot be removed. May be called again.
  func wipe() {
    do throws(FileSystemError) { try tree.wipe(first: names) } catch {
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

  /// The directories of this user that no running `command` uses: it was killed, or `edit` kept the edited text.
  static func leftBehind(by command: Command) -> [String] {
    var found: Set<String> = []
    for place in memoryPlaces + diskPlaces {
      let names = (try? Path.names(inDirectory: place)) ?? []
      for name in names where name.hasPrefix(command.rawValue) {
        let path = "\(place)/\(name)"
        let owner = FileStatus(of: path, followingLink: false)?.owner
        // An error means that it is gone, or not a directory.
        if owner == geteuid(), (try? PrivateDirectory.tryLock(path)) != nil { found.insert(path) }
      }
    }
    return found.sorted()
  }
}
