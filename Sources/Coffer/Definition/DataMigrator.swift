public import CofferCore

/// The versions of a stored value, and the steps between them. ``VaultStorable/configure(builder:)`` registers the
/// steps.
///
/// The versions are counted along the chain of steps that ends with `Value`: the type that no step leads to is the
/// first version. The steps can be registered in any order. Thread-safe.
public struct DataMigrator<Value: Codable & Sendable>: Sendable {
  /// Collects the steps. Not thread-safe.
  public final class Builder {
    fileprivate var steps: [MigrationStep] = []
    fileprivate var oldest = 1

    /// Adds the step from the values of one version to those of the next.
    ///
    /// The step runs when a value of an earlier version is read, in any thread, and again if the value was changed
    /// meanwhile or if the result could not be stored. It must not have other effects. If it throws, the read throws
    /// `.migrationFailed` without the error, which may quote the value, and the stored value stays as it is.
    @discardableResult
    public func register<From: Decodable & Sendable, To: Decodable & Sendable>(
      from: From.Type, to: To.Type, _ convert: @escaping @Sendable (From) throws -> To
    ) -> Builder {
      steps.append(MigrationStep(convert))
      return self
    }

    /// Sets the version of the first type of the chain, which is 1 by default.
    ///
    /// Raise it by one with each step that is taken out at the beginning, so that the other types keep their versions.
    /// Values of earlier versions are then no longer read.
    @discardableResult
    public func oldestVersion(_ version: Int) -> Builder {
      oldest = version
      return self
    }
  }

  private let chain: Result<[MigrationStep], SecretError>
  private let oldest: Int

  /// Creates a migrator with the steps that `configure` registers.
  public init(_ configure: (Builder) -> Void) {
    let builder = Builder()
    configure(builder)
    oldest = builder.oldest
    chain = Result { () throws(SecretError) in
      guard builder.oldest > 0 else { throw invalid("The oldest version is less than 1.") }
      return try MigrationStep.chain(builder.steps, to: Value.self)
    }
  }

  /// The version of `Value`. Throws `.invalidMigration`.
  func current() throws(SecretError) -> Int { oldest + (try chain.get().count) }

  /// Returns the value that `bytes` encode as one of the earlier `version`, converted by the steps. `nil` is an encoded
  /// `nil`.
  ///
  /// For bytes from elsewhere, such as an old file. ``VaultStored`` migrates by itself. Throws `.decodingFailed` if the
  /// bytes are no value of `version`, `.migrationFailed`, `.unsupportedVersion` and `.invalidMigration`.
  public func value(
    from bytes: SecretBytes, version: Int, coder: any SecretCoder = StandardSecretCoder()
  ) throws(SecretError) -> Value? {
    try value(of: EncodedValue(secret: bytes, version: version), coder)
  }

  /// Returns the value, converted by the steps from its version on. Throws `.decodingFailed` if the bytes are no value
  /// of their version, `.migrationFailed` and `.unsupportedVersion`, and `.invalidMigration` even if nothing is stored.
  func value(of stored: EncodedValue?, _ coder: any SecretCoder) throws(SecretError) -> Value? {
    let steps = try chain.get()
    guard let stored else { return nil }
    let version = stored.version ?? 1
    guard (oldest...oldest + steps.count).contains(version) else {
      throw SecretError(
        .unsupportedVersion,
        "The stored value has version \(version), and this program reads "
          + (steps.isEmpty ? "version \(oldest)." : "the versions \(oldest) to \(oldest + steps.count)."),
        advice: "Use a version of the program that reads it, or store a new value.")
    }
    let remaining = steps[(version - oldest)...]
    guard let first = remaining.first else { return try coder.decodeStored(Value.self, from: stored) }
    guard var value = try first.decode(stored, coder) else { return nil }
    for step in remaining { value = try step.convert(value) }
    return (value as? Versioned<Value>)?.value
  }
}

/// A value of some version. The struct keeps its type in a cast, where an optional would be unwrapped.
private struct Versioned<Value: Sendable>: Sendable {
  let value: Value
}

private struct MigrationStep: Sendable {
  let from: any Sendable.Type
  let to: any Sendable.Type
  /// Decodes a stored value of the type that the step begins with. `nil` if it is an encoded `nil`.
  let decode: @Sendable (EncodedValue, any SecretCoder) throws(SecretError) -> (any Sendable)?
  let convert: @Sendable (any Sendable) throws(SecretError) -> any Sendable

  init<From: Decodable & Sendable, To: Decodable & Sendable>(
    _ body: @escaping @Sendable (From) throws -> To
  ) {
    (from, to) = (From.self, To.self)
    decode = { stored, coder throws(SecretError) in
      try coder.decodeStored(From.self, from: stored).map { Versioned(value: $0) }
    }
    convert = { value throws(SecretError) in
      do {
        if let value = value as? Versioned<From> { return Versioned(value: try body(value.value)) }
      } catch {
        // Without the error of the step, which may quote the value.
      }
      throw SecretError(
        .migrationFailed,
        "The step from \(From.self) to \(To.self) failed. The stored value is unchanged.",
        advice: "Correct the step in the program, or store a new value.")
    }
  }

  /// Returns the steps in the order in which they lead to `type`. Throws `.invalidMigration` if they are not one chain.
  static func chain<Value>(_ steps: [MigrationStep], to type: Value.Type) throws(SecretError)
    -> [MigrationStep]
  {
    for (index, step) in steps.enumerated() {
      if steps[..<index].contains(where: { $0.to == step.to }) {
        throw invalid("Two steps lead to \(step.to).")
      }
      if steps[..<index].contains(where: { $0.from == step.from }) {
        throw invalid("Two steps begin with \(step.from).")
      }
    }
    var chain: [MigrationStep] = []
    var target: any Any.Type = type
    while let step = steps.first(where: { $0.to == target }) {
      if chain.count == steps.count { throw invalid("The steps to \(step.to) are a cycle.") }
      chain.insert(step, at: 0)
      target = step.from
    }
    guard let other = steps.first(where: { step in !chain.contains { $0.from == step.from } }) else {
      return chain
    }
    throw invalid("The step from \(other.from) to \(other.to) does not lead to \(type).")
  }
}

private func invalid(_ reason: String) -> SecretError {
  SecretError(
    .invalidMigration, reason,
    advice: "Register one step between each version and the next, up to the current type.")
}
