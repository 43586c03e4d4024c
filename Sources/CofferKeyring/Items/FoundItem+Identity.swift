#if Keyring
internal import CofferCore

extension FoundItem {
  /// The attributes by which another program distinguishes this item from others with the same identifier.
  var distinction: [String: String] { ItemAttributes.distinction(attributes) }

  /// Whether the item has no attributes but its identifier by which a program may search for it.
  var isGeneral: Bool { ItemAttributes.withoutProgram(distinction).isEmpty }

  var collection: Substring { path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }

  /// Whether both are the same secret, stored twice.
  func isDuplicate(of other: FoundItem) -> Bool {
    ItemAttributes.areEqual(distinction, other.distinction) && label == other.label
  }

  /// Whether the items differ at most in the program that wrote them and in the label.
  func isAlike(_ other: FoundItem) -> Bool {
    ItemAttributes.areEqual(
      ItemAttributes.withoutProgram(distinction), ItemAttributes.withoutProgram(other.distinction))
  }

  /// What a person sees of the item: its label, or else its attributes.
  var title: String {
    if let label, !label.isEmpty { return label }
    return attributes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
  }

  /// The identifier in the attributes, or `nil` if they do not contain a valid one.
  var identifier: SecretIdentifier? { ItemAttributes.identifier(attributes) }

  func metadata(of identifier: SecretIdentifier) -> SecretMetadata {
    ItemAttributes.metadata(of: self, identifier)
  }
}

/// Of several items with one identifier, the greatest one is read.
extension FoundItem: Comparable {
  static func < (left: FoundItem, right: FoundItem) -> Bool {
    if left.modified != right.modified { return left.modified < right.modified }
    // The times are in whole seconds. A general item is greater, because a store may change it even among several.
    if left.isGeneral != right.isGeneral { return right.isGeneral }
    // Paths end in a counter: the longer path is later, and of two with the same length, the greater one.
    if left.path.utf8.count != right.path.utf8.count { return left.path.utf8.count < right.path.utf8.count }
    return left.path.utf8.lexicographicallyPrecedes(right.path.utf8)
  }
}

extension [FoundItem] {
  /// The items that are different secrets, the greatest first. Of duplicates, only the greatest is returned.
  var different: [FoundItem] {
    var result: [FoundItem] = []
    for item in sorted(by: >) where !result.contains(where: item.isDuplicate) { result.append(item) }
    return result
  }

  /// Throws `.ambiguous` if the items are different secrets.
  func requireOne(_ identifier: SecretIdentifier) throws(ServiceFailure) {
    let different = different
    if different.count < 2 { return }
    // Items with the same title differ in an attribute.
    let titles = different.map { item in
      let isAlone = !different.contains { $0.path != item.path && $0.title == item.title }
      let attributes = item.distinction.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
      return isAlone ? "“\(item.title)”" : "“\(item.title)” (\(attributes.joined(separator: ", ")))"
    }.joined(separator: ", ")
    throw .error(
      .ambiguous,
      "\(different.count) different items of the keyring have the name “\(identifier.account)”: \(titles).",
      advice: "Change the one that you mean with the program that stored it, or change all of them.")
  }
}
#endif
