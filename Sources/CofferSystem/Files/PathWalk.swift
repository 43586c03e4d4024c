internal import CLinux
internal import CofferLibc

/// Resolves a path name by name, and follows links itself.
///
/// The kernel never follows a link. An absolute path without links is opened by one call of openat2(2). If that fails,
/// because of a link or because the kernel or the container has no such call, each directory is opened by its name in
/// the directory before it. The file that is opened is thus the one that was checked, whatever is replaced in between.
///
/// A link of another user in a directory to which everybody can write, such as `/tmp`, is refused, wherever it is in
/// the path. This is the rule of `fs.protected_symlinks` in proc_sys_fs(5). The kernel applies it to the last name of a
/// path only, and not at all to a path that a program has resolved before.
struct PathWalk {
  /// What a path leads to: a name in an open directory.
  struct Place {
    /// A descriptor that can only be used to find other files: `O_PATH`.
    let directory: Descriptor
    /// The names from the root to the directory.
    let parents: [String]
    let name: String

    /// The path of the last name in the given path, which may be a link that was followed.
    let linkPath: String

    var path: String { PathWalk.path(parents, name) }
  }

  private var directory: Descriptor
  private var parents: [String]
  /// The names that must still be resolved, the next one last.
  private var rest: [String]
  private var linkCount = 0
  /// The owners of the directories and links that were passed one by one.
  private var owners: Set<uid_t> = []
  private var user: uid_t { geteuid() }

  /// Resolves every link in `path`; the last name only if `followingLink`. The last name need not exist. If it is a
  /// link that leads nowhere, the place is the link itself.
  ///
  /// Throws `EISDIR` if the path ends in a directory that has no name there, such as `/` or `..`.
  static func place(of path: String, followingLink: Bool) throws(FileSystemError) -> Place {
    var walk = try PathWalk(path)
    return try walk.place(followingLink: followingLink)
  }

  /// Whether a user other than root owns a directory or a link on the way to `path`, and so can replace what `path`
  /// leads to. A missing directory belongs to nobody.
  static func isInHandsOfOthers(_ path: String) -> Bool {
    do throws(FileSystemError) {
      // With the slash, the last name is entered too.
      var walk = try PathWalk(path + "/", isStepwise: true)
      do throws(FileSystemError) { _ = try walk.place(followingLink: true) } catch {
        if error.refusedLink != nil { return true }
      }
      return !walk.owners.allSatisfy(FileStatus.isRoot)
    } catch { return false }  // whoever uses the path reports the failure
  }

  /// `isStepwise`: opens the directories one by one, so that the owner of each is known.
  private init(_ path: String, isStepwise: Bool = false) throws(FileSystemError) {
    rest = Self.names(in: path)
    if path.utf8.first == UInt8(ascii: "/") {
      let names = rest.dropFirst().reversed() as [String]
      let isStepwise = isStepwise || names.contains { $0 == "." || $0 == ".." }
      let number = isStepwise ? -1 : coffer_open_directory_without_links("/" + names.joined(separator: "/"))
      if number >= 0 {
        (directory, parents, rest) = (try Descriptor(opened: number), names, Array(rest.prefix(1)))
      } else {
        (directory, parents) = (try Descriptor(opening: "/", Self.directoryFlags), [])
      }
      return
    }
    if path.isEmpty { throw FileSystemError(ENOENT) }
    guard let current = getcwd(nil, 0) else { throw FileSystemError(errno) }
    defer { free(current) }
    parents = String(cString: current).split(separator: "/").map(String.init)
    // For a directory outside of this process's root, the kernel returns text that does not begin with a slash.
    guard current.pointee == CChar(UInt8(ascii: "/")) else { throw FileSystemError(ENOENT) }
    directory = try Descriptor(opening: ".", Self.directoryFlags)
  }

  private mutating func place(followingLink: Bool) throws(FileSystemError) -> Place {
    // The place if the path leads to nothing.
    var first: Place?
    do throws(FileSystemError) {
      while let name = rest.popLast() {
        guard rest.isEmpty else {
          try enter(name)
          continue
        }
        if name == "." || name == ".." { throw FileSystemError(EISDIR) }
        let linkPath = first?.linkPath ?? Self.path(parents, name)
        let place = Place(directory: directory, parents: parents, name: name, linkPath: linkPath)
        first = first ?? place
        guard followingLink, let link = try link(name) else { return place }
        try follow(link)
      }
      throw FileSystemError(EISDIR)
    } catch {
      guard error.number == ENOENT, let first else { throw error }
      return first
    }
  }

  private static func path(_ parents: [String], _ name: String) -> String {
    "/" + (parents + [name]).joined(separator: "/")
  }

  private static let directoryFlags = coffer_O_PATH | O_DIRECTORY | O_NOFOLLOW

  /// The names in a path, the first one last. A final slash becomes the name `.`, which requires a directory.
  private static func names(in path: String) -> [String] {
    let names = path.split(separator: "/").map(String.init)
    return Array((path.utf8.last == UInt8(ascii: "/") ? names + ["."] : names).reversed())
  }

  /// Goes to the directory `name`, or to where a link of that name leads.
  private mutating func enter(_ name: String) throws(FileSystemError) {
    do throws(FileSystemError) {
      directory = try Descriptor(opening: name, in: directory, Self.directoryFlags)
      owners.insert(try directory.status().owner)
    } catch {
      guard error.number == ENOTDIR || error.number == ELOOP, let link = try link(name) else { throw error }
      return try follow(link)
    }
    if name == ".." {
      _ = parents.popLast()
    } else if name != "." {
      parents.append(name)
    }
  }

  /// The link with that name, or `nil` if it is something else.
  private func link(_ name: String) throws(FileSystemError) -> Descriptor? {
    guard try LinuxDirectory(directory).status(of: name).isLink else { return nil }
    // Another file may have taken the name since.
    let file = try Descriptor(opening: name, in: directory, coffer_O_PATH | O_NOFOLLOW)
    let status = try file.status()
    guard status.isLink else { return nil }
    let parent = try directory.status()
    let isShared = parent.mode & (S_ISVTX | S_IWOTH) == S_ISVTX | S_IWOTH
    if isShared, status.owner != user, status.owner != parent.owner {
      throw FileSystemError(EACCES, refusedLink: Self.path(parents, name))
    }
    return file
  }

  private mutating func follow(_ link: Descriptor) throws(FileSystemError) {
    linkCount += 1
    if linkCount > 40 { throw FileSystemError(ELOOP) }  // the limit of the kernel
    owners.insert(try link.status().owner)
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlinkat(link.number, "", &target, target.count)
    if count < 0 { throw FileSystemError(errno) }
    guard count > 0, count < target.count else { throw FileSystemError(count == 0 ? ENOENT : ENAMETOOLONG) }
    guard let path = String(validating: target[..<count], as: UTF8.self) else { throw FileSystemError(EILSEQ) }
    if target[0] == CChar(UInt8(ascii: "/")) {
      (directory, parents) = (try Descriptor(opening: "/", Self.directoryFlags), [])
    }
    rest += Self.names(in: path)
  }
}
