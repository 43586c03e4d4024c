/// The `secret` command line tool as a library, so that tests can reach its parts.
public enum SecretTool {
  /// Runs the command that the arguments of this process name, and exits with its status.
  public static func main() { SecretCommand.main() }
}
