internal import ArgumentParser
internal import Coffer
internal import CofferSystem

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
      """)

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

  @Option(help: ArgumentHelp("Trust the vault without a question if it has this pin.", valueName: "pin"))
  var pin: String?

  enum Scope: String, EnumerableFlag {
    case onlyHere, everywhere

    static func help(for value: Scope) -> ArgumentHelp? {
      value == .onlyHere
        ? """
        Trust it only at this path, such as a backup or an old release: what was seen of the same vault elsewhere still \
        counts there.
        """
        : "Trust it as the vault from now on, at every path. Ends an earlier --only-here."
    }
  }

  @Flag(exclusivity: .exclusive) var scope: Scope?

  @Flag(
    help: """
      Then write it in a state that every machine accepts, also one that saw changes which are lost since, such as after a \
      backup was put back. Without a terminal, requires the pin of the present state.
      """)
  var advance = false

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault can be trusted")
    let found = try vault.unconfirmed(pin: pin)
    var scope = scope
    // A copy that counts only here is not refused at its path, but --everywhere requires a confirmation all the same.
    if let refusal = found.refusal ?? (scope == .everywhere ? found.keyRefusal : nil) {
      guard case .trust = refusal.remedy else { throw refusal }
      explain(refusal, found)
      if pin == nil && !found.isPinned { try confirm(found, vault.path) }
      if scope == nil && found.keyRefusal != nil { scope = try askForScope() }
    }
    if found.isBehind { VaultNotes.say(.behind, of: vault.path) }
    if advance && pin != found.pin { try confirmAdvance(found, vault.path) }
    let accepted = try vault.trust(
      policy.map { $0 == .versioned ? .versioned : .strict }, pin: found.pin,
      onlyHere: scope.map { $0 == .onlyHere }, knowsOtherKey: found.keyRefusal != nil)
    changed("The vault is trusted now.")
    if advance {
      let advanced = try vault.advance(from: accepted)
      try Output.standard.line("Advanced \(vault.path).")
      return try Output.standard.line("pin: \(advanced)")
    }
    let notices = try vault.notices()
    let scopeNote =
      notices.contains(.countsOnlyHere)
      ? " It counts only here; a removed key may read what is stored in it." : ""
    try Output.standard.line("Trusted \(vault.path).\(scopeNote)")
    try Output.standard.line("pin: \(accepted)")
    if notices.contains(.versioned) {
      try Output.standard.line("Older states of it are accepted, because its policy is versioned.")
    }
  }

  private func confirmAdvance(_ found: UnconfirmedVault, _ path: String) throws {
    note(
      """
      If you advance it, every machine that has its key accepts the vault as it is now. Changes that a machine saw and that are \
      not in it stay lost. To bring them back, first merge the copy of a machine that has them: secret merge OTHER
      """)
    let command = "secret trust --vault \(path.quotedForShell) --advance --pin \(found.pin)"
    try Terminal.confirm("Advance it?", advice: "Give the pin of its present state: \(command)")
  }

  private func explain(_ refusal: SecretError, _ found: UnconfirmedVault) {
    let consequence =
      switch refusal.code {
      case .rolledBack: "what was stored or removed since then is undone"
      case .untrusted: "what is stored in it can be read by whoever made it"
      case .unexpectedVault: "its secrets and its keys are accepted from now on"
      case .unexpectedKey: "keys that were removed since may open it"
      default: "everything that was seen of it before is ignored"
      }
    note("\(refusal.reason) If you trust it, \(consequence).")
    if let other = found.keyRefusal, other.code != refusal.code { note(other.reason) }
  }

  private func confirm(_ found: UnconfirmedVault, _ path: String) throws {
    let option = scope.map { $0 == .onlyHere ? " --only-here" : " --everywhere" } ?? ""
    let command = "secret trust --vault \(path.quotedForShell)\(option) --pin PIN"
    note("Its pin is \(found.pin). If you were sent another one, answer no, and let the command compare: \(command)")
    try Terminal.confirm("Trust it as it is now?", advice: "Give the pin that came by another way: \(command)")
  }

  /// Asks whether the vault counts everywhere or only here. Returns `nil` if nobody can be asked: then the recorded
  /// answer stays, and without one, the vault counts everywhere.
  private func askForScope() throws -> Scope? {
    let answer = try Terminal.answer(
      "Is it the vault from now on, at every path, or a copy that counts only here, such as a backup? [vault/copy] ")
    switch answer {
    case nil: return nil
    case "vault": return .everywhere
    case "copy": return .onlyHere
    default: throw Failure(.refused, "The answer was neither of the two.")
    }
  }
}
