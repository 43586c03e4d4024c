import CofferConfiguration
import CofferTestSupport
import Foundation
import Glibc
import Testing

@testable import CofferTool

@Suite struct ProjectTests {
  /// What Python's reader of TOML returns, as JSON: an object for each text, or null if it refuses the text.
  private static let reference = """
    import json, sys, tomllib
    for line in sys.stdin:
      try: value = tomllib.loads(bytes.fromhex(line.strip()).decode())
      except (ValueError, RecursionError): value = None
      print(json.dumps(value, default=str))
    """

  private static let valid = #"""
    vault = "secrets.vault"  # inside
    service = 'shop'
    [run]
    redact = true
    [variables]
    URL = "db-\u00e9\n\"\\"
    KEY = { secret = "aws-key", optional = false }
    E={}
    [profiles.staging.variables]
    URL = "x"
    [profiles.staging]
    [ a . b ]

    """#

  /// Pieces that a change of the text inserts.
  private static let pieces = [
    "\"", "'", "\\", "#", "[", "]", "{", "}", "=", ",", ".", " ", "\t", "\n", "\r\n", "\r", "true", "false",
    "a", "b",
    "[a]", "[a.b]", "\"\"\"", "'''", #"\u00e9"#, #"\U0001F600"#, #"\ud800"#, #"\x41"#, #"\e"#, "é", "\u{7F}",
    "\u{1}",
    "\0", "1", "1.5", "[1]", "a.b", "\"k\"", "vault", "[variables]", "[profiles]", "\u{FEFF}", "{ x = {} }",
    " = ",
    "\n[", "2020-01-01", "inf", "-", "_", "\u{2028}", "\u{B}", "{ x = \"y\", x = true }",
  ]

  private static func changed(_ generator: inout some RandomNumberGenerator) -> String {
    var scalars = Array(valid.unicodeScalars)
    for _ in 0..<Int.random(in: 0...3, using: &generator) {
      let start = Int.random(in: 0...scalars.count, using: &generator)
      let end = min(scalars.count, start + Int.random(in: 0...6, using: &generator))
      let piece = Array(pieces.randomElement(using: &generator).map(\.unicodeScalars) ?? "".unicodeScalars)
      switch Int.random(in: 0..<3, using: &generator) {
      case 0: scalars.replaceSubrange(start..<end, with: piece)
      case 1: scalars.removeSubrange(start..<end)
      default: scalars.insert(contentsOf: piece, at: start)
      }
    }
    var text = ""
    text.unicodeScalars.append(contentsOf: scalars)
    return text
  }

  private static func object(_ table: TOMLTable) -> NSDictionary {
    let result = NSMutableDictionary()
    for entry in table.entries {
      switch entry.value {
      case .string(let text): result[entry.name] = text
      case .boolean(let value): result[entry.name] = value
      case .table(let table): result[entry.name] = object(table)
      }
    }
    return result
  }

  @Test(.needs("python3")) func whatIsAcceptedMeansTheSameToPython() throws {
    var generator = SystemRandomNumberGenerator()
    let texts = [Self.valid] + (0..<20_000).map { _ in Self.changed(&generator) }
    let lines = texts.map { $0.utf8.map { String(format: "%02x", $0) }.joined() + "\n" }.joined()
    let result = try ChildProcess.run(
      ["/usr/bin/env", "python3", "-c", Self.reference],
      environment: ["PATH": "/usr/local/bin:/usr/bin:/bin"],
      directory: "/", input: Data(lines.utf8))
    try #require(result.status == 0, "\(result.errorText)")
    let answers = result.outputText.split(separator: "\n")
    try #require(answers.count == texts.count)
    var accepted = 0
    for (text, answer) in zip(texts, answers) {
      let table: TOMLTable
      var reader = TOMLReader(bytes: Array(text.utf8))
      do throws(LineProblem) { table = try reader.read() } catch { continue }
      accepted += 1
      let wanted = try JSONSerialization.jsonObject(with: Data(answer.utf8), options: .fragmentsAllowed)
      #expect(wanted as? NSDictionary == Self.object(table), "\(text.debugDescription)")
    }
    // If both readers refused every text, nothing would be compared.
    #expect(accepted > 1000)
  }

  @Test(.enabled(if: geteuid() == 0, "only root can give a file to another user"))
  func aFileOfAnotherUserMustBeAllowed() throws {
    let sandbox = try Sandbox()
    let prepared = try sandbox.shell(
      """
      secret init --vault v && printf x | secret --vault v set a && printf 'vault = "v"\n[variables]\nA = "a"\n' > .coffer.toml
      chown 54321 .coffer.toml
      """)
    try #require(prepared.status == 0, "\(prepared.errorText)")
    let refused = try sandbox.shell("secret get a; secret run -- touch started; ls started")
    #expect(refused.errorText.contains("belongs to another user, and you have not allowed it yet. Nothing was used."))
    #expect(refused.outputText.isEmpty)
    let allowed = try sandbox.shell(
      "agree secret allow > /dev/null && secret get a && secret run -- sh -c 'printf ,$A'")
    #expect(allowed.outputText == "x,x")
  }

  @Test(arguments: [
    (#"A = "x\\n""#, #"A = "x\n""#), (#"A = "x""#, #"A = { value = "x" }"#), (#"A = "x""#, #"B = "x""#),
    (#"A = "x""#, #"A = { secret = "x", optional = true }"#),
    (#"A = "x (optional)""#, #"A = { secret = "x", optional = true }"#),
    (#"A = "\u00e9""#, #"A = "e\u0301""#),
    (#"A = "x\" (optional)""#, #"A = { secret = "x\"", optional = true }"#),
  ]) func differentDeclarationsHaveDifferentDigests(_ one: String, _ other: String) throws {
    func digest(_ line: String) throws -> String {
      try ProjectFile(parsing: Array("[variables]\n\(line)\n".utf8), of: "file").digest
    }
    #expect(try digest(one) != digest(other))
    #expect(try digest(one) == digest(one + " # a comment"))
  }
}
