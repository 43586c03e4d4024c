internal import ArgumentParser
internal import Coffer

struct TrustCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "trust", abstract: "Trust the vault as it is now, after you replaced or restored it.",
    discussion: """
      Coffer remembers what it saw of each vault, for each path. Another vault, an older copy, or a master key that \
      does not follow from the one that was seen is refused with status 65, because someone may have brought back \
      secrets or keys that were removed. This command says why the vault is refused, asks on a terminal, and confirms that \
      the vault is the right one. Only use it if you know the reason, such as a restored backup. With the policy strict, \
      the vault's state may not go back; with versioned, for a vault in version control, it may, but the vault and its \
      keys may still not be exchanged.
      """
  )

  enum Policy: String, CaseIterable, ExpressibleByArgument {
    case strict, versioned
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(help: "The policy from now on: strict or versioned. Default: the recorded one, or else strict.")
  var policy: Policy?

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault can be trusted")
    var compared: String?
    do throws(SecretError) { try vault.unlock() } catch {
      guard error.canBeConfirmed else { throw error }
      let consequence =
        switch error.code {
        case .rolledBack: "what was stored or removed since then is undone"
        case .untrusted: "what is stored in it can be read by whoever made it"
        case .unexpectedVault: "the secrets and the keys of this vault count"
        case .unexpectedKey: "keys that were removed since may open it"
        default: "nothing that was seen of it before counts"
        }
      let pin = try vault.unconfirmedPin()
      compared = pin
      note("\(error.reason) If you trust it, \(consequence).")
      note(
        """
        Its pin is \(pin). If you were sent another one, answer no, and let the command compare: \
        COFFER_PIN=PIN secret trust --vault \(vault.path)
        """)
      _ = try Terminal.confirm("Trust it as it is now?")
    }
    let pin = try vault.trust(policy.map { $0 == .versioned ? .versioned : .strict }, pin: compared)
    try Output.standard.line("Trusted \(vault.path).")
    try Output.standard.line("pin: \(pin)")
    if try vault.condition().trustPolicy == .versioned {
      try Output.standard.line("Older states of it are accepted, because its policy is versioned.")
    }
  }
}
