internal import CLinux
package import CofferSystem
package import FoundationEssentials
internal import CofferLibc

/// Everything that a vault needs from outside: the disk, randomness, clocks, and the user.
package struct VaultEnvironment: Sendable {
  package var fileSystem: any FileSystem
  package var randomness: any Randomness
  /// The time for metadata. The clock may go back.
  package var now: @Sendable () -> Date
  /// The user who must own the vault's file, unless it is root's.
  package var user: UInt32
  /// Whether any other user may own a vault's file that is only read.
  package var readsFilesOfOthers = false
  /// The time since some fixed point, on a clock that never goes back. For deadlines.
  package var uptime: @Sendable () -> Duration
  package var sleep: @Sendable (Duration) -> Void
  /// The bytes of memory that this process can still use before the kernel kills it. `nil`: there is no limit.
  package var memoryLeft: @Sendable () -> Int? = { ControlGroups().memoryLeft() }
  /// A change rewrites the file if the tail is longer than this number of bytes and longer than the base.
  package var compactionThreshold = 1 << 20
  /// Changes of a known-vault record overwrite the same slot until its sequence is this much higher than the other
  /// slot's. Then the two slots change roles, which costs a barrier.
  package var recordRoleChangeDistance = 64
  /// Where the helpers for engines are. `nil`: beside this program, and in `/usr/lib/coffer`.
  package var helperDirectories: [String]?
  /// The time after which a watched vault is checked without an event.
  package var watchPeriod = Duration.seconds(2)

  package init(
    fileSystem: any FileSystem = LinuxFileSystem(),
    randomness: any Randomness = SystemRandomness(),
    now: @escaping @Sendable () -> Date = { Date() },
    user: UInt32 = geteuid(),
    uptime: @escaping @Sendable () -> Duration = {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    },
    sleep: @escaping @Sendable (Duration) -> Void = { usleep(UInt32($0 / .microseconds(1))) }
  ) {
    self.fileSystem = fileSystem
    self.randomness = randomness
    self.now = now
    self.user = user
    self.uptime = uptime
    self.sleep = sleep
  }
}
