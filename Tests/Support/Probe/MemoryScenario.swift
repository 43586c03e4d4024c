internal import CofferConfiguration
internal import Coffer
internal import CofferCore
internal import CofferVault
internal import Glibc

/// Uses secrets as a program does, step by step. After each step the process stops, and its parent searches the memory
/// of the process for these secrets.
///
/// The canary is read from descriptor 3 as often as it is needed. Keys and passphrases come from the environment.
struct MemoryScenario {
  let vault: String

  private static let canaryLength = 32
  private var configuration: BackendConfiguration { .current() }

  func run(_ name: String) throws {
    switch name {
    case "values": try values()
    case "unlocking": try unlocking()
    case "slots": try slots()
    case "errors": try errors()
    case "text": try text()
    case "leak-array": leakArray()
    case "leak-release": leakRelease()
    case "locking": locking()
    default: Probe.fail("there is no scenario \(name)")
    }
  }

  /// Stops until the parent has searched the memory. Secrets in `held` must be in guarded memory and nowhere else.
  /// Secrets in `gone` must be nowhere. The copies of `counted` are counted. Other secrets may be in guarded memory.
  private func stop(
    _ step: String, held: String = "", gone: String = "", counted: String = ""
  ) {
    Probe.write("\(step)\t\(held)\t\(gone)\t\(counted)\n")
    raise(SIGSTOP)
  }

