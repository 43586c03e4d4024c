package import CofferCore
internal import CofferRemote
package import CofferSystem
internal import CofferVaultFormat
internal import Synchronization

/// The place of a vault on an engine: a URL. The engine has the same bytes as a file would have, and one helper process
/// speaks with it. Thread-safe.
///
/// The engine refuses a change of a state that is not the newest, so there are no locks. Each state is an image in
/// memory that never changes.
package final class RemoteMedium: VaultMedium {
  package let path: String
  private let environment: VaultEnvironment
  /// The helper, or what is wrong with the URL.
  private let helper: Result<RemoteHelper, SecretError>
  private let newest = Mutex<RemoteState?>(nil)
  /// How often in a row a change was refused. After two times, the next read waits for its turn.
  private let lostRaces = Mutex(0)

  /// How long a change is sent again whose outcome is unknown: 30 seconds.
  private static let repetition = Duration.seconds(30)

  private let options: VaultOptions
  /// The sealed copy on this machine, if one is kept.
  let copy: RemoteCopy?
  /// The version of the copy that this process has kept or found.
  private let kept = Mutex<String?>(nil)
  /// When the engine answered last, on the clock of ``VaultEnvironment/uptime``.
  private let answered = Mutex<(time: Duration, isOwn: Bool)?>(nil)
  /// The engine's time in its last answer, in milliseconds since 1970, this machine's uptime at that moment, and by how
  /// much the engine's clock is ahead of this machine's at least.
  private let clock = Mutex<(engine: Int, uptime: Duration, ahead: Int)?>(nil)

  package init(url text: String, options: VaultOptions, environment: VaultEnvironment) {
    (self.environment, self.options) = (environment, options)
    let url = Result { () throws(SecretError) in try RemoteURL(text) }
    helper = url.map { RemoteHelper($0, in: environment.helperDirectories) }
    let path = if case .success(let url) = url { url.description } else { text }
    self.path = path
    copy = options.copiesDirectory.map { RemoteCopy(of: path, in: $0) }
  }

  // MARK: Reading

  package func open() throws(SecretError) -> any MediumFile {
    if let state = try readNewest() { return RemoteFile(self, state) }
    if let copy, copy.load() != nil {
      throw SecretError(
        .unexpectedVault, "The vault at \(path) is gone: this machine has seen it there.",
        advice: "Find out who removed it. What this machine has seen last is in \(copy.path).")
    }
    throw SecretError(.vaultNotFound, "There is no vault at \(path).", advice: "Check the URL, or create the vault.")
  }

  /// The state that this process or this machine has seen last.
  private func known() -> RemoteState? {
    if let state = newest.withLock({ $0 }) { return state }
    guard let copy = copy?.load(), copy.version != nil || options.isOffline else { return nil }
    let state = RemoteState(copy.bytes, copy.version ?? "-")
    newest.withLock { $0 = $0 ?? state }
    kept.withLock { $0 = state.version }
    answered.withLock { $0 = copy.age >= .zero ? (environment.uptime() - copy.age, false) : nil }
    return state
  }

  /// Whether a state that was the newest some time ago may be used without asking. Not after a refusal, which shows
  /// that it is not the newest any more.
  private var isFresh: Bool {
    guard lostRaces.withLock({ $0 == 0 }), let answered = answered.withLock({ $0 }) else { return false }
    let age = max(options.maximumAge, answered.isOwn ? options.maximumAgeInProcess : .zero)
    return age > .zero && environment.uptime() - answered.time <= age
  }

  /// Makes the next read ask the engine, whatever age is allowed.
  func expire() { answered.withLock { $0 = nil } }

  /// Asks the engine for what is newer than the known state. Returns the newest, or `nil` if nothing is there.
  fileprivate func readNewest() throws(SecretError) -> RemoteState? {
    let known = known()
    if options.isOffline {
      if let known { return known }
      throw SecretError(
        .unavailable, "This machine has no copy of the vault at \(path).", advice: "Read it once with the engine.")
    }
    if let known, isFresh { return known }
    let isQueueing = lostRaces.withLock { lost in
      defer { lost = min(lost, 1) }
      return lost > 1
    }
    let answer = try askWithTime(.read(known: known?.version, queueing: isQueueing))
    answered.withLock { $0 = (environment.uptime(), true) }
    let state: RemoteState?
    switch answer {
    case .same where known != nil:
      if options.maximumAge > .zero { copy?.touch() }
      return known
    case .absent: state = nil
    case .whole(let version, let bytes): state = RemoteState(bytes, version)
    case .changed(let version, let pieces):
      guard let known, let bytes = known.bytes.written(pieces), bytes.count <= RemoteMessage.maximumBytes
      else { throw nonsense }
      state = RemoteState(bytes, version, after: known)
    default: throw nonsense
    }
    return newest.withLock { newest in
      // Another thread may have asked later and been faster.
      guard newest === known else { return newest }
      newest = state
      return state
    }
  }

  /// What a person should know of the engine: what the helper says, the time that it took, and by how much the engine's
  /// clock is ahead of this machine's.
  func describe() throws(SecretError) -> (text: String, latency: Duration, clock: Duration) {
    // The first answer may include the start of the helper and a new connection.
    _ = try readNewest()
    let start = environment.uptime()
    guard case .text(let text) = try askWithTime(.describe) else { throw nonsense }
    return (text, environment.uptime() - start, .milliseconds(clock.withLock { $0?.ahead ?? 0 }))
  }

  private var localTime: Int { Int(Timestamp.milliseconds(environment.now())) }

  /// Sends a request whose answer has the engine's time.
  private func askWithTime(_ request: RemoteRequest) throws(SecretError) -> RemoteAnswer {
    let start = localTime
    let (answer, time) = try send(request)
    if time > 0 {
      // The engine has read its clock at an unknown moment between the request and the answer.
      let engine = time / 1000
      let ahead = engine < start ? engine - start : max(0, engine - localTime)
      clock.withLock { $0 = (engine, environment.uptime(), ahead) }
    }
    return answer
  }

  /// The engine's time in milliseconds since 1970, as far as its last answer told it, or else that of this machine.
  /// Throws `.configuration` if their clocks are more than `limit` milliseconds apart.
  func time(within limit: Int) throws(SecretError) -> Int {
    guard let clock = clock.withLock({ $0 }) else { return localTime }
    guard abs(clock.ahead) <= limit else {
      throw SecretError(
        .configuration,
        "The clock of the engine of \(path) is \((abs(clock.ahead) + 500) / 1000) seconds \(clock.ahead < 0 ? "behind" : "ahead of") this machine's, so it gives no lease.",
        advice: "Set the clock that is wrong, and try again.")
    }
    return clock.engine + Int((environment.uptime() - clock.uptime) / .milliseconds(1))
  }

  fileprivate var nonsense: SecretError {
    SecretError(
      .unavailable, "The program that reads the vault at \(path) answered with something that is no answer.",
      advice: "Bring it up to date.")
  }

  /// Keeps a state that was accepted. One that is refused does not take the place of a copy that may be all that is
  /// left.
  fileprivate func keep(_ state: RemoteState) {
    kept.withLock { kept in
      guard kept != state.version else { return }
      kept = state.version
      let age = answered.withLock { $0.map { environment.uptime() - $0.time } }
      copy?.keep(state.bytes, state.version, age: age ?? .zero)
    }
  }

  /// Waits until what was read cannot be lost any more.
  fileprivate func confirm() throws(SecretError) {
    guard case .done = try send(.confirm).answer else { throw nonsense }
  }

  /// Asks the engine, unless it is not to be asked at all.
  private func send(_ request: RemoteRequest) throws(SecretError) -> RemoteHelper.Answer {
    if !options.isOffline { return try helper.get().send(request) }
    throw SecretError(.unavailable, "The vault at \(path) cannot be changed or examined without its engine.")
  }

  // MARK: Changes

  /// Puts `new` in the place of `former`, or makes the object if that is `nil`. `pieces` are what differs, or `nil` to
  /// send everything.
  ///
  /// The identical request is sent again while the outcome is unknown: it is applied at most once, because it changes
  /// the version. Throws `.outcomeUnknown` if that takes too long, and `.tooLarge`.
  fileprivate func publish(
    _ new: [UInt8], _ pieces: [RemoteMessage.Piece]? = nil, over former: RemoteState?
  ) throws(SecretError) -> (Publication, RemoteState?) {
    let request = RemoteRequest.publish(
      over: former?.version, id: environment.randomness.bytes16().hex, isWhole: pieces == nil,
      pieces ?? [.init(new)])
    let start = environment.uptime()
    var (unknown, pause): (String?, _) = (nil, Duration.milliseconds(100))
    while true {
      do throws(SecretError) {
        switch try send(request).answer {
        case .done(let version):
          let state = RemoteState(new, version, after: pieces == nil ? nil : former)
          newest.withLock { if $0 === former || former == nil { $0 = state } }
          lostRaces.withLock { $0 = 0 }
          // Of a whole file, the state is recorded before anybody reads it again.
          if pieces == nil { keep(state) }
          return (.done, state)
        case .refused:
          lostRaces.withLock { $0 += 1 }
          return (.refused, nil)
        case .unknown(let failure): unknown = failure.reason
        default: throw nonsense
        }
      } catch {
        // What was sent before may still be applied.
        guard unknown != nil else { throw error }
        unknown = error.reason
      }
      if let unknown, environment.uptime() - start >= Self.repetition { throw .outcomeUnknown(path: path, unknown) }
      environment.sleep(pause)
      pause = min(pause * 2, .seconds(2))
    }
  }

  package func requireVacant() throws(SecretError) {
    if try readNewest() == nil { return }
    throw SecretError(
      .alreadyExists, "There is already something at \(path).",
      advice: "It was not changed; choose another URL, or remove it.")
  }

  package func newFile() throws(SecretError) -> any MediumDraft {
    try RemoteCheck(beside: path, environment: environment).run(rounds: 2, largest: 1000)
    return RemoteDraft(self, replacing: nil)
  }

  /// Nothing tells of a change: the engine is asked after each period.
  package func watch(_ onChange: @escaping @Sendable () -> Void) throws(SecretError) -> any DirectoryWatch {
    PeriodOnly()
  }

  private final class PeriodOnly: DirectoryWatch { let isAlive = true }

  package func isSamePlace(as other: any VaultMedium) -> Bool { path.utf8.elementsEqual(other.path.utf8) }

  fileprivate func requireRoom(for count: Int) throws(SecretError) {
    if count <= RemoteMessage.maximumBytes { return }
    throw SecretError(
      .tooLarge,
      "The vault at \(path) would have \(count) bytes, and on an engine it has at most \(RemoteMessage.maximumBytes).",
      advice: "Use a vault for each role, or a shorter history.")
  }
}

