/// Values that a text format, a C string or a text encoding may change, each with a name.
package let awkwardValues: [(name: String, bytes: [UInt8])] = [
  ("empty", []), ("LF inside", [65, 10, 66]), ("LF at the end", [65, 10]), ("LF at the start", [10, 65]),
  ("LF alone", [10]), ("CR LF", [65, 13, 10, 66]), ("CR", [65, 13, 66]), ("NUL", [0]),
  ("NUL inside", [65, 0, 66]), ("NUL at the end", [65, 0]), ("invalid UTF-8", [0xFF, 0xFE, 0x80]),
  ("space at the start", Array(" a".utf8)), ("space at the end", Array("a ".utf8)),
  ("spaces", Array("   ".utf8)), ("tabs at both ends", Array("\ta\t".utf8)),
  ("tab inside", Array("a\tb".utf8)), ("backslash", Array(#"a\nb"#.utf8)),
  ("backslash at the end", Array(#"a\"#.utf8)), ("backslashes", Array(#"\\\s\d"#.utf8)),
  ("control characters", [65, 1, 0x1B, 0x7F, 66]), ("section", Array("a\n[99]\nsecret=another\n".utf8)),
  ("brackets", Array("[1]".utf8)), ("hash", Array("#x".utf8)), ("equals sign", Array("a=b;c".utf8)),
  ("quotes", Array(#""a'"#.utf8)), ("byte order mark", [0xEF, 0xBB, 0xBF, 65]),
  ("Unicode white space", Array("\u{85}a\u{2028}b\u{A0}".utf8)), ("vertical tab", [0x0B, 0x0C, 65, 0x0B]),
  ("not ASCII", Array("pässwörd 🔑 密码".utf8)), ("an encoded value", Array("coffer:base64:QQo=".utf8)),
  ("an encoded plain value", Array("coffer:base64:QUJD".utf8)), ("marker", Array("coffer:base64:".utf8)),
  ("every byte", Array(0...255)), ("PEM", Array("-----BEGIN KEY-----\nMIIB\n-----END KEY-----\n".utf8)),
]
