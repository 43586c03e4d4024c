import CofferTestSupport
import Foundation
import Testing

/// A command on a terminal of its own, with input and output for a test.
final class Pseudoterminal {
  private let controller: Int32
  private let child: ChildProcess
  var process: pid_t { child.id }
  /// The output so far.
  private(set) var seen = ""
  /// The settings before the command started.
  let firstSettings: [UInt8]

  /// Runs a shell command with the terminal as its controlling terminal and standard streams.
  init(_ command: String, in sandbox: Sandbox, rows: UInt16 = 0, columns: UInt16 = 0) throws {
    var (controller, terminal): (Int32, Int32) = (-1, -1)
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    try #require(openpty(&controller, &terminal, nil, nil, &size) == 0)
    self.controller = controller
    firstSettings = Self.settings(of: controller)
    defer { close(terminal) }
    for end in [controller, terminal] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var name = [CChar](repeating: 0, count: 64)
    try #require(ttyname_r(terminal, &name, name.count) == 0)
    let path = name.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }

    child = try sandbox.start(command, streams: [.file(path), .file(path), .file(path)])
  }

  deinit {
    child.kill()
    hangUp()
  }

  var echoes: Bool {
    var settings = termios()
    tcgetattr(controller, &settings)
    return settings.c_lflag & tcflag_t(ECHO) != 0
  }

  /// The current settings of the terminal, for a comparison.
  var settings: [UInt8] { Self.settings(of: controller) }

  private static func settings(of controller: Int32) -> [UInt8] {
    var settings = termios()
    tcgetattr(controller, &settings)
    return withUnsafeBytes(of: settings) { Array($0) }
  }

  func resize(rows: UInt16, columns: UInt16) {
    var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
    _ = ioctl(controller, UInt(TIOCSWINSZ), &size)
  }

  func type(_ text: String) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(controller, $0.baseAddress, $0.count) }
      if count <= 0 { return }
      rest = rest.dropFirst(count)
    }
  }

  /// Types a long text, and reads the output at the same time.
  func typeWhileReading(_ text: String) {
    let flags = fcntl(controller, F_GETFL)
    _ = fcntl(controller, F_SETFL, flags | O_NONBLOCK)
    defer { _ = fcntl(controller, F_SETFL, flags) }
    var rest = Array(text.utf8)[...]
    _ = pump {
      let count = rest.withUnsafeBytes { write(controller, $0.baseAddress, min($0.count, 1024)) }
      if count > 0 { rest = rest.dropFirst(count) }
      return rest.isEmpty
    }
  }

  /// Closes the test's side of the terminal.
  func hangUp() {
    if isOpen { close(controller) }
    isOpen = false
  }
  private var isOpen = true

  /// Reads until `condition` holds.
  func eventually(_ condition: () -> Bool) throws {
    let holds = pump(until: condition)
    try #require(holds, "the condition did not hold; shown: \(seen)")
  }

  /// Whether `text` appears after the text of an earlier wait.
  func shows(_ text: String, within seconds: Double) -> Bool {
    let start = waited
    return pump(seconds: seconds) { self.seen[start...].contains(text) }
  }

  /// Waits until a descendant of the command has been executed with this command line.
  func waitForProcess(_ line: String) throws {
    try eventually {
      Self.descendants(of: process).contains { id in
        let text = FileManager.default.contents(atPath: "/proc/\(id)/cmdline") ?? Data()
        return text.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
          == line
      }
    }
  }

  private static func descendants(of process: pid_t) -> [pid_t] {
    let path = "/proc/\(process)/task/\(process)/children"
    let text = FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) } ?? ""
    let children = text.split(separator: " ").compactMap { pid_t($0) }
    return children + children.flatMap { descendants(of: $0) }
  }

  /// Reads until `text` appears after the text of an earlier wait.
  func wait(for text: String) throws {
    let start = waited
    try #require(
      pump { self.seen[start...].contains(text) }, "“\(text)” was not shown, but: \(seen)")
    waited = seen[start...].range(of: text)?.upperBound ?? seen.endIndex
  }

  /// Presses `key` until `text` is shown, for a program that may not have the terminal yet.
  func press(_ key: String, until text: String) throws {
    try eventually {
      type(key)
      return shows(text, within: 2)
    }
    try wait(for: text)
  }
  private var waitedCount = 0
  private var waited: String.Index {
    get { seen.utf8.index(seen.startIndex, offsetBy: waitedCount) }
    set { waitedCount = seen.utf8.distance(from: seen.startIndex, to: newValue) }
  }

  /// Waits for the command's end. Returns the exit status, or minus the number of the signal that ended the command.
  func end() throws -> Int32 {
    var status: Int32?
    let ended = pump {
      status = child.status()
      return status != nil
    }
    try #require(ended, "the command did not end; it showed: \(seen)")
    _ = pump(seconds: 0.2) { false }  // reads the remaining output
    return status ?? -1
  }

  /// Reads until `condition` holds, or for `seconds`. Returns whether the condition holds.
  private func pump(seconds: Double = 60, until condition: () -> Bool) -> Bool {
    let end = ContinuousClock.now + .seconds(seconds)
    while !condition() {
      if ContinuousClock.now > end { return false }
      var ready = pollfd(fd: controller, events: Int16(POLLIN), revents: 0)
      guard poll(&ready, 1, 20) > 0 else { continue }
      var buffer = [UInt8](repeating: 0, count: 4096)
      let count = read(controller, &buffer, buffer.count)
      if count > 0 {
        seen += String(decoding: buffer[..<count], as: UTF8.self)
      } else {
        usleep(10_000)  // EIO, because the other side is closed
      }
    }
    return true
  }
}
