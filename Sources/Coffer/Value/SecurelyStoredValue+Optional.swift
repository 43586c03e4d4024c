public import CofferCore

// `SecurelyStoredValue<String?>` would give a `String??`. It is refused at compile time, as an ambiguous use
// of `init`: for an optional there are two initialisers that are better than the general one, and neither is
// better than the other. An unavailable one would not do, because the compiler prefers whatever is available.
// In generic code, where the compiler does not see the optional, a value of none removes the secret.

/// No type but `Optional` conforms to it: name the type without its question mark, `SecurelyStoredValue<String>`.
public protocol _NameTheTypeWithoutItsQuestionMark {}
/// No type but `Optional` conforms to it: the value is optional already.
public protocol _TheValueIsOptionalAlready {}

extension Optional: _NameTheTypeWithoutItsQuestionMark, _TheValueIsOptionalAlready {}

extension SecurelyStoredValue where Value: _NameTheTypeWithoutItsQuestionMark {
  /// Refuses an optional type: name the type without its question mark.
  public convenience init(
    key: String,
    service: String? = nil,
    backend: (any SecretBackend)? = nil,
    coder: any SecretCoder = StandardSecretCoder()
  ) {
    self.init(key: key, service: service, backend: backend, coder: coder, source: .process)
  }
}

extension SecurelyStoredValue where Value: _TheValueIsOptionalAlready {
  /// Refuses an optional type: the value is optional already.
  public convenience init(
    key: String,
    service: String? = nil,
    backend: (any SecretBackend)? = nil,
    coder: any SecretCoder = StandardSecretCoder()
  ) {
    self.init(key: key, service: service, backend: backend, coder: coder, source: .process)
  }
}
