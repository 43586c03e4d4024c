@testable import TokenRefresh

/// What the ledger and the acknowledgements of killed processes say.
///
/// The ledger has one order for all processes. A process asks the login service only with the lease of the token. So
/// the order of the lines is the order of the refreshes, and no clock is needed.
struct Judgement {
  /// After a refresh: the number of the token that is stored, and the process that has stored it.
  struct Acknowledgement: Equatable {
    var number: Int
    var process: Int32
  }

  var refreshes = 0
  /// Killed processes that the login service had not answered yet. They had the lease.
  var killsUnderLease = 0
  /// Refresh tokens that were used again after a process was killed before it stored the next one. The stored token is
  /// then the old one, as it must be.
  var reusesByKilled = 0
  /// Refresh tokens that were used again although the process of the use before was alive, or had stored the next
  /// token.
  var reusesByLive = 0
  /// Acknowledged tokens after which an older one was used, or is stored at the end.
  var lost = 0

  init(_ events: [Ledger.Event], _ acknowledgements: [Acknowledgement], stored: Int) {
    /// For each refresh token, the process that has used it last.
    var users: [Int: Int32] = [:]
    var (killed, unanswered): (Set<Int32>, Set<Int32>) = ([], [])

    for event in events {
      switch event.kind {
      case .given:
        refreshes += 1
        unanswered.insert(event.process)
        if let user = users[event.number] {
          let next = Acknowledgement(number: event.number + 1, process: user)
          if killed.contains(user), !acknowledgements.contains(next) {
            reusesByKilled += 1
          } else {
            reusesByLive += 1
          }
        }
        users[event.number] = event.process
      case .answered: unanswered.remove(event.process)
      case .killed: killed.insert(event.process)
      case .accepted: break
      }
    }
    killsUnderLease = killed.intersection(unanswered).count

    for acknowledgement in acknowledgements {
      let place = events.firstIndex {
        $0.kind == .given && $0.number == acknowledgement.number - 1 && $0.process == acknowledgement.process
      }
      // From the refresh on, every process must use the new token.
      let later = place.map { events[$0...].dropFirst() } ?? []
      let isForgotten = later.contains { $0.kind == .given && $0.number < acknowledgement.number }
      if place == nil || isForgotten || stored < acknowledgement.number { lost += 1 }
    }
  }
}
