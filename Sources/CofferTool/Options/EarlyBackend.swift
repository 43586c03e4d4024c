#if Keyring
internal import Coffer
internal import CofferConfiguration
internal import CofferCore
internal import Dispatch
internal import Synchronization

/// Opens the backend that the configuration selects on another thread, while this one parses the arguments: connecting
/// to a keyring takes as long.
enum EarlyBackend {
  private final class Search: @unchecked Sendable {  // `result` is set before `ended` is signalled
    let ended = DispatchSemaphore(value: 0)
    let isRequested = DispatchSemaphore(value: 0)
    var result: Result<any SecretBackend, SecretError>?
  }

  /// The longest wait before the arguments are parsed, in milliseconds. They may be wrong, and the keyring may not answer.
  private static let patience = 100

  private static let search = Mutex<Search?>(nil)

  /// Begins, unless an argument may select another backend.
  ///
  /// If the command reads a value first (`readsValue`), returns when the keyring is asked for a session. The keyring
  /// then computes a key for longer than this process parses the arguments. Parsing them earlier would delay the
  /// request if there are few processors.
  static func prepare(for arguments: [String], readsValue: Bool) {
    let options = ["--backend", "--vault", "--collection"]
    if arguments.contains(where: { argument in options.contains { argument.hasPrefix($0) } }) { return }
    let new = Search()
    let result = startThread {
      var configuration = CofferConfiguration.current()
      configuration.readsValueFirst = readsValue
      let backend = Result { () throws(SecretError) in try BackendOptions.make(nil, configuration) }
      new.result = backend
      new.ended.signal()
      if case .success(let keyring as KeyringBackend) = backend {
        keyring.connect()
        if readsValue { keyring.waitForSessionRequest(within: .milliseconds(patience)) }
      }
      new.isRequested.signal()
    }
    guard result == 0 else { return }
    search.withLock { $0 = new }
    if readsValue { _ = new.isRequested.wait(timeout: .now() + .milliseconds(patience)) }
  }

  /// Returns what was begun, once, or `nil` if nothing was.
  static func take() throws(SecretError) -> (any SecretBackend)? {
    let begun = search.withLock { search in
      defer { search = nil }
      return search
    }
    guard let begun else { return nil }
    begun.ended.wait()
    return try begun.result?.get()
  }
}
#endif
