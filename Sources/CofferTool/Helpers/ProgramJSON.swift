internal import Coffer
internal import FoundationEssentials

/// The JSON of other programs' protocols. Values leave guarded memory, because these protocols represent them as text.
enum ProgramJSON {
  /// Decodes the whole of standard input. Throws a usage failure if it does not have the form that `expected`
  /// describes; the message never contains the input.
  static func input<T: Decodable>(_ type: T.Type, expected: String) throws -> T {
    try decode(ValueInput.readStandardInput(), as: type, expected: expected)
  }

  static func decode<T: Decodable>(_ text: SecretBytes, as type: T.Type, expected: String) throws(Failure) -> T {
    let data = text.withBytes { $0.withUnsafeBytes { Data($0) } }
    do { return try JSONDecoder().decode(type, from: data) } catch {
      throw .usage("The input is not valid JSON of the expected form: \(expected).")
    }
  }
}
