internal import CofferCore
internal import Glibc

/// A process that tests look into and kill. It is no part of what is handed out.
///
///     CofferProbe memory SCENARIO VAULT   uses secrets, and stops where its memory is to be searched
///     CofferProbe stress VAULT PREFIX STEP   changes an open vault until it is killed
@main
struct Probe {
  static func main() {
    let arguments = CommandLine.arguments
    do {
      switch (arguments.dropFirst().first, arguments.count) {
      case ("memory", 4): try MemoryScenario(vault: arguments[3]).run(arguments[2])
      case ("stress", 5):
        guard let step = Int(arguments[4]) else { fail("a step is a number") }
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

  /// Ends the process, and says why.
  static func fail(_ message: String) -> Never {
    write(message + "\n", to: STDERR_FILENO)
    exit(70)
  }

  /// Writes the text at once, in one call.
  static func write(_ text: String, to descriptor: Int32 = STDOUT_FILENO) {
    let bytes = Array(text.utf8)
    guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { exit(71) }
  }
}
