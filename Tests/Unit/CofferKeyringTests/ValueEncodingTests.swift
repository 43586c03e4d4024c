#if Keyring
import CofferCore
import CofferTestSupport
import Testing

@testable import CofferKeyring

@Suite struct ValueEncodingTests {
  private func encode(_ bytes: [UInt8], by rule: StorageRule = .plainText) -> [UInt8] {
    ValueEncoding.encoded(SecretBytes(bytes), by: rule)?.array() ?? bytes
  }

  private func decode(_ bytes: [UInt8]) -> [UInt8] {
    ValueEncoding.decoded(SecretBytes(bytes)).array()
  }

  @Test(arguments: awkwardValues)
  func decodingRestoresEveryValue(_ value: (name: String, bytes: [UInt8])) {
    for rule in [StorageRule.plainText, .text, .withoutPlaceholders, .strictest] {
      #expect(decode(encode(value.bytes, by: rule)) == value.bytes)
    }
  }

  @Test func decodingRestoresValuesOfEveryLength() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 200) }
      #expect(decode(encode(bytes)) == bytes)
    }
  }

  @Test(arguments: [
    "", "hunter2", "pässwörd 🔑", "a b", "a\tb", "[1]", "#x", "a=b;c", "{\"a\": 1}", "coffer:",
  ])
  func plainTextIsNotEncoded(_ text: String) {
    #expect(encode(Array(text.utf8)) == Array(text.utf8))
  }

  @Test(arguments: ["a\n", " a", "a ", "\ta", "a\t", "a\\b", "{TITLE}", "a\u{7F}", "\r\n"])
  func textIsEncodedOnlyWhereItWouldBeChanged(_ text: String) {
    let bytes = Array(text.utf8)
    #expect(encode(bytes, by: .text) == bytes)
    #expect(encode(bytes, by: .strictest) != bytes)
    #expect(decode(encode(bytes, by: .strictest)) == bytes)
    #expect((encode(bytes, by: .withoutPlaceholders) != bytes) == text.contains("{"))
    #expect(encode([0], by: .text) != [0])
    #expect(encode([0xFF], by: .text) != [0xFF])
    let marked = Array("coffer:base64:YQo=".utf8)
    #expect(decode(encode(marked, by: .text)) == marked)
  }

  @Test(arguments: [
    ("{\"a\": 1}", true), ("{ x }", true), ("{}", true), ("{1}", true), ("a{", true), ("{é}", true),
    ("{_a}", true),
    ("{S:a}", false), ("{{title}", false), ("x{z", false),
  ])
  func aBraceIsEncodedForKeePassXCOnlyBeforeALetter(_ text: String, _ isKept: Bool) {
    let bytes = Array(text.utf8)
    #expect((encode(bytes, by: .withoutPlaceholders) == bytes) == isKept)
    // An earlier version encoded every brace.
    #expect(encode(bytes, by: .strictest) != bytes)
    #expect(decode(encode(bytes, by: .strictest)) == bytes)
  }

  @Test func theFileOfACollectionIsNamedByItsPath() {
    #expect(StorageRule.fileName(of: "/org/freedesktop/secrets/collection/login") == "login")
    #expect(StorageRule.fileName(of: "/collection/Default_5fkeyring_20") == "Default_keyring ")
    for path in ["/collection/_2e_2e", "/collection/a_2fb", "/collection/a_00", "/collection/a_", "/"] {
      #expect(StorageRule.fileName(of: path) == nil)
    }
  }

  @Test func theServiceIsKnownByTheNameOfItsProcess() {
    for name in ["kwalletd5", "kwalletd6", "ksecretd"] { #expect(ServiceKind(name: name) == .kWallet) }
    #expect(ServiceKind(name: "keepassxc") == .keePassXC)
    #expect(ServiceKind(name: "gnome-keyring-d") == .gnomeKeyring)
    for name in ["", "python3", "oo7-daemon"] { #expect(ServiceKind(name: name) == .other) }
    #expect(ServiceKind(process: nil) == .other)
  }

  @Test func anUnknownProcessStoresPlainTextOnly() {
    #expect(StorageRule.rule(for: "/collection/login", of: .other, dataDirectory: "/") == .plainText)
    #expect(
      StorageRule.rule(for: "/collection/login", of: ServiceKind(process: 1), dataDirectory: "/")
        == .plainText)
  }

  @Test func theEncodingIsBase64OfRFC4648() {
    #expect(encode(Array("a\n".utf8)) == Array("coffer:base64:YQo=".utf8))
    #expect(encode([0]) == Array("coffer:base64:AA==".utf8))
    #expect(encode([0xFF, 0xFE, 0xFD]) == Array("coffer:base64://79".utf8))
  }

  @Test(
    arguments: [
      "coffer:base64:QUJD",  // plain text, which is never encoded
      "coffer:base64:", "coffer:base64:A", "coffer:base64:YQo", "coffer:base64:YQp=",  // stray bits
      "coffer:base64:YQo=YQo=", "coffer:base64:====", "coffer:base64:Y*o=", "coffer:base64:YQo= ",
      "Coffer:base64:YQo=",
    ])
  func aValueThatTheEncodingDoesNotProduceIsNotDecoded(_ text: String) {
    #expect(decode(Array(text.utf8)) == Array(text.utf8))
  }
}
#endif
