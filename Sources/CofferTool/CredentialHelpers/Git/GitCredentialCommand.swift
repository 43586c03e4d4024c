internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct GitCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "git-credential",
    abstract: "Keep git's passwords: a credential helper for git.",
    discussion: """
      Set it up with: git config --global credential.helper '!secret git-credential', or, with a link named \
      git-credential-secret to this program on PATH, git config --global credential.helper secret. A password is \
      the secret with the service git:https://HOST and the username as its name, so that secret get -s \
      git:https://HOST USERNAME prints it. git's requests come on standard input.
      """
  )

  @OptionGroup(title: "Global options") var global: StoreOptions

  @Argument(help: "What git wants done: get, store, erase, or capability.")
  var operation: String

  private static let secretKeys: Set = ["password", "credential", "oauth_refresh_token"]

  func run() throws {
    switch operation {
    case "capability": try Output.standard.write("version 0\ncapability authtype\n")
    case "get": try get(try request())
    case "store": try store(try request())
    case "erase": try erase(try request())
    default: return  // what a later git may ask for, and must not be told off about
    }
  }

  private func request() throws -> SecretLines {
    try SecretLines(
      ValueInput.readAll(0, named: "standard input"),
      secretKeys: Self.secretKeys
    )
  }

  // MARK: get

  private func get(_ request: SecretLines) throws {
    let wanted = GitCredential(request)
    guard !wanted.isEmpty, wanted.protocolName != nil else { return }
    let knowsTypes = request.all("capability[]").contains("authtype")
    let store = try global.store()
    for item in try Self.matches(wanted, in: store, all: false) {
      let type = item.metadata.attributes[GitCredential.authTypeAttribute]
      guard type == nil || knowsTypes, let value = try store.lookUp(item.identifier),
        let credential = GitCredential(item.identifier)
      else { continue }
      let refresh = try store.lookUp(GitCredential.refreshIdentifier(of: item.identifier))
      try Self.checkOneLine(value, of: item.identifier)
      let output = Output.standard
      if let type {
        try output.write("capability[]=authtype\nauthtype=\(type)\ncredential=")
      } else {
        try output.write("username=\(credential.username ?? "")\npassword=")
      }
      try output.write(value)
      try output.write("\n")
      if let expires = item.metadata.expires {
        try output.write("password_expiry_utc=\(Int(expires.timeIntervalSince1970))\n")
      }
      if let refresh {
        try Self.checkOneLine(refresh, of: item.identifier)
        try output.write("oauth_refresh_token=")
        try output.write(refresh)
        try output.write("\n")
      }
      return
    }
  }

  /// The stored credentials that `wanted` describes, the best first: those that have not expired, and of those the
  /// one stored last. Unless `all` are wanted, those with a path are only for want of one without.
  private static func matches(
    _ wanted: GitCredential,
    in store: any SecretBackend,
    all: Bool
  ) throws(SecretError) -> [SecretItem] {
    func matching(_ items: [SecretItem]) -> [SecretItem] {
      items.filter { GitCredential($0.identifier).map(wanted.describes) ?? false }
    }
    var found: [SecretItem] = []
    if !all, let service = wanted.service { found = matching(try store.items(inService: service)) }
    // Where a path was asked for, no other place would do.
    if found.isEmpty, all || wanted.path == nil { found = matching(try store.items(inService: nil)) }
    let now = Date()
    func rank(_ item: SecretItem) -> (Int, Date) {
      let isExpired = item.metadata.expires.map { $0 <= now } ?? false
      return (isExpired ? 0 : 1, item.metadata.modified ?? .distantPast)
    }
    return found.sorted { rank($0) > rank($1) }
  }

  /// Throws where a value would break git's lines, and be taken for something else.
  private static func checkOneLine(_ value: borrowing SecretBytes, of identifier: SecretIdentifier) throws {
    let fits = value.withBytes { bytes in
      for index in bytes.indices where bytes[index] == 0 || bytes[index] == UInt8(ascii: "\n") {
        return false
      }
      return true
    }
    if !fits {
      throw Failure(
        .damaged,
        "The secret “\(identifier.account)” in the service “\(identifier.service)” has a line feed or a NUL in it, "
          + "which git's protocol cannot carry. Store it again without."
      )
    }
  }

  // MARK: store

  private func store(_ request: SecretLines) throws {
    let credential = GitCredential(request)
    if request.text("ephemeral") == "1" { return }
    let type = request.text("authtype")
    // git stores what was used; a part of a credential is nothing to keep.
    guard let value = request.secret(type == nil ? "password" : "credential"),
      let identifier = try credential.identifier()
    else { return }
    if type == nil && credential.username == nil { return }
    let refreshIdentifier = try GitCredential.refreshIdentifier(of: identifier)
    let refresh = request.secret("oauth_refresh_token")
    let expires = request.text("password_expiry_utc").flatMap(Int64.init)
      .map { Date(timeIntervalSince1970: Double($0)) }

    let store = try global.store()
    let existing = try store.item(identifier)
    var metadata = existing?.metadata ?? SecretMetadata()
    metadata.expires = expires
    metadata.attributes[GitCredential.authTypeAttribute] = type
    // git stores a password again each time that it worked.
    if existing?.metadata == metadata, try Self.holds(store, identifier, value.bytes) {
      if let refresh {
        if try Self.holds(store, refreshIdentifier, refresh.bytes) { return }
      } else if try store.item(refreshIdentifier) == nil {
        return
      }
    }
    if let store = store as? any TransactionalSecretBackend {
      try store.transaction { transaction throws(SecretError) in
        try transaction.store(value.bytes, for: identifier, metadata: metadata)
        if let refresh {
          try transaction.store(refresh.bytes, for: refreshIdentifier, metadata: nil)
        } else {
          try transaction.remove(refreshIdentifier)
        }
      }
    } else {
      try store.store(value.bytes, for: identifier, metadata: metadata)
      if let refresh {
        try store.store(refresh.bytes, for: refreshIdentifier)
      } else {
        try store.remove(refreshIdentifier)
      }
    }
  }

  private static func holds(
    _ store: any SecretBackend,
    _ identifier: SecretIdentifier,
    _ value: borrowing SecretBytes
  ) throws(SecretError) -> Bool {
    guard let held = try store.lookUp(identifier) else { return false }
    return held.isEqual(to: value)
  }

  // MARK: erase

  private func erase(_ request: SecretLines) throws {
    let wanted = GitCredential(request)
    guard !wanted.isEmpty else {
      throw Failure.usage("Nothing says what to erase, and nothing was erased. Name at least a host.")
    }
    let store = try global.store()
    for item in try Self.matches(wanted, in: store, all: true) {
      // A password that was refused is not the one that someone has stored since.
      if let given = request.secret(
        item.metadata.attributes[GitCredential.authTypeAttribute] == nil ? "password" : "credential"
      ), try !Self.holds(store, item.identifier, given.bytes) {
        continue
      }
      try store.remove(item.identifier)
      try store.remove(GitCredential.refreshIdentifier(of: item.identifier))
    }
  }
}
