import CofferCore
import CofferTestSupport
import Foundation
import Testing

@testable import CofferTool

/// When a command is restarted, with times that the tests set.
@Suite struct CommandRestartTests {
  private func restart(
    patience: Duration = .seconds(60), pause: Duration = .zero, prepare: @escaping () -> Bool
  ) throws -> CommandRestart {
    let none = AsyncStream<SecretChange> { $0.finish() }
    return try CommandRestart(after: none, of: [], patience: patience, pause: pause, prepare: prepare)
  }

  /// Lets `restart` do what is due for `process` until `condition` holds.
  private func wait(
    _ restart: CommandRestart, _ process: Int32 = 0, until condition: () -> Bool
  ) throws {
    let end = ContinuousClock.now + .seconds(60)
    while !condition() {
      try #require(ContinuousClock.now < end)
      usleep(5000)
      restart.proceed(with: process, hasChanged: false)
    }
  }

  @Test func changesCloseTogetherAreReadOnce() throws {
    var reads = 0
    let restart = try restart(pause: .seconds(2)) {
      reads += 1
      return false
    }
    for _ in 0..<3 { restart.proceed(with: 0, hasChanged: true) }
    #expect(reads == 0 && restart.deadline != nil)
    try wait(restart) { reads > 0 }
    #expect(reads == 1)
    #expect(restart.deadline == nil && !restart.isDue())
  }

  @Test func aCommandThatIgnoresSIGTERMIsKilled() throws {
    let command = try ChildProcess(
      ["sh", "-c", "trap '' TERM; kill -STOP $$; while :; do sleep 0.05; done"],
      environment: ["PATH": "/usr/bin:/bin"])
    #expect(command.waitForStop())
    let restart = try restart(patience: .milliseconds(300)) { true }
    restart.proceed(with: command.id, hasChanged: true)
    #expect(restart.requests.isEmpty)
    try wait(restart, command.id) { command.status() != nil }
    #expect(command.status() == -SIGKILL)
    #expect(restart.isDue())
    #expect(restart.requests.count == 1 && !restart.isDue())
  }

  /// A stopped command would not act on the signal.
  @Test func aStoppedCommandIsContinued() throws {
    let command = try ChildProcess(["sh", "-c", "kill -STOP $$"], environment: ["PATH": "/usr/bin:/bin"])
    #expect(command.waitForStop())
    try restart { true }.proceed(with: command.id, hasChanged: true)
    #expect(try command.end() == -SIGTERM)
  }

  @Test(arguments: [
    (SIGINT, true, true), (SIGTERM, false, true), (SIGHUP, true, true), (SIGHUP, false, false),
    (SIGUSR1, false, false),
  ])
  func aCommandThatWasToldToEndIsNotRestarted(_ signal: Int32, isFromKernel: Bool, isTold: Bool) throws {
    var reads = 0
    let restart = try restart {
      reads += 1
      return false
    }
    restart.observe(BlockedSignals.Arrival(signal: signal, sender: 0, isFromKernel: isFromKernel))
    restart.proceed(with: 0, hasChanged: true)
    #expect(reads == (isTold ? 0 : 1))
  }
}
