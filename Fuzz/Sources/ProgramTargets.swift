import CofferCore
import CofferVault
import Foundation

@testable import CofferTool

/// What the `secret` tool reads of files and of other programs.
enum ProgramTargets {
  /// Runs `body`, which may refuse its input in a sentence, and not as an internal error.
  private static func parse(_ body: () throws -> Void) {
    do { try body() } catch let failure as Failure {
      require(failure.status == .usage || failure.status == .damaged, "a failure of status \(failure.status)")
      require(!failure.message.isEmpty, "a failure says what happened")
    } catch let error as SecretError {
      let refusals: [SecretError.Code] = [
        .invalidIdentifier, .tooLarge, .decodingFailed, .invalidKey, .invalidMetadata,
      ]
      require(refusals.contains(error.code), "an error of code \(error.code)")
    } catch is DockerCredentialCommand.Refusal {
    } catch {
      require(false, "an error that is no sentence: \(error)")
    }
  }

  private static func bytes(_ secret: borrowing SecretBytes) -> [UInt8] {
    secret.withBytes { $0.withUnsafeBytes { Array($0) } }
  }

  /// What is read, written in the form that `export` writes, reads back as the same.
  static func dotenv(_ input: [UInt8]) {
    parse {
      let entries = try Dotenv.entries(in: SecretBytes(copying: input), of: "file")
      var text: [UInt8] = []
      for entry in entries {
        require(EnvironmentAssignment.isVariableName(entry.name), "a name is a variable's")
        require(entry.line >= 1, "lines count from 1")
        guard let quoted = Dotenv.quoted(entry.value.bytes) else {
          require(bytes(entry.value.bytes).contains(0), "only a NUL cannot be written")
          require(false, "a value that was read has no NUL")
          return
        }
        text += Array(entry.name.utf8) + Array("=".utf8) + bytes(quoted) + Array("\n".utf8)
      }
      let again = try Dotenv.entries(in: SecretBytes(copying: text), of: "file")
      require(again.map(\.name) == entries.map(\.name), "the names read back")
      require(
        again.map { bytes($0.value.bytes) } == entries.map { bytes($0.value.bytes) }, "the values read back")
    }
  }

  static func exchangeJSON(_ input: [UInt8]) {
    parse {
      let secrets = try ExchangeFile.secrets(in: SecretBytes(copying: input), of: "file", service: "s")
      let text = try ExchangeFile(secrets).text()
      let again = try ExchangeFile.secrets(in: text, of: "file", service: "t")
      require(again.map(\.identifier) == secrets.map(\.identifier), "the names read back")
      require(
        again.map { bytes($0.value.bytes) } == secrets.map { bytes($0.value.bytes) }, "the values read back")
      for (one, other) in zip(secrets, again) {
        require(one.metadata?.label == other.metadata?.label, "the labels read back")
        require(one.metadata?.attributes == other.metadata?.attributes, "the attributes read back")
      }
    }
  }

  static func gitCredential(_ input: [UInt8]) {
    parse {
      let lines = try GitCredentialLines(SecretBytes(copying: input), secretKeys: ["password", "credential"])
      for key in ["password", "credential"] {
        require(lines.text(key) == nil, "a secret is no text")
        if let value = lines.secret(key) {
          require(!bytes(value.bytes).contains(0x0A), "a value ends with its line")
        }
      }
      let credential = GitCredential(lines)
      require(credential.matches(credential), "a description describes itself")
      guard let identifier = try credential.identifier() else { return }
      guard let stored = GitCredential(identifier) else {
        return require(false, "what is stored for git is found for git")
      }
      require(credential.matches(stored), "what was stored is found again")
    }
  }

  static func dockerCredential(_ input: [UInt8]) {
    parse {
      let url = try DockerCredentialCommand.url(in: SecretBytes(copying: input))
      require(!url.isEmpty, "an address is not empty")
      require(
        try DockerCredentialCommand.url(in: SecretBytes(copying: " \n\(url)\r\n")) == url,
        "blanks around it mean nothing")
    }
    parse {
      let login = try ProgramJSON.decode(
        SecretBytes(copying: input), as: DockerCredentialCommand.Login.self, expected: "a login")
      let text = try JSONEncoder().encode(login)
      let again = try ProgramJSON.decode(
        SecretBytes(copying: Array(text)), as: DockerCredentialCommand.Login.self, expected: "a login")
      require(again.secret.map { Array($0.utf8) } == login.secret.map { Array($0.utf8) }, "it reads back")
    }
  }

  /// A template is its text with values in it, and without references it is its text.
  static func template(_ input: [UInt8]) {
    parse {
      let template = try Template(SecretBytes(copying: input))
      let store = MemoryBackend()
      for identifier in template.identifiers {
        let text = SecretReference.text(of: identifier)
        require(try SecretReference(text)?.identifier == identifier, "a reference reads back")
        try store.store(SecretBytes(copying: "{{\(text)}}"), for: identifier, metadata: nil)
      }
      let filled = bytes(try template.filled(from: store))
      if template.identifiers.isEmpty { require(filled == input, "everything else is kept byte for byte") }
      // Each reference was filled with itself, in its other form: once more changes nothing.
      let again = bytes(try Template(SecretBytes(copying: filled)).filled(from: store))
      require(again == filled, "references are found where they are")
    }
  }

  static func recoveryKey(_ input: [UInt8]) {
    parse {
      let key = try RecoveryKey.parse(SecretBytes(copying: input))
      require(key.count == VaultKey.length, "a key has its length")
      let packed = input.filter { $0 != 0x20 && !(0x09...0x0D).contains($0) }
      let text = bytes(VaultKey.text(of: key))
      require(
        packed == text || Array("coffer-key-v1:".utf8) + packed == text, "a key is what was written down")
    }
  }

  /// The first byte says how long the value is, the second how long the reads are.
  static func redaction(_ input: [UInt8]) {
    guard input.count > 2 else { return }
    let value = Array(input[2...].prefix(Int(input[0] % 32)))
    let text = Array(input[2...].dropFirst(value.count))
    let patterns = OutputRedactor.patterns(for: SecretBytes(copying: value), named: "A")
    func masked(by count: Int) -> [UInt8] {
      var output = OutputRedactor(patterns)
      var shown: [UInt8] = []
      for start in stride(from: 0, to: text.count, by: count) {
        shown += output.redact(text[start..<min(start + count, text.count)])
      }
      return shown + output.finish()
    }
    let shown = masked(by: Int(input[1] % 16) + 1)
    require(shown == masked(by: max(1, text.count)), "how it was read makes no difference")
    if patterns.isEmpty { require(shown == text, "without a value everything is shown") }
    // A mask may complete what is beside it.
    guard !value.contains(where: { "[]A".utf8.contains($0) }) else { return }
    for pattern in patterns {
      require(Data(shown).range(of: Data(bytes(pattern.bytes))) == nil, "no value is shown")
    }
  }
}
