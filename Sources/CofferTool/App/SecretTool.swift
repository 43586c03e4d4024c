/// The `secret` command line tool, as a library, so that its parts can be tested.
public enum SecretTool {
  /// Runs the command that the process's arguments name, and exits with its status.
  public static func main() { SecretCommand.main() }
}
