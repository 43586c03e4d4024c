internal import CEarlyInit

/// The arguments of this process as they came, in place of Swift's own type of this name: that one reads them from
/// `/proc`, and finds none in a root directory without it.
enum CommandLine {
  static var argc: Int32 { coffer_argument_count() }

  static var unsafeArgv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> { coffer_arguments() }

  /// With the program's name; bytes that are no UTF-8 are replaced.
  static var arguments: [String] {
    (0..<Int(argc)).compactMap { unsafeArgv[$0].map { String(cString: $0) } }
  }
}
