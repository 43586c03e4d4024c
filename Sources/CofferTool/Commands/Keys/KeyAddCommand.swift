internal import ArgumentParser
internal import Coffer

struct KeyAddCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "add", of: "secret key", abstract: "Add a key, a passphrase or a recipient to the vault.",
    discussion: """
      A new passphrase is entered twice on a terminal, or comes from a pipe. A key file is created if it does not \
      exist. A recovery key is printed once and not stored: write it down. White space in it has no meaning. A recipient \
      is the public key of a person or a machine, as secret key new and age-keygen print it; everybody who has the file can \
      read it.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Flag(help: "Add a passphrase.")
  var passphrase = false

  @Option(path: "Add the key in a file, which is created if it does not exist.")
  var keyFile: String?

  @Flag(help: "Add a new key, and print it to be written down.")
  var recovery = false

  @OptionGroup var recipients: RecipientOptions
  @OptionGroup var cost: NewPassphrase

  @Option(help: "The slot's label. It is not encrypted.")
  var label: String?

  func run() throws {
    guard [passphrase, keyFile != nil, recovery, recipients.isGiven].count(where: \.self) == 1 else {
      throw Failure.usage("Use one of --passphrase, --key-file PATH, --recovery and --recipient RECIPIENT.")
    }
    let members = try recipients.read()
    let editor = try KeySlotEditor(global, making: keyFile, cost.vaultOptions(isUsed: passphrase))
    try editor.vault.unlock()
    var slots: [VaultKeySlot] = []
    if !members.isEmpty {
      slots = try editor.addSlots(for: members, label: label ?? "")
    } else if let keyFile {
      let added = try editor.addKeyFile(keyFile, label: label ?? "")
      slots = added.slots
      inform(added.isNew ? "Created the key file \(added.path)." : "Used the existing key in \(added.path).")
      if try !editor.record(keyFile: added.path, ifNone: true) {
        inform("Select it with COFFER_KEY_FILE, because another key file is recorded for this vault.")
      }
    } else if recovery {
      let key = VaultKey.generate()
      // Printed before it is added: a valid key that nobody has seen would be useless.
      try RecoveryKey.print(key)
      do throws(SecretError) { slots = [try editor.vault.addKeySlot(.key(key), label: label ?? "recovery")] } catch {
        throw SecretError(
          error.code, "\(error.reason) Do not rely on the key that was printed.",
          advice: "See with secret key list whether its slot exists, and add another recovery key.",
          effect: error.effect)
      }
      inform("Write the key down and keep it away from the vault. To use it: secret key recover")
    } else {
      slots = [try editor.vault.addKeySlot(.passphrase(try editor.newPassphrase()), label: label ?? "")]
    }
    for slot in slots { inform("Added the key slot \(slot.summary).") }
  }
}
