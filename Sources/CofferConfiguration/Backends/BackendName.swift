/// The name of a backend, as `COFFER_BACKEND`, the configuration file and command lines spell it, alone or before a
/// colon and a place.
///
/// Later versions may add names. A name that this version does not know can be made, but `backend` of
/// ``BackendConfiguration`` throws `.configuration` for it.
public struct BackendName: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
  /// The text of the name.
  public let rawValue: String

  /// Makes a name of any text.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The text of the name.
  public var description: String { rawValue }
}

extension BackendName {
  /// A `MemoryBackend` that ends with the process, for the tests of programs. Only `COFFER_BACKEND` and calls choose
  /// it: it cannot be recorded, and the tool `secret` refuses it, because what it stores would be lost at once.
  public static let memory = BackendName(rawValue: "memory")
}
