#if Keyring
internal import CofferCore
internal import CofferLibc

/// Deletes and renames the items of a secret.
struct ItemRemover {
  let search: ItemSearch
  let identifier: SecretIdentifier

  private var service: SecretServiceProxy { search.service }

  /// Returns the items with the identifier, all of them unlocked, with these properties. Throws `.ambiguous` if they
  /// are different secrets, unless `all` is `true`.
  func items(
    _ identifier: SecretIdentifier, all: Bool, reading properties: Set<String> = FoundItem.properties
  ) throws(ServiceFailure) -> [FoundItem] {
    // All locked items are unlocked before the first item is changed.
    var found = try search.items(matching: ItemAttributes.queries(identifier))
    let difference = found.count > 1 ? FoundItem.difference : []
    found = try service.read(properties.union(difference), of: found)
    if !all { try found.requireOne(identifier) }
    return found.sorted(by: >)
  }

  /// Deletes the secret. Calls `onRemoval` after each item.
  func remove(all: Bool, onRemoval: () -> Void) throws(ServiceFailure) {
    for item in try items(identifier, all: all, reading: []) {
      try delete(item.path)
      onRemoval()
    }
  }

  /// Gives the secret the identifier `new`. Before the first original is deleted, all copies are complete and were read
  /// back. If an original cannot be deleted, its copy is deleted, and the error is thrown. Calls `onMove` with the
  /// items that are replaced, before they are deleted.
  func move(
    to new: SecretIdentifier, replacing: Bool, all: Bool, onMove: ([FoundItem]) -> Void
  ) throws(ServiceFailure) {
    let originals = try items(identifier, all: all)
    if originals.isEmpty { throw .error(.missing(identifier)) }
    if new == identifier { return }
    let replaced = try items(new, all: all || !replacing, reading: ["Created"])
    if !replaced.isEmpty && !replacing { throw .error(.taken(new)) }
    var copies: [String] = []
    do throws(ServiceFailure) {
      for item in originals { copies.append(try copy(item, to: new)) }
      if search.process.kind == .kWallet {
        // KWallet writes a copy to the disk some seconds after its answer, but deletes an original at once.
        let start = ContinuousClock.now
        usleep(7_000_000)
        search.deadline.leaveOut(since: start)
      }
      for item in originals { try delete(item.path) }
    } catch {
      if copies.isEmpty { throw error }
      try undo(copies, of: originals, after: error.secretError)
    }
    onMove(replaced)
    for item in replaced { try delete(item.path) }
  }

  /// Completes a move to `new` that was interrupted: deletes those of `replaced` that still exist.
  func finishMove(to new: SecretIdentifier, replacing replaced: [FoundItem]) throws(ServiceFailure) {
    // A restarted service may have given the path to another item.
    for item in try items(new, all: true, reading: ["Created"])
    where replaced.contains(where: { $0.path == item.path && $0.created == item.created }) {
      try delete(item.path)
    }
  }

  private func copy(_ item: FoundItem, to new: SecretIdentifier) throws(ServiceFailure) -> String {
    let value = try search.secret(of: item.path)
    let metadata = item.metadata(of: identifier)
    let path = try service.createItem(
      in: String(item.collection), label: ItemAttributes.label(new, metadata),
      attributes: ItemAttributes.attributes(item.attributes, renamedTo: new, created: item.created),
      value, search.contentType(of: item.path), replacing: false, in: search.session(),
      confirmedBy: search.prompter)
    guard let path, path != item.path else { throw .malformed }
    guard try search.secret(of: path).isEqual(to: value) else {
      try delete(path)
      throw .error(
        .io, "The value read back from “\(new.account)” differs from the value stored there.",
        advice: "“\(identifier.account)” was not removed. Try again.")
    }
    return path
  }

  /// Deletes the copies whose originals still exist, and throws `error`.
  private func undo(_ copies: [String], of originals: [FoundItem], after error: SecretError) throws(ServiceFailure) {
    do throws(ServiceFailure) {
      let originals = originals.map { FoundItem(path: $0.path) }
      let remaining = Set(try service.read(["Attributes"], of: originals).map(\.path))
      for (copy, original) in zip(copies, originals) where remaining.contains(original.path) {
        try delete(copy)
      }
    } catch _ {
      throw .error(
        error.code, error.reason + " A copy with the new name remains.",
        advice: "Compare the two secrets, and remove one of them.", effect: .changed)
    }
    throw .error(error)
  }

  private func delete(_ item: String) throws(ServiceFailure) {
    do throws(ServiceFailure) {
      try service.delete(item, confirmedBy: search.prompter)
    } catch  where error.isNoSuchObject {
      // Another program has removed the item, unless it can still be read.
      if try !service.read(["Attributes"], of: [FoundItem(path: item)]).isEmpty { throw error }
    }
  }
}
#endif
