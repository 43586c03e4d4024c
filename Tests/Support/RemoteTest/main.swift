import CofferRemote
import Glibc

// coffer-remote-test: an engine for tests, `test://HOST/PATH`. The object is the file PATH. Beside it lie PATH.log,
// with its versions since it was written as a whole, and PATH.faults, whose first line says what goes wrong next, and
// is used up.

struct TestEngine: RemoteEngine {
  private let path: String
  private(set) var time = 0

  init(_ url: String) throws(RemoteFailure) {
    let parts = url.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let slash = parts[2].firstIndex(of: "/") else {
      throw RemoteFailure(.configuration, "The URL is incomplete.")
    }
    path = String(parts[2][slash...])
  }

  mutating func answer(_ request: RemoteRequest) throws(RemoteFailure) -> RemoteAnswer {
    let lock = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard lock >= 0, flock(lock, LOCK_EX) == 0 else { throw RemoteFailure(.unreachable, "The engine is away.") }
    defer { close(lock) }
    // PATH.clock has the seconds by which the engine's clock is ahead.
    time = microseconds() + (lines(of: path + ".clock").first.flatMap { Int($0) } ?? 0) * 1_000_000
    switch request {
    case .read(let known, _):
      if takeFault("read") { throw RemoteFailure(.unreachable, "The engine is away.", advice: "Wait for it.") }
      // A test sees that the request was answered.
      _ = takeFault("tick")
      return read(known)
    case .publish(let over, let id, let isWhole, let pieces): return publish(over, id, isWhole, pieces)
    case .confirm:
      if takeFault("confirm") { throw RemoteFailure(.unreachable, "The engine is away.") }
      return .done(version: "-")
    case .remove(let version):
      guard version == versions.last else { return .refused }
      for suffix in ["", ".log", ".late"] { unlink(path + suffix) }
      return .done(version: "-")
    case .describe: return .text("an engine for tests")
    }
  }

  // MARK: The object

  private var log: [[Substring]] { lines(of: path + ".log").map { $0.split(separator: " ") } }
  private var versions: [String] { log.map { String($0[0]) } }

  private func read(_ known: String?) -> RemoteAnswer {
    let log = log
    guard let bytes = contents(of: path), let version = versions.last else { return .absent }
    if known == version { return .same }
    guard let known, let index = versions.firstIndex(of: known), !takeFault("whole") else {
      return .whole(version: version, bytes)
    }
    // The bytes at the end first, as one piece, and then the pages, each once.
    let newer = log[(index + 1)...]
    let end = newer.compactMap { Int($0[1]) }.min() ?? 0
    let pages = Dictionary(newer.map { ($0[2], Int($0[3]) ?? 0) }) { $1 }
    let pieces =
      [.init(offset: end, Array(bytes[end...]))]
      + pages.map { RemoteMessage.Piece(offset: Int($0) ?? 0, Array(bytes[(Int($0) ?? 0)...].prefix($1))) }
    return .changed(version: version, pieces)
  }

  private func publish(
    _ over: String?, _ id: String, _ isWhole: Bool, _ pieces: [RemoteMessage.Piece]
  ) -> RemoteAnswer {
    applyLate()
    let unknown = RemoteAnswer.unknown(RemoteFailure(.unreachable, "The line broke."))
    switch nextFault() {
    case "lost": exit(0)  // before it is made
    case "dropped":
      _ = apply(over, id, isWhole, pieces)
      exit(0)
    case "twice":
      _ = apply(over, id, isWhole, pieces)
      return apply(over, id, isWhole, pieces)
    case "refused": return .refused
    case "unknown": return unknown
    case "unknown-made":
      _ = apply(over, id, isWhole, pieces)
      return unknown
    case "late":
      // Made before the next publish, not before the next read.
      let message = RemoteRequest.publish(over: over, id: id, isWhole: isWhole, pieces).message
      write(message.serialized, to: path + ".late")
      return unknown
    case "again":
      // The answer, with two that nobody asked for.
      let answers = [apply(over, id, isWhole, pieces), .done(version: "something")]
      write(answers.flatMap { $0.message(time: time).serialized }, toDescriptor: STDOUT_FILENO)
      return .refused
    case "stalled": while true { pause() }
    case "nonsense":
      write(Array("what?\n".utf8), toDescriptor: STDOUT_FILENO)
      exit(0)
    case "endless":
      while true { write([UInt8](repeating: 0x61, count: 4096), toDescriptor: STDOUT_FILENO) }
    case "huge":
      write(Array("whole 1 v @0:999999999\n".utf8), toDescriptor: STDOUT_FILENO)
      exit(0)
    case "full": return .failed(RemoteFailure(.failed, "There is no room.", advice: "Free some space."))
    default: return apply(over, id, isWhole, pieces)
    }
  }

  private func apply(
    _ over: String?, _ id: String, _ isWhole: Bool, _ pieces: [RemoteMessage.Piece]
  ) -> RemoteAnswer {
    guard versions.last == over else { return .refused }
    guard let bytes = (isWhole ? [] : contents(of: path) ?? []).written(pieces) else { return .refused }
    write(bytes, to: path)
    let ranges = isWhole ? [] : [pieces[0].offset, pieces[1].offset, pieces[1].bytes.count].map(String.init)
    let line = ([id] + ranges).joined(separator: " ")
    let former = isWhole ? [] : lines(of: path + ".log")
    write(Array((former + [line]).map { $0 + "\n" }.joined().utf8), to: path + ".log")
    return .done(version: id)
  }

  private func applyLate() {
    let late = open(path + ".late", O_RDONLY | O_CLOEXEC)
    guard late >= 0 else { return }
    unlink(path + ".late")
    var connection = RemoteConnection(input: late, output: late)
    if let message = try? connection.receive(),
      case .publish(let over, let id, let isWhole, let pieces)? = RemoteRequest(message)
    {
      _ = apply(over, id, isWhole, pieces)
    }
    close(late)
  }

  // MARK: Faults

  private func nextFault() -> String? {
    let faults = lines(of: path + ".faults")
    guard let first = faults.first, !["read", "whole", "confirm", "tick"].contains(first) else { return nil }
    write(Array(faults.dropFirst().map { $0 + "\n" }.joined().utf8), to: path + ".faults")
    return String(first)
  }

  private func takeFault(_ name: String) -> Bool {
    let faults = lines(of: path + ".faults")
    guard faults.first == name else { return false }
    write(Array(faults.dropFirst().map { $0 + "\n" }.joined().utf8), to: path + ".faults")
    return true
  }

  // MARK: Files

  private func microseconds() -> Int {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return now.tv_sec * 1_000_000 + now.tv_nsec / 1000
  }

  private func contents(of path: String) -> [UInt8]? {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var (bytes, room) = ([UInt8](), [UInt8](repeating: 0, count: 1 << 16))
    while true {
      let count = Glibc.read(file, &room, room.count)
      if count <= 0 { return bytes }
      bytes += room[..<count]
    }
  }

  private func lines(of path: String) -> [String] {
    String(decoding: contents(of: path) ?? [], as: UTF8.self).split(separator: "\n").map(String.init)
  }

  private func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    write(bytes, toDescriptor: file)
    close(file)
  }

  private func write(_ bytes: [UInt8], toDescriptor file: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
      if count <= 0 { exit(1) }
      rest = rest.dropFirst(count)
    }
  }
}

exit(serve { () throws(RemoteFailure) in try TestEngine(CommandLine.arguments.dropFirst().first ?? "") })
