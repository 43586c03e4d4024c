internal import CofferRemote

/// A vault in PostgreSQL.
struct VaultRow: RemoteEngine {
  private let place: Place
  private var connection: Connection?
  /// Whether a transaction is open in which this writer has its turn.
  private var hasTurn = false
  private(set) var time = 0

  /// The longest work on one request: 10 seconds.
  private static let timeout = Duration.seconds(10)

  init(_ place: Place) { self.place = place }

  mutating func answer(_ request: RemoteRequest) throws(RemoteFailure) -> RemoteAnswer {
    let deadline = ContinuousClock.now + Self.timeout
    // A turn is for one change. Without one, the next request ends it.
    if case .publish = request {} else { endTurn(until: deadline) }
    switch request {
    case .read(let known, let queueing):
      return try read(known, isQueueing: queueing, deadline)
    case .publish(let known, let id, let isWhole, let pieces):
      return try publish(known, id, isWhole, pieces, deadline)
    case .confirm:
      _ = try row(Statements.confirm, [], deadline)
      return .done(version: "-")
    case .remove(let version):
      let removed = try row(Statements.remove, [.text(place.vault)] + Self.parts(of: version), deadline)
      return removed == nil ? .refused : .done(version: "-")
    case .describe:
      let columns = try row(Statements.describe, [], deadline) ?? [nil, nil]
      note(columns[1])
      return .text(Self.text(columns[0]))
    }
  }

  // MARK: Requests

  private mutating func read(
    _ known: String?, isQueueing: Bool, _ deadline: ContinuousClock.Instant
  ) throws(RemoteFailure) -> RemoteAnswer {
    if isQueueing { try takeTurn(until: deadline) }
    let parameters = [.text(place.vault)] + Self.parts(of: known)
    guard let columns = try row(Statements.read, parameters, deadline, mayLackTables: true) else { return .absent }
    note(columns[11])
    let version = "\(Self.text(columns[0]))-\(Self.text(columns[1]))"
    var pieces: [RemoteMessage.Piece] = []
    for (offset, bytes) in [(3, 4), (5, 6), (7, 8), (9, 10)] {
      if let bytes = columns[bytes], let offset = Int(Self.text(columns[offset])) {
        pieces.append(.init(offset: offset, bytes))
      }
    }
    if let base = columns[2] {
      guard let whole = base.written(pieces) else { throw RemoteFailure(.failed, "Rows of the vault are missing.") }
      return .whole(version: version, whole)
    }
    return pieces.isEmpty ? .same : .changed(version: version, pieces)
  }

  private mutating func publish(
    _ known: String?, _ id: String, _ isWhole: Bool, _ pieces: [RemoteMessage.Piece],
    _ deadline: ContinuousClock.Instant
  ) throws(RemoteFailure) -> RemoteAnswer {
    var values = [Connection.Value.text(place.vault), .text(id)] + (known == nil ? [] : Self.parts(of: known))
    for piece in pieces { values += [.bytes(piece.bytes)] + (isWhole ? [] : [.text(String(piece.offset))]) }
    let statement = known == nil ? Statements.create : isWhole ? Statements.replace : Statements.append
    let connection = try connected(until: deadline)
    do throws(Connection.Failure) {
      let row = try connection.row(statement, values, until: deadline)
      if hasTurn {
        hasTurn = false
        _ = try connection.row("COMMIT", until: deadline)
      }
      return row.map { .done(version: "\(Self.text($0[0]))-\(id)") } ?? .refused
    } catch {
      switch error {
      case .lost:
        drop()
        return .unknown(failure(error))
      case .state(let state, _):
        endTurn(until: deadline)
        // Another transaction came first, in a database whose transactions are serializable.
        if ["40001", "40P01"].contains(state) { return .refused }
        guard known == nil, Self.isWithoutTables(state) else { throw failure(error) }
      }
    }
    for table in Statements.tables { _ = try row(table, [], deadline) }
    return try publish(known, id, isWhole, pieces, deadline)
  }

  // MARK: Turns

