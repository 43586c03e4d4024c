internal import ArgumentParser
internal import Coffer

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration("verify", abstract: "Read and authenticate every byte of the vault.")

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(
    help: ArgumentHelp(
      """
      Fail with status 65 unless the file shows that the vault is in the state of this pin, which an earlier verify \
      printed, or in a later one.
      """,
      valueName: "pin"))
  var pin: String?

  func run() throws {
    var options = VaultOptions()
    options.readsBackups = true
    if let pin { options.pins = [pin] }
    let vault = try global.openVault(requirement: "Only a vault can be verified", options, to: .examine)
    try vault.unlock()
    let report = try Progress.during("Verifying \(vault.path.printable) …") { try vault.verify() }
    guard report.showsPins else {
      throw SecretError(
        .unverifiable,
        """
        The vault at \(vault.path.printable) is unverifiable with this pin: the state of the pin is older than the \
        states that the file still lists.
        """,
        advice: "Only holders of its keys can have changed it since. If you trust all of them, take a new pin.")
    }
    let output = Output.standard
    let behind = try vault.notices().contains(.behind) ? VaultNotice.behind.words : nil
    if format.json {
      let fields: JSONObject = [
        "path": vault.path, "secrets": report.secretCount, "earlierVersions": report.earlierVersionCount,
        "versionsNotYetDropped": report.excessVersionCount, "keySlots": report.keySlotCount,
        "fileSize": report.fileSize, "pin": report.pin, "identityPin": report.identityPin,
        "compared": report.compared.rawValue, "recovered": report.isRecovered,
        "behind": behind != nil,
      ]
      return try output.json(fields)
    }
    try output.line("\(vault.path.printable) is intact: every byte in use was read and authenticated.")
    let excess = report.excessVersionCount == 0 ? "" : " (and \(report.excessVersionCount) not yet dropped)"
    try output.line(
      """
      secrets: \(report.secretCount), earlier versions: \(report.earlierVersionCount)\(excess), \
      key slots: \(report.keySlotCount), bytes: \(report.fileSize)
      """)
    try output.line("pin: \(report.pin)")
    try output.line("identity pin: \(report.identityPin)")
    if report.compared == .nothing {
      try output.line(
        "compared: nothing. No pin was given and nothing was seen of it before, so it may be an older copy.")
    }
    if let behind { try output.line("behind: \(behind.text). \(behind.advice ?? "")") }
    if report.isRecovered {
      try output.line("recovered: one of the two commit slots is damaged; the last change may be missing.")
    }
  }
}
