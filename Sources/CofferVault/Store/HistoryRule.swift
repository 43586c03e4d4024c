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
  /// They are the current version, and the newest earlier versions within the limit with the removals between them. The
  /// removal of a secret goes with its last version.
  package func kept(_ records: [BlockEntry]) -> ArraySlice<BlockEntry> {
    guard let newest = records.last else { return [] }
    var start = newest.record.kind == .put ? records.endIndex - 1 : records.endIndex
    var earlier = 0
    for index in records.indices.dropLast().reversed() where records[index].record.kind == .put {
      guard earlier < limit.versions, !isTooOld(records[index + 1].record.time) else { break }
      earlier += 1
      start = index
    }
    return records[start...]
  }

  /// Whether a version that was superseded at `time` is beyond the limit of age.
  private func isTooOld(_ time: Int64) -> Bool {
    let (age, overflow) = now.subtractingReportingOverflow(time)
    return limit.days > 0 && (overflow ? time < now : age > Int64(limit.days) * Self.millisecondsPerDay)
  }
}
