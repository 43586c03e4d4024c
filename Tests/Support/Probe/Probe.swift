internal import CofferCore
internal import Glibc

/// A process that tests inspect and kill. It is not part of any product.
///
///     CofferProbe memory SCENARIO VAULT      uses secrets, and stops for each search of its memory
///     CofferProbe stress VAULT PREFIX STEP   changes an open vault until it is killed
@main
struct Probe {
  static func main() {
    let arguments = CommandLine.arguments
    do {
      switch (arguments.dropFirst().first, arguments.count) {
      case ("memory", 4): try MemoryScenario(vault: arguments[3]).run(arguments[2])
      case ("stress", 5):
        guard let step = Int(arguments[4]) else { fail("STEP must be a number") }
        var worker = StressWorker(vault: arguments[2], prefix: arguments[3], firstStep: step)
        try worker.run()
      default: fail("usage: CofferProbe memory SCENARIO VAULT | stress VAULT PREFIX STEP")
      }
    } catch let error as SecretError {
      fail(error.description)
    } catch {
      fail("an unexpected error")
    }
  }

  /// Prints the message and exits.
  static func fail(_ message: String) -> Never {
    write(message + "\n", to: STDERR_FILENO)
    exit(70)
  }

  /// Writes the text with one call of write(2), so that a kill leaves all of it or nothing.
  static func write(_ text: String, to descriptor: Int32 = STDOUT_FILENO) {
    let bytes = Array(text.utf8)
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { exit(71) }
  }
}
