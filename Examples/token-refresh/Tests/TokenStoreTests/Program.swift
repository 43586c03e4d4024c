import Foundation

@testable import TokenRefresh

/// A program that a test has started. What it prints to standard error is in the output of the tests.
final class Program: Sendable {
  enum End: Equatable {
    case status(Int32)
    case signal(Int32)
  }

  private let process = Process()
  private let input = Pipe()
  private let ends: AsyncStream<End>

  init(_ path: String, _ arguments: [String], _ environment: [String: String]) throws {
    let (ends, end) = AsyncStream.makeStream(of: End.self)
    self.ends = ends
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.environment = environment.merging(["PATH": Self.searchPath]) { $1 }
    process.standardInput = input
    process.standardOutput = FileHandle.nullDevice
    process.terminationHandler = { process in
      let status = process.terminationStatus
      end.yield(process.terminationReason == .exit ? .status(status) : .signal(status))
      end.finish()
    }
    try process.run()
  }

  /// Starts TokenRefresh, which is built beside the tests.
  static func tokenRefresh(_ arguments: [String], _ environment: [String: String]) throws -> Program {
    let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    let directory = URL(fileURLWithPath: tests).deletingLastPathComponent()
    return try Program(directory.appending(path: "TokenRefresh").path, arguments, environment)
  }

  var id: Int32 { process.processIdentifier }
  var isRunning: Bool { process.isRunning }

  /// Waits for the end of the program. Call this once.
  func end() async throws -> End {
    for await end in ends { return end }
    throw CancellationError()
  }

  func kill() { Glibc.kill(id, SIGKILL) }

  func closeInput() { try? input.fileHandleForWriting.close() }

  private static let searchPath = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"

  static func isInstalled(_ program: String) -> Bool {
    searchPath.split(separator: ":").contains {
      FileManager.default.isExecutableFile(atPath: "\($0)/\(program)")
    }
  }
}
