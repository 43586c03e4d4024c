import CofferTestSupport
import CofferCore
import Coffer
import Foundation
import Testing

@Suite struct CodingTests {
  struct Credentials: Codable, Sendable, Equatable {
    var user: String
    var url: String
    var password: String
  }
  enum Level: String, Codable, Sendable { case low, high }

  let backend = MemoryBackend()

  private func value<Value: Codable & Sendable>(
    _ type: Value.Type,
    coder: any SecretCoder = StandardSecretCoder()
  ) -> SecurelyStoredValue<Value> {
    SecurelyStoredValue(key: "coded", service: "tests", backend: backend, coder: coder)
  }

  private func stored() throws -> [UInt8]? {
    try backend.get("coded")
  }

  private func put(_ bytes: [UInt8]) throws {
    try backend.store(SecretBytes(bytes), for: SecretIdentifier(service: "tests", account: "coded"))
  }

  @Test(arguments: [
    "", "text", "\"quoted\"", "a\n", "a\r\n", "\0", "caf\u{E9}", "cafe\u{301}", "🔑", "{}", "null",
  ])
  func textIsStoredAsUTF8(text: String) throws {
    try value(String.self).set(text)
    #expect(try stored() == Array(text.utf8))
    #expect(try value(String.self).get()?.utf8.elementsEqual(text.utf8) == true)
  }

  @Test(arguments: [[], [0], [10], Array(0...255), [0xFF, 0xFE]] as [[UInt8]])
  func bytesAreStoredAsTheyAre(bytes: [UInt8]) throws {
    try value([UInt8].self).set(bytes)
    #expect(try stored() == bytes)
    #expect(try value([UInt8].self).get() == bytes)
    try value(Data.self).set(Data(bytes))
    #expect(try stored() == bytes)
    #expect(try value(Data.self).get() == Data(bytes))
  }

  @Test func aSliceOfDataIsStoredAsItIs() throws {
    try value(Data.self).set(Data([1, 2, 3, 4]).dropFirst(2))
    #expect(try stored() == [3, 4])
  }

  @Test func otherTypesAreJSON() throws {
    let credentials = Credentials(user: "a", url: "https://example.com/", password: "p\"q")
    try value(Credentials.self).set(credentials)
    #expect(
      try stored() == Array(#"{"password":"p\"q","url":"https://example.com/","user":"a"}"#.utf8)
    )
    #expect(try value(Credentials.self).get() == credentials)
  }

  @Test func emptyArraysOfOtherTypesAreJSON() throws {
    try value([String].self).set([])
    #expect(try stored() == Array("[]".utf8))
    #expect(try value([String].self).get() == [])
    try value([Int8].self).set([])
    #expect(try stored() == Array("[]".utf8))
  }

  @Test func fragmentsAreJSON() throws {
    try value(Bool.self).set(false)
    #expect(try stored() == Array("false".utf8))
    #expect(try value(Bool.self).get() == false)
    try value(Int.self).set(-7)
    #expect(try stored() == Array("-7".utf8))
    #expect(try value(Int.self).get() == -7)
    try value(Double.self).set(0.5)
    #expect(try value(Double.self).get() == 0.5)
  }

  @Test func anEnumIsStoredAsItsRawValue() throws {
    enum Port: Int, Codable, Sendable { case https = 443 }
    try value(Level.self).set(.high)
    #expect(try stored() == Array("high".utf8))
    try value(Port.self).set(.https)
    #expect(try stored() == Array("443".utf8))
    #expect(try value(Port.self).get() == .https)
    try value(Level?.self).set(.low)
    #expect(try stored() == Array("low".utf8))
    #expect(try value(Level?.self).get() == .low)
  }

  @Test func whatAShellStoresDecodes() throws {
    func read<Value: Codable & Sendable & Equatable>(_ text: String, as expected: Value) throws -> Bool {
      try put(Array(text.utf8))
      return try value(Value.self).get() == expected
    }
    #expect(try read("https://example.com/a?b", as: #require(URL(string: "https://example.com/a?b"))))
    let id = UUID()
    #expect(try read(id.uuidString.lowercased(), as: id))
    #expect(try read("high", as: Level.high))
    let date = Date(timeIntervalSince1970: 1_700_000_000)
    for text in [
      "2023-11-14T22:13:20Z", "2023-11-14T23:13:20+01:00", "2023-11-14T22:13:20.000Z", "1700000000",
    ] {
      #expect(try read(text, as: date), "\(text)")
    }
    #expect(try read("true", as: true))
    #expect(try read("17", as: 17))
  }

  @Test func whatIsNoneOfATypeDoesNotDecode() throws {
    func fails<Value: Codable & Sendable>(_ text: String, _ type: Value.Type) throws -> Bool {
      try put(Array(text.utf8))
      return thrown { () throws(SecretError) in _ = try value(type).get() }?.code == .decodingFailed
    }
    #expect(try fails("medium", Level.self))
    #expect(try fails("\"high\"", Level.self))
    #expect(try fails("no uuid", UUID.self))
    #expect(try fails("", URL.self))
    for text in [
      "yesterday", "", "2023-11-14", "2023-11-14T22:13:20.Z", "2023-11-14T22:13:20Zjunk", "nan", "1e400",
    ] {
      #expect(try fails(text, Date.self), "\(text)")
    }
  }

  @Test func textTypesAreStoredAsText() throws {
    let url = try #require(URL(string: "https://example.com/"))
    try value(URL.self).set(url)
    #expect(try stored() == Array("https://example.com/".utf8))
    let id = UUID()
    try value(UUID.self).set(id)
    #expect(try stored() == Array(id.uuidString.utf8))
    try value(Date.self).set(Date(timeIntervalSince1970: 1_700_000_000))
    #expect(try stored() == Array("2023-11-14T22:13:20Z".utf8))
    try value(Date.self).set(Date(timeIntervalSince1970: 1_700_000_000.25))
    #expect(try stored() == Array("2023-11-14T22:13:20.250Z".utf8))
  }

