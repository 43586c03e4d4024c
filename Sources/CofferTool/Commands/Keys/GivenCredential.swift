internal import Coffer
internal import Synchronization

/// A credential that somebody has given already.
struct GivenCredential: VaultCredentialSource {
  let name: String
  private let secret: SharedSecret
  private let isPassphrase: Bool

  init(passphrase: consuming SecretBytes) {
    name = "the terminal"
    secret = SharedSecret(passphrase)
    isPassphrase = true
  }

  init(key: consuming SecretBytes, named name: String) {
    self.name = name
    secret = SharedSecret(key)
    isPassphrase = false
  }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    isPassphrase ? .passphrase(secret.bytes.copy()) : .key(secret.bytes.copy())
  }
}

/// The prompt for a passphrase, asked once at most: a change of the keys needs every credential several times.
final class RememberedPrompt: VaultCredentialSource {
  private struct State {
    var mayAsk = true
    var answer: SharedSecret?
  }
  private let state = Mutex(State())
  private let prompt = PassphrasePrompt()

  var name: String { prompt.name }

  /// From now on there is only what was answered.
  func stopAsking() { state.withLock { $0.mayAsk = false } }

  func credential(for vault: VaultDescription) throws(SecretError) -> VaultCredential? {
    let (mayAsk, answer) = state.withLock { ($0.mayAsk, $0.answer) }
    if let answer { return .passphrase(answer.bytes.copy()) }
    guard mayAsk, let entered = try prompt.credential(for: vault) else { return nil }
    let kept = SharedSecret(entered.secret.copy())
    state.withLock { $0 = State(mayAsk: false, answer: kept) }
    return .passphrase(kept.bytes.copy())
  }
}
