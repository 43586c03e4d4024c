#if Keyring
/// A point in time that several steps share.
struct Deadline {
  private let instant: ContinuousClock.Instant

  init(after timeout: Duration) { instant = .now + timeout }

  var hasPassed: Bool { instant <= .now }

  /// The time left, and at least one millisecond: a step that starts too late then fails with a timeout.
  var remaining: Duration { max(.milliseconds(1), instant - .now) }
}
#endif
