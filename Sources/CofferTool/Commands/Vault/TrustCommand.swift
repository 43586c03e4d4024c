internal import ArgumentParser
internal import Coffer

struct TrustCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "trust", abstract: "Trust the vault as it is now, after you replaced or restored it.",
    discussion: """
      Coffer remembers what it saw of each vault: for each path, and its master key for all paths. Another vault, an older \
      copy, or a master key that does not follow from the one that was seen is refused with status 65, because someone may \
      have brought back secrets or keys that were removed. This command says why the vault is refused, asks on a terminal, and \
      confirms that the vault is the right one. Without a terminal, it requires its pin, as --pin or in COFFER_PIN. Only use \
      it if you know the reason, such as a restored backup. With the policy strict, the vault's state may not go back; with \
      versioned, for a vault in version control, it may, but the vault and its keys may still not be exchanged.
      """
  )

  enum Policy: String, CaseIterable, ExpressibleByArgument {
    case strict, versioned
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    help: """
      The policy from now on: strict or versioned. Default: the recorded one, or else versioned in a git work tree and strict \
      elsewhere.
      """)
  var policy: Policy?

  @Option(help: ArgumentHelp("The pin that the vault must have, in place of a question.", valueName: "pin"))
  var pin: String?

  @Flag(
    help: """
      Trust it only at this path, such as a backup or an old release: what was seen of the same vault elsewhere still \
      counts there.
      """)
  var onlyHere = false

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault can be trusted")
    var (pin, onlyHere) = (pin, onlyHere ? true : nil)
    do throws(SecretError) { try vault.unlock() } catch {
      guard error.canBeConfirmed else { throw error }
      let found = try vault.unconfirmed()
      let consequence =
        switch error.code {
        case .rolledBack: "what was stored or removed since then is undone"
        case .untrusted: "what is stored in it can be read by whoever made it"
        case .unexpectedVault: "the secrets and the keys of this vault count"
        case .unexpectedKey: "keys that were removed since may open it"
        default: "nothing that was seen of it before counts"
        }
      note("\(error.reason) If you trust it, \(consequence).")
      if let refusal = found.refusal, refusal.code != error.code { note(refusal.reason) }
      if pin == nil && !found.isPinned {
        let command = "secret trust --vault \(vault.path) --pin PIN"
        note(
          "Its pin is \(found.pin). If you were sent another one, answer no, and let the command compare: \(command)"
        )
        try Terminal.confirm(
          "Trust it as it is now?",
          otherwise:
            "Nothing was changed. Without a terminal, give the pin that came by another way: \(command)")
        pin = found.pin
      }
      if onlyHere == nil, found.refusal != nil {
        onlyHere = try Terminal.answer(
          "Is it the vault from now on, at every path? No: it is a copy that counts only here, such as a backup."
        )
        .map { !$0 }
      }
      // Without an answer, the vault is the one that the pin names.
      onlyHere = onlyHere ?? false
    }
    let accepted = try vault.trust(
      policy.map { $0 == .versioned ? .versioned : .strict }, pin: pin, onlyHere: onlyHere)
    changed("The vault is trusted now.")
    let condition = try vault.condition()
    let scope =
      condition.countsOnlyHere ? " It counts only here; a removed key may read what is stored in it." : ""
    try Output.standard.line("Trusted \(vault.path).\(scope)")
    try Output.standard.line("pin: \(accepted)")
    if condition.trustPolicy == .versioned {
      try Output.standard.line("Older states of it are accepted, because its policy is versioned.")
    }
  }
}
