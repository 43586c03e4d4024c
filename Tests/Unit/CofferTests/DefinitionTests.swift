import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Observation
import Testing

// The definitions of the ancestor's guide. `storageType` is `storage`.

private struct UserSettings: Codable, Equatable {
  var theme: String
  var notifications: Bool
  var fontSize: Double
}

private struct UserSettingsStorage: VaultStorable {
  static let key = "UserSettingsStorage"
  typealias Value = UserSettings
  static let defaultValue = UserSettings(
    theme: "light",
    notifications: true,
    fontSize: 16.0
  )
}

private struct AuthTokenStorage: VaultStorable {
  static let key = "AuthTokenStorage"
  typealias Value = String?
  static let defaultValue: String? = nil
  static let storage = SecretScope(service: "auth")
}

private struct Document: Codable, Equatable {
  var title: String
}

private struct DocumentsStorage: VaultStorable {
  static let key = "DocumentsStorage"
  typealias Value = [Document]
  static let defaultValue: [Document] = []
  static let storage = SecretScope(service: "documents")
}

private struct CustomKeyStorage: VaultStorable {
  typealias Value = String
  static let key = "custom_storage_key"
  static let defaultValue = "default_value"
}

private struct ComplexData: Codable, Equatable {
  var lastOpened = Date(timeIntervalSince1970: 0)
  static let `default` = ComplexData()
}

private struct CustomEncodingStorage: VaultStorable {
  static let key = "CustomEncodingStorage"
  typealias Value = ComplexData
  static let defaultValue = ComplexData.default

  static var encoder: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = .iso8601
    encoder.keyEncodingStrategy = .convertToSnakeCase
    return encoder
  }

  static var decoder: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = .iso8601
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return decoder
  }
}

private struct SharedCounterStorage: VaultStorable {
  static let key = "SharedCounterStorage"
  typealias Value = Int
  static let defaultValue = 0
}

private struct Settings {
  @VaultStored(UserSettingsStorage.self) var settings
  @VaultStored(AuthTokenStorage.self) var authToken
  @VaultStored(DocumentsStorage.self) var documents
  @VaultStored(CustomKeyStorage.self) var custom
  @VaultStored(CustomEncodingStorage.self) var complex
  @VaultStored(SharedCounterStorage.self) var counter
}

@Observable
private final class Model {
  @ObservationIgnored
  @VaultStored(UserSettingsStorage.self) var settings
}

/// A definition whose backend a test chooses.
private struct CounterInScope: VaultStorable {
  static let key = "value"
  static let defaultValue = 10
  static let storage = SecretScope(service: "tests")
}

