/// The memory limit of this process's control groups, such as a container's or a service's. See cgroups(7); both
/// versions are supported.
///
/// The kernel kills a process that exceeds the limit without a message. A limit that cannot be read is treated as no
/// limit, so that a guess never refuses a valid passphrase.
package struct ControlGroups: Sendable {
  private let groups: String
  private let processes: String

  /// Reads the limits from `groups` and the process's membership from `processes`.
  package init(groups: String = "/sys/fs/cgroup", processes: String = "/proc") {
    (self.groups, self.processes) = (groups, processes)
  }

  /// The number of bytes that the process can still use before it reaches the limit, including swap and the file pages
  /// that the kernel would reclaim. `nil`: there is no limit.
  package func memoryLeft() -> Int? {
    guard let membership = text(processes + "/self/cgroup") else { return nil }
    var least: Int?
    for line in membership.split(separator: "\n") {
      // ID:CONTROLLERS:PATH. Version 2 has the id 0 and no controllers.
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let isSecond = parts[0] == "0" && parts[1].isEmpty
      guard isSecond || parts[1].split(separator: ",").contains("memory") else { continue }
      var path = parts[2][...]
      // A group's ancestors limit it as well. A container sees its path from its own root.
      while true {
        let directory = groups + (isSecond ? "" : "/memory") + (path == "/" ? "" : path)
        if let left = isSecond
          ? left(in: directory, "memory.max", "memory.current", "")
          : left(in: directory, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        {
          least = min(least ?? left, left)
        }
        guard path != "/", let slash = path.lastIndex(of: "/") else { break }
        path = slash == path.startIndex ? "/" : path[..<slash]
      }
    }
    guard let least, let memory = text(processes + "/meminfo") else { return nil }
    return least + (number("SwapFree:", in: memory) ?? 0) * 1024
  }

  private func left(in directory: String, _ limit: String, _ usage: String, _ prefix: String) -> Int? {
    // No limit is the word `max`, or in version 1 a number above any machine's memory.
    guard let limit = text("\(directory)/\(limit)").flatMap(Self.number), limit < 1 << 60,
      let used = text("\(directory)/\(usage)").flatMap(Self.number),
      let kinds = text("\(directory)/memory.stat")
    else { return nil }
    let files = ["active_file", "inactive_file"].compactMap { number(prefix + $0, in: kinds) }.reduce(0, +)
    return max(0, limit - max(0, used - files))
  }

  private static func number(_ text: String) -> Int? {
    Int(text.split(whereSeparator: \.isWhitespace).first ?? "")
  }

  /// The number after `name` in lines of names and numbers.
  private func number(_ name: String, in text: String) -> Int? {
    let lines = text.split(separator: "\n").map { $0.split(whereSeparator: \.isWhitespace) }
    return lines.first { $0.count >= 2 && $0[0] == name }.flatMap { Int($0[1]) }
  }

  private func text(_ path: String) -> String? {
    beginning(ofFile: path, count: 16_384).map { String(decoding: $0, as: UTF8.self) }
  }
}
