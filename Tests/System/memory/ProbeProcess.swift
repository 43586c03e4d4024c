import Foundation
import Testing

/// A running `CofferProbe`, which stops where its memory is to be searched.
final class ProbeProcess {
  struct Step {
    let name: String
    let held: [String]
    let gone: [String]
    let counted: [String]
  }

  let process: pid_t
  private let output: Int32
  private var text = ""
  private var isOver = false

  /// `prefix` is a command that becomes the probe. Descriptor 3 gives `canary` again and again, and 4 is the file
  /// that is named.
  init(
    _ scenario: String, vault: String, canary: [UInt8], descriptor4: String?,
    environment: [String: String], prefix: [String], workingDirectory: String
  ) throws {
    var outputs: [Int32] = [-1, -1]
    var inputs: [Int32] = [-1, -1]
    try #require(pipe(&outputs) == 0 && pipe(&inputs) == 0)
    for end in outputs + inputs { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { for end in [outputs[1], inputs[0], inputs[1]] { close(end) } }
    output = outputs[0]
    let canaries = (0..<100).flatMap { _ in canary }
    try #require(write(inputs[1], canaries, canaries.count) == canaries.count)

    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, outputs[1], 1)
    posix_spawn_file_actions_adddup2(&actions, inputs[0], 3)
    if let descriptor4 { posix_spawn_file_actions_addopen(&actions, 4, descriptor4, O_RDONLY, 0) }
    // Signals as a program has them that a shell starts: a test's thread blocks most.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var (none, all) = (sigset_t(), sigset_t())
    sigemptyset(&none)
    sigfillset(&all)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setsigdefault(&attributes, &all)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let words =
      ["env", "--chdir=\(workingDirectory)"] + prefix + [try Self.executable(), "memory", scenario, vault]
    let arguments: [UnsafeMutablePointer<CChar>?] = words.map { strdup($0) } + [nil]
    let variables: [UnsafeMutablePointer<CChar>?] = environment.map { strdup("\($0)=\($1)") } + [nil]
    defer { (arguments + variables).forEach { free($0) } }
    var process: pid_t = 0
    try #require(posix_spawnp(&process, words[0], &actions, &attributes, arguments, variables) == 0)
    self.process = process
  }

  deinit {
    if !isOver {
      kill(process, SIGKILL)
      var status: Int32 = 0
      waitpid(process, &status, 0)
    }
    close(output)
  }

  /// The probe that was built beside this test bundle, or the one that `COFFER_PROBE` names: an optimised
  /// build leaves other things behind than one for debugging.
  static func executable() throws -> String {
    if let path = ProcessInfo.processInfo.environment["COFFER_PROBE"] {
      return URL(fileURLWithPath: path).path
    }
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let path = (tests as NSString).deletingLastPathComponent + "/CofferProbe"
    try #require(FileManager.default.isExecutableFile(atPath: path), "there is no built probe at \(path)")
    return path
  }

  /// The step at which it has stopped, or `nil` where it has come to its end.
  func next() throws -> Step? {
    var status: Int32 = 0
    try #require(waitpid(process, &status, WUNTRACED) == process)
    if status & 0xFF == 0x7F {
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
    isOver = true
    #expect(status == 0, "the probe ended with the status \(status)")
    return nil
  }

  func goOn() { kill(process, SIGCONT) }

  /// The path of a core dump of it, as it has stopped: the kernel's, where that leaves them in the working
  /// directory, and else one by gdb's gcore. `nil` where neither makes one. It may have ended then.
  func coreDump(in workingDirectory: String) throws -> String? {
    try #require(!isOver)
    let pattern = try Self.text(of: "/proc/sys/kernel/core_pattern")
    if pattern.hasPrefix("|") || pattern.contains("/") {
      guard FileManager.default.isExecutableFile(atPath: "/usr/bin/gcore") else { return nil }
      let gcore = Process()
      gcore.executableURL = URL(fileURLWithPath: "/usr/bin/gcore")
      gcore.arguments = ["-o", "\(workingDirectory)/core", "\(process)"]
      (gcore.standardOutput, gcore.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
      try gcore.run()
      gcore.waitUntilExit()
    } else {
      kill(process, SIGABRT)
      kill(process, SIGCONT)
      var status: Int32 = 0
      waitpid(process, &status, 0)
      isOver = true
    }
    let files = try FileManager.default.contentsOfDirectory(atPath: workingDirectory)
    return files.first.map { "\(workingDirectory)/\($0)" }
  }

  // MARK: Its memory

  struct Mapping {
    let addresses: Range<UInt64>
    let name: String
    var flags: [String] = []
    /// Bytes in memory or in swap space that the process wrote: the others are a file's, or zero.
    var writtenSize = 0

    var isReadable: Bool { flags.contains("rd") }
    /// Left out of core dumps, as nothing else in a process is that holds data.
    var isGuarded: Bool { flags.contains("dd") && name.isEmpty }
    var isLocked: Bool { flags.contains("lo") }
  }

  func mappings() throws -> [Mapping] {
    var mappings: [Mapping] = []
    for line in try Self.text(of: "/proc/\(process)/smaps").split(separator: "\n") {
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

  /// What the search finds in all that can be read of its memory and that it ever wrote to, each with the mapping
  /// it is in.
  func search(_ search: MemorySearch) throws -> [(hit: MemorySearch.Hit, mapping: Mapping)] {
    let memory = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
    try #require(memory >= 0, "the memory of a process of one's own cannot be read here")
    defer { close(memory) }
    return try mappings().filter { $0.isReadable && $0.writtenSize > 0 }.flatMap { mapping in
      search.hits(from: mapping.addresses.lowerBound, to: mapping.addresses.upperBound) {
        pread(memory, $0.baseAddress, $0.count, Int(bitPattern: UInt($1)))
      }.map { ($0, mapping) }
    }
  }

  /// Where the kernel put the environment that the process was started with: proc(5), fields 50 and 51.
  func environmentBlock() throws -> Range<UInt64> {
    let text = try Self.text(of: "/proc/\(process)/stat")
    let name = try #require(text.lastIndex(of: ")"))
    let fields = text[text.index(after: name)...].split(separator: " ")
    return try #require(UInt64(fields[47]))..<(try #require(UInt64(fields[48])))
  }

  /// A file of the kernel's, which gives it in parts: Foundation takes the first for all of it.
  private static func text(of path: String) throws -> String {
    let handle = try #require(FileHandle(forReadingAtPath: path))
    var data = Data()
    while let part = try handle.read(upToCount: 65_536), !part.isEmpty { data += part }
    return String(decoding: data, as: UTF8.self)
  }
}
