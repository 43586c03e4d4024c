internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials

struct GitTextconvCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "git-textconv", abstract: "Describe a vault in lines that git can compare.",
    discussion: """
      secret init --git configures it for a clone, for git diff and git log -p. Prints the vault's id and the beginning of \
      its master key's commitment, a line for each key slot, then what needs the key: how many changes and master keys it \
      had, its history limit, and for each secret its service, name, time of the last change and a fingerprint. Equal values \
      of one secret have equal fingerprints, and only the vault's key can compute them. Never prints a value. Never prompts.
      """)

  @Argument(help: "The file of the vault.")
  var file: String

  func run() throws {
    let vault = GitWorkTree.temporary(file, [])
    do throws(SecretError) {
      let description = try vault.description()
      try Output.standard.line("vault\t\(description.id)\t\(description.masterKey)")
      for slot in description.keySlots {
        try Output.standard.line("key\t\(slot.summary.printable)\t\(slot.recipient.map(\.description) ?? "")")
      }
      let (change, formerKeys) = try vault.generation()
      let limit = try vault.historyLimit().sentence
      try Output.standard.line("state\tchange \(change)\tmaster key \(formerKeys + 1)\t\(limit)")
      let prints = try vault.fingerprints()
      for item in try vault.items(inService: nil).sorted(by: { $0.identifier < $1.identifier }) {
        let (name, time) = (item.identifier, item.metadata.modified?.ISO8601Format() ?? "-")
        try Output.standard.line(
          [name.service, name.account, time, prints[name] ?? ""].map(\.printable).joined(separator: "\t"))
      }
    } catch {
      // If this command failed, git diff would end without showing anything.
      try Output.standard.line("The vault cannot be opened here: \(error.reason.printable)")
    }
  }
}
