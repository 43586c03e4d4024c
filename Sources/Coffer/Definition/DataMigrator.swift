public import CofferCore

/// The versions of a stored value, and the steps between them. ``VaultStorable/configure(builder:)`` registers the
/// steps.
///
/// The steps form a chain of versions. The type at its beginning is the first version, and `Value` is the last. The
/// steps can be registered in any order. Thread-safe.
public struct DataMigrator<Value: Codable & Sendable>: Sendable {
  /// Collects the steps. Not thread-safe.
  public final class Builder {
    fileprivate var steps: [MigrationStep] = []
    fileprivate var oldest = 1

    /// Adds the step from the values of one version to those of the next.
    ///
    /// The step runs in any thread, when a value of an earlier version is read. The step must not have other effects,
    /// because it runs again if the value was changed in that time or the result could not be stored. If it throws, the
    /// read throws `.migrationFailed` and the stored value stays. Its error is dropped, because it may quote the value.
    @discardableResult
    public func register<From: Decodable & Sendable, To: Decodable & Sendable>(
      from: From.Type, to: To.Type, _ convert: @escaping @Sendable (From) throws -> To
    ) -> Builder {
      steps.append(MigrationStep(convert))
      return self
    }

    /// Sets the version of the first type of the chain, which is 1 by default.
    ///
    /// When you remove the first step, raise this version by one, so that the other types keep their versions. Values
    /// of the removed version can then no longer be read.
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

  /// Decodes `bytes` as a value of `version`, and converts it to the current version. `nil` is an encoded `nil`.
  ///
  /// For bytes that are not in a store, such as an old file. ``VaultStored`` converts its own values. Throws
  /// `.decodingFailed` if the bytes are not a value of `version`, `.migrationFailed`, `.unsupportedVersion` and
  /// `.invalidMigration`.
  public func value(
    from bytes: SecretBytes, version: Int, coder: any SecretCoder = StandardSecretCoder()
  ) throws(SecretError) -> Value? {
    try value(of: EncodedValue(secret: bytes, version: version), coder)
  }

  /// Returns the value, converted to the current version. Throws `.decodingFailed` if the bytes are not a value of
  /// their version, `.migrationFailed` and `.unsupportedVersion`, and `.invalidMigration` even if nothing is stored.
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

/// A value of any version. The struct keeps the type of an optional, which a cast would unwrap.
private struct Versioned<Value: Sendable>: Sendable {
  let value: Value
}

private struct MigrationStep: Sendable {
  let from: any Sendable.Type
  let to: any Sendable.Type
  /// Decodes a stored value as the type ``from``. Returns `nil` for an encoded `nil`.
  let decode: @Sendable (EncodedValue, any SecretCoder) throws(SecretError) -> (any Sendable)?
  let convert: @Sendable (any Sendable) throws(SecretError) -> any Sendable

  init<From: Decodable & Sendable, To: Decodable & Sendable>(_ body: @escaping @Sendable (From) throws -> To) {
    (from, to) = (From.self, To.self)
    decode = { stored, coder throws(SecretError) in
      try coder.decodeStored(From.self, from: stored).map { Versioned(value: $0) }
    }
    convert = { value throws(SecretError) in
      do {
        if let value = value as? Versioned<From> { return Versioned(value: try body(value.value)) }
      } catch {
        // The error of the step is dropped, because it may quote the value.
      }
      throw SecretError(
        .migrationFailed, "The step from \(From.self) to \(To.self) failed. The stored value is unchanged.",
        advice: "Correct the step in the program, or store a new value.")
    }
  }

  /// Returns the steps in the order in which they lead to `type`. Throws `.invalidMigration` if they are not one chain.
  static func chain<Value>(_ steps: [MigrationStep], to type: Value.Type) throws(SecretError) -> [MigrationStep] {
    for (index, step) in steps.enumerated() {
      if steps[..<index].contains(where: { $0.to == step.to }) { throw invalid("Two steps lead to \(step.to).") }
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
    guard let other = steps.first(where: { step in !chain.contains { $0.from == step.from } }) else { return chain }
    throw invalid("The step from \(other.from) to \(other.to) does not lead to \(type).")
  }
}

private func invalid(_ reason: String) -> SecretError {
  SecretError(
    .invalidMigration, reason,
    advice: "Register one step between each version and the next, up to the current type.")
}
