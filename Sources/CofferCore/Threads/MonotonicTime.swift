internal import CofferLibc

extension timespec {
  /// The time on the clock `CLOCK_MONOTONIC` after `duration`.
  init(after duration: Duration) {
    self.init()
    clock_gettime(CLOCK_MONOTONIC, &self)
    let (seconds, attoseconds) = duration.components
    let nanoseconds = tv_nsec + Int(attoseconds / 1_000_000_000)
    tv_sec += Int(seconds) + nanoseconds / 1_000_000_000
    tv_nsec = nanoseconds % 1_000_000_000
  }
}

extension Duration {
  /// The duration for a message, rounded up to tenths of a second.
  package var rounded: Duration { .milliseconds(100) * Int((self / .milliseconds(100)).rounded(.up)) }
}
