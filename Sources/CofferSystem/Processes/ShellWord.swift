extension String {
  /// The text as one word of a line that a person may paste into a shell.
  package var quotedForShell: String {
    let isPlain = unicodeScalars.allSatisfy {
      $0.value >= 0x80 || $0.properties.isAlphabetic || "0123456789-._/+@%:,=".unicodeScalars.contains($0)
    }
    return isPlain && !isEmpty
      ? self : "'\(split(separator: "'", omittingEmptySubsequences: false).joined(separator: #"'\''"#))'"
  }
}
