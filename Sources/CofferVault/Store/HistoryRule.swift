package import CofferCore
package import CofferVaultFormat
package import FoundationEssentials

/// Decides which records of a secret a vault shows, and keeps when it rewrites its file.
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
  package func kept(_ records: [BlockEntry]) -> [BlockEntry] {
    var kept: [BlockEntry] = []
    var earlier = 0
    for (index, entry) in records.enumerated().reversed() where entry.record.kind == .put {
      if index + 1 < records.count {
        let next = records[index + 1]
        guard earlier < limit.versions, !isTooOld(next.record.time) else { break }
        earlier += 1
        if next.record.kind == .remove { kept.append(next) }
      }
      kept.append(entry)
    }
    return kept.reversed()
  }

  /// Whether a version that was superseded at `time` is beyond the limit of age.
  private func isTooOld(_ time: Int64) -> Bool {
    let (age, overflow) = now.subtractingReportingOverflow(time)
    return limit.days > 0 && (overflow ? time < now : age > Int64(limit.days) * Self.millisecondsPerDay)
  }
}
