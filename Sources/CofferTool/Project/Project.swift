internal import Coffer
internal import CofferSystem
internal import CofferLibc
internal import Synchronization

/// The project's file that this process follows: the nearest one from the working directory up to the boundary of the
/// work tree. Outside of a work tree, only the working directory is searched. Files further up have no effect.
///
/// A file that comes with a repository must not choose among the person's own secrets. It may name a vault beside or
/// below it, which reveals only itself. For everything else, the person must allow what the file declares: see
/// ``AllowedProjects``.
struct Project {
  static let maximumSize = 65_536

  /// The path of the file without links.
  let path: String
  private(set) var file: ProjectFile
  /// The path of the vault that the file names, without links if it exists.
  private(set) var vault: String?
  /// Whether the vault is in the file's directory or below it.
  private var isVaultInside = false
  /// Why another user may have written the file, or `nil` if none can have.
  private let exposure: String?

  /// The project of the working directory, or `nil` if there is none. Searched once per process. Throws
  /// `.configuration` if the file is wrong, and `.denied` or `.io` if it cannot be read.
  static func current() throws(SecretError) -> Project? { try found.get() }

  /// Throws `.configuration` if there is no project.
  static func required() throws(SecretError) -> Project {
    if let project = try current() { return project }
    throw SecretError(
      .configuration, "There is no file \(ProjectFile.name) in this directory, or above it in the same work tree.",
      advice: "Create it, with the variables that the project needs below [variables].")
  }

  private static let found = Result { () throws(SecretError) -> Project? in
    for directory in try directories() {
      if let project = try Project(in: directory) { return project }
    }
    return nil
  }

  /// The path of the nearest file, or of the one that the working directory would have.
  static func nearestPath() throws(SecretError) -> String {
    let paths = try directories().map { path(ProjectFile.name, in: $0) }
    return paths.first { FileStatus(of: $0, followingLink: false) != nil } ?? paths[0]
  }

  /// The path of a project file above the work tree, or `nil`. Such a file has no effect.
  static func unfollowed() throws(SecretError) -> String? {
    guard var directory = try directories().last, BackendConfiguration.isWorkTree(directory) else { return nil }
    while directory != "/" {
      directory = Path.parent(of: directory)
      let path = path(ProjectFile.name, in: directory)
      if FileStatus(of: path, followingLink: false) != nil { return path }
    }
    return nil
  }

  /// The directories to search: the working directory, and those above it in the same work tree.
  private static func directories() throws(SecretError) -> [String] {
    let working = getcwd(nil, 0)
    defer { free(working) }
    guard let working, let first = String(validatingCString: working) else {
      throw SecretError(
        .configuration,
        "The working directory \(working == nil ? "does not exist any more" : "has a name that is not UTF-8").",
        advice: "Go to another directory, or select the store with --backend or --vault.")
    }
    var directories = [first]
    while let last = directories.last, !BackendConfiguration.isWorkTree(last) {
      if last == "/" { return [first] }
      directories.append(Path.parent(of: last))
    }
    return directories
  }

