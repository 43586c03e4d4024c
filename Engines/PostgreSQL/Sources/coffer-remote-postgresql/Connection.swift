internal import CPostgreSQL
internal import CofferRemote
internal import Glibc

/// A connection to a server. Every wait ends at a deadline. A statement is never cancelled: a commit whose wait for a
/// standby is cancelled is visible, and can be lost.
final class Connection {
  private let connection: OpaquePointer
  private let deadline: ContinuousClock.Instant
  /// The SQLSTATE of a warning that a commit is perhaps not on a standby.
  private final class Warnings { var isUnsafe = false }
  private let warnings = Warnings()

  /// How a statement has failed.
  enum Failure: Error {
    /// The server answered with this SQLSTATE, and nothing was committed.
    case state(String, message: String)
    /// The connection broke or the deadline passed. The statement may have been committed, or may still be.
    case lost(String)
  }

  /// Connects. Throws a failure that a person can read.
  init(_ place: Place, until deadline: ContinuousClock.Instant) throws(RemoteFailure) {
    self.deadline = deadline
    let names = place.parameters.map { strdup($0.name) }, values = place.parameters.map { strdup($0.value) }
    defer { (names + values).forEach { free($0) } }
    func pointers(_ texts: [UnsafeMutablePointer<CChar>?]) -> [UnsafePointer<CChar>?] {
      texts.map { UnsafePointer($0) } + [nil]
    }
    guard let connection = PQconnectStartParams(pointers(names), pointers(values), 0) else {
      throw RemoteFailure(.failed, "There is not enough memory for a connection.")
    }
    self.connection = connection
    PQsetNoticeReceiver(
      connection,
      { context, result in
        // The commit waited for a standby, and somebody ended the wait.
        let state = PQresultErrorField(result, 67).map { String(cString: $0) }  // PG_DIAG_SQLSTATE, 'C'
        guard let context, state == "57014" || state == "57P01" else { return }
        Unmanaged<Warnings>.fromOpaque(context).takeUnretainedValue().isUnsafe = true
      }, Unmanaged.passUnretained(warnings).toOpaque())
    var status = PGRES_POLLING_WRITING
    while PQstatus(connection) != CONNECTION_BAD, status != PGRES_POLLING_OK, status != PGRES_POLLING_FAILED {
      guard wait(status == PGRES_POLLING_READING ? POLLIN : POLLOUT, until: deadline) else {
        throw RemoteFailure(.unreachable, "The server of \(place.database) did not answer in time.")
      }
      status = PQconnectPoll(connection)
    }
    guard PQstatus(connection) == CONNECTION_OK else { throw Self.refusal(text, place) }
    PQsetnonblocking(connection, 1)
  }

  deinit { PQfinish(connection) }

  var isUsable: Bool { PQstatus(connection) == CONNECTION_OK }
  private var text: String { PQerrorMessage(connection).map { String(cString: $0) } ?? "" }

  private static func refusal(_ text: String, _ place: Place) -> RemoteFailure {
    // libpq gives no SQLSTATE of a failed connection.
    func mentions(_ words: String...) -> Bool { words.contains { text.contains($0) } }
    let line = text.split(separator: "\n").first.map(String.init) ?? "no reason was given"
    let sentence = "PostgreSQL says: \(line)"
    if mentions("certificate", "SSL") {
      return RemoteFailure(
        .denied, "The server of \(place.database) did not prove who it is. \(sentence)",
        advice: "Name the certificate of its authority in PGSSLROOTCERT, or correct the host.")
    }
    if mentions("authentication failed", "pg_hba.conf", "no password", "role \"", "not permitted", "permission denied")
    {
      return RemoteFailure(
        .denied, "The server of \(place.database) refused this user. \(sentence)",
        advice: "Check PGUSER, and the password in PGPASSFILE or PGPASSWORD.")
    }
    if mentions("database \"", "service file", "definition of service") {
      return RemoteFailure(.configuration, "There is no database \(place.database) there. \(sentence)")
    }
    if mentions("read-only", "hot standby") {
      return RemoteFailure(
        .unreachable, "No server of \(place.database) takes changes: each of them is a standby. \(sentence)",
        advice: "Name every host of the cluster in the URL, or promote one.")
    }
    return RemoteFailure(.unreachable, "The server of \(place.database) cannot be reached. \(sentence)")
  }

