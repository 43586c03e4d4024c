internal import Coffer
internal import FoundationEssentials

/// JSON as other programs exchange it with this one. A secret in it leaves guarded memory, as it must: their
/// formats have it as text.
enum ProgramJSON {
  /// One object from all of standard input. Throws where it is none of the wanted shape; what it was is never
  /// shown.
  static func input<T: Decodable>(_ type: T.Type, wanted: String) throws -> T {
    try decode(ValueInput.readAll(0, named: "standard input"), as: type, wanted: wanted)
  }

  static func decode<T: Decodable>(
    _ text: borrowing SecretBytes,
    as type: T.Type,
    wanted: String
  ) throws(Failure) -> T {
    let data = text.withBytes { $0.withUnsafeBytes { Data($0) } }
    do {
      return try JSONDecoder().decode(type, from: data)
    } catch {
      throw .usage("The input is not the JSON that was expected: \(wanted).")
    }
  }

  /// `value` on one line.
  static func line(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    try Output.standard.write(String(decoding: try encoder.encode(value), as: UTF8.self) + "\n")
  }
}
