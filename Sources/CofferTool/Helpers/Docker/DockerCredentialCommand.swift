internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct DockerCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "docker-credential", abstract: "Store docker's logins, as a credential helper for docker.",
    discussion: """
      docker runs a program named docker-credential-secret: create a link of that name to this program on PATH, and \
      write {"credsStore": "secret"} to ~/.docker/config.json. podman, skopeo and buildah run it too: write \
      credential-helpers = ["secret"] to ~/.config/containers/registries.conf.d/secret.conf. A login is the secret with \
      the username as its name in the service docker:URL. Requests are read from standard input. Errors are printed on \
      standard output as well, where docker expects them.
      """)

  @OptionGroup(title: "Global options") var backendOptions: BackendOptions

  @Argument(help: "The operation that docker requests: store, get, erase, list, or version.")
  var action: String

  private static let prefix = "docker:"

  struct Login: Codable {
    var serverURL: String?
    var username: String?
    var secret: String?
    private enum CodingKeys: String, CodingKey {
      case serverURL = "ServerURL"
      case username = "Username"
      case secret = "Secret"
    }
  }

  /// The texts by which docker distinguishes failures, from docker-credential-helpers.
  enum Refusal: String, Error {
    case notFound = "credentials not found in native keychain"
    case noURL = "no credentials server URL"
    case noUsername = "no credentials username"
  }

  func run() throws {
    do {
      switch action {
      case "store": try store()
      case "get": try get()
      case "erase": try erase()
      case "list": try list()
      case "version":
        try Output.standard.write("docker-credential-secret (secret) \(Version.current)\n")
      default: throw Failure.usage("The operation “\(action.withoutKeys)” of docker is not supported.")
      }
    } catch let refusal as Refusal {
      try Output.standard.write(refusal.rawValue + "\n")
      throw ExitCode(1)
    } catch {
      if let failure = Failure(error) { try Output.standard.write(failure.message.printable + "\n") }
      throw error
    }
  }

  private func store() throws {
    let login = try ProgramJSON.input(Login.self, expected: "an object with ServerURL, Username and Secret")
    guard let url = login.serverURL, !url.isEmpty else { throw Refusal.noURL }
    guard let username = login.username, !username.isEmpty else { throw Refusal.noUsername }
    let identifier = try SecretIdentifier(service: Self.prefix + url, account: username)
    let value = SecretBytes(login.secret ?? "")
    let backend = try backendOptions.open()
    // docker keeps one login for each server.
    let others = try backend.identifiers(inService: identifier.service).filter { $0 != identifier }
    try backend.withTransaction { transaction throws(SecretError) in
      try transaction.storeIfChanged(value, for: identifier)
      for other in others { try transaction.remove(other) }
    }
  }

  private func get() throws {
    let url = try Self.url(in: ValueInput.readStandardInput())
    let backend = try backendOptions.open()
    guard let identifier = try backend.latestLogin(inService: Self.prefix + url),
      let value = try backend.lookUp(identifier)
    else { throw Refusal.notFound }
    try Output.standard.jsonLine(Login(serverURL: url, username: identifier.account, secret: try value.string()))
  }

  private func erase() throws {
    let service = Self.prefix + (try Self.url(in: ValueInput.readStandardInput()))
    let backend = try backendOptions.open()
    for identifier in try backend.identifiers(inService: service) { try backend.remove(identifier) }
  }

  private func list() throws {
    let logins = try backendOptions.open().items(inService: nil)
      .filter { $0.identifier.service.utf8.starts(with: Self.prefix.utf8) }
      .sorted { ($0.metadata.modified ?? .distantPast) < ($1.metadata.modified ?? .distantPast) }
      .map { (String($0.identifier.service.dropFirst(Self.prefix.count)), $0.identifier.account) }
    try Output.standard.jsonLine(Dictionary(logins) { $1 })
  }

  /// The server's address: the input without leading and trailing white space.
  static func url(in input: SecretBytes) throws -> String {
    let text = try input.string()
    let blanks: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D]
    let bytes = Array(text.utf8.drop { blanks.contains($0) })
    let count = bytes.lastIndex { !blanks.contains($0) }.map { $0 + 1 } ?? 0
    guard count > 0 else { throw Refusal.noURL }
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