  /// A value that a statement needs.
  enum Value {
    case text(String)
    case bytes([UInt8])
  }

  /// Runs one statement. Returns the columns of its first row, or `nil` if it has no row.
  func row(
    _ statement: String, _ values: [Value] = [], until deadline: ContinuousClock.Instant
  ) throws(Failure) -> [[UInt8]?]? {
    let contents = values.map { value in
      switch value {
      case .text(let text): Array(text.utf8) + [0]
      case .bytes(let bytes): bytes
      }
    }
    let isBinary = values.map { value -> Int32 in if case .bytes = value { 1 } else { 0 } }
    // One buffer for all values, so that their pointers are valid together.
    let all = contents.reduce(into: []) { $0 += $1 } + [0]
    warnings.isUnsafe = false
    let sent = all.withUnsafeBufferPointer { all in
      var (offset, pointers): (Int, [UnsafePointer<CChar>?]) = (0, [])
      for content in contents {
        pointers.append(
          UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(all)[offset...]).baseAddress?
            .assumingMemoryBound(to: CChar.self))
        offset += content.count
      }
      return PQsendQueryParams(
        connection, statement, Int32(values.count), nil, pointers, contents.map { Int32($0.count) }, isBinary, 1)
    }
    guard sent == 1 else { throw .lost(text) }
    while true {
      let left = PQflush(connection)
      if left < 0 { throw .lost(text) }
      if left == 0 { break }
      // The server may have to send before it receives.
      guard wait(POLLIN | POLLOUT, until: deadline), PQconsumeInput(connection) == 1 else {
        throw .lost("no answer in time")
      }
    }
    var (row, failure): ([[UInt8]?]?, Failure?)
    while true {
      while PQisBusy(connection) == 1 {
        guard wait(POLLIN, until: deadline) else { throw .lost("The server did not answer in time.") }
        guard PQconsumeInput(connection) == 1 else { throw .lost(text) }
      }
      guard let result = PQgetResult(connection) else { break }
      defer { PQclear(result) }
      switch PQresultStatus(result) {
      case PGRES_COMMAND_OK: break
      case PGRES_TUPLES_OK: if PQntuples(result) > 0 { row = Self.columns(result) }
      default:
        let state = PQresultErrorField(result, 67).map { String(cString: $0) } ?? ""
        let message = PQresultErrorField(result, 77).map { String(cString: $0) } ?? text  // PG_DIAG_MESSAGE_PRIMARY
        // The server is ending, or the connection is gone.
        let isLost = state.isEmpty || state.hasPrefix("57P") || state.hasPrefix("08")
        failure = isLost ? .lost(message) : .state(state, message: message)
      }
    }
    if let failure { throw failure }
    if warnings.isUnsafe { throw .lost("The wait for a standby was ended.") }
    return row
  }

  private static func columns(_ result: OpaquePointer) -> [[UInt8]?] {
    (0..<PQnfields(result)).map { column in
      guard PQgetisnull(result, 0, column) == 0, let value = PQgetvalue(result, 0, column) else { return nil }
      return Array(UnsafeRawBufferPointer(start: value, count: Int(PQgetlength(result, 0, column))))
    }
  }

  /// Returns `false` if the deadline passes first.
  private func wait(_ events: Int32, until deadline: ContinuousClock.Instant) -> Bool {
    while true {
      let left = ((deadline - .now) / .milliseconds(1)).rounded(.up)
      if left <= 0 { return false }
      var request = pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0)
      let count = poll(&request, 1, Int32(left))
      if count > 0 || count < 0 && errno != EINTR { return true }
    }
  }
}
