internal import ArgumentParser
internal import Coffer

struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Read and check every byte of the vault."
  )

  private struct Report: Encodable {
    let path: String
    let secrets: Int
    let keySlots: Int
    let fileSize: Int
    let checkpoint: String
    let recovered: Bool
  }

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Option(
    help: ArgumentHelp(
      "Fail with 65 unless the vault is in this state or a later one, as an earlier verify printed it.",
      valueName: "checkpoint"
    )
  )
  var atLeast: String?

  func run() throws {
    let vault = try global.vaultStore(toBe: "verified")
    let report = try Progress.during("Checking \(vault.path.printable) …") { try vault.verify() }
    if let atLeast { try report.requireAtLeast(atLeast) }
    let output = Output.standard
    if format.json {
      return try output.json(
        Report(
          path: vault.path,
          secrets: report.secretCount,
          keySlots: report.keySlotCount,
          fileSize: report.fileSize,
          checkpoint: report.checkpoint,
          recovered: report.isRecovered
        )
      )
    }
    try output.line("\(vault.path) is whole: every byte that counts was read and is authentic.")
    try output.line(
      "secrets: \(report.secretCount), key slots: \(report.keySlotCount), bytes: \(report.fileSize)"
    )
    try output.line("checkpoint: \(report.checkpoint)")
    if report.isRecovered {
      try output.line(
        "recovered: a write was interrupted once. What it was acknowledged to have written is here."
      )
    }
  }
}