  private mutating func takeTurn(until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
    // Connects first: a statement of a transaction is never repeated on another connection.
    _ = try row("SELECT 1", [], deadline)
    hasTurn = true
    do throws(RemoteFailure) {
      for (index, statement) in Statements.turn.enumerated() {
        _ = try row(statement, index == 2 ? [.text(place.vault)] : [], deadline)
      }
    } catch {
      drop()
      throw RemoteFailure(.busy, "Other writers of the vault did not let this one have its turn in time.")
    }
  }

  private mutating func endTurn(until deadline: ContinuousClock.Instant) {
    guard hasTurn else { return }
    hasTurn = false
    do throws(Connection.Failure) { _ = try connection?.row("ROLLBACK", until: deadline) } catch { drop() }
  }

  // MARK: Statements

  /// Runs a statement that may be repeated: on a new connection if the old one is gone. With `mayLackTables`, there is
  /// no row if there are no tables.
  private mutating func row(
    _ statement: String, _ values: [Connection.Value], _ deadline: ContinuousClock.Instant,
    mayLackTables: Bool = false
  ) throws(RemoteFailure) -> [[UInt8]?]? {
    var isFirst = true
    while true {
      let connection = try connected(until: deadline)
      do throws(Connection.Failure) { return try connection.row(statement, values, until: deadline) } catch {
        if mayLackTables, case .state(let state, _) = error, Self.isWithoutTables(state) { return nil }
        guard case .lost = error else { throw failure(error) }
        let mayRepeat = isFirst && !hasTurn && ContinuousClock.now < deadline
        drop()
        if !mayRepeat { throw failure(error) }
        isFirst = false
      }
    }
  }

  private mutating func connected(until deadline: ContinuousClock.Instant) throws(RemoteFailure) -> Connection {
    if let connection, connection.isUsable { return connection }
    drop()
    let new = try Connection(place, until: deadline)
    connection = new
    return new
  }

  private mutating func drop() { (connection, hasTurn) = (nil, false) }

  /// Source: appendix A of PostgreSQL's manual.
  private static func isWithoutTables(_ state: String) -> Bool { ["42P01", "3F000"].contains(state) }

  private func failure(_ error: Connection.Failure) -> RemoteFailure {
    let (state, sentence): (String, String)
    switch error {
    case .lost(let reason): return RemoteFailure(.unreachable, "The connection to PostgreSQL broke: \(reason)")
    case .state(let code, let message): (state, sentence) = (code, "PostgreSQL says: \(message).")
    }
    return switch state {
    case "42501":
      RemoteFailure(
        .denied, "This user may not do that in \(place.database). \(sentence)",
        advice: "Grant it, or let an administrator make the tables: coffer-remote-postgresql --tables")
    case _ where Self.isWithoutTables(state):
      RemoteFailure(.configuration, "\(place.database) has no tables for vaults any more. \(sentence)")
    case "25006":
      RemoteFailure(
        .denied, "This user's transactions are read-only in \(place.database), or its server is a standby. \(sentence)",
        advice: "Set PGUSER to one who may change the vault.")
    case "53100", "53200":
      RemoteFailure(
        .failed, "The server has no room for the change. \(sentence)",
        advice: "Everything stored before is still there; free some space and try again.")
    case _ where state.hasPrefix("53") || ["55P03", "57014"].contains(state):
      RemoteFailure(.busy, "The server is too busy. \(sentence)", advice: "Try again.")
    default: RemoteFailure(.failed, "The server failed with \(state). \(sentence)")
    }
  }

  // MARK: Values

  /// The number and the id in a version, or those of no version.
  private static func parts(of version: String?) -> [Connection.Value] {
    let parts = (version ?? "").split(separator: "-", maxSplits: 1).map(String.init)
    guard parts.count == 2, Int(parts[0]) != nil else { return [.text("0"), .text("")] }
    return parts.map { .text($0) }
  }

  private static func text(_ column: [UInt8]?) -> String { String(decoding: column ?? [], as: UTF8.self) }

  private mutating func note(_ time: [UInt8]?) { self.time = Int(Self.text(time)) ?? self.time }
}
