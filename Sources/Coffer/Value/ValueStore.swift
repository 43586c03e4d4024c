internal import CofferCore

/// Where the value of a ``ValueHub`` is kept. A member of the family of wrappers is a face of a hub over such a store.
protocol ValueStore: Sendable {
  associatedtype Value: Sendable
  /// What is remembered of a value to detect changes. It reveals nothing of the value.
  associatedtype Summary: Hashable & Sendable

  /// Returns the value, or `nil` if there is none. Without `mayPrompt`, a store that would need a prompt throws `.locked`.
  func load(mayPrompt: Bool) throws(SecretError) -> Value?

  /// Stores the value in one durable step, or removes it if it is `nil`.
  ///
  /// With an expectation, the comparison and the change are one step for the threads of this process, and for other
  /// processes if the backend has transactions.
  func save(_ value: Value?, over expectation: SaveExpectation<Summary>) throws(SecretError) -> SaveResult

  /// Returns a stream with an element after each change by this process or another one, or `nil` if the store cannot
  /// tell. Throws if the store cannot be reached yet.
  func changes() throws(SecretError) -> AsyncStream<Void>?

  func summary(of value: Value) -> Summary

  /// The size of the value in memory, in bytes.
  func size(of value: Value) -> Int
}

/// What the store must contain for a value to be saved.
enum SaveExpectation<Summary: Hashable & Sendable>: Sendable {
  case anything
  /// The value with that summary, or none if it is `nil`.
  case only(Summary?)
}

enum SaveResult: Sendable {
  case saved
  /// There was no value to remove.
  case wasAbsent
  /// The store contains something else than was expected. It was not changed.
  case isDifferent
}
