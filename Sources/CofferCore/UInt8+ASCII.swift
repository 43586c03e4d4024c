extension UInt8 {
  package var isASCIIDigit: Bool { (0x30...0x39).contains(self) }

  /// Whether a URI does not escape the byte (RFC 3986, section 2.3).
  package var isUnreservedInURI: Bool { isASCIILetterOrDigit || "-._~".utf8.contains(self) }

  /// Two digits, in upper case.
  package var hexadecimal: String { (self < 16 ? "0" : "") + String(self, radix: 16, uppercase: true) }

  package var isASCIILetterOrDigit: Bool { isASCIIDigit || (0x61...0x7A).contains(self | 0x20) }
}
