internal import ArgumentParser
internal import Coffer

/// The options that name recipients. Each recipient gets a key slot.
struct RecipientOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A recipient, age1…, whose identity is to open the vault. Repeat for more.", valueName: "recipient"))
  var recipient: [String] = []

  @Option(path: "A file with a recipient on each line, or - for standard input.")
  var recipientsFile: String?

  var isGiven: Bool { !recipient.isEmpty || recipientsFile != nil }

  func read() throws -> [VaultRecipient] {
    var recipients = try recipient.map { text throws(SecretError) in try VaultRecipient(text) }
    if let recipientsFile {
      let text = try ValueInput.read(file: recipientsFile)
      recipients += try VaultRecipient.parse(
        lines: text.withBytes { $0.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } })
    }
    return recipients
  }
}

extension [VaultKeySlot] {
  /// Says what a quantum computer could do with copies of the vault, or `nil` if it could do nothing.
  var quantumWeakness: String? {
    let weak = self.filter { $0.recipient?.isPostQuantum == false }
    if weak.isEmpty { return nil }
    let labels = weak.map(\.summary).listed(most: 10)
    let others = contains { $0.recipient?.isPostQuantum == true } ? " The hybrid recipients do not prevent that." : ""
    return
      "Not post-quantum: \(labels). A large quantum computer could open copies of the vault with such a slot.\(others)"
  }
}
