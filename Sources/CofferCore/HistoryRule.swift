package import FoundationEssentials

/// One version of a secret, or its removal, as ``HistoryRule`` sees it.
package protocol HistoryRecord {
  /// Whether the record says that the secret was removed. Otherwise it has a value.
  var isRemoval: Bool { get }
  /// When the version was stored, or the secret removed: milliseconds since 1970.
  var time: Int64 { get }
}

/// Decides which records of a secret a backend shows and keeps. `VaultFormat` specifies the rule under “History”.
package struct HistoryRule: Sendable {
  package let limit: HistoryLimit
  /// Milliseconds since 1970.
  private let now: Int64
  private static let millisecondsPerDay: Int64 = 86_400_000

  package init(_ limit: HistoryLimit, now: Date) {
    self.limit = limit
    self.now = Timestamp.milliseconds(now)
  }

  /// Returns the records to keep of one secret, whose records ascend.
  ///
  /// They are the current version, the newest earlier versions within the limit, and the removals directly
  /// after those.
  package func kept<Record: HistoryRecord>(_ records: [Record]) -> [Record] {
    var kept: [Record] = []
    var earlier = 0
    for index in records.indices.reversed() where !records[index].isRemoval {
      if index + 1 < records.count {
        let next = records[index + 1]
        guard earlier < limit.versions, !isTooOld(next.time) else { break }
        earlier += 1
        if next.isRemoval { kept.append(next) }
      }
      kept.append(records[index])
    }
    return kept.reversed()
  }

  /// Whether a version that was superseded at `time` is beyond the limit of age.
  private func isTooOld(_ time: Int64) -> Bool {
    let (age, overflow) = now.subtractingReportingOverflow(time)
    return limit.days > 0 && (overflow ? time < now : age > Int64(limit.days) * Self.millisecondsPerDay)
  }
}
