internal import Coffer
internal import Synchronization

/// A passphrase prompt that appears at most once. A change of key slots uses each credential several times.
final class RememberedPrompt: VaultCredentialSource {
  private struct State {
    var isAllowed = true
    var answer: SharedSecret?
  }
  private let state = Mutex(State())
  private let prompt = PassphrasePrompt()

  var name: String { prompt.name }
  var mayPrompt: Bool { state.withLock { $0.isAllowed } }

  /// Disables the prompt. An earlier answer remains available.
  func stopPrompting() { state.withLock { $0.isAllowed = false } }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    let (isAllowed, answer) = state.withLock { ($0.isAllowed, $0.answer) }
    if let answer { return .passphrase(answer.bytes.copy()) }
    guard isAllowed, let entered = try prompt.credential(for: vault) else { return nil }
    let kept = SharedSecret(entered.secret.copy())
    state.withLock { $0 = State(isAllowed: false, answer: kept) }
    return .passphrase(kept.bytes.copy())
  }
}
