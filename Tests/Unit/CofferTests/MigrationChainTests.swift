import Coffer
import CofferCore
import CofferTestSupport
import Testing

private typealias Settings = SettingsV3

private protocol SettingsStorage: VaultStorable where Value == Settings {}

extension SettingsStorage {
  static var key: String { "settings" }
  static var defaultValue: Settings { Settings(theme: "light") }
  static var storage: SecretScope { SecretScope(service: "tests") }
}

private func twoFromOne(_ old: SettingsV1) -> SettingsV2 { SettingsV2(theme: old.theme, notifications: true) }
private func oneFromTwo(_ old: SettingsV2) -> SettingsV1 { SettingsV1(theme: old.theme) }
private func fromOne(_ old: SettingsV1) -> Settings { Settings(theme: old.theme) }
private func fromTwo(_ old: SettingsV2) -> Settings {
  Settings(theme: old.theme, notifications: old.notifications, fontSize: 16)
}

private struct InAnyOrder: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV2.self, to: Settings.self, fromTwo)
    builder.register(from: SettingsV1.self, to: SettingsV2.self, twoFromOne)
  }
}

private struct WithoutTheOldestStep: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.oldestVersion(2).register(from: SettingsV2.self, to: Settings.self, fromTwo)
  }
}

private struct Cycle: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV1.self, to: Settings.self, fromOne)
    builder.register(from: Settings.self, to: SettingsV1.self) { SettingsV1(theme: $0.theme) }
  }
}

private struct StepToItself: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: Settings.self, to: Settings.self) { $0 }
  }
}

private struct CycleBeside: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV1.self, to: SettingsV2.self, twoFromOne)
    builder.register(from: SettingsV2.self, to: SettingsV1.self, oneFromTwo)
  }
}

private struct Gap: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV1.self, to: SettingsV2.self, twoFromOne)
    builder.register(from: Int.self, to: Settings.self) { _ in Settings(theme: "x") }
  }
}

private struct NoStepToTheValue: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV1.self, to: SettingsV2.self, twoFromOne)
  }
}

private struct TwoStepsToOne: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV1.self, to: Settings.self, fromOne)
    builder.register(from: SettingsV2.self, to: Settings.self, fromTwo)
  }
}

private struct TwoStepsFromOne: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) {
    builder.register(from: SettingsV1.self, to: Settings.self, fromOne)
    builder.register(from: SettingsV1.self, to: SettingsV2.self, twoFromOne)
  }
}

private struct VersionZero: SettingsStorage {
  static func configure(builder: DataMigrator<Settings>.Builder) { builder.oldestVersion(0) }
}

/// The steps that a definition registers.
@Suite(.timeLimit(.minutes(30))) struct MigrationChainTests {
  let backend = ScriptedBackend()
  private let first = #"{"theme":"dark"}"#

  @Test func stepsMayBeRegisteredInAnyOrder() throws {
    try backend.store.write(first, "settings")
    try DefaultBackend.with(backend) { () throws in
      #expect(try VaultStored(InAnyOrder.self).get().fontSize == 16)
      #expect(try backend.version("settings") == "3")
    }
  }

  @Test func bytesWithoutAStoreAreConverted() throws {
    let migrator = DataMigrator<Settings>(InAnyOrder.configure)
    #expect(try migrator.value(from: SecretBytes(first), version: 1)?.fontSize == 16)
    let faults: [(String, Int, SecretError.Code)] = [
      ("{", 1, .decodingFailed), (first, 4, .unsupportedVersion),
    ]
    for (bytes, version, code) in faults {
      let error = thrown { () throws(SecretError) in
        _ = try migrator.value(from: SecretBytes(bytes), version: version)
      }
      #expect(error?.code == code)
    }
  }

  @Test func aStepThatWasTakenOutLeavesTheVersionsOfTheOthers() throws {
    try DefaultBackend.with(backend) { () throws in
      let value = VaultStored(WithoutTheOldestStep.self)
      try backend.store.write(first, "settings")
      #expect(thrown { () throws(SecretError) in _ = try value.get() }?.code == .unsupportedVersion)
      #expect(try backend.text("settings") == first)
      try backend.store.write(#"{"notifications":false,"theme":"dark"}"#, "settings", version: "2")
      #expect(try value.get().notifications == false)
      #expect(try backend.version("settings") == "3")
    }
  }

  @Test(arguments: [
    VaultStored(Cycle.self), VaultStored(StepToItself.self), VaultStored(CycleBeside.self),
    VaultStored(Gap.self),
    VaultStored(NoStepToTheValue.self), VaultStored(TwoStepsToOne.self), VaultStored(TwoStepsFromOne.self),
    VaultStored(VersionZero.self),
  ])
  fileprivate func stepsThatAreNotOneChainAreAnErrorAtTheFirstUse(_ value: VaultStored<Settings>) throws {
    try DefaultBackend.with(backend) { () throws in
      #expect(thrown { () throws(SecretError) in _ = try value.get() }?.code == .invalidMigration)
      try backend.store.write(first, "settings")
      #expect(thrown { () throws(SecretError) in _ = try value.get() }?.code == .invalidMigration)
      #expect(
        thrown { () throws(SecretError) in try value.set(Settings(theme: "x")) }?.code == .invalidMigration)
      #expect(throws: SecretError.self) { try value.update { $0.theme = "x" } }
      #expect(try backend.text("settings") == first)
      #expect(backend.edit { $0.metadata.isEmpty })
    }
  }
}
