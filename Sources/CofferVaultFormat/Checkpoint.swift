package import CofferCore

/// One state of one vault: the number of changes so far, and the tag of the last change.
package struct Checkpoint: Hashable, Comparable, Sendable {
  package let sequence: Int
  package let tailTag: Bytes16

  /// The bytes that a checkpoint has in the list of recent changes.
  package static let length = 24

  package init(sequence: Int, tailTag: Bytes16) { (self.sequence, self.tailTag) = (sequence, tailTag) }

  package static func < (left: Self, right: Self) -> Bool {
    left.sequence == right.sequence ? left.tailTag < right.tailTag : left.sequence < right.sequence
  }

  /// Parses the list of the changes before `root`. Throws `.tampered`.
  package static func list(_ bytes: [UInt8], before root: BaseIndex) throws(SecretError) -> [Checkpoint] {
    var reader = ByteReader(bytes, part: "the list of recent changes")
    let list = try reader.checkpoints()
    guard list.allSatisfy({ $0.sequence >= root.recent.floor && $0.sequence < root.sequence }) else {
      throw reader.failure("has changes that are not before the root")
    }
    return list
  }
}
