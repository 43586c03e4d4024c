internal import Coffer
internal import Glibc

/// What a store stands on: directories, file systems, limits, variables. Nothing here keeps it from working,
/// but for what others could do to it.
extension Diagnosis {
  mutating func examineSurroundings(ofVault path: String) {
    subject = "directory"
    let directory = Directory.parent(of: path)
    var status = stat()
    if stat(directory, &status) != 0 { return }  // what is missing has been said
    if status.st_mode & 0o022 != 0 && status.st_mode & S_ISVTX == 0 {
      bad(
        .refused,
        "others can write to \(directory), and so put another file in the vault's place",
        "chmod go-w \(directory)"
      )
    } else if status.st_uid != geteuid() && status.st_uid != 0 {
      remark(
        "\(directory) belongs to another user, who can remove the vault", "Move the vault to one of yours.")
    } else {
      good("\(directory) can be written to by you alone")
    }
    if let stale = Self.staleFiles(of: path, in: directory), stale > 0 {
      remark(
        "\(stale) unfinished copies of the vault are left in \(directory), by writes that were cut short",
        "They hold nothing that the vault has not. Remove files named .\(Self.name(of: path)).… when nothing writes."
      )
    }
    switch FileSystemKind(of: path) ?? FileSystemKind(of: directory) {
    case .memory?:
      remark("\(directory) is in memory: the vault is gone after a restart", "Keep it on a disk.")
    case .network(let name)?:
      remark(
        "\(directory) is on a network file system (\(name)): locks and the order of writes depend on the server",
        "Keep the vault on a local disk where several machines do not need it."
      )
    case .overlay?:
      remark(
        "\(directory) is in a container's own layer, which goes with the container",
        "Mount a volume there, if the vault is to stay."
      )
    case .other?: good("\(directory) is on a disk")
    case nil: break
    }

    subject = "key file"
    var recorded: String?
    do throws(SecretError) {
      recorded = try configuration.recordedKeyFile(forVault: try VaultBackend.describe(path: path).id)
    } catch { return }  // said before
    guard let file = Environment.value("COFFER_KEY_FILE") ?? recorded, stat(file, &status) == 0 else {
      return
    }
    if status.st_mode & 0o077 != 0 && status.st_uid == geteuid() {
      bad(
        .refused, "\(file) is open to other users",
        "chmod 600 \(file), and rekey if somebody may have read it.")
    } else if Directory.isSameFile(Directory.parent(of: file), directory) {
      remark(
        "\(file) is beside the vault: whoever copies the directory has both",
        "Move one of them, and set COFFER_KEY_FILE."
      )
    } else {
      good("\(file) is for you alone")
    }
  }

  /// How many files there are like those that a rewrite of the vault makes beside it: `.NAME.` and 32 digits.
  private static func staleFiles(of path: String, in directory: String) -> Int? {
    Directory.entries(directory)?.count { $0.hasPrefix(".\(name(of: path)).") }
  }

  private static func name(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  mutating func examineProcess() {
    subject = "memory"
    if SecretBytes.isMemoryLocked {
      good("values are locked into memory, and no core file is written")
    } else {
      remark(
        "the system does not let values be locked into memory, so they may be written to swap space",
        "Raise the limit with ulimit -l, or encrypt the swap space."
      )
    }

    subject = "kernel keyring"
    do throws(SecretError) {
      try KernelKeyring().requireAvailable()
      good("secret unlock can keep a vault open")
    } catch {
      remark("secret unlock cannot be used: \(error.reason)", error.advice)
    }
  }

  mutating func examineEditing() {
    subject = "editing"
    if EditingFile.memoryPlaces.isEmpty {
      remark(
        "there is no storage in memory for secret edit, neither in XDG_RUNTIME_DIR nor in /dev/shm",
        "Use secret set, or secret edit --insecure-storage."
      )
    }
    for directory in EditingFile.leftBehind() {
      remark(
        "a value is left in \(directory), by a secret edit that was cut short",
        "Look whether it is needed, and remove the directory."
      )
    }
  }

  mutating func examineVariables(_ kind: CofferConfiguration.Kind) {
    subject = "environment"
    let set = CofferConfiguration.keyVariables.filter { getenv($0) != nil }
    if kind == .keyring {
      if !set.isEmpty { remark("\(set.joined(separator: ", ")) have no effect: the store is the keyring") }
    } else if set.count > 1 {
      remark(
        "\(set.joined(separator: ", ")) are set together: they are tried in this order",
        "Unset all but the one that is meant."
      )
    } else if set.contains("COFFER_KEY") {
      remark(
        "the key is in COFFER_KEY, which every process of this user can read in /proc",
        "In CI that is usual; elsewhere use COFFER_KEY_FILE."
      )
    }
    if let mistaken = Environment.value("SECRET_BACKEND") {
      remark(
        "SECRET_BACKEND is \(mistaken), and is libsecret's own variable", "COFFER_BACKEND chooses the store.")
    }
  }
}