/// One state of the object on an engine. It does not hold its medium, which holds the newest state.
private final class RemoteState: Sendable {
  let bytes: [UInt8]
  let version: String
  /// The same for all states of one file, between which there were only additions.
  let base: Base
  final class Base: Sendable {}

  init(_ bytes: [UInt8], _ version: String, after former: RemoteState? = nil) {
    (self.bytes, self.version, base) = (bytes, version, former?.base ?? Base())
  }
}

/// A vault file on an engine, in one state. Thread-safe.
private final class RemoteFile: MediumFile {
  private let medium: RemoteMedium
  private let state: RemoteState
  private var bytes: [UInt8] { state.bytes }

  init(_ medium: RemoteMedium, _ state: RemoteState) { (self.medium, self.state) = (medium, state) }

  var identity: ObjectIdentifier { ObjectIdentifier(state) }
  var path: String { medium.path }
  var names: [String] { [medium.path] }

  func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    guard offset + count <= bytes.count else { throw .tampered("the file is cut short") }
    return Array(bytes[offset..<offset + count])
  }

  func beginning(_ count: Int) throws(SecretError) -> [UInt8] { Array(bytes.prefix(count)) }
  func size() throws(SecretError) -> Int { bytes.count }

  func keepCopy() { medium.keep(state) }

  func current() throws(SecretError) -> (any MediumFile)? {
    try medium.readNewest().flatMap { $0.base === state.base ? RemoteFile(medium, $0) : nil }
  }

  // The engine says who may read and change its objects, at each request.
  let isWritable = true
  let isReadableByOthers = false
  func prepareForChange(allowingReaders: Bool) throws(SecretError) {}

  let isRemote = true
  func tryLock(exclusive: Bool) throws(SecretError) -> Bool { true }
  func unlock() throws(SecretError) {}
  func tryLease(_ number: Int64) throws(SecretError) -> (any Sendable)? {
    throw SecretError(.unsupported, "The vault at \(path) has no leases.")
  }

  let mustBeReplaced = false
  func synchronize() throws(SecretError) { try medium.confirm() }

  func draft() throws(SecretError) -> any MediumDraft { RemoteDraft(medium, replacing: state) }

  /// Publishes the bytes and the first commit slot. The other one stays, as if the writer of a file had been
  /// interrupted: it protects from a damage that an engine protects from.
  func publish(_ appendix: Appendix) throws(SecretError) -> (Publication, any MediumFile) {
    let slot = appendix.slots[0]
    let pieces: [RemoteMessage.Piece] = [
      .init(offset: appendix.offset, appendix.bytes), .init(offset: slot.offset, slot.page),
    ]
    guard let new = Array(bytes.prefix(appendix.offset)).written(pieces) else { throw medium.nonsense }
    try medium.requireRoom(for: new.count)
    // Bytes after the last commit are there if an unfinished file was put into the engine by hand.
    let (publication, later) = try medium.publish(new, bytes.count == appendix.offset ? pieces : nil, over: state)
    return (publication, later.map { RemoteFile(medium, $0) } ?? self)
  }
}

/// A whole file for an engine.
private final class RemoteDraft: MediumDraft {
  private let medium: RemoteMedium
  private let former: RemoteState?
  private var bytes: [UInt8] = []

  init(_ medium: RemoteMedium, replacing former: RemoteState?) { (self.medium, self.former) = (medium, former) }

  func write(_ new: [UInt8], at offset: Int) throws(SecretError) {
    try medium.requireRoom(for: offset + new.count)
    // The header is written last, before the rest.
    let gap = [UInt8](repeating: 0, count: max(0, offset - bytes.count))
    bytes = (bytes + gap).written([.init(offset: offset, new)]) ?? []
  }

  func publish() throws(SecretError) -> Publication { try medium.publish(bytes, over: former).0 }
}
