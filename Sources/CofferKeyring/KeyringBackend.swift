#if Keyring
public import CofferCore
public import FoundationEssentials
internal import Synchronization

/// Stores secrets in the desktop's keyring: a Secret Service, such as GNOME's, through libsecret.
///
/// A secret is an item with the attributes `service` and `username`. A lookup uses these two attributes only. Python's
/// keyring, go-keyring, keyring-rs and `secret-tool` use the same attributes, and so share secrets with this backend.
/// An item with `account` instead of `username`, as keytar, Visual Studio Code and JetBrains' programs store it, has
/// the identifier too.
///
/// - Several items may have one identifier. They are the same secret if they differ at most in attributes that begin
///   with `xdg:` or `coffer:`, in attributes of the service, and in `target=default`.
/// - Searches cover all collections, or only ``KeyringOptions/collection``. New items go to that collection, or to the
///   default collection.
/// - A store updates an existing item in place. Its label and other attributes stay, unless the store has metadata, and
///   its content type stays, unless the value is stored encoded.
/// - If several items match, unlocked items come before locked ones. Of those, the item that was modified last is read
///   and updated. The service's times are in whole seconds; within one second, the item that was created last counts.
/// - A store changes an item that another program distinguishes by more attributes, such as `target=work`, only if no
///   other item has the identifier. Otherwise it updates or creates an item of its own.
/// - A store also deletes outdated items in the same collection: the same secret stored twice, and an item that differs
///   only in `application` or the label and has the value that the store overwrote.
/// - `remove` throws `.ambiguous` if the items are different secrets.
/// - A value with a control character other than tab, a backslash, white space at an end, or bytes that are not UTF-8
///   is stored as `coffer:base64:` and its base64, because services change such values. gnome-keyring's encrypted files
///   do not, and there only a value with NUL or bytes that are not UTF-8 is encoded.
/// - A locked collection is unlocked if that needs no password, or if ``KeyringOptions/mayPrompt`` allows a prompt.
///
/// The service has no transactions. A store with metadata makes several calls, and the last one sets the value. A
/// secret is moved by a copy: the original is deleted when the copy was read back.
///
/// Methods may be called from any thread. Every method that throws can throw the errors of the service:
/// - `.unavailable`: the bus or the service cannot be reached.
/// - `.timedOut`: a timeout of the options has passed.
/// - `.denied`: the bus does not permit the call, or its socket belongs to another user.
/// - `.configuration`: the address of the bus is not valid, or ``KeyringOptions/collection`` does not exist.
/// - `.locked`: the keyring is locked, and prompts are not allowed or no program can show them.
/// - `.promptDismissed`: somebody or ``cancelPrompts()`` dismissed a prompt.
/// - `.conflict`: other programs changed the secret during each of four attempts.
/// - `.io`: the service answered with another error, or against the protocol.
/// - `.tooLarge`: the message with the value exceeds the limit of the bus, or a value in the keyring is larger than 32
///   MiB.
public final class KeyringBackend: ItemBackend {
  /// The maximum size of a value in bytes: 1 MiB. The service keeps all values in locked memory and rewrites the whole
  /// collection at each store. gnome-keyring accepts 16 MiB until the bus closes the connection.
  package static let maximumSecretSize = 1_048_576

  private let connection: SecretServiceConnection
  let options: KeyringOptions
  private let prompter: Prompter
  private let watcher: KeyringWatcher
  private let storing: DeadlineLock
  private let unreadable = Mutex<UnreadableObserver?>(nil)

  /// Creates a backend. The first call connects to the session bus that `environment` names. `nil` stands for
  /// ``KeyringOptions/init(environment:)``.
  public init(options: KeyringOptions? = nil, environment: [String: String] = ProcessInfo.processInfo.environment) {
    let options = options ?? KeyringOptions(environment: environment)
    self.options = options
    connection = SecretServiceConnection(environment: environment, options: options)
    prompter = Prompter(mayPrompt: options.mayPrompt, timeout: options.promptTimeout)
    storing = DeadlineLock()
    watcher = KeyringWatcher(environment: environment, options: options)
  }

