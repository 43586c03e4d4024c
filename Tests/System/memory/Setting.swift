import CofferCore
import CofferTestSupport
import CofferVault
import CofferVaultFormat
import Foundation
import Synchronization
import Testing

/// A vault in a private directory, the credential that opens it, and the secrets that the search looks for.
final class Setting {
  enum Credential: String, CaseIterable, Sendable {
    case file = "COFFER_KEY_FILE"
    case variable = "COFFER_KEY"
    case systemd = "CREDENTIALS_DIRECTORY"
    case passphraseDescriptor = "COFFER_PASSPHRASE_FD"
    case passphraseFile = "COFFER_PASSPHRASE_FILE"
    case passphraseCommand = "COFFER_PASSPHRASE_COMMAND"
  }

  let key: Credential
  /// 32 letters and digits, which can be a passphrase, a text, or the bytes of a key.
  let canary = Setting.letters()
  /// The secrets that the search looks for, with the names that the probe prints.
  private(set) var secrets: [(name: String, bytes: [UInt8])]

  private let directory: TemporaryDirectory
  private let vault: String
  private var environment: [String: String]
  private var descriptor4: String?

  init(key: Credential) throws {
    self.key = key
    directory = try TemporaryDirectory()
    vault = directory.file("vault")
    // The runtime's backtrace would replace the core dump.
    environment = [
      "PATH": "/usr/bin:/bin", "HOME": directory.path, "SWIFT_BACKTRACE": "enable=no", "LD_BIND_NOW": "1",
    ]
    secrets = [("value", canary)]

    switch key {
    case .file, .variable, .systemd:
      let secret = VaultKey.generate()
      secrets.append(("key", secret.array()))
      let text = try VaultKey.text(of: secret).string()
      let path = try directory.write(text, to: "coffer.key")
      environment[key.rawValue] = [.file: path, .variable: text][key] ?? directory.path
      try makeVault(.key(secret), .key(secret))
    case .passphraseDescriptor, .passphraseFile, .passphraseCommand:
      let passphrase = Self.letters()
      secrets.append(("key", passphrase))
      let path = try directory.write(String(decoding: passphrase, as: UTF8.self), to: "passphrase")
      if key == .passphraseDescriptor { descriptor4 = path }
      environment[key.rawValue] = [.passphraseFile: path, .passphraseDescriptor: "4"][key] ?? "cat '\(path)'"
      try makeVault(
        .passphrase(SecretBytes(passphrase)), .passphrase(SecretBytes(passphrase)))
    }
  }

  /// Makes the vault with one secret, and adds its keys to `secrets`.
  private func makeVault(
    _ credential: VaultCredential, _ same: VaultCredential
  ) throws {
    var options = VaultOptions()
    options.passphraseMemory = 64 << 10
    options.passphrasePasses = 1
    try VaultBackend.create(at: vault, credential: credential, options: options)
    let backend = VaultBackend(path: vault, credentials: [VaultCredentialSource("the test", same)])
    try backend.store(
      SecretBytes(canary), for: identifier("name", service: "probe"))
    let keys = try backend.withMasterKey { _, master in
      [master.array()] + Subkey.allCases.map { Sodium.subkey($0, of: master).array() }
    }
    secrets += keys.map { ("master", $0) }
  }

  private static func letters() -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)
    return (0..<32).map { _ in alphabet[Int.random(in: alphabet.indices)] }
  }

  /// Starts the probe in an empty directory.
  func start(_ scenario: String, prefix: [String] = []) throws -> ProbeProcess {
    try directory.makeDirectory("work")
    return try ProbeProcess(
      scenario, vault: vault, canary: canary, descriptor4: descriptor4, environment: environment,
      prefix: prefix, workingDirectory: workingDirectory)
  }

  var workingDirectory: String { directory.file("work") }
}
