internal import Coffer

/// An answer in a protocol of lines. A field with a line end would add lines of its own to the answer, so it is
/// refused, and nothing of the answer is printed.
struct AnswerLines {
  private let identifier: SecretIdentifier
  private var parts: [SecretBytes] = []

  /// `identifier` is the secret that the answer is about, for messages.
  init(about identifier: SecretIdentifier) { self.identifier = identifier }

  /// Adds a line with `prefix` and `value`. `field` names the value in the message. Throws if the value contains a line
  /// feed, a carriage return or a NUL.
  mutating func add(_ field: String, prefix: String = "", _ value: SecretBytes) throws(Failure) {
    if value.withBytes({ bytes in "\0\n\r".utf8.contains(where: { bytes.contains($0) }) }) {
      throw Failure(
        .damaged,
        """
        The \(field) of the secret “\(identifier.account)” in the service “\(identifier.service)” contains a line feed, \
        a carriage return or a NUL, which the protocol cannot carry, and nothing was sent. Store it again without it.
        """)
    }
    parts += [SecretBytes(prefix), value, SecretBytes("\n")]
  }

  mutating func add(_ field: String, prefix: String = "", _ text: String) throws(Failure) {
    try add(field, prefix: prefix, SecretBytes(text))
  }

  /// Prints the answer. Throws a usage failure if a terminal would obey or hide some of it.
  func send() throws {
    try Output.standard.reveal(SecretWriter.joined(parts), "The answer", ". Use a pipe.")
  }
}
