#if Keyring
internal import Coffer
internal import CofferConfiguration
internal import CofferCore
internal import Dispatch
internal import Synchronization

/// Opens the backend that the configuration selects, on another thread. Connecting to a keyring takes as long as
/// parsing the arguments, so neither waits for the other.
enum EarlyBackend {
  private final class Search: @unchecked Sendable {  // `result` is set before `ended` is signalled
    let ended = DispatchSemaphore(value: 0)
    let isRequested = DispatchSemaphore(value: 0)
    var result: Result<any SecretBackend, SecretError>?
  }

  /// How long parsing waits for the keyring at most, in milliseconds. Wrong arguments must be reported soon, also if the
  /// keyring does not answer.
  private static let patience = 100

  private static let search = Mutex<Search?>(nil)

  /// Starts to open the backend, unless an argument may select another one.
  ///
  /// `readsValue` is for a command that reads a value first. Then this returns when the keyring was asked for a session.
  /// The keyring needs longer for its answer than this process needs for parsing, and parsing earlier would delay the
  /// request on a machine with few processors.
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
