import CLinux
import CofferTestSupport
import Foundation
import Testing

/// A running `CofferProbe`, which stops at each step for a search of its memory.
final class ProbeProcess {
  struct Step {
    let name: String
    let held: [String]
    let gone: [String]
    let counted: [String]
  }

  private let child: ChildProcess
  private let output: Int32
  private var text = ""
  private var isOver = false

  /// `prefix` is a command that executes the probe. From descriptor 3 the probe reads `canary` again and again, and
  /// descriptor 4 is the file at the path `descriptor4`.
  init(
    _ scenario: String, vault: String, canary: [UInt8], descriptor4: String?,
    environment: [String: String], prefix: [String], workingDirectory: String
  ) throws {
    var outputs: [Int32] = [-1, -1]
    var inputs: [Int32] = [-1, -1]
    try #require(coffer_pipe(&outputs) == 0 && coffer_pipe(&inputs) == 0)
    defer { for end in [outputs[1], inputs[0], inputs[1]] { close(end) } }
    output = outputs[0]
    let canaries = (0..<100).flatMap { _ in canary }
    try #require(write(inputs[1], canaries, canaries.count) == canaries.count)
    child = try ChildProcess(
      prefix + [Self.executable(), "memory", scenario, vault], environment: environment,
      directory: workingDirectory,
      streams: [.null, .descriptor(outputs[1]), .inherited, .descriptor(inputs[0])]
        + (descriptor4.map { [.file($0)] } ?? []))
  }

  deinit { close(output) }

  /// The probe that was built beside this test bundle, or the program that `COFFER_PROBE` names. An optimised build
  /// leaves other copies in memory than a debug build.
  static func executable() throws -> String {
    if let path = ProcessInfo.processInfo.environment["COFFER_PROBE"] {
      return URL(fileURLWithPath: path).path
    }
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = (tests as NSString).deletingLastPathComponent + "/CofferProbe"
    try #require(FileManager.default.isExecutableFile(atPath: path), "there is no built probe at \(path)")
    return path
  }

  /// The step at which the probe has stopped, or `nil` if it has ended.
  func next() throws -> Step? {
    guard child.waitForStop() else {
      isOver = true
      let status = child.status()
      #expect(status == 0, "the probe ended with the status \(status ?? -1)")
      return nil
    }
    while !text.contains("\n") {
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = read(output, &buffer, buffer.count)
      try #require(count > 0)
      text += String(decoding: buffer[..<count], as: UTF8.self)
    }
    let line = text.prefix { $0 != "\n" }
    text = String(text.dropFirst(line.count + 1))
    let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
      .map { $0.split(separator: " ").map(String.init) }
    try #require(fields.count == 4)
    return Step(
      name: fields[0].joined(separator: " "), held: fields[1], gone: fields[2], counted: fields[3])
  }

  func resume() { child.send(SIGCONT) }

  /// Writes a core dump of the stopped probe and returns its path, or `nil` if neither the kernel nor gdb's gcore
  /// writes one. The kernel writes it to the working directory only if `core_pattern` has neither a pipe nor a
  /// directory. The probe may have ended afterwards.
  func coreDump(in workingDirectory: String) throws -> String? {
    try #require(!isOver)
    let pattern = try Self.text(of: "/proc/sys/kernel/core_pattern")
    if pattern.hasPrefix("|") || pattern.contains("/") {
      guard FileManager.default.isExecutableFile(atPath: "/usr/bin/gcore") else { return nil }
      _ = try ChildProcess.run(
        ["/usr/bin/gcore", "-o", "\(workingDirectory)/core", "\(child.id)"],
        environment: ProcessInfo.processInfo.environment)
    } else {
      child.send(SIGABRT)
      child.send(SIGCONT)
      _ = try child.end()
      isOver = true
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: workingDirectory)
    return files.first.map { "\(workingDirectory)/\($0)" }
  }

  // MARK: Memory

  struct Mapping {
    let addresses: Range<UInt64>
    let name: String
    var flags: [String] = []
    /// The number of bytes in memory or in swap space that the process wrote. Other pages are those of a file, or zero.
    var writtenSize = 0

    var isReadable: Bool { flags.contains("rd") }
    /// Whether core dumps leave the mapping out. Guarded memory is the only such mapping that contains data.
    var isGuarded: Bool { flags.contains("dd") && name.isEmpty }
    var isLocked: Bool { flags.contains("lo") }
  }

  func mappings() throws -> [Mapping] {
    var mappings: [Mapping] = []
    for line in try Self.text(of: "/proc/\(child.id)/smaps").split(separator: "\n") {
      let words = line.split(separator: " ")
      if line.hasPrefix("VmFlags:") {
        mappings[mappings.count - 1].flags = words.dropFirst().map(String.init)
      } else if ["Anonymous:", "Private_Dirty:", "Shared_Dirty:", "Swap:"].contains(words[0]) {
        mappings[mappings.count - 1].writtenSize += Int(words[1]) ?? 0
      } else if words.count >= 5, let dash = words[0].firstIndex(of: "-"), !words[0].hasSuffix(":"),
        let start = UInt64(words[0][..<dash], radix: 16),
        let end = UInt64(words[0][words[0].index(after: dash)...], radix: 16)
      {
        mappings.append(Mapping(addresses: start..<end, name: words.dropFirst(5).joined(separator: " ")))
      }
    }
    return mappings
  }

  /// Searches all readable memory that the process wrote to. Returns each hit with its mapping.
  func search(_ search: MemorySearch) throws -> [(hit: MemorySearch.Hit, mapping: Mapping)] {
    let memory = open("/proc/\(child.id)/mem", O_RDONLY | O_CLOEXEC)
    try #require(memory >= 0, "the memory of a child process cannot be read on this machine")
    defer { close(memory) }
    return try mappings().filter { $0.isReadable && $0.writtenSize > 0 }.flatMap { mapping in
      search.hits(from: mapping.addresses.lowerBound, to: mapping.addresses.upperBound) {
        pread(memory, $0.baseAddress, $0.count, Int(bitPattern: UInt($1)))
      }.map { ($0, mapping) }
    }
  }

  /// The addresses of the initial environment: fields 50 and 51 of proc(5).
  func environmentBlock() throws -> Range<UInt64> {
    let text = try Self.text(of: "/proc/\(child.id)/stat")
    let name = try #require(text.lastIndex(of: ")"))
    let fields = text[text.index(after: name)...].split(separator: " ")
    return try #require(UInt64(fields[47]))..<(try #require(UInt64(fields[48])))
  }

  /// Reads a file of /proc to its end. Foundation stops after the first part that the kernel returns.
  private static func text(of path: String) throws -> String {
    let handle = try #require(FileHandle(forReadingAtPath: path))
    var data = Data()
    while let part = try handle.read(upToCount: 65_536), !part.isEmpty { data += part }
    return String(decoding: data, as: UTF8.self)
  }
}
