import CofferTestSupport
import Foundation
import Testing

/// The built tool under strace, which shows its system calls or makes one of them fail.
struct TracedTool {
  let canary = Sandbox.canary()
  let sandbox: Sandbox

  /// Creates a vault with one secret and a template `t` for it.
  init() throws {
    sandbox = try Sandbox()
    // LD_BIND_NOW: the dynamic linker makes no calls between those of the tool.
    sandbox.environment["LD_BIND_NOW"] = "1"
    sandbox.environment["CANARY"] = canary
    try perform(
      "secret init && printf %s \"$CANARY\" | secret set a && printf 'value: secret://secret/a\\n' > t")
    sandbox.environment["CANARY"] = nil
  }

  @discardableResult
  func perform(_ command: String, status: Int32 = 0) throws -> String {
    let result = try sandbox.shell(command)
    try #require(
      result.status == status, "\(command): \(result.status) \(result.outputText)\(result.errorText)")
    return result.errorText
  }

  /// The lines of the trace of `command` from the first one that contains `start`.
  func trace(_ command: String, of calls: String, from start: String? = nil) throws -> [String] {
    try perform("strace -f -o trace -e trace=\(calls) \(command)")
    let lines = try String(contentsOfFile: "\(sandbox.workingDirectory)/trace", encoding: .utf8)
      .split(separator: "\n").map { String($0.drop { $0.isNumber || $0 == " " }) }
      .filter { !$0.hasPrefix("+++") && !$0.hasPrefix("---") }
    guard let start else { return lines }
    return Array(lines.drop { !$0.contains(start) })
  }

  /// Runs `command` with a fault at a call, by the syntax of `strace --inject`. Returns its messages.
  @discardableResult
  func fail(_ fault: String, _ command: String, status: Int32) throws -> String {
    try perform("strace -f -o trace -e inject=\(fault) \(command)", status: status)
  }

  func files(_ directory: String = ".") throws -> [String] {
    try perform("ls -A \(directory) > /dev/null")
    return try sandbox.shell("ls -A \(directory)").outputText.split(separator: "\n").map(String.init)
      .filter { $0 != "trace" }
  }

  func index(_ lines: [String], _ pattern: String) throws -> Int {
    try #require(
      lines.firstIndex { $0.range(of: pattern, options: .regularExpression) != nil },
      "\(pattern) is not in:\n\(lines.joined(separator: "\n"))")
  }
}

extension Trait where Self == ConditionTrait {
  /// For a test that reads names in the calls that strace shows.
  static var readsNames: Self {
    .enabled(
      if: geteuid() == 0,
      "The tool closes its memory to other programs, so that only root's strace shows names.")
  }
}
