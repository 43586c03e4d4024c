package import FoundationEssentials

/// One version of a secret, or its removal, as a backend keeps it.
package protocol HistoryRecord {
  /// The number of the version, as in ``SecretVersion``.
  var number: Int { get }
  /// The metadata that was stored with the value, or empty metadata for a removal.
  var metadata: SecretMetadata { get }
  /// Whether the record is a removal. Every other record has a value.
  var isRemoval: Bool { get }
  /// When the version was stored, or the secret removed.
  var date: Date { get }
  /// The ``date`` in milliseconds since 1970.
  var time: Int64 { get }
  /// Whether the versions before this record are dropped: none is shown, restored or kept.
  var keepsNothing: Bool { get }
  /// Whether the next change drops the versions before it as well, if it is told nothing.
  var keepsNoHistory: Bool { get }
  /// Whether a merge found this version on one side and `newest`, the newest record of the secret, on the other. Then
  /// no limit drops it.
  func stands(beside newest: Self) -> Bool
  /// Whether it also has another value than `newest`.
  func lost(to newest: Self) -> Bool
}

extension HistoryRecord {
  package var keepsNothing: Bool { false }
  package var keepsNoHistory: Bool { keepsNothing }
  package func stands(beside newest: Self) -> Bool { false }
  package func lost(to newest: Self) -> Bool { false }
}

extension History {
  /// Whether a change after the record `newest`, or after none, drops the earlier versions. A secret that is stored
  /// again after its removal counts as new: a rewrite may drop the removal, and must not change the result.
  package func keepsNothing(after newest: (some HistoryRecord)?) -> Bool {
    switch self {
    case .unchanged: newest.map { $0.keepsNoHistory && !$0.isRemoval } ?? false
    case .kept: false
    case .none: true
    }
  }
}

/// Decides which records of a secret a backend shows and keeps. `VaultFormat` specifies the rule under “History”.
package struct HistoryRule: Sendable {
  package let limit: HistoryLimit
  /// Milliseconds since 1970.
  private let now: Int64
  private static let millisecondsPerDay: Int64 = 86_400_000

  package init(_ limit: HistoryLimit, now: Date) { self.init(limit, time: Timestamp.milliseconds(now)) }

  /// `time` is the present, from which ages are counted, in milliseconds since 1970.
  package init(_ limit: HistoryLimit, time: Int64) { (self.limit, now) = (limit, time) }

  /// Returns the records of a secret that are kept, oldest first: the current version, the newest earlier versions
  /// within the limit, the versions that stand beside it since a merge, and each removal after a kept version.
  package func kept<Record: HistoryRecord>(_ records: [Record]) -> [Record] {
    guard let newest = records.last else { return [] }
    // Most secrets have one version, for which the code below would cost as much as its encryption.
    if records.count == 1 { return newest.isRemoval ? [] : records }
    var kept: [Record] = []
    var (earlier, isWithin) = (0, true)
    let start = records.lastIndex(where: { $0.keepsNothing }) ?? 0
    for index in records[start...].indices.reversed() where !records[index].isRemoval {
      if index + 1 < records.count {
        let next = records[index + 1]
        if !records[index].stands(beside: newest) {
          isWithin = isWithin && earlier < limit.versions && !isTooOld(max(records[index].time, next.time))
          guard isWithin else { continue }
          earlier += 1
        }
        if next.isRemoval { kept.append(next) }
      }
      kept.append(records[index])
    }
    return kept.reversed()
  }

  /// Whether a version that was replaced or removed at `time` is too old for the limit.
  private func isTooOld(_ time: Int64) -> Bool {
    let (age, overflow) = now.subtractingReportingOverflow(time)
    return limit.days > 0 && (overflow ? time < now : age > Int64(limit.days) * Self.millisecondsPerDay)
  }
}

extension Array where Element: HistoryRecord {
  /// Whether a version stands in conflict with the newest record. These are all records of a secret, oldest first.
  package var isInConflict: Bool {
    guard count > 1, let newest = last, !newest.isRemoval else { return false }
    return self[(lastIndex { $0.keepsNothing } ?? 0)...].dropLast().contains { $0.lost(to: newest) }
  }
}
