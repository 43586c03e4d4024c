#if Keyring
import CofferCore
import CofferTestSupport
import Testing

@testable import CofferKeyring

@Suite struct ValueEncodingTests {
  private func stored(_ bytes: [UInt8]) -> [UInt8] {
    let secret = SecretBytes(copying: bytes)
    guard let encoded = ValueEncoding.encoded(secret) else { return bytes }
    return encoded.array()
  }

  private func read(_ bytes: [UInt8]) -> [UInt8] {
    ValueEncoding.decoded(SecretBytes(copying: bytes)).array()
  }

  @Test(arguments: awkwardValues) func everyValueComesBack(_ value: (name: String, bytes: [UInt8])) {
    #expect(read(stored(value.bytes)) == value.bytes)
  }

  @Test func everyLengthComesBack() {
    for count in 0..<70 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 200) }
      #expect(read(stored(bytes)) == bytes)
    }
  }

  @Test(arguments: [
    "", "hunter2", "pässwörd 🔑", "a b", "a\tb", "[1]", "#x", "a=b;c", "{\"a\": 1}", "coffer:",
  ])
  func plainTextGoesAsItIs(_ text: String) {
    #expect(stored(Array(text.utf8)) == Array(text.utf8))
  }

  @Test func encodedIsBase64OfRFC4648() {
    #expect(stored(Array("a\n".utf8)) == Array("coffer:base64:YQo=".utf8))
    #expect(stored([0]) == Array("coffer:base64:AA==".utf8))
    #expect(stored([0xFF, 0xFE, 0xFD]) == Array("coffer:base64://79".utf8))
  }

  @Test(
    arguments: [
      "coffer:base64:QUJD",  // plain text, which would not have been encoded
      "coffer:base64:", "coffer:base64:A", "coffer:base64:YQo", "coffer:base64:YQp=",  // stray bits
      "coffer:base64:YQo=YQo=", "coffer:base64:====", "coffer:base64:Y*o=", "coffer:base64:YQo= ",
      "Coffer:base64:YQo=",
    ])
  func whatWasNotEncodedHereIsNotDecoded(_ text: String) {
    #expect(read(Array(text.utf8)) == Array(text.utf8))
  }
}
#endif
