import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Testing

struct SettingsV1: Codable, Equatable {
  var theme: String
}

struct SettingsV2: Codable, Equatable {
  var theme: String
  var notifications: Bool
}

/// Every version decodes as the current one, so that the form does not tell the version.
struct SettingsV3: Codable, Equatable {
  var theme: String
  var notifications: Bool?
  var fontSize: Double?
}

private typealias Settings = SettingsV3

private struct Definition: VaultStorable {
  static let key = "settings"
  static let defaultValue = Settings(theme: "light")
  static let storage = SecretScope(service: "tests")
  static let history = History.kept

  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder
      .register(from: SettingsV1.self, to: SettingsV2.self) { v1 in
        if v1.theme == "bad" { throw CocoaError(.coderInvalidValue) }
        return SettingsV2(theme: v1.theme, notifications: true)
      }
      .register(from: SettingsV2.self, to: Settings.self) { v2 in
        Settings(theme: v2.theme, notifications: v2.notifications, fontSize: 16.0)
      }
  }
}

/// A backend with transactions that keeps no attributes.
private final class BackendWithoutAttributes: ForwardingBackend, @unchecked Sendable {
  init() { super.init(MemoryBackend()) }

  override func decorate(_ access: any SecretAccess, for call: SecretCall) -> any SecretAccess { Access(base: access) }

  private struct Access: PassingAccess {
    let base: any SecretAccess

    func store(
      _ value: SecretBytes, for identifier: SecretIdentifier, metadata: MetadataChange, history: History
    ) throws(SecretError) {
      try base.store(value, for: identifier, metadata: .replace(SecretMetadata()), history: history)
    }
  }
}

