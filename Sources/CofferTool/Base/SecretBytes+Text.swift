internal import Coffer

extension SecretBytes {
  /// Whether the bytes are UTF-8 that a terminal shows as it is: no control, direction or invisible characters except
  /// for tabs and line ends (LF and CR LF).
  var isPlainText: Bool {
    withBytes { bytes in
      guard let text = try? UTF8Span(validating: bytes) else { return false }
      var scalars = text.makeUnicodeScalarIterator()
      var isAfterReturn = false
      while let scalar = scalars.next() {
        // Without a line feed, a carriage return lets later text cover earlier text.
        if isAfterReturn && scalar != "\n" { return false }
        isAfterReturn = scalar == "\r"
        if scalar.isUnsafeOnTerminal && !"\t\n\r".unicodeScalars.contains(scalar) { return false }
      }
      return !isAfterReturn
    }
  }

  var endsWithLineFeed: Bool {
    withBytes { !$0.isEmpty && $0[$0.count - 1] == UInt8(ascii: "\n") }
  }

  /// Whether the bytes end in CR or CR LF.
  var endsWithCarriageReturn: Bool {
    withBytes { bytes in
      let end = bytes.count - (!bytes.isEmpty && bytes[bytes.count - 1] == UInt8(ascii: "\n") ? 1 : 0)
      return end > 0 && bytes[end - 1] == UInt8(ascii: "\r")
    }
  }

  /// Prints a note if the bytes end in CR or CR LF, which is often a mistake.
  func noteCarriageReturn() {
    if endsWithCarriageReturn {
      note("The value ends in a carriage return, as lines of Windows text do (CR LF), and is stored unchanged.")
    }
  }
}
