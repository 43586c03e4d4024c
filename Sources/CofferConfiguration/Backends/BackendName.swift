/// The name of a backend, as `COFFER_BACKEND`, the configuration file and command lines write it, by itself or before a
/// colon and a place.
///
/// Later versions may add names. A name may have any text, but `backend` of ``BackendConfiguration`` throws
/// `.configuration` for a name that this version does not know.
public struct BackendName: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
  /// The text of the name.
  public let rawValue: String

  /// Creates a name with any text.
  public init(rawValue: String) { self.rawValue = rawValue }

  /// The text of the name.
  public var description: String { rawValue }
}

extension BackendName {
  /// A `MemoryBackend`, for the tests of programs. Its secrets end with the process, so the tool `secret` refuses it.
  /// Only `COFFER_BACKEND` and calls can choose it: it cannot be recorded.
  public static let memory = BackendName(rawValue: "memory")
}
