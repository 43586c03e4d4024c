internal import ArgumentParser

/// The names by which other programs start `secret`: a link to it, or an argument of their own.
enum InvocationName {
  /// The command that a link's name selects.
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

  /// Returns the words to put before the arguments of a process that was started as `path`: the name of the
  /// command that the link selects, or nothing. `first` is the first argument.
  static func words(startedAs path: String, first: String?) -> [String] {
    // cargo runs the configured program with this as its only argument.
    if first == CargoCredentialCommand.mark { return [CargoCredentialCommand._commandName] }
    let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
    let name = slash.map { path[path.utf8.index(after: $0)...] } ?? path[...]
    return command(name).map { [$0._commandName] } ?? []
  }
}
