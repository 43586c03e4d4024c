internal import CofferRemote
internal import Glibc

// coffer-remote-postgresql: a vault in PostgreSQL, for programs with Coffer. It gets the sealed file and never a key.

let usage = """
  usage: coffer-remote-postgresql URL        answers requests on standard input; Coffer starts it
         coffer-remote-postgresql --tables   prints the SQL that makes the tables

  The URL is postgresql://HOST[:PORT][,HOST…]/DATABASE/VAULT, or postgresql+service://SERVICE/VAULT.

  Exit status: 0 done, 64 wrong usage, 76 a request is malformed.

  """

switch CommandLine.arguments.dropFirst().first {
case "--tables":
  print(Statements.tables.map { "\($0);" }.joined(separator: "\n"))
case let url? where url.contains("://") && CommandLine.argc == 2:
  exit(serve { () throws(RemoteFailure) in VaultRow(try Place(url)) })
default:
  _ = usage.withCString { write(STDERR_FILENO, $0, strlen($0)) }
  exit(64)
}
