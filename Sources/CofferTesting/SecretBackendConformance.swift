public import CofferCore
internal import Dispatch
internal import Synchronization

/// Checks that a backend fulfils the contract of `SecretBackend`. Every test framework can run it:
///
/// ```swift
/// try await SecretBackendConformance { MyBackend() }.run()
/// ```
///
/// Each check has a stable name, which its failure contains. A check uses a service with a random name and removes what
/// it stored, so the store may contain other secrets. The suite checks the features that the backend reports.
///
/// The checks of `.history` need a backend that keeps at least 5 earlier versions.
public struct SecretBackendConformance: Sendable {
  package var options: Options
  private let make: @Sendable () async throws -> any SecretBackend

  /// Creates a suite. Each check calls `make` once, which may return the same backend each time.
  public init(options: Options = Options(), make: @escaping @Sendable () async throws -> any SecretBackend) {
    self.options = options
    self.make = make
  }

  /// The names of all checks, in the order in which they run.
  public static var checkNames: [String] { Check.all.map(\.name) }

  /// Runs the checks with these names, or all checks if `names` is `nil`, one after the other.
  ///
  /// Throws ``ConformanceFailures`` with every check that failed, and every element of `names` that is not the name of
  /// a check.
  @discardableResult
  public func run(only names: Set<String>? = nil) async throws(ConformanceFailures) -> ConformanceReport {
    var failures = (names ?? []).subtracting(Self.checkNames).sorted().map {
      ConformanceFailures.Failure(check: $0, message: "No check has this name.")
    }
    var report = ConformanceReport()
    for check in Check.all where names?.contains(check.name) ?? true {
      do {
        let backend = try await make()
        if !options.omissions.isDisjoint(with: check.omittedBy)
          || !backend.features.isSuperset(of: check.features)
          || check.setsHistoryLimit && options.setHistoryVersions == nil
        {
          report.skipped.append(check.name)
          continue
        }
        try await run(check, on: backend)
        report.passed.append(check.name)
      } catch {
        failures.append(.init(check: check.name, message: Self.message(for: error)))
      }
    }
    if !failures.isEmpty { throw ConformanceFailures(failures: failures) }
    return report
  }

  /// Describes an error. An error of the backend may contain a secret, so only its code or its type is used.
  private static func message(for error: any Error) -> String {
    switch error {
    case let error as Expectation: error.message
    case let error as SecretError: "a call: expected no error, found the error \(error.code)"
    default: "a call: expected no error, found an error of the type \(type(of: error))"
    }
  }

  /// Runs one check on a thread that may block. Throws at the timeout, even if the check still runs.
  private func run(_ check: Check, on backend: any SecretBackend) async throws {
    let random = String(UInt64.random(in: .min ... .max), radix: 16)
    let context = ConformanceContext(backend: backend, options: options, service: "conformance.\(check.name).\(random)")
    // The check ends, or its timeout passes: only the first of the two counts.
    let isOver = Atomic(false)
    let isFirst = { @Sendable in !isOver.exchange(true, ordering: .acquiringAndReleasing) }
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue(label: check.name).async {
        let result = Result { try check.body(context, backend, context.identifier("a")) }
        if isFirst() { continuation.resume(with: result) }
      }
      DispatchQueue.global().asyncAfter(deadline: .now() + options.checkTimeout / .seconds(1)) {
        let late = Expectation("the check", expected: "an end within \(options.checkTimeout)", found: "none")
        if isFirst() { continuation.resume(throwing: late) }
      }
    }
    try context.removeEverything()
  }
}

extension SecretBackendConformance {
  /// The limits of a backend, and the sizes and timeouts of the checks.
  public struct Options: Sendable {
    /// The maximum size of a value in bytes, or `nil` if the backend has no maximum. 16 MiB by default.
    public var maximumSecretSize: Int? = 16 * 1024 * 1024
    /// The size in bytes of the largest value that a check stores, if the backend accepts it. 16 MiB by default.
    package var largestTriedSize = 16 * 1024 * 1024
    /// The size in bytes of the longest service and account that a check uses. 1024 by default.
    public var maximumNameLength = SecretIdentifier.maximumLength
    /// The capabilities that the backend does not have. None by default.
    public var omissions: Omissions = []
    /// Sets the number of earlier versions that the backend keeps. The checks of a limit call it, and leave 10, so
    /// versions of other secrets may be dropped. `nil`, the default, skips these checks.
    public var setHistoryVersions: (@Sendable (any SecretBackend, Int) throws -> Void)?
    /// The number of threads in concurrency checks. 8 by default.
    package var threadCount = 8
    /// The number of writes of each of those threads. 25 by default.
    package var roundCount = 25
    /// The time after which a check fails. 5 minutes by default.
    public var checkTimeout = Duration.seconds(300)
    /// The time in which a change must be reported. 1 minute by default.
    public var changeTimeout = Duration.seconds(60)
    /// The time in which a duplicate of a change would be reported. 0.2 seconds by default.
    package var duplicateInterval = Duration.milliseconds(200)

    /// Creates the default options.
    public init() {}
  }

  /// Capabilities that a backend may lack. The checks require every other capability.
  public struct Omissions: OptionSet, Sendable {
    /// The bits of the set.
    public let rawValue: Int
    /// Creates a set from its bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// The backend keeps no label.
    public static let labels = Omissions(rawValue: 1 << 0)
    /// The backend keeps no attributes.
    public static let attributes = Omissions(rawValue: 1 << 1)
    /// The backend keeps no expiry.
    public static let expiry = Omissions(rawValue: 1 << 2)
    /// The backend ignores a creation time in the metadata of a store, or changes it when a secret is overwritten.
    public static let creationTime = Omissions(rawValue: 1 << 3)
    /// The backend may report a change several times, or as a change of everything.
    public static let exactChanges = Omissions(rawValue: 1 << 4)
    /// The backend can be used by one thread at a time only.
    public static let concurrency = Omissions(rawValue: 1 << 5)
  }
}

/// The names of the checks that a run of the suite passed and skipped.
public struct ConformanceReport: Hashable, Sendable {
  /// The checks that passed.
  public internal(set) var passed: [String] = []
  /// The checks that did not run, because of an omission or because the backend does not have the feature.
  public internal(set) var skipped: [String] = []
}

/// The checks that failed. The messages contain no values.
public struct ConformanceFailures: Error, Sendable, CustomStringConvertible {
  /// The failure of one check.
  public struct Failure: Hashable, Sendable {
    /// The name of the check.
    public let check: String
    /// The situation, what was expected in it, and what was found.
    public let message: String
  }
  /// The failures, in the order of the checks.
  public let failures: [Failure]

  /// The number of failures, and one line for each.
  public var description: String {
    let lines = failures.map { "\($0.check): \($0.message)" }
    return (["\(failures.count) checks of the backend failed."] + lines).joined(separator: "\n")
  }
}
