internal import Coffer
internal import CofferConfiguration
internal import CofferCore
internal import Glibc

/// Counts in a vault that many machines use, and says what it was told of each change.
///
/// Each change raises `count` by one, and adds its own number and the new count to a secret of this worker. It prints
/// `begin NUMBER`, and then `done NUMBER COUNT MICROSECONDS`, `unknown NUMBER` or `failed NUMBER CODE`.
struct RemoteWorker {
  let vault: String
  let name: String
  let changes: ClosedRange<Int>

  func run() throws {
    let backend = BackendConfiguration.current().vault(at: vault)
    let (total, own) = (
      try SecretIdentifier(service: "count", account: "all"), try SecretIdentifier(service: "count", account: name)
    )
    for number in changes {
      print("begin \(number)")
      fflush(nil)
      let start = ContinuousClock.now
      do throws(SecretError) {
        let count = try backend.withTransaction { transaction throws(SecretError) in
          let count = (Int(try transaction.lookUp(total)?.string() ?? "0") ?? 0) + 1
          let former = try transaction.lookUp(own)?.string() ?? ""
          try transaction.store(SecretBytes("\(count)"), for: total, metadata: .newValue, history: .none)
          try transaction.store(
            SecretBytes("\(former)\(number):\(count) "), for: own, metadata: .newValue, history: .none)
          return count
        }
        print("done \(number) \(count) \(Int((.now - start) / .microseconds(1)))")
      } catch {
        print(error.code == .outcomeUnknown ? "unknown \(number)" : "failed \(number) \(error.code)")
        if error.code != .outcomeUnknown && error.code != .timedOut { usleep(200_000) }
      }
      fflush(nil)
    }
  }
}
