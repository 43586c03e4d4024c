package import CofferCore
package import FoundationEssentials

/// A record, and the place of its sealed value in the file. A remove has no value.
package struct BlockEntry: Sendable {
  package let record: Record
  package let valueOffset: Int

  package init(record: Record, valueOffset: Int) { (self.record, self.valueOffset) = (record, valueOffset) }
}

extension BlockEntry: HistoryRecord {
  package var number: Int { record.sequence }
  package var date: Date { Timestamp.date(record.time) }
  package var metadata: SecretMetadata { isRemoval ? SecretMetadata() : record.metadata }
  package var isRemoval: Bool { record.kind == .remove }
  package var time: Int64 { record.time }
  package var keepsNothing: Bool { record.keepsNothing }
  package var keepsNoHistory: Bool { record.keepsNoHistory }
  package func stands(beside newest: BlockEntry) -> Bool { record.stands(beside: newest.record) }
  package func lost(to newest: BlockEntry) -> Bool { stands(beside: newest) && record.conflict != nil }
}

/// The order of the base: by lookup id, and the versions of one secret by sequence.
package struct VersionPosition: Comparable, Sendable {
  package let id: Bytes16
  package let sequence: Int

  package init(id: Bytes16, sequence: Int) { (self.id, self.sequence) = (id, sequence) }

  package init(_ record: Record) { self.init(id: record.id, sequence: record.sequence) }

  package static func < (left: Self, right: Self) -> Bool {
    left.id == right.id ? left.sequence < right.sequence : left.id < right.id
  }
}
