internal import CofferCore
internal import CofferVaultFormat

/// The pins that a vault is compared with. Each is for one path, as `PATH=PIN`, or for every vault that is opened.
struct VaultPins {
  private let pins: [(path: String?, pin: VaultPin)]
  var isEmpty: Bool { pins.isEmpty }

  /// Parses the texts of pins. The last `=` of a text divides it; `%20` in the path is a space, and `%25` a percent
  /// sign. Throws `.configuration` if one is malformed or mistyped.
  init(_ texts: [String]) throws(SecretError) {
    pins = try texts.map { text throws(SecretError) in
      guard let divider = text.utf8.lastIndex(of: UInt8(ascii: "=")) else { return (nil, try VaultPin(text)) }
      let path = String(text[..<divider]).replacing("%20", with: " ").replacing("%25", with: "%")
      let pin = try VaultPin(String(text[text.utf8.index(after: divider)...]))
      if path.isEmpty {
        throw SecretError(
          .configuration, "A pin begins with = and names no path.", advice: "Write PATH=PIN, or the pin only."
        )
      }
      return (RemoteURL.isURL(path) ? try RemoteURL(path).description : LocalMedium.absolute(path), pin)
    }
  }

  init(_ pins: [(path: String?, pin: VaultPin)] = []) { self.pins = pins }

  /// Whether no pin is for another path.
  func areFor(_ paths: [String]) -> Bool { pins.allSatisfy { $0.path.map(paths.hasBytes) ?? true } }

  /// The pins that apply to a vault with the given paths: those for one of the paths and those without a path. If there
  /// are none, those that name the vault. If pins are given and none applies, throws `.unexpectedVault`.
  func applying(to file: VaultFile, at paths: [String]) throws(SecretError) -> VaultPins {
    if isEmpty { return self }
    let own = pins.filter { $0.path.map(paths.hasBytes) ?? true }
    let applying = own.isEmpty ? pins.filter { $0.pin.vault == file.header.vaultID } : own
    if !applying.isEmpty { return VaultPins(applying) }
    throw SecretError(
      .unexpectedVault, "None of the given pins is for the vault at \(file.path).",
      advice:
        "Nothing was read. If the vault is the right one, give its pin, with its path if there are others: PATH=PIN.")
  }

  /// Throws `.configuration` if pins of several vaults are given and one of them has no path: it would accept its vault
  /// in the place of another one.
  func requireBound(for file: VaultFile) throws(SecretError) {
    guard Set(pins.map(\.pin.vault)).count > 1, pins.contains(where: { $0.path == nil }) else { return }
    let line = pins.map { path, pin in
      let path = path ?? (pin.vault == file.header.vaultID ? file.path : "PATH")
      return path.replacing("%", with: "%25").replacing(" ", with: "%20") + "=\(pin)"
    }
    throw SecretError(
      .configuration,
      "There are pins of several vaults, and not every pin has a path. A pin without a path would accept its vault at the path of another.",
      advice: "Write the path of the vault before each pin: \(line.joined(separator: " "))")
  }

  /// Throws `.unexpectedVault` unless every pin names the vault of `file`, and `.unexpectedKey` unless one of them
  /// names its master key too. Needs no key.
  func requireIdentity(_ file: VaultFile) throws(SecretError) {
    if isEmpty { return }
    guard pins.allSatisfy({ $0.pin.vault == file.header.vaultID }) else {
      throw SecretError(
        .unexpectedVault, "The vault at \(file.path) is not the one that the pin names.",
        advice: "Check the path and the pin; nothing was read.")
    }
    guard pins.contains(where: { $0.pin.names(file) }) else {
      throw SecretError(
        .unexpectedKey, "The vault at \(file.path) has another master key than the one that the pin names.",
        advice:
          "If you changed its keys, take its new pin there; otherwise do not use it.")
    }
  }

  /// Whether the file of `vault` proves every pin that names its master key. `false`: a pinned state is older than what
  /// the file still lists. Throws `.rolledBack` if the vault was never in a pinned state.
  func areShown(by vault: VaultSnapshot) throws(SecretError) -> Bool {
    var areShown = true
    for (_, pin) in pins where pin.names(vault.file) {
      if try pin.isShown(by: vault) == nil { areShown = false }
    }
    return areShown
  }
}
