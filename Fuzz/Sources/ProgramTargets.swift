import CofferCore
import CofferVault
import CofferTestSupport
import Foundation

@testable import CofferTool

/// Targets for the input of the `secret` tool from files and from other programs.
enum ProgramTargets {
  /// Runs `body`, which may refuse its input with a message, but not with an internal error.
  private static func parse(_ body: () throws -> Void) {
    do { try body() } catch let failure as Failure {
      require(failure.status == .usage || failure.status == .damaged, "a failure of status \(failure.status)")
      require(!failure.message.isEmpty, "a failure has a message")
    } catch let error as SecretError {
      let refusals: [SecretError.Code] = [
        .invalidIdentifier, .tooLarge, .decodingFailed, .invalidKey, .invalidMetadata, .configuration,
      ]
      require(refusals.contains(error.code), "an error of code \(error.code)")
    } catch is DockerCredentialCommand.Refusal {
    } catch {
      require(false, "an error without a message: \(error)")
    }
  }

  /// The entries are the same after they are written in the form of `export` and read again.
  static func dotenv(_ input: [UInt8]) {
    parse {
      let entries = try Dotenv.entries(in: SecretBytes(input), of: "file")
      var text: [UInt8] = []
      for entry in entries {
        require(EnvironmentAssignment.isVariableName(entry.name), "a name is a variable name")
        require(entry.line >= 1, "lines are counted from 1")
        if entry.value.withBytes({ Dotenv.obstacle(to: $0) }) != nil { return }
        let quoted = Dotenv.quoted(entry.value)
        text += Array(entry.name.utf8) + Array("=".utf8) + quoted.array() + Array("\n".utf8)
      }
      let again = try Dotenv.entries(in: SecretBytes(text), of: "file")
      require(again.map(\.name) == entries.map(\.name), "the names are the same after writing")
      require(
        again.map { $0.value.array() } == entries.map { $0.value.array() },
        "the values are the same after writing")
    }
  }

  static func exchangeJSON(_ input: [UInt8]) {
    parse {
      let secrets = try ExchangeFile.secrets(in: SecretBytes(input), of: "file", service: "s")
      let text = try ExchangeFile.text(of: secrets)
      let again = try ExchangeFile.secrets(in: text, of: "file", service: "t")
      require(again.map(\.identifier) == secrets.map(\.identifier), "the names are the same after writing")
      require(
        again.map { $0.value.array() } == secrets.map { $0.value.array() },
        "the values are the same after writing")
      for (one, other) in zip(secrets, again) {
        require(one.metadata?.label == other.metadata?.label, "the labels are the same after writing")
        require(
          one.metadata?.attributes == other.metadata?.attributes, "the attributes are the same after writing")
      }
    }
  }

  static func gitCredential(_ input: [UInt8]) {
    parse {
      let lines = try GitCredentialLines(SecretBytes(input), secretKeys: ["password", "credential"])
      for key in ["password", "credential"] {
        require(lines.text(key) == nil, "a secret is not available as text")
        if let value = lines.secret(key) {
          require(!value.array().contains(0x0A), "a value ends at the end of its line")
        }
      }
      let credential = GitCredential(lines)
      require(credential.matches(credential), "a description matches itself")
      guard let identifier = try credential.identifier() else { return }
      guard let stored = GitCredential(identifier) else {
        return require(false, "an identifier of a git credential is parsed")
      }
      require(credential.matches(stored), "a stored credential matches its description")
    }
  }

  static func dockerCredential(_ input: [UInt8]) {
    parse {
      let url = try DockerCredentialCommand.url(in: SecretBytes(input))
      require(!url.isEmpty, "an address is not empty")
      require(
        try DockerCredentialCommand.url(in: SecretBytes(" \n\(url)\r\n")) == url,
        "whitespace around an address is ignored")
    }
    parse {
      let login = try ProgramJSON.decode(
        SecretBytes(input), as: DockerCredentialCommand.Login.self, expected: "a login")
      let text = try JSONEncoder().encode(login)
      let again = try ProgramJSON.decode(
        SecretBytes(Array(text)), as: DockerCredentialCommand.Login.self, expected: "a login")
      require(
        again.secret.map { Array($0.utf8) } == login.secret.map { Array($0.utf8) },
        "the secret is the same after encoding")
    }
  }

  static func projectFile(_ input: [UInt8]) {
    parse {
      let file = try ProjectFile(parsing: input, of: "file")
      let commented = try ProjectFile(parsing: input + Array(" # x\n".utf8), of: "file")
      require(commented.digest == file.digest, "a comment declares nothing")
      for line in file.declarations { require(line == line.printable, "a declaration is one line") }
      for profile in file.profiles.keys {
        let variables = try file.variables(with: [profile])
        require(Set(variables.map(\.name)).count == variables.count, "a variable is declared once")
        for variable in variables {
          require(
            !ControllingVariables.contains(variable.name, isDerived: false), "a variable does not control programs")
        }
      }
    }
  }

  /// Filling a template replaces its references and keeps all other bytes.
  static func template(_ input: [UInt8]) {
    parse {
      let template = try Template(SecretBytes(input))
      let store = MemoryBackend()
      for identifier in template.identifiers {
        let text = SecretReference.text(of: identifier)
        require(try SecretReference.identifier(text) == identifier, "a reference is the same after writing")
        try store.store(SecretBytes("{{\(text)}}"), for: identifier)
      }
      let filled = try template.filled(from: store).array()
      if template.identifiers.isEmpty { require(filled == input, "a text without references is unchanged") }
      // Each reference was replaced by itself in the other form, so filling again changes nothing.
      let again = try Template(SecretBytes(filled)).filled(from: store).array()
      require(again == filled, "the same references are found again")
    }
  }

  static func recoveryKey(_ input: [UInt8]) {
    parse {
      let key = try RecoveryKey.parse(SecretBytes(input))
      require(key.count == VaultKey.length, "a key has 32 bytes")
      let packed = input.filter { $0 != 0x20 && !(0x09...0x0D).contains($0) }
      let text = try VaultKey.text(of: key).array()
      require(
        packed == text || Array("coffer-key-v1:".utf8) + packed == text, "the text of the key is the same")
    }
  }

  /// The first byte is the length of the value, the second is the length of each read.
  static func redaction(_ input: [UInt8]) {
    guard input.count > 2 else { return }
    let value = Array(input[2...].prefix(Int(input[0] % 32)))
    let text = Array(input[2...].dropFirst(value.count))
    let patterns = RedactionPatterns([("A", SecretBytes(value))])
    func masked(by count: Int) -> [UInt8] {
      var output = OutputRedactor(patterns)
      var shown: [UInt8] = []
      for start in stride(from: 0, to: text.count, by: count) {
        shown += output.redact(text[start..<min(start + count, text.count)])
      }
      return shown + output.finish()
    }
    let shown = masked(by: Int(input[1] % 16) + 1)
    require(shown == masked(by: max(1, text.count)), "the result does not depend on the length of reads")
    if !PatternWriter.canRedact(value.span) {
      require(shown == text, "without a value all output is shown")
    }
    // The characters of a mask may complete a value beside it.
    guard !value.contains(where: { "[]A".utf8.contains($0) }) else { return }
    guard PatternWriter.canRedact(value.span) else { return }
    let line = value[...(value.lastIndex { $0 != UInt8(ascii: "\n") } ?? 0)]
    require(Data(shown).range(of: Data(line)) == nil, "no value is in the shown output")
  }
}
