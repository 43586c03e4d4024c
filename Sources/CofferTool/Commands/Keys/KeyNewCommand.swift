internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import FoundationEssentials

struct KeyNewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "new", of: "secret key", abstract: "Make an identity, which opens vaults that have a key slot for its recipient.",
    discussion: """
      An identity is the secret key of a person or a machine, and its recipient the public key: see secret key add \
      --recipient. With --output, the identity is written to a new file that only you can read, and the recipient is \
      printed. Without it, the contents of such a file are printed. Use it with COFFER_KEY_FILE. The texts are those of \
      age-keygen.
      """)

  @Option(path: "The file to create.")
  var output: String?

  @Flag(help: "Make an identity of X25519 only, for programs without hybrid recipients.")
  var x25519 = false

  func run() throws {
    let isPostQuantum = !x25519 && VaultIdentity.supportsPostQuantum
    if !isPostQuantum && !x25519 {
      note("This program's libsodium has no hybrid recipients, so the identity is of X25519 only.")
    }
    let identity = try VaultIdentity.generate(isPostQuantum: isPostQuantum)
    let recipient = identity.recipient?.description ?? ""
    let comments = "# created: \(Date().formatted(.iso8601))\n# public key: \(recipient)\n"
    let text = SecretWriter.joined([SecretBytes(comments), identity.text(), SecretBytes("\n")])
    guard let output, OutputFile.descriptor(output) == nil else {
      return try OutputFile.write(text, to: output ?? "-", replacing: false, "The identity", ".")
    }
    let path = try Path.absolute(output)
    try GitWorkTree.requireIgnored(path)
    try PrivateDirectory.create(Path.parent(of: path))
    try PrivateFile.write(text, to: path, replacing: false)
    changed("The identity \(path) was created, and has its recipient in a comment.")
    inform("Created the identity \(path), which only you can read. Keep a copy of it elsewhere.")
    try Output.standard.line(recipient)
  }
}
