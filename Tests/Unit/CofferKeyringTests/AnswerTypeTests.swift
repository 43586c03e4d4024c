#if Keyring
import Foundation
import Testing

@testable import CofferKeyring

/// Types that only libsecret reads: a secret, and the answer to `OpenSession`.
@Suite struct AnswerTypeTests {
  private func value(_ text: String) throws -> Variant { try .parse(text) }

  private func bytes(_ count: Int) -> String { Variant.text(ofBytes: count) }

  @Test func aSecretHasASessionParametersAValueAndAContentType() throws {
    let secret = try value("(@o '/s', @ay [], @ay [0x01], 'text/plain')")
    #expect(secret.isSecret && secret.signature == "(oayays)" && secret.count == 4)
    for text in [
      "('/s', @ay [], @ay [], 't')", "(@o '/s', @ay [], @ay [])", "(@o '/s', @ay [], @ay [], @ay [])",
      "(@o '/s', @ay [], 'value', 't')", "(@o '/s', 'x', @ay [], 't')", "(@o '/s', @ax [], @ay [], 't')",
      "(@o '/s', @ay [], @ay [], 't', 't')", "@ay []", "'t'", "<(@o '/s', @ay [], @ay [], 't')>",
    ] {
      #expect(try !value(text).isSecret, "\(text)")
    }
  }

  @Test func stringsAreReadAsAnArrayOfStringsOnly() throws {
    #expect(try value("['a', 'b']").strings == ["a", "b"])
    #expect(try value("@as []").strings == [])
    for text in ["@ao []", "@ay []", "('a', 'b')", "'a'", "<['a']>", "[<'a'>]"] {
      #expect(try value(text).strings == nil, "\(text)")
    }
    #expect(try value("@t 5").unsigned == 5)
    for text in ["@u 5", "@x 5", "@i 5", "@d 5", "'5'", "@y 5"] {
      #expect(try value(text).unsigned == nil, "\(text)")
    }
  }

  @Test func onlyAContainerHasElements() throws {
    for (text, count) in [("'abc'", 0), ("5", 0), ("@o '/a'", 0), ("()", 0), ("[1, 2]", 2), ("<'a'>", 1)] {
      #expect(try value(text).count == count, "\(text)")
    }
  }

  @Test func aSessionHasThePublicKeyOfTheServiceAndAPath() throws {
    func isSession(_ output: String, _ path: String = "@o '/s'", isEncrypted: Bool) throws -> Bool {
      let found = SessionNegotiation.sessionPath(try value("(\(output), \(path))"), isEncrypted: isEncrypted)
      #expect(found == nil || found == "/s")
      return found != nil
    }
    // 1024 bits, and a zero byte before them.
    for count in [0, 1, 2, 128, 129, 130, 1000] {
      #expect(try isSession("<\(bytes(count))>", isEncrypted: true) == (1...129).contains(count), "\(count)")
      #expect(try !isSession("<\(bytes(count))>", isEncrypted: false), "\(count)")
    }
    #expect(try isSession("<''>", isEncrypted: false) && isSession("<'ignored'>", isEncrypted: false))
    // libsecret would read a string as the key.
    for output in ["<''>", "<'key'>", "<@as ['k']>", "<@aay []>", "<1>", "<<@ay [0x6b]>>", "<@an [1]>"] {
      #expect(try !isSession(output, isEncrypted: true), "\(output)")
    }
    for output in ["<1>", "<@o '/a'>", "<<''>>", "<@as []>"] {
      #expect(try !isSession(output, isEncrypted: false), "\(output)")
    }
    for (output, isEncrypted) in [("<\(bytes(128))>", true), ("<''>", false)] {
      #expect(try isSession(output, isEncrypted: isEncrypted))
      for path in ["@o '/'", "'/s'", "1", "<@o '/s'>"] {
        #expect(try !isSession(output, path, isEncrypted: isEncrypted), "\(path)")
      }
      for answer in ["(\(output),)", "(\(output), @o '/s', 1)", "(@o '/s', \(output))", output, "()"] {
        let found = try SessionNegotiation.sessionPath(value(answer), isEncrypted: isEncrypted)
        #expect(found == nil, "\(answer)")
      }
    }
    #expect(try !isSession(bytes(128), isEncrypted: true) && !isSession("''", isEncrypted: false))
  }
}
#endif
