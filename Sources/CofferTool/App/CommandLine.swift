internal import CEarlyInit

/// The arguments of this process, in place of Swift's type of the same name, which reads `/proc` and finds no
/// arguments in a root directory without it.
enum CommandLine {
  static var argc: Int32 { coffer_argument_count() }

  static var unsafeArgv: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?> { coffer_arguments() }

  /// The program's name and its arguments. Invalid UTF-8 is repaired.
  static var arguments: [String] {
    (0..<Int(argc)).compactMap { unsafeArgv[$0].map { String(cString: $0) } }
  }
}
