internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct GitCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "git-credential", abstract: "Store git's passwords, as a credential helper for git.",
    discussion: """
      Configure it with: git config --global credential.helper '!secret git-credential'; or, with a link \
      git-credential-secret to this program on PATH: git config --global credential.helper secret. A password is the \
      secret with the username as its name in the service git:https://HOST. To print it: secret get -s \
      git:https://HOST USERNAME. Requests are read from standard input.
      """)

  @OptionGroup(title: "Global options") var backendOptions: BackendOptions

  @Argument(help: "The operation that git requests: get, store, erase, or capability.")
  var operation: String

  private static let secretKeys: Set = ["password", "credential", "oauth_refresh_token"]

  func run() throws {
    switch operation {
    case "capability": try Output.standard.write("version 0\ncapability authtype\n")
    case "get": try get(try request())
    case "store": try store(try request())
    case "erase": try erase(try request())
    default: return  // git requires helpers to ignore unknown operations
    }
  }

  private func request() throws -> GitCredentialLines {
    try GitCredentialLines(ValueInput.readStandardInput(), secretKeys: Self.secretKeys)
  }

  private func get(_ request: GitCredentialLines) throws {
    let wanted = GitCredential(request)
    try Self.checkServer(of: wanted, "nothing was sent")
    let supportsTypes = request.all("capability[]").contains("authtype")
    let backend = try UnreadableItems.leaveOut(of: backendOptions.open())
    for item in try Self.matches(wanted, in: backend, all: false) {
      let type = item.metadata.attributes[GitCredential.authTypeAttribute]
      guard type == nil || supportsTypes, let value = try backend.lookUp(item.identifier),
        let credential = GitCredential(item.identifier)
      else { continue }
      var answer = AnswerLines(about: item.identifier)
      if let type {
        try answer.add("capability", prefix: "capability[]=", "authtype")
        try answer.add("type", prefix: "authtype=", type)
        try answer.add("value", prefix: "credential=", value)
      } else {
        try answer.add("username", prefix: "username=", credential.username ?? "")
        try answer.add("value", prefix: "password=", value)
      }
      if let expires = item.metadata.expires {
        try answer.add("expiry", prefix: "password_expiry_utc=", "\(Int(expires.timeIntervalSince1970))")
      }
      if let refresh = try backend.lookUp(GitCredential.refreshIdentifier(of: item.identifier)) {
        try answer.add("refresh token", prefix: "oauth_refresh_token=", refresh)
      }
      return try answer.send()
    }
  }

  /// The stored credentials that match `wanted`: unexpired ones first, and among those the one stored last. Unless
  /// `all` is true, credentials with a path that `wanted` does not have are included only if there are no others.
  private static func matches(
    _ wanted: GitCredential, in backend: any SecretBackend, all: Bool
  ) throws(SecretError) -> [SecretItem] {
    func matching(_ items: [SecretItem]) -> [SecretItem] {
      items.filter { GitCredential($0.identifier).map(wanted.matches) ?? false }
    }
    var found: [SecretItem] = []
    if !all, let service = wanted.service { found = matching(try backend.items(inService: service)) }
    // A request with a path is for that path only.
    if found.isEmpty, all || wanted.path == nil { found = matching(try backend.items(inService: nil)) }
    let now = Date()
    func rank(_ item: SecretItem) -> (Int, Date) {
      let isExpired = item.metadata.expires.map { $0 <= now } ?? false
      return (isExpired ? 0 : 1, item.metadata.modified ?? .distantPast)
    }
    return found.sorted { rank($0) > rank($1) }
  }

  /// Throws unless the request names one server. Otherwise a request with only a protocol would be about the passwords
  /// of all servers. git itself sends no such request.
  private static func checkServer(of wanted: GitCredential, _ outcome: String) throws(Failure) {
    if wanted.namesServer { return }
    throw .usage("The request does not name a server, and \(outcome). Send the lines protocol=PROTOCOL and host=HOST.")
  }

  private func store(_ request: GitCredentialLines) throws {
    let credential = GitCredential(request)
    if request.text("ephemeral") == "1" { return }
    let type = request.text("authtype")
    // A request may contain only a part of a credential, which cannot be stored.
    guard let value = request.secret(type == nil ? "password" : "credential"),
      let identifier = try credential.identifier()
    else { return }
    if type == nil && credential.username == nil { return }
    let refreshIdentifier = try GitCredential.refreshIdentifier(of: identifier)
    let refresh = request.secret("oauth_refresh_token")
    let expires = request.text("password_expiry_utc").flatMap(Int64.init)
      .map { Date(timeIntervalSince1970: Double($0)) }

    let backend = try backendOptions.open()
    let existing = try backend.item(identifier)
    var metadata = existing?.metadata ?? SecretMetadata()
    metadata.expires = expires
    metadata.attributes[GitCredential.authTypeAttribute] = type
    // git stores a password again after each successful use.
    if existing?.metadata == metadata, try backend.lookUp(identifier)?.isEqual(to: value) == true {
      if let refresh {
        if try backend.lookUp(refreshIdentifier)?.isEqual(to: refresh) == true { return }
      } else if try backend.item(refreshIdentifier) == nil {
        return
      }
    }
    try backend.withTransaction { transaction throws(SecretError) in
      try transaction.storeIfChanged(value, for: identifier) { _, _ in metadata }
      if let refresh {
        try transaction.storeIfChanged(refresh, for: refreshIdentifier)
      } else {
        try transaction.remove(refreshIdentifier)
      }
    }
  }

  private func erase(_ request: GitCredentialLines) throws {
    let wanted = GitCredential(request)
    try Self.checkServer(of: wanted, "nothing was erased")
    let backend = try UnreadableItems.leaveOut(of: backendOptions.open())
    for item in try Self.matches(wanted, in: backend, all: true) {
      // Keeps a password that was stored after the rejected one.
      let type = item.metadata.attributes[GitCredential.authTypeAttribute]
      let given = request.secret(type == nil ? "password" : "credential")
      if let given, try backend.lookUp(item.identifier)?.isEqual(to: given) != true { continue }
      try backend.remove(item.identifier)
      try backend.remove(GitCredential.refreshIdentifier(of: item.identifier))
    }
  }
}
