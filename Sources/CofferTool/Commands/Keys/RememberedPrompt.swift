internal import Coffer
internal import Synchronization

/// A passphrase prompt that appears at most once. A change of key slots uses each credential several times.
final class RememberedPrompt: VaultCredentialSource {
  private struct State {
    var mayPrompt = true
    var answer: SharedSecret?
  }
  private let state = Mutex(State())
  private let prompt = PassphrasePrompt()

  var name: String { prompt.name }

  /// Disables the prompt. An earlier answer remains available.
  func stopPrompting() { state.withLock { $0.mayPrompt = false } }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    let (mayPrompt, answer) = state.withLock { ($0.mayPrompt, $0.answer) }
    if let answer { return .passphrase(answer.bytes.copy()) }
    guard mayPrompt, let entered = try prompt.credential(for: vault) else { return nil }
    let kept = SharedSecret(entered.secret.copy())
    state.withLock { $0 = State(mayPrompt: false, answer: kept) }
    return .passphrase(kept.bytes.copy())
  }
}
