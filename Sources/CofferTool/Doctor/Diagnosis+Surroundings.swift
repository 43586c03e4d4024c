internal import Coffer
internal import CofferSystem
internal import Glibc

/// The directories, file systems, limits and variables that a backend depends on. A finding here is bad only
/// if it lets other users read or replace the vault or its key.
extension Diagnosis {
  mutating func examineSurroundings(ofVault path: String) {
    subject = "directory"
    let directory = Path.parent(of: path)
    var status = stat()
    if stat(directory, &status) != 0 { return }  // already reported
    if status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0 {
      bad(
        .refused,
        "other users can write to \(directory), and replace the vault",
        "chmod go-w \(directory)"
      )
    } else if status.st_uid != geteuid() && status.st_uid != 0 {
      remark(
        "\(directory) belongs to another user, who can remove the vault",
        "Move the vault to a directory of yours.")
    } else {
      good("only you can write to \(directory)")
    }
    if let stale = Self.staleFiles(of: path, in: directory), stale > 0 {
      remark(
        "\(directory) contains unfinished copies of the vault, from interrupted writes: \(stale)",
        "They hold nothing that the vault lacks. While no program writes, remove the files .\(Self.name(of: path)).*"
      )
    }
    switch FileSystemKind(of: path) ?? FileSystemKind(of: directory) {
    case .memory?:
      remark("\(directory) is in memory, so a restart removes the vault", "Move the vault to a disk.")
    case .network(let name)?:
      remark(
        "\(directory) is on a network file system (\(name)), and its server determines locking and the order of writes",
        "Move the vault to a local disk, unless several machines use it."
      )
    case .overlay?:
      remark(
        "\(directory) is in a container's own layer, and is removed with the container",
        "Use a volume for the vault.")
    case .other?: good("\(directory) is on a disk")
    case nil: break
    }

    subject = "key file"
    var recorded: String?
    do throws(SecretError) {
      recorded = try configuration.recordedKeyFile(forVault: try VaultBackend.describe(path: path).id)
    } catch { return }  // already reported
    guard let file = Environment.value("COFFER_KEY_FILE") ?? recorded, stat(file, &status) == 0 else {
      return
    }
    if let exposure = FileExposure(of: file) {
      bad(
        .refused, "\(file) \(exposure.predicate)",
        "\(exposure.advice) To replace the vault's key: secret key remove")
    } else if Path.isSameFile(Path.parent(of: file), directory) {
      remark(
        "\(file) is in the vault's directory, so that a copy of the directory contains both",
        "Move one of them, and set COFFER_KEY_FILE."
      )
    } else {
      good("only you can read \(file)")
    }
  }

  /// The number of unfinished files that a rewrite of the vault left in its directory, named `.NAME.` and 32
  /// digits.
  private static func staleFiles(of path: String, in directory: String) -> Int? {
    do throws(SystemCallError) {
      return try Path.names(inDirectory: directory).count { $0.hasPrefix(".\(name(of: path)).") }
    } catch { return nil }
  }

  private static func name(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  mutating func examineProcess() {
    subject = "memory"
    if SecretBytes.isMemoryLocked {
      good("values are locked in memory, and core files are disabled")
    } else {
      remark(
        "values cannot be locked in memory, so they may be written to swap space",
        "Raise the limit with ulimit -l, or encrypt the swap space."
      )
    }

    subject = "kernel keyring"
    do throws(SecretError) {
      try KernelKeyring().requireAvailable()
      good("secret unlock can keep a vault unlocked")
    } catch {
      remark(
        "secret unlock cannot be used: \(error.reason)",
        Advice.keyFileInstead)
    }
  }

  mutating func examineEditing() {
    subject = "editing"
    if EditingFile.memoryPlaces.isEmpty {
      remark(
        "there is no file system in memory for secret edit, at XDG_RUNTIME_DIR or /dev/shm",
        "Use secret set, or secret edit --insecure-storage."
      )
    }
    for directory in EditingFile.leftBehind() {
      remark(
        "an interrupted secret edit left a value in \(directory)",
        "Check whether you need it, and remove the directory."
      )
    }
  }

  mutating func examineVariables(_ kind: CofferConfiguration.Kind) {
    subject = "environment"
    let set = CofferConfiguration.keyVariables.filter { getenv($0) != nil }
    if kind != .vault {
      if !set.isEmpty {
        remark(
          "variables have no effect, because the backend is the \(kind.rawValue): \(set.joined(separator: ", "))"
        )
      }
    } else if set.count > 1 {
      remark(
        "several variables are set, and are tried in this order: \(set.joined(separator: ", "))",
        "Unset all but one."
      )
    } else if set.contains("COFFER_KEY") {
      remark(
        "the key is in COFFER_KEY, which every process of this user can read in /proc",
        "This is usual in CI; otherwise use COFFER_KEY_FILE."
      )
    }
    if let mistaken = Environment.value("SECRET_BACKEND") {
      remark("SECRET_BACKEND is \(mistaken), but only libsecret uses that variable", "Use COFFER_BACKEND.")
    }
  }
}