  @Test func datesAreReadBackExactly() throws {
    for seconds in [0, 1_700_000_000.25, 1_700_000_000.123456, -1.5, 253_402_300_799, -62_135_596_800] {
      let date = Date(timeIntervalSince1970: seconds)
      try value(Date.self).set(date)
      #expect(try value(Date.self).get() == date)
    }
    for _ in 0..<100 {
      let date = Date()
      try value(Date.self).set(date)
      #expect(try value(Date.self).get() == date)
    }
    let late = Date(timeIntervalSince1970: 1e12)
    #expect(thrown { () throws(SecretError) in try value(Date.self).set(late) }?.code == .encodingFailed)
  }

  @Test func theCoderItselfFlattensOptionals() throws {
    let coder = StandardSecretCoder()
    #expect(try coder.encode(String?.some("x")).string() == "x")
    #expect(try coder.encode(String?.none).string() == "null")
    #expect(try coder.decode(String?.self, from: SecretBytes("x")) == "x")
    #expect(try coder.decode(Int?.self, from: SecretBytes("null")) == nil)
    #expect(try coder.decode(Int??.self, from: SecretBytes("7")) == 7)
  }

  @Test func invalidUTF8DoesNotDecodeAsText() throws {
    try put([0xFF, 0xFE])
    #expect(thrown { () throws(SecretError) in _ = try value(String.self).get() }?.code == .decodingFailed)
    #expect(try value([UInt8].self).get() == [0xFF, 0xFE])
  }

  @Test func anEmptySecretIsNotJSON() throws {
    try put([])
    #expect(thrown { () throws(SecretError) in _ = try value(Int.self).get() }?.code == .decodingFailed)
  }

  @Test func aDecodingErrorContainsNoValue() throws {
    try put(Array(#"{"user":"canary-1","url":7}"#.utf8))
    let error = try #require(thrown { () throws(SecretError) in _ = try value(Credentials.self).get() })
    #expect(error.code == .decodingFailed)
    #expect(error.identifier?.account == "coded")
    var dumped = ""
    dump(error, to: &dumped)
    #expect(!dumped.contains("canary") && !dumped.contains("password") && !dumped.contains("url"))
  }

  @Test func anEncodingErrorContainsNoValueAndStoresNothing() throws {
    struct Stubborn: Codable, Sendable {
      var text: String
      func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
          text,
          .init(codingPath: encoder.codingPath, debugDescription: "will not encode \(text)")
        )
      }
    }
    try put([1])
    let error = try #require(
      thrown { () throws(SecretError) in try value(Stubborn.self).set(Stubborn(text: "canary")) }
    )
    #expect(error.code == .encodingFailed)
    var dumped = ""
    dump(error, to: &dumped)
    #expect(!dumped.contains("canary"))
    #expect(try stored() == [1])
    #expect(thrown { () throws(SecretError) in try value(Double.self).set(.nan) }?.code == .encodingFailed)
  }

  @Test func theCoderCanBeReplaced() throws {
    struct Reversed: SecretCoder {
      func encode<Value: Encodable>(_ value: Value) throws -> SecretBytes {
        SecretBytes(try JSONEncoder().encode(value).reversed())
      }
      func decode<Value: Decodable>(_ type: Value.Type, from secret: SecretBytes) throws -> Value {
        try JSONDecoder().decode(type, from: Data(Array(secret.string().utf8.reversed())))
      }
    }
    try value(Int.self, coder: Reversed()).set(123)
    #expect(try stored() == Array("321".utf8))
    #expect(try value(Int.self, coder: Reversed()).get() == 123)
  }

  @Test func anOptionalTypeStoresTheBytesOfTheWrappedType() throws {
    try value(String?.self).set("text")
    #expect(try stored() == Array("text".utf8))
    #expect(try value(String.self).get() == "text")
    #expect(try value(String?.self).get() == "text")
    #expect(value(String??.self).wrappedValue == "text")
    try value(Int??.self).set(7)
    #expect(try stored() == Array("7".utf8))
    #expect(try value([UInt8]?.self).get() == [55])

    @SecurelyStoredValue<String?>(key: "coded", service: "tests", backend: backend) var token
    try $token.set(.some(nil))
    #expect(try backend.items(inService: nil).isEmpty)
    #expect(token == nil)
    try $token.set("x")
    try $token.set(nil)
    #expect(try backend.items(inService: nil).isEmpty)
    #expect(thrown { () throws(SecretError) in _ = try value(Int?.self).get() } == nil)
    try put(Array("x".utf8))
    #expect(thrown { () throws(SecretError) in _ = try value(Int?.self).get() }?.code == .decodingFailed)
  }

  @Test func anOptionalTypeInGenericCodeIsFlattened() throws {
    func flattens<Value: Codable & Sendable>(_ none: Value, _ some: Value) throws -> (Bool, Bool) {
      let value = SecurelyStoredValue<Value>(key: "coded", service: "tests", backend: backend)
      try value.set(some)
      let isThere = try value.get() != nil
      try value.set(none)
      return (isThere, try value.get() == nil)
    }
    #expect(try flattens(String?.none, "x") == (true, true))
    #expect(try backend.items(inService: nil).isEmpty)
    try put(Array("null".utf8))
    func read<Value: Codable & Sendable>(_ type: Value.Type) throws -> Bool {
      try SecurelyStoredValue<Value>(key: "coded", service: "tests", backend: backend).get() == nil
    }
    #expect(try read(Int?.self))
  }
}
