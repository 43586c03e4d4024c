internal import ArgumentParser

/// The names under which other programs start `secret`: by a link to it, or by an argument of their own.
enum InvocationName {
  /// What a link's name stands for.
  private static func command(_ name: some StringProtocol) -> (any ParsableCommand.Type)? {
    switch name {
    case "bazel-credential-secret": BazelCredentialCommand.self
    case "cargo-credential-secret": CargoCredentialCommand.self
    case "docker-credential-secret": DockerCredentialCommand.self
    case "git-credential-secret": GitCredentialCommand.self
    case "keyring": KeyringCommand.self
    case "terraform-credentials-secret": TerraformCredentialsCommand.self
    default: nil
    }
  }

  /// The words to put before the arguments, the `first` of which is given, of a process started as `path`: the
  /// command that the link names, or none.
  static func words(startedAs path: String, first: String?) -> [String] {
    // cargo runs the program it is told to, with this for its only argument.
    if first == CargoCredentialCommand.mark { return [CargoCredentialCommand._commandName] }
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let name = slash.map { path[path.utf8.index(after: $0)...] } ?? path[...]
    return command(name).map { [$0._commandName] } ?? []
  }
}
