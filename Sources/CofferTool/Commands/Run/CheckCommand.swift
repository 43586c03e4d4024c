internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct CheckCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "check", abstract: "Compare the project's file with the stored secrets.",
    discussion: """
      Prints a line for each secret that \(ProjectFile.name) declares, with its variable: ok, missing, optional (missing, and \
      need not exist), conflict (a merge had to choose between values), expired, or expiring within 14 days. Then the secrets that two variables get (twice), and those of the \
      service that the file does not name (unused). Never prints a value. Exits with 1 if a secret is missing, has expired or is in conflict.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption
  @OptionGroup var profile: ProfileOption

  enum State: String, Encodable {
    case ok, missing, optional, conflict, expired, expiring, twice, unused
  }

  private struct Entry {
    let state: State
    let json: JSONObject
    let line: String

    init(
      _ state: State, _ variables: [String], _ identifier: SecretIdentifier, in service: String,
      expires: Date? = nil
    ) {
      let account = identifier.account
      self.state = state
      json = [
        "state": state, "variables": variables, "service": identifier.service, "account": account,
        "expires": expires,
      ]
      // The name as it is written in the project's file.
      let secret = identifier.service == service ? account : SecretReference.text(of: identifier)
      let name = variables.isEmpty ? account : "\(variables.joined(separator: ", ")) = \(secret)"
      let time = expires.map { ", expires " + $0.ISO8601Format() } ?? ""
      line = "\(state.rawValue)\t\(name.printable)\(time)"
    }
  }

  func run() throws {
    guard let project = try global.project() else { throw try ProfileOption.missingProject("check") }
    let entries = try entries(for: project)
    try format.print(entries.map(\.json), or: entries.map { $0.line + "\n" }.joined())
    let failures = entries.filter { [.missing, .conflict, .expired].contains($0.state) }
    if !failures.isEmpty { throw ExitCode(ExitStatus.noSuchSecret.rawValue) }
  }

  private func entries(for project: Project) throws -> [Entry] {
    let options = global.following(project)
    var declared: [(identifier: SecretIdentifier, variable: String, isOptional: Bool)] = []
    for variable in try profile.variables(of: project) {
      guard case .secret(let name, let isOptional) = variable.source else { continue }
      declared.append((try options.identifier(name), variable.name, isOptional))
    }
    let backend = try UnreadableItems.leaveOut(of: global.open())
    let service = try options.serviceName
    var found: [SecretIdentifier: SecretItem] = [:]
    for service in Set(declared.map(\.identifier.service) + [service]) {
      for item in try backend.items(inService: service) { found[item.identifier] = item }
    }
    let now = Date()
    var entries = declared.map { secret in
      let item = found[secret.identifier]
      let state: State =
        switch item.map({ Expiry.state(of: $0.metadata, now: now) }) {
        case nil: secret.isOptional ? .optional : .missing
        case _ where item?.isInConflict == true: .conflict
        case .expired?: .expired
        case .soon?: .expiring
        case .none?: .ok
        }
      return Entry(state, [secret.variable], secret.identifier, in: service, expires: item?.metadata.expires)
    }
    let uses = Dictionary(grouping: declared, by: \.identifier)
    for (identifier, users) in uses.sorted(by: { $0.key < $1.key }) where users.count > 1 {
      entries.append(Entry(.twice, users.map(\.variable), identifier, in: service))
    }
    let named = Set(try project.file.secretNames.map { try options.identifier($0) })
    for identifier in found.keys.sorted() where identifier.service == service && !named.contains(identifier) {
      entries.append(Entry(.unused, [], identifier, in: service))
    }
    return entries
  }
}
