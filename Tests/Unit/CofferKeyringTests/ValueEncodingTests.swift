#if Keyring
import CofferCore
import CofferTestSupport
import Testing

@testable import CofferKeyring

@Suite struct ValueEncodingTests {
  private func encode(_ bytes: [UInt8]) -> [UInt8] {
    ValueEncoding.encoded(SecretBytes(copying: bytes))?.array() ?? bytes
  }

  private func decode(_ bytes: [UInt8]) -> [UInt8] {
    ValueEncoding.decoded(SecretBytes(copying: bytes)).array()
  }

  @Test(arguments: awkwardValues)
  func decodingRestoresEveryValue(_ value: (name: String, bytes: [UInt8])) {
    #expect(decode(encode(value.bytes)) == value.bytes)
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