/// Values with a definition, without migrations.
@Suite(.timeLimit(.minutes(30))) struct DefinitionTests {
  let backend = ScriptedBackend()
  private var stores: Int { backend.edit { $0.metadata.count } }

  @Test func theCallSitesOfItsAncestorWork() throws {
    try DefaultBackend.with(backend) { () throws in
      let it = Settings()
      #expect(it.settings == UserSettingsStorage.defaultValue)
      try it.$settings.set(\.theme, to: "dark")
      #expect(it.settings.theme == "dark" && it.settings.notifications)
      #expect(it.authToken == nil)
      try it.$authToken.set("secure_token_123")
      #expect(it.authToken != nil)
      #expect(try backend.text("AuthTokenStorage", service: "auth") == "secure_token_123")
      try it.$authToken.set(nil)
      #expect(it.authToken == nil)
      #expect(try backend.text("AuthTokenStorage", service: "auth") == nil)
      try it.$documents.append(Document(title: "new"))
      #expect(it.documents == [Document(title: "new")])
      try it.$counter.update { $0 += 1 }
      #expect(it.counter == 1)
      #expect(it.custom == "default_value")
      #expect(Model().settings.theme == "dark")
    }
  }

  @Test func theKeyIsTheNameOfTheDefinitionUnlessGiven() {
    #expect(Settings().$settings.key == "UserSettingsStorage")
    #expect(Settings().$custom.key == "custom_storage_key")
    #expect(Settings().$custom.defaultValue == "default_value")
  }

  @Test func theCoderOfTheDefinitionIsUsed() throws {
    try DefaultBackend.with(backend) { () throws in
      let it = Settings()
      try it.$complex.set(ComplexData(lastOpened: Date(timeIntervalSince1970: 60)))
      let service = try #require(try backend.items(inService: nil).first).identifier.service
      #expect(
        try backend.text("CustomEncodingStorage", service: service)
          == #"{"last_opened":"1970-01-01T00:01:00Z"}"#)
      #expect(it.complex == ComplexData(lastOpened: Date(timeIntervalSince1970: 60)))
    }
  }

  @Test func bytesInAreBytesOut() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(CounterInScope.self)
      try counter.set(11)
      #expect(try backend.text("value") == "11")
      #expect(try backend.version("value") == "1")
    }
  }

  @Test func theDefaultIsReadAndNotStoredAndResetDeletes() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(CounterInScope.self)
      #expect(counter.wrappedValue == 10)
      try counter.update { _ in }
      #expect(try backend.items(inService: nil).isEmpty)
      try counter.set(10)
      #expect(try backend.text("value") == "10")
      try counter.reset()
      try counter.reset()
      #expect(counter.wrappedValue == 10)
      #expect(try backend.items(inService: nil).isEmpty)
    }
  }

  @Test func theLabelOfTheDefinitionIsStored() throws {
    struct Labelled: VaultStorable {
      static let key = "Labelled"
      static let defaultValue = 0
      static let storage = SecretScope(service: "tests")
      static let label: String? = "Number"
    }
    try DefaultBackend.with(backend) { () throws in
      try VaultStored(Labelled.self).set(1)
      let found = try #require(try backend.item(identifier("Labelled"))).metadata
      #expect(found.label == "Number" && found.attributes == ["coffer.version": "1"])
    }
  }

  @Test func anEqualValueIsNotStored() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(CounterInScope.self)
      try counter.set(11)
      try counter.set(11)
      try counter.update { $0 = 11 }
      try counter.binding.set(11)
      #expect(stores == 1)
      try counter.set(12)
      #expect(stores == 2)
    }
  }

  @Test func whatDoesNotDecodeIsReportedAndKeptAndCanBeReplaced() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(CounterInScope.self)
      try backend.write("ten", "value")
      #expect(counter.wrappedValue == 10)
      #expect(counter.lastError?.code == .decodingFailed)
      #expect(throws: SecretError.self) { try counter.update { $0 += 1 } }
      #expect(try backend.text("value") == "ten")
      try counter.set(11)
      #expect(try counter.get() == 11)
      #expect(counter.lastError == nil)
    }
  }

  /// The expiry was that of the old value.
  @Test func theOtherMetadataStays() throws {
    try DefaultBackend.with(backend) { () throws in
      try backend.store(
        SecretBytes("1"), for: identifier("value"),
        metadata: SecretMetadata(
          label: "L", expires: Date(timeIntervalSince1970: 4e9), attributes: ["team": "a"]))
      try VaultStored(CounterInScope.self).set(2)
      let metadata = try #require(try backend.item(identifier("value"))).metadata
      #expect(metadata.label == "L" && metadata.expires == nil)
      #expect(metadata.attributes == ["team": "a", "coffer.version": "1"])
    }
  }

  @Test func eachStreamGetsEveryChangeAndTheDefaultFirst() async throws {
    try await DefaultBackend.with(backend) {
      let counter = VaultStored(CounterInScope.self)
      let streams = (0..<4).map { _ in VaultStored(CounterInScope.self).values }
      for value in 11...20 { try await counter.set(value) }
      for stream in streams {
        var seen: [Int] = []
        for await value in stream {
          seen.append(value)
          if value == 20 { break }
        }
        #expect(seen == Array(10...20))
      }
    }
  }

  @Test func observationReportsChangesOfOtherObjects() throws {
    try DefaultBackend.with(backend) { () throws in
      let counter = VaultStored(CounterInScope.self)
      let changes = Count(observing: { _ = counter.wrappedValue })
      try VaultStored(CounterInScope.self).set(11)
      #expect(changes.value == 1)
    }
  }

  @Test func theMethodsHaveAsyncForms() async throws {
    try await DefaultBackend.with(backend) {
      let counter = VaultStored(CounterInScope.self)
      try await counter.set(1)
      #expect(
        try await counter.update {
          $0 += 1; return $0
        } == 2)
      #expect(try await counter.get() == 2)
      try await counter.reset()
      #expect(try await counter.get() == 10)
    }
  }
}

extension SecretBackend {
  /// The version of a stored value in its metadata.
  func version(_ account: String) throws -> String? {
    try item(identifier(account))?.metadata.attributes["coffer.version"]
  }

  /// Stores a text and its version, as another process does.
  func write(_ text: String, _ account: String, version: String) throws {
    try store(
      SecretBytes(text), for: identifier(account),
      metadata: SecretMetadata(attributes: ["coffer.version": version]))
  }
}
