internal import CLinux
internal import CofferCore
internal import CofferRemote
internal import CofferSystem
internal import CofferVaultFormat
internal import CofferLibc

/// The sealed copy of a vault on an engine that this machine keeps: a vault file, and beside it the engine's name for
/// that state. Several processes may write it: a copy that does not fit its name is not used.
struct RemoteCopy {
  /// The path of the vault file, which `secret merge` reads.
  let path: String
  private var name: String { path + ".version" }

  /// `directory` is private. Nothing is kept if it does not exist.
  init(of url: String, in directory: String) {
    path = "\(directory)/\(Self.digest(of: Array(url.utf8))).vault"
  }

  /// The state that was kept last, and how long ago that was the newest, or `nil` if there is none. Without a version
  /// if the writer was interrupted.
  func load() -> (bytes: [UInt8], version: String?, age: Duration)? {
    do throws(SecretError) {
      guard let held = try PrivateFile.read(path, as: "The copy", limit: RemoteMessage.maximumBytes, isSecret: false)
      else { return nil }
      let bytes = held.withBytes { bytes in bytes.indices.map { bytes[$0] } }
      let words =
        try PrivateFile.text(of: name, as: "The copy", limit: 1024)?.split(separator: " ").map(String.init) ?? []
      var status = stat()
      guard words.count == 2, words[1] == Self.digest(of: bytes), stat(name, &status) == 0 else {
        return (bytes, nil, .zero)
      }
      return (bytes, words[0], .seconds(time(nil) - status.st_mtim.tv_sec))
    } catch { return nil }
  }

  /// Keeps a state that was the newest `age` ago. A failure is ignored: the next reader asks for the whole vault.
  func keep(_ bytes: [UInt8], _ version: String, age: Duration) {
    do throws(SecretError) {
      try PrivateFile.write(bytes.span, to: path, replacing: true)
      try PrivateFile.write(Array("\(version) \(Self.digest(of: bytes))".utf8).span, to: name, replacing: true)
      touch(age: age)
    } catch {}
  }

  /// Notes that the state that was kept last was still the newest `age` ago.
  func touch(age: Duration = .zero) {
    let then = timespec(tv_sec: time(nil) - Int((age / .seconds(1)).rounded(.up)), tv_nsec: 0)
    _ = utimensat(AT_FDCWD, name, [then, then], 0)
  }

  private static func digest(of bytes: [UInt8]) -> String {
    BLAKE2b.hash(bytes.span, count: 16).withUnsafeBytes { Bytes16($0) }.hex
  }
}
