import Testing

@testable import TokenRefresh

/// The judgement about killed processes, on ledgers that are written by hand.
struct JudgementTests {
  private func judgement(
    _ events: [(Ledger.Event.Kind, Int, Int32)], _ acknowledgements: [(Int, Int32)], stored: Int
  ) -> Judgement {
    Judgement(
      events.map { Ledger.Event(kind: $0, number: $1, process: $2) },
      acknowledgements.map { Judgement.Acknowledgement(number: $0, process: $1) }, stored: stored)
  }

  @Test func refreshesOneAfterTheOther() {
    let found = judgement(
      [(.given, 0, 1), (.answered, 0, 1), (.given, 1, 2), (.answered, 1, 2)], [(1, 1), (2, 2)], stored: 2)
    #expect(found.refreshes == 2)
    #expect([found.killsUnderLease, found.reusesByKilled, found.reusesByLive, found.lost] == [0, 0, 0, 0])
  }

  @Test func aProcessKilledBeforeItsAcknowledgementMayLeaveTheOldToken() {
    let found = judgement(
      [(.given, 0, 1), (.killed, 0, 1), (.given, 0, 2), (.answered, 0, 2)], [(1, 2)], stored: 1)
    #expect([found.killsUnderLease, found.reusesByKilled, found.reusesByLive, found.lost] == [1, 1, 0, 0])
  }

  @Test func twoLiveProcessesWithOneToken() {
    let found = judgement(
      [(.given, 0, 1), (.given, 0, 2), (.answered, 0, 1), (.answered, 0, 2)], [(1, 2)], stored: 1)
    #expect([found.reusesByKilled, found.reusesByLive, found.lost] == [0, 1, 0])
    let killedLater = judgement([(.given, 0, 1), (.given, 0, 2), (.killed, 0, 1)], [], stored: 0)
    #expect([killedLater.reusesByKilled, killedLater.reusesByLive] == [0, 1])
  }

  @Test func anAcknowledgedTokenThatIsForgotten() {
    let used = judgement(
      [(.given, 0, 1), (.answered, 0, 1), (.killed, 0, 1), (.given, 0, 2)], [(1, 1)], stored: 1)
    #expect([used.reusesByKilled, used.reusesByLive, used.lost] == [0, 1, 1])
    #expect(judgement([(.given, 0, 1), (.answered, 0, 1)], [(1, 1)], stored: 0).lost == 1)
    #expect(judgement([], [(1, 1)], stored: 1).lost == 1, "an acknowledgement without a refresh")
  }
}
