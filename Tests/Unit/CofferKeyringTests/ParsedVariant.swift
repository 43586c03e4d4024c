#if Keyring
import Foundation
import Testing

@testable import CofferKeyring

extension Variant {
  /// A value in GLib's text format, such as `(@o '/a', 1)`.
  static func parse(_ text: String) throws -> Variant {
    typealias Parse =
      @convention(c) (
        OpaquePointer?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafeMutableRawPointer?,
        UnsafeMutableRawPointer?
      ) -> OpaquePointer?
    let parse = unsafeBitCast(try #require(dlsym(nil, "g_variant_parse")), to: Parse.self)
    return Variant(owning: try #require(parse(nil, text, nil, nil, nil), "\(text)"))
  }

  /// The text of `count` equal bytes.
  static func text(ofBytes count: Int) -> String {
    "@ay [" + Array(repeating: "0x6b", count: count).joined(separator: ", ") + "]"
  }
}
#endif
