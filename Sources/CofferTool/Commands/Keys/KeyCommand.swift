internal import ArgumentParser
internal import Coffer
internal import FoundationEssentials
internal import Glibc

struct KeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "List and change what opens the vault.",
    discussion: "A vault has up to 16 key slots, each with a key or a passphrase that opens all of it.",
    subcommands: [
      KeyAddCommand.self,
      KeyChangePassphraseCommand.self,
      KeyListCommand.self,
      KeyRecoverCommand.self,
      KeyRemoveCommand.self,
    ]
  )
}

struct KeyListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Print the vault's key slots.",
    discussion: "A line has the beginning of the id, the kind, the day it was made, and the label, with tabs."
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  private struct Slot: Encodable {
    let id: String
    let kind: String
    let created: Date
    let label: String
    var memory: Int?
    var passes: Int?
  }

  func run() throws {
    let path = try global.vaultStore(toBe: "given keys").path
    let slots = try VaultBackend.describe(path: path).keySlots
    if format.json {
      return try Output.standard.json(
        slots.map { slot in
          var text = Slot(id: slot.id, kind: slot.kindName, created: slot.created, label: slot.label)
          (text.memory, text.passes) = (slot.cost?.memory, slot.cost?.passes)
          return text
        }
      )
    }
    for slot in slots {
      let day = slot.created.formatted(.iso8601.year().month().day())
      try Output.standard.write("\(slot.shortID)\t\(slot.kindName)\t\(day)\t\(slot.label.printable)\n")
    }
  }
}

struct KeyAddCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "add",
    abstract: "Give the vault one more key or passphrase.",
    discussion: """
      A new passphrase is asked for twice on a terminal, or comes from a pipe. A key file is made where there is none. \
      A recovery key is printed once and kept nowhere: write it down. Spaces and line ends in it mean nothing.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Flag(help: "Add a passphrase.")
  var passphrase = false

  @Option(help: ArgumentHelp("Add the key of a file, made if it is not there.", valueName: "path"))
  var keyFile: String?

  @Flag(help: "Add a new key, and print it to be written down.")
  var recovery = false

  @Option(help: "What to call it. It is not encrypted.")
  var label: String?

  func run() throws {
    guard [passphrase, keyFile != nil, recovery].filter({ $0 }).count == 1 else {
      throw Failure.usage("Give one of --passphrase, --key-file PATH and --recovery.")
    }
    let keyring = try KeySlotEditor(global)
    let slot: VaultKeySlot
    if let keyFile {
      let added = try keyring.addKeyFile(keyFile, label: label ?? "")
      slot = added.slot
      note(added.isNew ? "Made the key file \(added.path)." : "The key was in \(added.path) already.")
      if try keyring.configuration.recordedKeyFile(forVault: keyring.description.id) == nil {
        try keyring.configuration.record(keyFile: added.path, forVault: keyring.description.id)
      } else {
        note("Use it with COFFER_KEY_FILE: another key file is recorded for this vault.")
      }
    } else if recovery {
      let key = VaultKey.generate()
      // Shown before it works: a key that works and that nobody has seen is of no use.
      try RecoveryKey.print(key)
      slot = try keyring.vault.addKeySlot(.key(key), label: label ?? "recovery")
      note("Write it down and keep it where the vault is not. It opens the vault with: secret key recover")
    } else {
      slot = try keyring.vault.addKeySlot(.passphrase(try keyring.newPassphrase()), label: label ?? "")
    }
    note("Added the key slot \(slot.summary).")
  }
}

struct KeyRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Take a key or passphrase away, and encrypt everything anew.",
    discussion: """
      Who had it may have kept the vault's master key, so the vault gets a new one. Every slot that stays needs its \
      own credential for that: from the places that open the vault, from --key-file, and otherwise it is asked for.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The beginning of the slot's id, as key list prints it.")
  var id: String

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("The key file of a slot that stays; may be given several times.", valueName: "path")
  )
  var keyFile: [String] = []

  func run() throws {
    let keyring = try KeySlotEditor(global, keyFiles: keyFile)
    let slot = try keyring.slot(id)
    let staying = keyring.description.keySlots.filter { $0.id != slot.id }
    if staying.isEmpty {
      throw Failure(
        .refused,
        "It is the vault's last key slot; without it nothing could open the vault. Add another first: secret key add"
      )
    }
    let credentials = try keyring.credentials(of: staying)
    try Progress.during("Encrypting everything anew …") {
      try keyring.vault.removeKeySlot(id: slot.id, credentials: credentials)
    }
    keyring.forgetKept()
    note("Removed the key slot \(slot.summary). Copies of the vault from before still open with it.")
  }
}

