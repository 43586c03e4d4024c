internal import Coffer
internal import Synchronization

/// The items of a keyring that a command has left out because they cannot be read.
enum UnreadableItems {
  private static let statuses = Mutex<[String: ExitStatus]>([:])

  /// The exit status of a command that has left items out, or `nil`.
  static var status: Int32? { statuses.withLock { $0.values.map(\.rawValue).min() } }

  /// Makes the lists of a keyring leave out items that cannot be read. Names each of them once on standard error.
  @discardableResult
  static func leaveOut(of backend: any SecretBackend) -> any SecretBackend {
    (backend as? any ItemBackend)?.leaveOutUnreadable { name, error in
      let known = statuses.withLock { $0.updateValue(ExitStatus(error.code), forKey: name) }
      if known == nil { note("secret: \(name) cannot be read, and is left out. \(error.reason)") }
    }
    return backend
  }
}