  /// Whether a Secret Service runs on the session bus, or the bus can start one. `false` if there is no bus. Starts
  /// nothing.
  ///
  /// Throws `.timedOut` if the bus does not answer, and `.denied` or `.configuration` if it cannot be used. Blocks for
  /// at most a quarter of ``KeyringOptions/timeout``. Thread-safe.
  public func isAvailable() throws(SecretError) -> Bool {
    do throws(SecretError) { return try connection.isAvailable() } catch  where error.code == .unavailable {
      return false
    }
  }

  private init(withoutPromptsOf backend: KeyringBackend) {
    options = backend.options
    connection = backend.connection
    prompter = Prompter(mayPrompt: false, timeout: options.promptTimeout)
    watcher = backend.watcher
    storing = backend.storing
    let observer = backend.unreadable.withLock { $0 }
    unreadable.withLock { $0 = observer }
  }

  /// This keyring without prompts. A read that would need a prompt throws `.locked`.
  public var withoutPrompts: any SecretBackend { KeyringBackend(withoutPromptsOf: self) }

  /// Dismisses every prompt that a call of this backend waits for. Those calls throw `.promptDismissed`.
  public func cancelPrompts() { prompter.cancelAll() }

  /// Calls `observer` before each wait for a prompt, on the thread that waits. Calls the closure that it returns after
  /// the wait. During the wait, a program can react to signals and call ``cancelPrompts()`` on another thread. Replaces
  /// an earlier observer. Thread-safe.
  package func observePrompts(_ observer: @escaping @Sendable () -> () -> Void) { prompter.observe(observer) }

  package func leaveOutUnreadable(_ observer: @escaping @Sendable (String, SecretError) -> Void) {
    unreadable.withLock { $0 = observer }
  }

  /// Gives all operations of a command one common deadline.
  package func shareDeadline() { connection.shareDeadline() }

  /// Changes, leases and attributes.
  public var features: SecretFeatures { [.changes, .leases] }

  /// Returns the secret, or `nil` if there is none. Throws the errors of the service.
  public func secret(_ identifier: SecretIdentifier) throws(SecretError) -> Secret? {
    try read(identifier) { search, item throws(ServiceFailure) in
      var item = item
      let value = try search.secret(of: item.path) { () throws(ServiceFailure) in
        item = try search.service.read(FoundItem.properties, of: [item]).first ?? item
      }
      return Secret(identifier, value: ValueEncoding.decoded(value), metadata: item.metadata(of: identifier))
    }
  }

  /// Returns the value, or `nil` if there is no item. Throws the errors of the service.
  public func lookUp(_ identifier: SecretIdentifier) throws(SecretError) -> SecretBytes? {
    try read(identifier) { search, item throws(ServiceFailure) in
      ValueEncoding.decoded(try search.secret(of: item.path))
    }
  }

