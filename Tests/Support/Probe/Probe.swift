internal import CofferConfiguration
internal import CofferCore
internal import CofferVault
internal import Dispatch
internal import Glibc

/// A process that tests inspect and kill. It is not part of any product.
///
///     CofferProbe memory SCENARIO VAULT      uses secrets, and stops for each search of its memory
///     CofferProbe stress VAULT PREFIX STEP   changes an open vault until it is killed
///     CofferProbe refresh VAULT COUNT        refreshes a token with its lease
///     CofferProbe leases VAULT COUNT         takes a lease and gives it back
///     CofferProbe items VAULT PREFIX COUNT TOTAL   inserts into a `Store` until it has TOTAL items
///     CofferProbe figures DIRECTORY          measures the library on vaults that it makes there
///     CofferProbe value VAULT MODE           changes a value with a definition, and ends as MODE says
///     CofferProbe count VAULT NAME FIRST LAST   counts in a vault that other machines use
///     CofferProbe scope                      uses a value inside and outside of a scope of a test
///     CofferProbe chain                      makes chains of changes of a `Store`, and does not run one
@main
struct Probe {
  static func main() {
    let arguments = CommandLine.arguments
    do {
      switch (arguments.dropFirst().first, arguments.count) {
      case ("memory", 4): try MemoryScenario(vault: arguments[3]).run(arguments[2])
      case ("stress", 5):
        var worker = StressWorker(vault: arguments[2], prefix: arguments[3], firstStep: number(arguments[4]))
        try worker.run()
      case ("refresh", 4):
        let count = number(arguments[3])
        waiting { try await LibraryScenario(vault: arguments[2]).refresh(count) }
      case ("leases", 4):
        let backend = BackendConfiguration.current().vault(at: arguments[2])
        for _ in 0..<number(arguments[3]) {
          guard let lease = try backend.tryLease(SecretIdentifier(service: "probe", account: "token")) else {
            fail("the lease is taken")
          }
          lease.release()
        }
      case ("items", 6):
        let (count, total) = (number(arguments[4]), number(arguments[5]))
        waiting {
          try await LibraryScenario(vault: arguments[2]).insertItems(arguments[3], count, total: total)
        }
      case ("figures", 3):
        let directory = arguments[2]
        waiting { try await Figures(directory: directory).print() }
      case ("count", 6):
        let changes = number(arguments[4])...number(arguments[5])
        try RemoteWorker(vault: arguments[2], name: arguments[3], changes: changes).run()
      case ("migrate", 3): try MigratingValue.run()
      case ("scope", 2): waiting { await ScopeScenario.run() }
      case ("chain", 2): waiting { try await LibraryScenario.chains() }
      default: fail("usage: CofferProbe memory|stress|refresh|leases|items|figures|value|count|scope …; see the source")
      }
    } catch let error as SecretError {
      fail(error.description)
    } catch {
      fail("an unexpected error")
    }
  }

  private static func number(_ text: String) -> Int {
    guard let number = Int(text) else { fail("\(text) is not a number") }
    return number
  }

  /// Runs `body` as a task, and blocks the main thread until it has ended.
  private static func waiting(_ body: @escaping @Sendable () async throws -> Void) {
    let end = DispatchSemaphore(value: 0)
    Task.detached {
      do { try await body() } catch { fail("\(error)") }
      end.signal()
    }
    end.wait()
  }

  /// Ends a probe that cannot do what its test asks for.
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
