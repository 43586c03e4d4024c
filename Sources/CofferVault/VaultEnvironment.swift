package import CofferSystem
package import FoundationEssentials
internal import CLinux
internal import Glibc

/// What a vault needs from outside: the disk, randomness, the time, and who is asking.
package struct VaultEnvironment: Sendable {
  package var fileSystem: any FileSystem
  package var randomness: any Randomness
  /// The time for metadata. Nothing depends on its going forward.
  package var now: @Sendable () -> Date
  /// The user whose file a vault must be.
  package var user: UInt32
  /// Seconds on a clock that never goes back, for deadlines.
  package var monotonicSeconds: @Sendable () -> Double
  package var sleep: @Sendable (_ seconds: Double) -> Void
  /// How many bytes of metadata the tail may always have before a change writes the file anew. Each reader
  /// goes through them: 256 KiB are about 1,300 changes, and a millisecond.
  package var compactionThreshold = 256 << 10

  package init(
    fileSystem: any FileSystem = LinuxFileSystem(),
    randomness: any Randomness = SystemRandomness(),
    now: @escaping @Sendable () -> Date = { Date() },
    user: UInt32 = geteuid(),
    monotonicSeconds: @escaping @Sendable () -> Double = {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    },
    sleep: @escaping @Sendable (_ seconds: Double) -> Void = { usleep(UInt32($0 * 1e6)) }
  ) {
    self.fileSystem = fileSystem
    self.randomness = randomness
    self.now = now
    self.user = user
    self.monotonicSeconds = monotonicSeconds
    self.sleep = sleep
  }
}
