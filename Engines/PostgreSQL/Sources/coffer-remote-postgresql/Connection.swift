internal import CPostgreSQL
internal import CofferRemote
internal import Glibc

/// A connection to a server. Every wait ends at a deadline. A statement is never cancelled: a commit whose wait for a
/// standby is cancelled is visible, and can be lost.
final class Connection {
  private let connection: OpaquePointer
  /// Whether there was a warning that a commit is perhaps not on a standby.
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
        // The commit waited for a standby, and somebody ended the wait. The SQLSTATE does not always tell, and the
        // message is translated.
        guard let context, Connection.field(.function, of: result) == "SyncRepWaitForLSN" else { return }
        Unmanaged<Warnings>.fromOpaque(context).takeUnretainedValue().isUnsafe = true
      }, Unmanaged.passUnretained(warnings).toOpaque())
    // Without this, the text of a refused connection has no SQLSTATE.
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE)
    var status = PGRES_POLLING_WRITING
    while PQstatus(connection) != CONNECTION_BAD, status != PGRES_POLLING_OK, status != PGRES_POLLING_FAILED {
      guard wait(status == PGRES_POLLING_READING ? POLLIN : POLLOUT, until: deadline) else {
        throw RemoteFailure(.unreachable, "The server of \(place.database) did not answer in time.")
      }
      status = PQconnectPoll(connection)
    }
    guard PQstatus(connection) == CONNECTION_OK else { throw Self.refusal(text, place) }
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT)
    PQsetnonblocking(connection, 1)
  }

  deinit { PQfinish(connection) }

  var isUsable: Bool { PQstatus(connection) == CONNECTION_OK }
  private var text: String { PQerrorMessage(connection).map { String(cString: $0) } ?? "" }

  /// What the text of a connection that is refused means. It has a line for each host, and each may have a line that
  /// begins with `LOCATION`.
  private static func refusal(_ text: String, _ place: Place) -> RemoteFailure {
    let lines = text.split(separator: "\n").filter { !$0.hasPrefix("LOCATION") }
    for line in lines { if let known = refusal(ofLine: line, place) { return known } }
    let reason = lines.first ?? "no reason was given"
    return RemoteFailure(
      .unreachable, "The server of \(place.database) cannot be reached. PostgreSQL says: \(reason)")
  }

  /// What a line means, or `nil` if only that there is no connection.
  private static func refusal(ofLine line: Substring, _ place: Place) -> RemoteFailure? {
    // The SQLSTATE, if the line is a server's. Source: appendix A of PostgreSQL's manual.
    let code = line.firstMatch(of: #/:  ([0-9A-Z]{5}): /#)
    let reason = code.map { line[..<$0.range.lowerBound] + ": " + line[$0.range.upperBound...] } ?? line
    let sentence = "PostgreSQL says: \(reason)"
    func mentions(_ words: String...) -> Bool { words.contains { line.contains($0) } }
    switch code?.1 ?? "" {
    case let code where code.hasPrefix("28") || code == "42501" || mentions("no password", "authentication failed"):
      return RemoteFailure(
        .denied, "The server of \(place.database) refused this user. \(sentence)",
        advice: "Check PGUSER, and the password in PGPASSFILE or PGPASSWORD.")
    case let code where code.hasPrefix("53"):
      return RemoteFailure(
        .busy, "The server of \(place.database) takes no more connections. \(sentence)", advice: "Try again.")
    // A pooler says it in words.
    case let code where code == "3D000" || mentions("no such database", "service file", "definition of service"):
      return RemoteFailure(.configuration, "There is no database for \(place.database). \(sentence)")
    case _ where mentions("certificate", "does not support SSL", "SSL error"):
      return RemoteFailure(
        .denied, "The server of \(place.database) did not prove who it is. \(sentence)",
        advice: "Name the certificate of its authority in PGSSLROOTCERT, or correct the host.")
    case _ where mentions("hot standby"):
      return RemoteFailure(
        .unreachable,
        "No server of \(place.database) that answers takes changes: each of them is a standby. \(sentence)",
        advice: "Name every host of the cluster in the URL, or promote one.")
    default: return nil
    }
  }

  /// A value that a statement needs.
  struct Value {
    let content: [UInt8]
    let isBinary: Int32

    static func text(_ text: String) -> Value { Value(content: Array(text.utf8) + [0], isBinary: 0) }
    static func bytes(_ bytes: [UInt8]) -> Value { Value(content: bytes, isBinary: 1) }
  }

  /// Runs one statement. Returns the columns of its first row, or `nil` if it has no row.
  func row(
    _ statement: String, _ values: [Value] = [], until deadline: ContinuousClock.Instant
  ) throws(Failure) -> [[UInt8]?]? {
    // One buffer for all values, so that their pointers are valid together.
    let all = values.reduce(into: [UInt8]()) { $0 += $1.content } + [0]
    warnings.isUnsafe = false
    let sent = all.withUnsafeBytes { all in
      var (offset, pointers): (Int, [UnsafePointer<CChar>?]) = (0, [])
      for value in values {
        pointers.append(all.baseAddress?.advanced(by: offset).assumingMemoryBound(to: CChar.self))
        offset += value.content.count
      }
      return PQsendQueryParams(
        connection, statement, Int32(values.count), nil, pointers, values.map { Int32($0.content.count) },
        values.map(\.isBinary), 1)
    }
    guard sent == 1 else { throw .lost(text) }
    while true {
      let left = PQflush(connection)
      if left < 0 { throw .lost(text) }
      if left == 0 { break }
      // The server may have to send before it receives.
      guard wait(POLLIN | POLLOUT, until: deadline), PQconsumeInput(connection) == 1 else {
        throw .lost("The server did not answer in time.")
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
        let (state, severity) = (Self.field(.state, of: result) ?? "", Self.field(.severity, of: result) ?? "")
        let message = Self.field(.message, of: result) ?? text
        // The server is ending, or the connection is gone.
        let isLost = state.isEmpty || state.hasPrefix("57P") || state.hasPrefix("08") || severity != "ERROR"
        failure = isLost ? .lost(message) : .state(state, message: message)
      }
    }
    if let failure { throw failure }
    if warnings.isUnsafe { throw .lost("The wait for a standby was ended.") }
    return row
  }

  /// A part of an error or a warning, by its letter. Source: libpq's PG_DIAG constants, which Swift does not import.
  private enum Field: Character {
    case severity = "V"
    case state = "C"
    case message = "M"
    case function = "R"
  }

  private static func field(_ field: Field, of result: OpaquePointer?) -> String? {
    PQresultErrorField(result, Int32(field.rawValue.asciiValue ?? 0)).map { String(cString: $0) }
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