  /// Reads the file in a directory. Returns `nil` if there is none, or if everybody could have put it there.
  private init?(in directory: String) throws(SecretError) {
    let path = Self.path(ProjectFile.name, in: directory)
    let (descriptor, status): (Descriptor, FileStatus)
    do throws(FileSystemError) {
      // Non-blocking: opening a FIFO must not wait.
      descriptor = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
      status = try descriptor.status()
    } catch {
      switch error.number {
      case ENOENT: return nil
      // A directory that this user cannot search.
      case EACCES where FileStatus(of: path, followingLink: false) == nil: return nil
      case ELOOP: throw Self.unusable(path, "is a link")
      case ENXIO: throw Self.unusable(path, "is not a regular file")
      default: throw .system(error, "The project's file \(path) cannot be opened")
      }
    }
    let isForeign = status.owner != geteuid() && status.owner != 0
    if isForeign, (FileStatus(of: directory)?.mode ?? 0) & 0o002 != 0 {
      note("secret: \(path) belongs to another user, and is not followed: everybody can put files there.")
      return nil
    }
    if !status.isRegular { throw Self.unusable(path, "is not a regular file") }
    let text = try readToEnd(of: descriptor.number, named: path, limit: Self.maximumSize, isRegular: true)
    withExtendedLifetime(descriptor) {}
    guard let text else { throw Self.unusable(path, "has more than \(Self.maximumSize) bytes") }
    self.path = path
    exposure = isForeign ? "belongs to another user" : status.mode & 0o002 != 0 ? "can be changed by other users" : nil
    file = try ProjectFile(parsing: text.withBytes { bytes in bytes.indices.map { bytes[$0] } }, of: path)
    vault = file.vault
    guard let name = vault, !name.utf8.starts(with: "/".utf8), !RemoteURL.isURL(name) else { return }
    var resolved = Self.path(name, in: directory)
    do throws(FileSystemError) {
      resolved = try LinuxFileSystem().locate(resolved, followingLink: true).path
    } catch {
      // The command that uses the vault reports that it cannot be reached.
    }
    let leaves = name.utf8.split(separator: UInt8(ascii: "/")).contains { $0.elementsEqual("..".utf8) }
    vault = resolved
    isVaultInside = !leaves && resolved.utf8.starts(with: Self.path("", in: directory).utf8)
    // The permission is for this vault, not for what a link leads to later.
    if !isVaultInside { file.vaultPath = resolved }
  }

  private static func path(_ name: String, in directory: String) -> String {
    directory == "/" ? "/\(name)" : "\(directory)/\(name)"
  }

  private static func unusable(_ path: String, _ predicate: String) -> SecretError {
    SecretError(
      .configuration, "The project's file \(path) \(predicate), and nothing was read.",
      advice: "Replace it by a regular file, or ignore it with --backend or --vault.")
  }

  // MARK: Trust

  /// Throws `.configuration` if the person has not allowed what the file declares. A file needs no permission if nobody
  /// else can have written it and it names the vault in use, beside or below it, which is not a copy of another one.
  func requireAllowed(usingVault: Bool = true) throws(SecretError) {
    let reason: String
    if let exposure {
      reason = exposure
    } else if let vault, isVaultInside, usingVault {
      guard try Self.namesCopy.get() else { return noteOnce() }
      reason = "names \(vault), a copy of a vault that you use elsewhere"
    } else if isVaultInside {
      reason = "would choose among the secrets of the store that COFFER_BACKEND or COFFER_VAULT names"
    } else if let vault {
      reason = "chooses among your own secrets, in the vault \(vault)"
    } else {
      reason = "chooses among your own secrets, in the service “\(file.service ?? SecretReference.defaultService)”"
    }
    if try AllowedProjects.contains(self) { return noteOnce() }
    let state =
      if Environment.value("COFFER_ALLOW") != nil {
        "COFFER_ALLOW is the digest of something else"
      } else if try AllowedProjects.declarations(of: self) == nil {
        "you have not allowed it yet"
      } else {
        "has changed since it was allowed"
      }
    throw SecretError(
      .configuration, "The project's file \(path) \(reason), and \(state). Nothing was used.",
      advice: "Look at the file, and run secret allow. Or ignore it with --backend or --vault.")
  }

  /// Whether the vault of the project was used at another path, and not at this one. Keys that are recorded for it, or
  /// that `unlock` keeps, would open a copy in somebody else's repository too. Looked up once per process.
  private static let namesCopy = Result { () throws(SecretError) -> Bool in
    guard let path = try found.get()?.vault else { return false }
    let configuration = BackendConfiguration.current()
    let vault = configuration.vault(at: path, credentials: [])
    let id: String
    do throws(SecretError) {
      id = try vault.description().id
      if let isHere = try vault.isKnown() { return !isHere }
    } catch {
      return false  // the command that uses the vault reports it
    }
    return try configuration.recordedKeyFile(forVault: id) != nil
  }

  /// Says on a terminal, once, which file is followed.
  private func noteOnce() {
    guard Output.messages.isTerminal, !Self.isNoted.exchange(true, ordering: .relaxed) else { return }
    note("secret: Following \(path).")
  }

  private static let isNoted = Atomic(false)
}