struct KeyChangePassphraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "change-passphrase",
    abstract: "Put another passphrase in the old one's place.",
    discussion: """
      The new one is asked for twice on a terminal, or comes from a pipe. Where somebody may know the old one and have \
      a copy of the vault, run secret rekey as well.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Argument(help: "The beginning of the slot's id, where the vault has several passphrases.")
  var id: String?

  func run() throws {
    let keyring = try KeySlotEditor(global)
    let slots = keyring.description.keySlots.filter { $0.kindName == "passphrase" }
    let slot: VaultKeySlot
    if let id {
      slot = try keyring.slot(id)
      guard slots.contains(slot) else {
        throw Failure.usage("The key slot \(slot.summary) has no passphrase.")
      }
    } else {
      guard let only = slots.first else {
        throw Failure.usage("The vault has no passphrase. Add one: secret key add --passphrase")
      }
      guard slots.count == 1 else {
        let list = slots.map(\.summary).joined(separator: ", ")
        throw Failure.usage("The vault has several passphrases: \(list). Name one by its id.")
      }
      slot = only
    }
    let new = try keyring.vault.replaceKeySlot(id: slot.id, with: .passphrase(try keyring.newPassphrase()))
    note("The passphrase was changed. Its key slot is \(new.summary) now.")
  }
}

struct KeyRecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Open the vault with a recovery key, and give it a new key file.",
    discussion: """
      The recovery key is asked for on a terminal, or comes from a pipe; spaces and line ends in it mean nothing. It \
      stays valid. The key file is the usual one, or --key-file, and is recorded for the vault.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(help: ArgumentHelp("The key file to make, or to use if it exists.", valueName: "path"))
  var keyFile: String?

  func run() throws {
    let path = try global.vaultStore(toBe: "recovered").path
    let configuration = CofferConfiguration.current()
    let text: SecretBytes
    if isatty(STDIN_FILENO) == 1 {
      guard configuration.mayPrompt, Terminal.isThere else {
        throw Failure.usage("There is no recovery key, and nobody may be asked. Use a pipe.")
      }
      text = try Terminal().readHidden("Recovery key: ")
    } else {
      text = try ValueInput.readAll(STDIN_FILENO, named: "standard input")
    }
    let source = GivenCredential(key: try RecoveryKey.parse(text), named: "the recovery key")
    let keyring = KeySlotEditor(
      vault: VaultBackend(path: path, credentials: [source]),
      description: try VaultBackend.describe(path: path),
      configuration: configuration
    )
    try keyring.vault.unlock()
    let added = try keyring.addKeyFile(keyFile ?? configuration.defaultKeyFile, label: "")
    try configuration.record(keyFile: added.path, forVault: keyring.description.id)
    note("The vault opens with the key in \(added.path) from now on, and with the recovery key as before.")
    note("If other keys of it are in wrong hands: secret key list, and secret key remove")
  }
}

struct RekeyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rekey",
    abstract: "Encrypt everything in the vault anew, with a new master key.",
    discussion: """
      The key slots stay. Each needs its own credential for that: from the places that open the vault, from \
      --key-file, and otherwise it is asked for. Copies of the vault from before are not changed.
      """
  )

  @OptionGroup(title: "Global options") var global: GlobalOptions

  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("The key file of a slot; may be given several times.", valueName: "path")
  )
  var keyFile: [String] = []

  func run() throws {
    let keyring = try KeySlotEditor(global, keyFiles: keyFile)
    let credentials = try keyring.credentials(of: keyring.description.keySlots)
    try Progress.during("Encrypting everything anew …") { try keyring.vault.rekey(credentials: credentials) }
    keyring.forgetKept()
    note("Everything in the vault is encrypted with a new master key.")
  }
}
