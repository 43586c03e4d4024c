import CofferSystem
import CofferTestSupport
import Foundation
import Testing

/// Memory limits of control groups.
@Suite struct ControlGroupsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func write(_ text: String, _ path: String) throws {
    let url = URL(filePath: directory.file(path))
    try FileManager.default.createDirectory(
      at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  private func left() -> Int? {
    ControlGroups(groups: directory.file("groups"), processes: directory.file("proc")).memoryLeft()
  }

  @Test func theTightestLimitApplies() throws {
    try write("0::/a/b\n", "proc/self/cgroup")
    try write("MemTotal: 1000 kB\nSwapFree:       0 kB\n", "proc/meminfo")
    #expect(left() == nil)
    try write("max\n", "groups/a/b/memory.max")
    try write("500\n", "groups/a/b/memory.current")
    try write("anon 100\ninactive_file 30\nactive_file 20\n", "groups/a/b/memory.stat")
    #expect(left() == nil)
    try write("600\n", "groups/a/b/memory.max")
    #expect(left() == 150)
    try write("400\n", "groups/a/memory.max")
    try write("390\n", "groups/a/memory.current")
    try write("inactive_file 0\n", "groups/a/memory.stat")
    #expect(left() == 10)
    try write("SwapFree: 2 kB\n", "proc/meminfo")
    #expect(left() == 10 + 2048)
    try write("MemTotal: 1000 kB\n", "proc/meminfo")
    #expect(left() == 10)
    try write("SwapFree: 2 kB\n", "proc/meminfo")
    // In a program without standard input, the first descriptor is 0.
    let groups = ControlGroups(groups: directory.file("groups"), processes: directory.file("proc"))
    let (left, descriptors) = try withoutDescriptors {
      (groups.memoryLeft(), (0..<20).filter { fcntl($0, F_GETFD) != -1 })
    }
    #expect(left == 10 + 2048 && descriptors == [])
  }

  @Test func limitsOfVersion1AreRead() throws {
    try write("5:cpu,memory:/x\n0::/\n", "proc/self/cgroup")
    try write("SwapFree: 0 kB\n", "proc/meminfo")
    try write("9223372036854771712\n", "groups/memory/x/memory.limit_in_bytes")
    try write("50\n", "groups/memory/x/memory.usage_in_bytes")
    try write("total_inactive_file 7\n", "groups/memory/x/memory.stat")
    #expect(left() == nil)
    try write("60\n", "groups/memory/x/memory.limit_in_bytes")
    #expect(left() == 17)
    // A container sees its own group as the root.
    try write("5:memory:/docker/0123\n", "proc/self/cgroup")
    try write("90\n", "groups/memory/memory.limit_in_bytes")
    try write("100\n", "groups/memory/memory.usage_in_bytes")
    try write("", "groups/memory/memory.stat")
    #expect(left() == 0)
  }
}