/// Values of earlier versions.
@Suite(.timeLimit(.minutes(30))) struct MigrationTests {
  let backend = ScriptedBackend()
  private var stores: Int { backend.edit { $0.metadata.count } }
  private let first = #"{"theme":"dark"}"#
  private let current = #"{"fontSize":16,"notifications":true,"theme":"dark"}"#

  private func with(_ body: (VaultStored<Settings>) throws -> Void) throws {
    try DefaultBackend.with(backend) { try body(VaultStored(Definition.self)) }
  }

  private func error(_ value: VaultStored<Settings>) -> SecretError.Code? {
    thrown { () throws(SecretError) in _ = try value.get() }?.code
  }

  @Test func whatWasStoredBeforeThereWereVersionsIsTheFirst() throws {
    try backend.store.write(first, "settings")
    try with { settings throws in
      #expect(settings.wrappedValue == Settings(theme: "dark", notifications: true, fontSize: 16))
      #expect(try backend.text("settings") == current)
      #expect(try backend.version("settings") == "3")
    }
  }

  @Test func aValueIsConvertedFromItsVersionOnAndStoredOnce() throws {
    try backend.store.write(#"{"notifications":false,"theme":"dark"}"#, "settings", version: "2")
    try with { settings throws in
      for _ in 0..<3 {
        #expect(try settings.get() == Settings(theme: "dark", notifications: false, fontSize: 16))
      }
      try settings.set(Settings(theme: "dark", notifications: false, fontSize: 16))
      #expect(stores == 1)
    }
  }

  @Test func theVersionIsNotGuessedFromTheForm() throws {
    // The bytes are the same, and each decodes as every version.
    let bytes = #"{"fontSize":8,"notifications":false,"theme":"dark"}"#
    for (version, result) in [
      ("1", Settings(theme: "dark", notifications: true, fontSize: 16)),
      ("2", Settings(theme: "dark", notifications: false, fontSize: 16)),
      ("3", Settings(theme: "dark", notifications: false, fontSize: 8)),
    ] {
      try backend.store.write(bytes, "settings", version: version)
      try with { settings throws in #expect(try settings.get() == result) }
    }
  }

  @Test func theSameBytesInALaterVersionAreStoredWithTheVersion() throws {
    struct Same: VaultStorable {
      static let key = "settings"
      static let defaultValue = Settings(theme: "light")
      static let storage = SecretScope(service: "tests")
      static func configure(builder: DataMigrator<Settings>.Builder) {
        builder.register(from: SettingsV1.self, to: Settings.self) { Settings(theme: $0.theme) }
      }
    }
    try backend.store.write(first, "settings")
    try DefaultBackend.with(backend) { () throws in
      let value = VaultStored(Same.self)
      try value.update { _ in }
      #expect(try backend.text("settings") == first)
      #expect(try backend.version("settings") == "2")
      #expect(stores == 1)
    }
  }

  @Test func aFailedStepLeavesTheValueUnchanged() throws {
    try backend.store.write(#"{"theme":"bad"}"#, "settings")
    try with { settings throws in
      #expect(settings.wrappedValue == Settings(theme: "light"))
      #expect(settings.lastError?.code == .migrationFailed)
      #expect(settings.lastError?.description.contains("bad") == false)
      #expect(throws: SecretError.self) { try settings.update { $0.theme = "x" } }
      #expect(throws: SecretError.self) { try settings.set(\.theme, to: "x") }
      #expect(try backend.text("settings") == #"{"theme":"bad"}"#)
      #expect(try backend.version("settings") == nil)
      #expect(stores == 0)
      // A program of the first version still reads it.
      let old = SecurelyStoredValue<SettingsV1>(key: "settings", service: "tests")
      #expect(try old.get() == SettingsV1(theme: "bad"))
      try settings.set(Settings(theme: "new"))
      #expect(try settings.get() == Settings(theme: "new"))
    }
  }

  @Test func bytesThatAreNoValueOfTheirVersionAreKept() throws {
    try backend.store.write("{}", "settings", version: "2")
    try with { settings throws in
      #expect(error(settings) == .decodingFailed)
      #expect(try backend.text("settings") == "{}")
    }
  }

  @Test func aValueOfALaterVersionIsKeptUntilANewOneIsStored() throws {
    try backend.store.write(current, "settings", version: "4")
    try with { settings throws in
      #expect(error(settings) == .unsupportedVersion)
      #expect(throws: SecretError.self) { try settings.update { $0.theme = "x" } }
      #expect(try backend.version("settings") == "4")
      try settings.set(Settings(theme: "x"))
      #expect(try backend.version("settings") == "3")
      #expect(try settings.get() == Settings(theme: "x"))
    }
  }

  @Test func anAttributeThatIsNoVersionIsAnError() throws {
    for version in ["", "0", "-1", "two", "99999999999999999999"] {
      try backend.store.write(current, "settings", version: version)
      try with { settings throws in
        #expect(error(settings) == .unsupportedVersion)
        #expect(try backend.version("settings") == version)
      }
    }
    try with { settings throws in
      try settings.set(Settings(theme: "x"))
      #expect(try settings.get() == Settings(theme: "x"))
    }
  }

  @Test func aValueThatAnotherProgramStoredWithoutTheVersionIsTheFirst() throws {
    try with { settings throws in
      try settings.set(Settings(theme: "x", notifications: false))
      // As `secret-tool store` does in a keyring.
      try backend.store.store(
        SecretBytes("typed by hand"), for: identifier("settings"), metadata: SecretMetadata())
      #expect(error(settings) == .decodingFailed)
      #expect(try backend.text("settings") == "typed by hand")
      try settings.set(Settings(theme: "x"))
      // As `secret set` does: it keeps the attribute with the version.
      try backend.store.write(#"{"theme":"by hand"}"#, "settings")
      #expect(try settings.get() == Settings(theme: "by hand"))
    }
  }

  /// Its value would be read as one of the first version, and converted once more.
  @Test(arguments: [true, false])
  func aBackendWithoutAttributesKeepsWhatItHas(_ hasTransactions: Bool) throws {
    self.backend.edit { $0.keepsNoAttributes = true }
    let backend: any SecretBackend = hasTransactions ? BackendWithoutAttributes() : backend
    let name = try identifier("settings")
    let plain = (backend as? ForwardingBackend)?.base ?? backend
    try plain.store(SecretBytes(first), for: name, metadata: SecretMetadata(label: "L"))
    try DefaultBackend.with(backend) { () throws in
      let settings = VaultStored(Definition.self)
      let new = Settings(theme: "new", notifications: false, fontSize: 9)
      #expect(thrown { () throws(SecretError) in try settings.set(new) }?.code == .unsupported)
      #expect(try settings.get() == Settings(theme: "dark", notifications: true, fontSize: 16))
      #expect(settings.lastError?.code == .unsupported)
      #expect(try backend.text("settings") == first)
      #expect(try backend.item(name)?.metadata.label == "L")
      let before = stores
      #expect(try settings.get().theme == "dark")
      #expect(stores == before, "each read tries it again")
      try backend.remove(name)
      #expect(thrown { () throws(SecretError) in try settings.set(new) }?.code == .unsupported)
      #expect(try backend.item(name) == nil)
    }
  }

  @Test func theOtherMetadataStays() throws {
    try backend.store.store(
      SecretBytes(first), for: identifier("settings"),
      metadata: SecretMetadata(label: "L", attributes: ["team": "a"]))
    try with { settings throws in
      _ = try settings.get()
      let metadata = try #require(try backend.item(identifier("settings"))).metadata
      #expect(metadata.label == "L" && metadata.attributes == ["team": "a", "coffer.version": "3"])
    }
  }

  // MARK: At the same time

  @Test func aChangeDuringTheMigrationIsKept() throws {
    try backend.store.write(first, "settings")
    let store = backend.store
    backend.afterNextLookup { try store.write(#"{"theme":"meanwhile"}"#, "settings") }
    try with { settings throws in
      #expect(try settings.get().theme == "meanwhile")
      #expect(try backend.store.text("settings")?.contains("meanwhile") == true)
      #expect(stores == 1)
    }
  }

  /// A newer program has stored the same bytes meanwhile, and they mean something else in its version.
  @Test func theSameBytesInAnotherVersionAreNotOverwritten() throws {
    try backend.store.write(first, "settings")
    let (lookups, store, first) = (Count(), backend.store, first)
    backend.edit { script in
      script.beforeLookup = {
        lookups.add()
        // The second lookup is the comparison before the migrated value is stored.
        if lookups.value != 2 { return }
        #expect(throws: Never.self) { try store.write(first, "settings", version: "3") }
      }
    }
    try with { settings throws in
      #expect(try settings.get() == Settings(theme: "dark"))
      #expect(stores == 0)
    }
  }

  @Test func aSetDuringTheFirstReadIsNotOverwritten() throws {
    try backend.store.write(first, "settings")
    try with { settings throws in
      backend.afterNextLookup { try settings.set(Settings(theme: "set")) }
      #expect(try settings.get() == Settings(theme: "set"))
      #expect(try backend.version("settings") == "3")
    }
  }

  @Test func aVersionThatChangesDuringAReadIsThatOfTheBytes() throws {
    try backend.store.write(first, "settings")
    let (store, once, current) = (backend.store, Count(), current)
    backend.edit { script in
      script.beforeLookup = {
        if once.value == 0 {
          once.add()
          // Another process migrates the value after its version was read.
          #expect(throws: Never.self) {
            try store.write(current.replacing("16", with: "8"), "settings", version: "3")
          }
        }
      }
    }
    try with { settings throws in
      #expect(try settings.get().fontSize == 8)
      #expect(stores == 0)
    }
  }

  @Test func aValueThatCannotBeStoredIsReadNevertheless() throws {
    try backend.store.write(first, "settings")
    backend.edit { $0.storeError = SecretError(.denied, "The file system is read-only.") }
    try with { settings throws in
      #expect(try settings.get().fontSize == 16)
      #expect(settings.lastError?.code == .denied)
      #expect(try backend.text("settings") == first)
      backend.edit { $0.storeError = nil }
      #expect(try settings.get().fontSize == 16)
      #expect(settings.lastError == nil)
      #expect(try backend.text("settings") == current)
    }
  }

  @Test func aStreamBeginsWithTheConvertedValue() async throws {
    try backend.store.write(first, "settings")
    try await DefaultBackend.with(backend) {
      let settings = VaultStored(Definition.self)
      var values = settings.values.makeAsyncIterator()
      #expect(await values.next()?.fontSize == 16)
      try await settings.set(\.theme, to: "x")
      #expect(await values.next()?.theme == "x")
      // An earlier version of the program stores a value.
      try backend.store.write(#"{"theme":"old"}"#, "settings", version: "1")
      backend.report(nil)
      #expect(await values.next() == Settings(theme: "old", notifications: true, fontSize: 16))
    }
  }
}
