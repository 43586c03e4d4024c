#if Keyring
internal import Coffer
internal import CofferConfiguration
internal import CofferCore
internal import Dispatch
internal import Synchronization

/// Opens the backend that the configuration selects on another thread, while this one parses the arguments: connecting
/// to a keyring takes as long.
enum DefaultBackend {
  private final class Search: @unchecked Sendable {  // `result` is set before the semaphore is signalled
    let ended = DispatchSemaphore(value: 0)
    var result: Result<any SecretBackend, SecretError>?
  }

  private static let search = Mutex<Search?>(nil)

  /// Begins, unless an argument may select another backend.
  static func prepare(for arguments: [String]) {
    if arguments.contains(where: { $0.hasPrefix("--vault") || $0.hasPrefix("--collection") }) { return }
    let new = Search()
    let result = startThread {
      new.result = Result { () throws(SecretError) in try BackendOptions.make(nil, at: nil, .current()) }
      let keyring =
        if case .success(let backend) = new.result { backend as? KeyringBackend } else {
          nil as KeyringBackend?
        }
      new.ended.signal()
      keyring?.connect()
    }
    if result == 0 { search.withLock { $0 = new } }
  }

  /// Returns what was begun, once, or `nil` if it was not, or if it is not the backend `name`.
  static func take(_ name: BackendName?) throws(SecretError) -> (any SecretBackend)? {
    let begun = search.withLock { search in
      defer { search = nil }
      return search
    }
    guard let begun else { return nil }
    begun.ended.wait()
    if name == nil { return try begun.result?.get() }
    if name == .keyring, case .success(let keyring as KeyringBackend) = begun.result { return keyring }
    return nil
  }
}
#endif
