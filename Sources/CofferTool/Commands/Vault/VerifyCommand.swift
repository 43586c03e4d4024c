internal import ArgumentParser
internal import Coffer

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "verify", abstract: "Read and authenticate every byte of the vault.")

  private struct Report: Encodable {
    let path: String
    let secrets: Int
    let earlierVersions: Int
    let versionsNotYetDropped: Int
    let keySlots: Int
    let fileSize: Int
    let checkpoint: String
    let recovered: Bool
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(
    help: ArgumentHelp(
      "Fail with status 65 unless the vault is at this checkpoint, printed by an earlier verify, or a later one.",
      valueName: "checkpoint"))
  var atLeast: String?

  func run() throws {
    let vault = try global.openVault(requirement: "Only a vault can be verified")
    try vault.unlock()
    let report = try Progress.during("Verifying \(vault.path.printable) …") { try vault.verify() }
    if let atLeast { try report.requireAtLeast(atLeast) }
    let output = Output.standard
    if format.json {
      return try output.json(
        Report(
          path: vault.path,
          secrets: report.secretCount,
          earlierVersions: report.earlierVersionCount,
          versionsNotYetDropped: report.excessVersionCount,
          keySlots: report.keySlotCount,
          fileSize: report.fileSize,
          checkpoint: report.checkpoint,
          recovered: report.isRecovered))
    }
    try output.line("\(vault.path) is intact: every byte in use was read and authenticated.")
    let excess = report.excessVersionCount == 0 ? "" : " (and \(report.excessVersionCount) not yet dropped)"
    try output.line(
      """
      secrets: \(report.secretCount), earlier versions: \(report.earlierVersionCount)\(excess), \
      key slots: \(report.keySlotCount), bytes: \(report.fileSize)
      """
    )
    try output.line("checkpoint: \(report.checkpoint)")
    if report.isRecovered {
      try output.line("recovered: one of the two commit slots is damaged; the last change may be missing.")
    }
  }
}