  /// `count` bytes that repeat the canary, and were never outside guarded memory.
  private func canary(_ count: Int = canaryLength) -> SecretBytes {
    SecretBytes(count: count) { bytes in
      for start in stride(from: 0, to: count, by: Self.canaryLength) {
        let wanted = min(Self.canaryLength, count - start)
        if start == 0 {
          guard read(3, bytes.baseAddress, wanted) == wanted else { Probe.fail("the canary cannot be read") }
        } else {
          UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + wanted])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<wanted]))
        }
      }
    }
  }

  private func identifier(_ account: String) throws -> SecretIdentifier {
    try SecretIdentifier(service: "probe", account: account)
  }

  /// Runs `body`, which must throw an error of that code.
  private func expect(_ code: SecretError.Code, _ body: () throws(SecretError) -> Void) {
    do throws(SecretError) {
      try body()
      Probe.fail("no error was thrown")
    } catch {
      if error.code != code { Probe.fail("another error: \(error)") }
    }
  }

  // MARK: Use of secrets

  private func values() throws {
    do {
      let backend = configuration.vault(at: vault)
      for size in [32, 1000, 5000, 200_000] {
        let name = try identifier("\(size)")
        do {
          let secret = canary(size)
          stop("\(size) read", held: "value")
          try backend.store(secret, for: name)
          stop("\(size) stored", held: "value master")
          _ = secret.count
        }
        stop("\(size) released after store", held: "master", gone: "value")
        do {
          guard let secret = try backend.lookUp(name) else { Probe.fail("the secret is missing") }
          let sum = secret.withBytes { bytes in bytes.indices.reduce(0) { $0 &+ Int(bytes[$1]) } }
          stop("\(size) looked up", held: "value master")
          let copy = secret
          if !copy.isEqual(to: secret) || sum == 0 { Probe.fail("the secret differs") }
          stop("\(size) copied", held: "value")
          _ = secret.count
        }
        stop("\(size) released after lookup", gone: "value")
      }
      let name = try identifier("32")
      try backend.withTransaction { transaction throws(SecretError) in
        do {
          let secret = canary()
          try transaction.store(secret, for: name)
        }
        stop("stored in a transaction", gone: "value")
        guard let secret = try transaction.lookUp(name) else { Probe.fail("the secret is missing") }
        stop("looked up in a transaction", held: "value")
        _ = secret.count
      }
      stop("transaction committed", gone: "value")
      try backend.compact()
      stop("compacted", gone: "value")
      _ = try backend.verify()
      stop("verified", gone: "value")
      try backend.close()
      stop("closed by the program", gone: "value master")
      _ = try backend.items(inService: nil)
      stop("opened again", held: "master")
      try backend.rekey()
      stop("rekeyed", gone: "value master")
      try backend.remove(name)
      stop("removed", gone: "value")
    }
    stop("closed", gone: "value master")
  }

  /// Opens the vault with the credential that the environment names.
  private func unlocking() throws {
    do {
      let backend = configuration.vault(at: vault)
      try backend.unlock()
      stop("opened", held: "master")
      guard let secret = try backend.lookUp(identifier("name")) else { Probe.fail("the secret is missing") }
      stop("looked up", held: "master value")
      _ = secret.count
    }
    stop("closed", gone: "master value")
  }

  private func slots() throws {
    do {
      let backend = configuration.vault(at: vault)
      // The canary is used as a passphrase and as a key.
      do {
        let credential = VaultCredential.passphrase(canary())
        let slot = try backend.addKeySlot(credential)
        stop("passphrase added", held: "value master")
        try backend.removeKeySlots(ids: [slot.id])
        stop("passphrase removed", held: "value", gone: "master")
        try backend.addKeySlot(credential)
        stop("passphrase added again", held: "value")
        _ = consume credential
      }
      stop("passphrase released", gone: "value")
      let added = try VaultBackend(path: vault, credentials: []).description().keySlots[1]
      do {
        let credential = VaultCredential.key(canary())
        try backend.replaceKeySlot(id: added.id, with: credential)
        stop("passphrase replaced by a key", held: "value")
        _ = consume credential
      }
      stop("key released", gone: "value")
      try backend.rekey(opened: backend.openKeySlots(with: [CanarySource.key({ canary() })]))
      stop("rekeyed with both", gone: "value")
      let text = try VaultKey.text(of: canary())
      stop("key made text", held: "value")
      _ = try VaultKey.parse(text)
      stop("text made key", held: "value")
      _ = consume text
      stop("text released", gone: "value")
    }
    stop("closed", gone: "value master")
  }

  private func errors() throws {
    do {
      let backend = configuration.vault(at: vault)
      for source in [CanarySource.key({ canary() }), CanarySource.passphrase({ canary() })] {
        expect(.wrongKey) { () throws(SecretError) in
          try VaultBackend(path: vault, credentials: [source]).unlock()
        }
        stop("wrong key or passphrase", gone: "value")
      }
      expect(.invalidKey) { () throws(SecretError) in try backend.addKeySlot(.key(canary(31))) }
      stop("a short key", gone: "value")
      expect(.invalidKey) { () throws(SecretError) in _ = try VaultKey.parse(canary()) }
      stop("text that is not a key", gone: "value")
      let mistyped = SecretBytes(count: 62) { text in
        text.copyBytes(from: "coffer-key-v1:".utf8)
        guard read(3, text.baseAddress.map { $0 + 14 }, 32) == 32 else {
          Probe.fail("the canary cannot be read")
        }
        for index in 46..<62 { text[index] = UInt8(ascii: "A") }
      }
      expect(.invalidKey) { () throws(SecretError) in _ = try VaultKey.parse(mistyped) }
      _ = consume mistyped
      stop("a mistyped key", gone: "value")
      let name = try identifier("name")
      expect(.tooLarge) { () throws(SecretError) in
        try backend.store(canary(VaultBackend.maximumSecretSize + 1), for: name)
      }
      stop("a value that is too large", gone: "value")
      do {
        let secret = canary()
        try backend.store(secret, for: name)
      }
      expect(.conflict) { () throws(SecretError) in
        try backend.withTransaction { transaction throws(SecretError) in
          try transaction.store(canary(), for: name)
          throw SecretError(.conflict, "The transaction is abandoned.")
        }
      }
      stop("a transaction that failed", gone: "value")
      tamper()
      expect(.tampered) { () throws(SecretError) in _ = try backend.lookUp(name) }
      stop("a tampered value", gone: "value")
      expect(.tampered) { () throws(SecretError) in _ = try backend.verify() }
      stop("a tampered vault", gone: "value")
    }
    stop("closed", gone: "value master")
  }

  /// Flips a bit near the end of the file, which belongs to the last value.
  private func tamper() {
    let file = open(vault, O_RDWR)
    let place = lseek(file, 0, SEEK_END) - 20
    var byte: UInt8 = 0
    guard pread(file, &byte, 1, place) == 1 else { Probe.fail("the vault cannot be read") }
    byte ^= 1
    guard pwrite(file, &byte, 1, place) == 1 else { Probe.fail("the vault cannot be written") }
    close(file)
  }

  // MARK: Copies outside guarded memory

  private struct Login: Codable, Sendable {
    var user: String
    var token: String
  }

  private func text() throws {
    let backend = configuration.vault(at: vault)
    do {
      let text = try canary().string()
      stop("string()", counted: "value")
      if text.utf8.count != Self.canaryLength { Probe.fail("the secret differs") }
    }
    stop("string() released", counted: "value")
    let plain = SecurelyStoredValue<String>(key: "plain", service: "probe", backend: backend)
    try plain.set(canary().string())
    stop("a String, set", counted: "value")
    do {
      let text = plain.wrappedValue
      stop("a String, read", counted: "value")
      if text?.utf8.count != Self.canaryLength { Probe.fail("the secret differs") }
    }
    stop("a String, released", counted: "value")
    let login = SecurelyStoredValue<Login>(key: "login", service: "probe", backend: backend)
    try login.set(Login(user: "user", token: canary().string()))
    stop("JSON, set", counted: "value")
    do {
      let value = login.wrappedValue
      stop("JSON, read", counted: "value")
      if value?.token.utf8.count != Self.canaryLength { Probe.fail("the secret differs") }
    }
    stop("JSON, released", counted: "value")
  }

  // MARK: Leaks, which the search must find

  private func leakArray() {
    do {
      let secret = canary()
      let leaked = secret.withBytes { $0.withUnsafeBytes { Array($0) } }
      stop("leaked to an array", held: "value")
      if leaked.count != secret.count { Probe.fail("the secret differs") }
    }
    stop("released", gone: "value")
  }

  private func leakRelease() {
    _ = Unmanaged.passRetained(canary())
    stop("released", gone: "value")
  }

  /// Reports whether memory is locked, for a small secret and for a large one.
  private func locking() {
    let small = canary()
    stop(SecretBytes.isMemoryLocked ? "locked" : "not locked", held: "value")
    let large = canary(100_000)
    stop(SecretBytes.isMemoryLocked ? "locked" : "not locked", held: "value")
    if small.count > large.count { Probe.fail("the secret differs") }
  }
}

/// A credential source that returns the canary.
private enum CanarySource {
  static func key(_ key: @escaping @Sendable () -> SecretBytes) -> VaultCredentialSource {
    VaultCredentialSource("the canary") { _ in .key(key()) }
  }
  static func passphrase(_ passphrase: @escaping @Sendable () -> SecretBytes) -> VaultCredentialSource {
    VaultCredentialSource("the canary") { _ in .passphrase(passphrase()) }
  }
}