  private func read<R>(
    _ identifier: SecretIdentifier, _ body: (ItemSearch, FoundItem) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R? {
    connection.expectSession()
    return try search(for: identifier) { search throws(ServiceFailure) in
      try Self.retrying { () throws(ServiceFailure) -> R? in
        guard let item = try search.item(identifier) else { return nil }
        return try body(search, item)
      }
    }
  }

  /// Stores the value. Throws `.tooLarge` if it is larger than 1 MiB, `.invalidMetadata` if the metadata exceeds its
  /// limits or has a date before the year 1 or after 9999, and the errors of the service.
  public func store(
    _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
  ) throws(SecretError) {
    try ItemAttributes.validate(metadata.given(over: nil))
    try requireStorable(value, for: identifier, maximum: Self.maximumSecretSize)
    try search(for: identifier, changes: true) { search throws(ServiceFailure) in
      try Self.retrying { () throws(ServiceFailure) in
        try ItemWriter(search: search, identifier: identifier, change: metadata, turn: storing).store(value)
      }
    }
  }

  /// Deletes the items of the secret. Returns `false` if there was none. Throws `.ambiguous` if the items are different
  /// secrets, and the errors of the service; some of several items may then be deleted.
  @discardableResult
  public func remove(_ identifier: SecretIdentifier, history: History) throws(SecretError) -> Bool {
    try remove(identifier, all: false)
  }

  /// Returns the secrets of `service`, or all secrets if it is `nil`, sorted by identifier. Throws the errors of the
  /// service.
  public func items(inService service: String?) throws(SecretError) -> [SecretItem] {
    try search(service) { search, query throws(ServiceFailure) in try search.secrets(matching: query) }
  }

  /// Calls `body` with the secrets of `service`, or with all secrets if it is `nil`. Needs one call for each item of
  /// the service and one for each 64 values, which are in memory together. Throws what `body` throws, and the errors of
  /// the service.
  public func forEachSecret(
    inService service: String?, _ body: (Secret) throws(SecretError) -> Void
  ) throws(SecretError) {
    let items = try search(service) { search, query throws(ServiceFailure) in
      try search.newest(matching: query)
    }
    let ofOneItem: Set = [SecretError.Code.io, .tooLarge, .conflict]
    for start in stride(from: 0, to: items.count, by: ItemSearch.batchSize) {
      let batch = items[start..<min(start + ItemSearch.batchSize, items.count)]
      var values: [String: SecretBytes] = [:]
      do throws(SecretError) {
        values = try search(for: nil) { search throws(ServiceFailure) in
          try search.service.secrets(of: batch.map(\.path), in: search.session())
        }
      } catch  where ofOneItem.contains(error.code) {}
      for item in batch {
        guard let identifier = item.identifier else { continue }
        if let value = values.removeValue(forKey: item.path).map(ValueEncoding.decoded) {
          try body(Secret(identifier, value: value, metadata: item.metadata(of: identifier)))
        } else if let secret = try readable(identifier, unless: ofOneItem) {
          try body(secret)
        }
      }
    }
  }

  /// Returns a secret that could not be read together with others, because it was locked, changed by another program,
  /// or unreadable. If there is an observer and the error has one of `codes`, calls it and returns `nil`.
  private func readable(
    _ identifier: SecretIdentifier, unless codes: Set<SecretError.Code>
  ) throws(SecretError) -> Secret? {
    do throws(SecretError) { return try secret(identifier) } catch {
      guard codes.contains(error.code), let observer = unreadable.withLock({ $0 }) else { throw error }
      observer("The value of “\(identifier.account)” in the service “\(identifier.service)”", error)
      return nil
    }
  }

  /// Returns the secret without its value, or `nil` if there is none. Throws the errors of the service.
  public func item(_ identifier: SecretIdentifier) throws(SecretError) -> SecretItem? {
    try search(for: identifier) { search throws(ServiceFailure) in try search.secret(identifier) }
  }

  /// Returns a stream of the changes that the service's signals report, made by any program.
  ///
  /// The subscription is in force when this returns, unless the service cannot be reached within a quarter of
  /// ``KeyringOptions/timeout``. The backend then tries again, and reports a change of everything once it has
  /// connected. Changes within 20 milliseconds may be reported as one.
  public func changes() -> AsyncStream<SecretChange> { watcher.subscribe() }

  /// Takes the lease of a secret. Returns `nil` if another thread or process has it.
  ///
  /// The lease is a name on the session bus, `coffer.lease.h` and a hash of service and account, which only one
  /// connection at a time can own. So the lease holds between all programs that reach the same keyring. It ends with
  /// the process or with the bus, like the keyring itself. Throws `.denied` if the bus does not permit names, as in
  /// some sandboxes, and the errors of the service.
  public func tryLease(_ identifier: SecretIdentifier) throws(SecretError) -> SecretLease? {
    let name = "coffer.lease.h" + identifier.hashText
    let timeout = options.callTimeout
    return try search(for: identifier) { search throws(ServiceFailure) -> SecretLease? in
      let bus = search.process.bus
      // If an earlier request made this connection the owner, another thread of this process has the lease.
      guard try bus.requestName(name, by: search.service.next()) == .thisRequest else { return nil }
      return SecretLease { bus.releaseName(name, by: Deadline(after: timeout)) }
    }
  }

  // MARK: Several items

  package func differentItems(_ identifier: SecretIdentifier) throws(SecretError) -> [SecretItem] {
    try search(for: identifier) { search throws(ServiceFailure) in
      try ItemRemover(search: search, identifier: identifier).items(identifier, all: true).different
        .map { SecretItem(identifier: identifier, metadata: $0.metadata(of: identifier)) }
    }
  }

  package func unlistedItems(inService service: String?) throws(SecretError) -> [UnlistedItem] {
    try search(service) { search, query throws(ServiceFailure) in try search.unlisted(matching: query) }
  }

  @discardableResult
  package func removeAll(_ identifier: SecretIdentifier) throws(SecretError) -> Bool {
    try remove(identifier, all: true)
  }

  /// Gives the secret the identifier `new`. Throws `.missing`, `.alreadyExists`, `.ambiguous` if the items are
  /// different secrets, and the errors of the service. The original is then kept. If a copy remains, the reason says
  /// so.
  public func move(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError) {
    try move(identifier, to: new, replacing: replacing, all: false)
  }

  package func moveAll(_ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool) throws(SecretError) {
    try move(identifier, to: new, replacing: replacing, all: true)
  }

  private func move(
    _ identifier: SecretIdentifier, to new: SecretIdentifier, replacing: Bool, all: Bool
  ) throws(SecretError) {
    // Outside the closure, because the closure runs again if the service stops after the originals were deleted.
    var replaced: [FoundItem]?
    try search(for: identifier, changes: true) { search throws(ServiceFailure) in
      let remover = ItemRemover(search: search, identifier: identifier)
      guard let replaced else { return try remover.move(to: new, replacing: replacing, all: all) { replaced = $0 } }
      try remover.finishMove(to: new, replacing: replaced)
    }
  }

  private func remove(_ identifier: SecretIdentifier, all: Bool) throws(SecretError) -> Bool {
    // Outside the closure, because the closure runs again if the service stops after a deletion.
    var isRemoved = false
    try search(for: identifier, changes: true) { search throws(ServiceFailure) in
      try ItemRemover(search: search, identifier: identifier).remove(all: all) { isRemoved = true }
    }
    return isRemoved
  }

  // MARK: Searches

  /// Runs `body` on the service. Only a call that `changes` something can have an effect.
  func search<R: ~Copyable>(
    for identifier: SecretIdentifier?, changes: Bool = false, _ body: (ItemSearch) throws(ServiceFailure) -> R
  ) throws(SecretError) -> R {
    do throws(SecretError) {
      return try connection.withService { process, deadline throws(ServiceFailure) in
        try body(
          ItemSearch(
            process: process, deadline: deadline, options: options, prompter: prompter,
            unreadable: unreadable.withLock { $0 }))
      }
    } catch {
      let error = changes ? error : error.with(.none)
      throw identifier.map(error.about) ?? error
    }
  }

  /// Calls `body` with the attributes of the items of `service`, or of all items if it is `nil`.
  private func search<Element>(
    _ service: String?, _ body: (ItemSearch, [String: String]) throws(ServiceFailure) -> [Element]
  ) throws(SecretError) -> [Element] {
    if let service, service.isEmpty || service.utf8.contains(0) { return [] }
    return try search(for: nil) { search throws(ServiceFailure) in
      try body(search, service.map { [ItemAttributes.service: $0] } ?? [:])
    }
  }

  /// Runs `body` up to four times, because another program may remove or lock an item after it was found.
  private static func retrying<R: ~Copyable>(_ body: () throws(ServiceFailure) -> R) throws(ServiceFailure) -> R {
    var last: ServiceFailure?
    for _ in 0..<4 {
      do throws(ServiceFailure) {
        return try body()
      } catch  where error.isNoSuchObject || error.isLocked {
        last = error
      }
    }
    if let last, last.isLocked { throw last }
    throw .error(
      .conflict, "Other programs changed the secret during each of four attempts.", advice: "Try again.",
      effect: .unknown)
  }
}
#endif
