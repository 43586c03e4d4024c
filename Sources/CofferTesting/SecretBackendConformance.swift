public import CofferCore
internal import Dispatch
internal import Synchronization

/// What every ``SecretBackend`` promises, as checks that any backend can be put through, from any test
/// framework:
///
/// ```swift
/// try await SecretBackendConformance { MyBackend() }.run()
/// ```
///
/// Each check has a stable name, which its failure gives. A check uses a service of its own with a random
/// part and removes what it stored, so it can run against a store that other things are in. The protocols
/// for optional capabilities are checked where the backend conforms to them.
public struct SecretBackendConformance: Sendable {
  /// What the backend may do differently.
  public var options: Options
  private let make: @Sendable () async throws -> any SecretBackend

  /// `make` is called once for each check. It may give the same backend each time.
  public init(options: Options = Options(), make: @escaping @Sendable () async throws -> any SecretBackend) {
    self.options = options
    self.make = make
  }

  /// The names of all checks, in the order in which they run.
  public static var checkNames: [String] { ConformanceCheck.all.map(\.name) }

  /// Runs every check, or those that are named, and throws ``ConformanceFailures`` with all that failed.
  @discardableResult
  public func run(only names: Set<String>? = nil) async throws(ConformanceFailures) -> ConformanceReport {
    let unknown = (names ?? []).subtracting(Self.checkNames).sorted()
    var failures = unknown.map { ConformanceFailures.Failure(check: $0, message: "there is no such check") }
    var report = ConformanceReport()
    for check in ConformanceCheck.all where names?.contains(check.name) ?? true {
      do {
        let backend = try await make()
        if !options.omissions.isDisjoint(with: check.omittedBy) || !check.applies(backend) {
          report.skipped.append(check.name)
          continue
        }
        try await run(check, on: backend)
        report.passed.append(check.name)
      } catch {
        failures.append(.init(check: check.name, message: ConformanceContext.sentence(for: error)))
      }
    }
    if !failures.isEmpty { throw ConformanceFailures(failures: failures) }
    return report
  }

  /// Runs one check on a thread that it may block, and gives it up at the deadline.
  private func run(_ check: ConformanceCheck, on backend: any SecretBackend) async throws {
    let random = UInt64.random(in: .min ... .max)
    let context = ConformanceContext(
      backend: backend,
      options: options,
      service: "conformance.\(check.name).\(String(random, radix: 16))"
    )
    let outcome = Outcome()
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: check.name).async {
        let result = Result {
          defer { context.forget() }
          try check.body(context)
        }
        if outcome.isFirst() { continuation.resume(with: result) }
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + options.checkDeadline) {
        let late = ConformanceContext.Expectation("it had not ended after \(options.checkDeadline) seconds")
        if outcome.isFirst() { continuation.resume(throwing: late) }
      }
    }
    try context.removeEverything()
  }

  /// Which of two ends of a check came first.
  private final class Outcome: Sendable {
    private let isOver = Mutex(false)
    func isFirst() -> Bool {
      isOver.withLock { isOver in
        defer { isOver = true }
        return !isOver
      }
    }
  }
}

extension SecretBackendConformance {
  /// What is particular about a backend.
  public struct Options: Sendable {
    /// The largest value in bytes that the backend takes, and `nil` where it has no cap. 16 MiB.
    public var maximumSecretSize: Int? = 16 * 1024 * 1024
    /// The largest value in bytes that is tried where there is no cap, or where the cap is higher.
    public var largestTriedSize = 16 * 1024 * 1024
    /// The longest service and account that are tried, in bytes.
    public var longestName = SecretIdentifier.maximumLength
    /// What the backend cannot do.
    public var omissions: Omissions = []
    /// How many threads write at a time.
    public var threads = 8
    /// How many times each of them does.
    public var rounds = 25
    /// How long one check may take, in seconds: for backends that would hang.
    public var checkDeadline = 300.0
    /// How long to wait for a change to be told, in seconds.
    public var changeDeadline = 60.0
    /// How long to listen for changes that are told twice, in seconds.
    public var echoPause = 0.2

    public init() {}
  }

  /// Capabilities that a backend may lack. Everything else is asked of all of them.
  public struct Omissions: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Keeps no label.
    public static let labels = Omissions(rawValue: 1 << 0)
    /// Keeps no attributes.
    public static let attributes = Omissions(rawValue: 1 << 1)
    /// Keeps no time of expiry.
    public static let expiry = Omissions(rawValue: 1 << 2)
    /// Sets the time of creation itself, and not to the one that is given.
    public static let givenCreationTime = Omissions(rawValue: 1 << 3)
    /// Does not keep the time of creation when a secret is overwritten.
    public static let creationTime = Omissions(rawValue: 1 << 4)
    /// Tells of no changes, though it has the method.
    public static let changes = Omissions(rawValue: 1 << 5)
    /// May tell of one change more than once, or as a change of everything.
    public static let exactChanges = Omissions(rawValue: 1 << 6)
    /// Has no transactions, though it has the method.
    public static let transactions = Omissions(rawValue: 1 << 7)
    /// Is for one thread at a time.
    public static let concurrency = Omissions(rawValue: 1 << 8)
  }
}

/// What a run of the suite did.
public struct ConformanceReport: Hashable, Sendable {
  /// The checks that passed.
  public internal(set) var passed: [String] = []
  /// The checks that were left out: for lack of the protocol, or by an omission.
  public internal(set) var skipped: [String] = []
}

/// The checks that failed, each with what was wrong. Values are not in it.
public struct ConformanceFailures: Error, Sendable, CustomStringConvertible {
  public struct Failure: Hashable, Sendable {
    /// The check's name.
    public let check: String
    /// What was expected, and what happened.
    public let message: String
  }
  public let failures: [Failure]

  public var description: String {
    let lines = failures.map { "\($0.check): \($0.message)" }
    return (["\(failures.count) of the promises of a secret backend were broken."] + lines).joined(
      separator: "\n"
    )
  }
}
