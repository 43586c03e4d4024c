#if Keyring
internal import CofferCore

/// An item with the properties that were read. The other properties are empty, even the attributes.
struct FoundItem: Equatable {
  let path: String
  var attributes: [String: String] = [:]
  var label: String?
  /// In seconds since 1970. 0 means that the time is not known.
  var created: UInt64 = 0
  var modified: UInt64 = 0

  static let properties: Set = ["Attributes", "Label", "Created", "Modified"]
  /// The properties that decide which of several items are different secrets, and which one is read.
  static let difference: Set = ["Attributes", "Label", "Modified"]
}

struct FoundItems {
  var unlocked: [FoundItem] = []
  var locked: [FoundItem] = []
}

/// Receives a description of an item that a list leaves out, and the error of reading it.
typealias UnreadableObserver = @Sendable (String, SecretError) -> Void

extension Variant {
  /// The items whose paths are the elements of an `ao`.
  var items: [FoundItem]? { paths?.map { FoundItem(path: $0) } }
}
#endif
