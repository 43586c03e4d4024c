internal import ArgumentParser
internal import Coffer
internal import CofferSystem
internal import Dispatch
internal import Synchronization

struct WatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "watch", abstract: "Print a line for each change, until interrupted.",
    discussion: """
      Each line has the time, stored or removed, and the name with control characters escaped; with --json it is an \
      object. Changes in quick succession may be reported as one. Values are not printed.
      """)

  @OptionGroup(title: "Global options") var global: GlobalOptions
  @OptionGroup(title: "Global options") var format: JSONOption

  @Argument(help: "The secret to watch. Default: all secrets of the service.", completion: CompletedValue.names.kind)
  var name: String?

  func run() throws {
    let only = try name.map(global.identifier)
    let backend = try UnreadableItems.leaveOut(of: global.open()).observable()
    let service = try global.serviceName
    // Begins before the first read, so that no change between the two is missed.
    let changes = backend.changes()
    let report = try ChangeReport(backend: backend, service: service, only: only, isJSON: format.json)
    VaultNotes.print()
    inform("Watching. Press Ctrl-C to stop.")
    WatchThread.noteMissingEvents()

    let ended = DispatchSemaphore(value: 0)
    let failure = Mutex<(any Error)?>(nil)
    Task.detached {
      do {
        for await change in changes { try report.print(change) }
      } catch {
        failure.withLock { $0 = error }
      }
      ended.signal()
    }
    ended.wait()
    if let error = failure.withLock({ $0 }) { throw error }
  }
}
