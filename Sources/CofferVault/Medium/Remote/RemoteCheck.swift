package import CofferCore
internal import CofferRemote
internal import CofferVaultFormat
internal import Synchronization

/// Tries whether an engine keeps the rules of the page `RemoteProtocol`, with an object of its own beside that of a
/// URL. Without them, two machines could both be told that their change was made.
package struct RemoteCheck {
  private let url: RemoteURL
  private let helpers: [RemoteHelper]
  private let environment: VaultEnvironment

  /// The number of programs that try to be first at once.
  private static let racers = 8

  package init(beside text: String, environment: VaultEnvironment) throws(SecretError) {
    let url = try RemoteURL("\(text).check-\(environment.randomness.bytes16().hex)")
    (self.url, self.environment) = (url, environment)
    helpers = (0..<Self.racers).map { _ in RemoteHelper(url, in: environment.helperDirectories) }
  }

  /// Throws `.unsupported` if a rule is broken, and what the helper throws. `rounds` is the number of races of each
  /// kind, and `largest` the size of the largest object that is tried.
  package func run(rounds: Int, largest: Int) throws(SecretError) {
    try require(read() == .absent, "an object is there before it is made")
    // From here on, something may be left behind.
    let result = Result { () throws(SecretError) in
      guard let first = try publish([1, 2, 3], over: nil) else { throw broken("it refuses a new object") }
      try tryRules(first, rounds: rounds, largest: largest)
    }
    if case .whole(let version, _) = try read() { _ = try helpers[0].send(.remove(version: version)) }
    try result.get()
  }

  private func tryRules(_ first: String, rounds: Int, largest: Int) throws(SecretError) {
    try expect([1, 2, 3], first)
    try require(publish([9], over: nil) == nil, "it makes an object where there is one")
    try expect([1, 2, 3], first)
    guard let second = try publish([4, 5, 6], over: first) else {
      throw broken("it refuses a change of the newest version")
    }
    try expect([4, 5, 6], second)
    try require(publish([9], over: first) == nil, "it accepts a change of a version that is not the newest")
    try expect([4, 5, 6], second)
    let pieces: [RemoteMessage.Piece] = [.init(offset: 3, [7, 8]), .init(offset: 1, [0])]
    guard let middle = try publish(pieces, isWhole: false, over: second) else { throw broken("it refuses an addition") }
    try expect([4, 0, 6, 7, 8], middle)
    // A change of leases adds nothing.
    guard let third = try publish([.init(offset: 5, []), .init(offset: 2, [9])], isWhole: false, over: middle)
    else { throw broken("it refuses a change that adds nothing") }
    try expect([4, 0, 9, 7, 8], third)
    switch try read(known: second) {
    case .whole(third, [4, 0, 9, 7, 8]): break
    case .changed(third, let pieces):
      try require([4, 5, 6].written(pieces) == [4, 0, 9, 7, 8], "it answers with a wrong change")
    default: throw broken("it does not return what was stored last")
    }
    try require(publish(pieces, isWhole: false, over: second) == nil, "it adds to a version that is not the newest")
    try require(send(.remove(version: second)) == .refused, "it removes a version that is not the newest")
    try require(
      send(.read(known: third, queueing: true)) == .same, "it does not answer a writer that waits for its turn")
    guard case .done = try send(.confirm), case .text = try send(.describe) else {
      throw broken("it does not answer confirm or describe")
    }
    let large = environment.randomness.array(largest)
    guard var newest = try publish(large, over: third) else { throw broken("it refuses an object of \(largest) bytes") }
    try expect(large, newest)
    for round in 0..<rounds { newest = try race(over: newest, round) }
    let removed = try send(.remove(version: newest))
    try require(read() == .absent && removed != .refused, "it does not remove an object")
    let made = try publish([9], over: newest)
    try require(read() == .absent && made == nil, "it changes an object that is not there")
    for round in 0..<rounds {
      newest = try race(over: nil, round)
      if round < rounds - 1 { _ = try send(.remove(version: newest)) }
    }
  }

  /// Lets all helpers publish at once. Returns the version of the only one that was first.
  private func race(over version: String?, _ round: Int) throws(SecretError) -> String {
    let outcomes = Mutex<[(racer: Int, outcome: Result<String?, SecretError>)]>([])
    for (racer, helper) in helpers.enumerated() {
      let failure = startThread {
        let outcome = Result { () throws(SecretError) in
          try publish([UInt8](repeating: UInt8(racer), count: 100_000 + round), over: version, by: helper)
        }
        outcomes.withLock { $0.append((racer, outcome)) }
      }
      if failure != 0 { outcomes.withLock { $0.append((racer, .success(nil))) } }
    }
    while outcomes.withLock({ $0.count }) < helpers.count { environment.sleep(.milliseconds(2)) }
    var winners: [(racer: Int, version: String)] = []
    for (racer, outcome) in outcomes.withLock({ $0 }) {
      if let version = try outcome.get() { winners.append((racer, version)) }
    }
    guard case .whole(let newest, let bytes) = try read(), let racer = bytes.first.map(Int.init) else {
      throw broken("an object is missing after a race")
    }
    // The answer to the first may have been lost. Nobody else can have been first then.
    try require(
      winners.allSatisfy { $0 == (racer, newest) } && winners.count <= 1, "two writers are told that they were first")
    return newest
  }

  // MARK: Requests

  private func send(_ request: RemoteRequest, by helper: RemoteHelper? = nil) throws(SecretError) -> RemoteAnswer {
    try (helper ?? helpers[0]).send(request).answer
  }

  private func read(known: String? = nil) throws(SecretError) -> RemoteAnswer {
    try send(.read(known: known, queueing: false))
  }

  private func publish(_ bytes: [UInt8], over version: String?, by helper: RemoteHelper? = nil) throws(SecretError)
    -> String?
  {
    try publish([.init(bytes)], isWhole: true, over: version, by: helper)
  }

  /// Returns the new version, or `nil` if the change is refused.
  private func publish(
    _ pieces: [RemoteMessage.Piece], isWhole: Bool, over version: String?, by helper: RemoteHelper? = nil
  ) throws(SecretError) -> String? {
    let id = environment.randomness.bytes16().hex
    let start = environment.uptime()
    while environment.uptime() - start < .seconds(20) {
      switch try send(.publish(over: version, id: id, isWhole: isWhole, pieces), by: helper) {
      case .done(let version): return version
      case .refused: return nil
      default: environment.sleep(.milliseconds(100))
      }
    }
    throw broken("it does not say whether a change was made")
  }

  private func require(_ isSo: Bool, _ what: String) throws(SecretError) {
    if !isSo { throw broken(what) }
  }

  @inline(never) private func expect(_ bytes: [UInt8], _ version: String) throws(SecretError) {
    try require(read() == .whole(version: version, bytes), "it does not return what was stored last")
    try require(read(known: version) == .same, "it does not know the version that it gave")
  }

  private func broken(_ what: String) -> SecretError {
    SecretError(
      .unsupported, "The engine of \(url) cannot keep a vault: \(what).",
      advice: "Use another engine or a later version of it, or fix its helper.")
  }
}
