internal import CofferRemote
internal import Glibc

/// What a URL names: `postgresql://HOST[:PORT][,HOST…]/DATABASE/VAULT`, or `postgresql+service://SERVICE/VAULT` for the
/// settings in a service file of libpq.
struct Place {
  /// The name of the row.
  let vault: String
  /// The database, for messages.
  let database: String
  /// The parameters of the connection.
  let parameters: [(name: String, value: String)]

  init(_ url: String) throws(RemoteFailure) {
    let malformed = RemoteFailure(
      .configuration, "The URL is not one of a vault in PostgreSQL.",
      advice: "Write postgresql://HOST/DATABASE/VAULT or postgresql+service://SERVICE/VAULT.")
    let parts = url.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count > 3, parts[1].isEmpty, parts.allSatisfy({ !$0.contains("\0") }) else { throw malformed }
    // No variable changes what a URL names.
    for variable in ["PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGSERVICE", "PGOPTIONS"] { unsetenv(variable) }
    var parameters = [
      ("target_session_attrs", "primary"), ("application_name", "coffer"), ("client_encoding", "UTF8"),
      // For each host, in seconds.
      ("connect_timeout", "5"),
    ]
    vault = parts[parts.count - 1]
    switch (parts[0], parts.count) {
    case ("postgresql:", 5):
      database = parts[3]
      let hosts = parts[2].split(separator: ",").map(Self.host)
      let isLocal = hosts.allSatisfy { isLoopback($0.name) }
      parameters += [
        ("host", hosts.map(\.name).joined(separator: ",")), ("port", hosts.map(\.port).joined(separator: ",")),
        ("dbname", database), ("sslmode", isLocal ? "prefer" : "verify-full"),
      ]
    case ("postgresql+service:", 4):
      database = "the service \(parts[2])"
      // The default if the service sets no sslmode. Of a Unix socket, libpq ignores it.
      setenv("PGSSLMODE", "verify-full", 1)
      parameters.append(("service", parts[2]))
    default: throw malformed
    }
    self.parameters = parameters
  }

  /// The host and the port of `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`.
  private static func host(_ text: Substring) -> (name: String, port: String) {
    let end = text.hasPrefix("[") ? text.firstIndex(of: "]") ?? text.startIndex : text.startIndex
    let colon = text[end...].lastIndex(of: ":")
    let name = text[..<(colon ?? text.endIndex)].drop { $0 == "[" }
    return (
      String(name.hasSuffix("]") ? name.dropLast() : name), colon.map { String(text[$0...].dropFirst()) } ?? "5432"
    )
  }
}
