import Testing

@testable import CofferTool

/// The words of an unfinished line of bash, and the text that bash gets for a completed word.
@Suite struct BashLineTests {
  @Test(arguments: [
    ("secret get a", "a", ["secret", "get"], "a"), ("secret get ", "", ["secret", "get"], ""),
    ("secret  -s 'a b'\"c\"\\ d x", "x", ["secret", "-s", "a bc d"], "x"),
    ("secret get a:b", "b", ["secret", "get"], "a:b"),
    ("secret run --set A=b", "b", ["secret", "run", "--set"], "A=b"),
    ("secret get \"a b", "a b", ["secret", "get"], "a b"),
    ("secret get 'a\"", "a\"", ["secret", "get"], "a\""),
    ("secret get $'a\\'\\101", "a\\'\\101", ["secret", "get"], "a'A"),
    ("secret get a\\", "a\\", ["secret", "get"], "a"),
    ("secret get \"a\\\"\\$\\x", "a\\\"\\$\\x", ["secret", "get"], "a\"$\\x"),
    ("secret get 2> f a", "a", ["secret", "get"], "a"),
    ("secret '' get x''", "x''", ["secret", "", "get"], "x"),
    ("ls | secret get x", "x", ["secret", "get"], "x"),
  ]) func wordsAreReadAsBashReadsThem(_ line: String, _ end: String, _ words: [String], _ current: String)
    throws
  {
    let line = try #require(BashLine(line, replacing: end))
    #expect(line.words == words)
    #expect(line.current == current)
    #expect(!line.isRedirected)
  }

  @Test(arguments: [("get $HOME", ""), ("get \"$(ls", "$(ls"), ("get `ls", ""), ("get a$b", "")])
  func aWordWithAnExpansionIsNotKnown(_ line: String, _ end: String) throws {
    #expect(try #require(BashLine(line, replacing: end)).current == nil)
  }

  @Test func theFileOfARedirectionIsNoArgument() throws {
    for line in ["secret get x > f", "secret get <f", "secret get 2>>f"] {
      #expect(try #require(BashLine(line, replacing: "f")).isRedirected)
    }
  }

  /// bash would insert the text at a place for which it is not quoted.
  @Test(arguments: [
    ("get \"a b", "b"), ("get \"a", "\"a"), ("get a", "b"), ("get a\\ b", " b"), ("get 'a:b", "b"),
  ])
  func anotherPlaceHasNoCompletion(_ line: String, _ end: String) {
    #expect(BashLine(line, replacing: end) == nil)
  }

  @Test(arguments: [
    ("get ", "", "a b$`'\"\\!~*", "a\\ b\\$\\`\\'\\\"\\\\\\!\\~\\*"), ("get a:", "", "a:b c", "b\\ c"),
    ("get 'a", "a", "a'b$", "a'\\''b$'"), ("get '", "", "'x", "''\\''x'"), ("get '", "", "x'", "x'\\'''"),
    ("get \"", "", "a$b`\"\\", "a\\$b\\`\\\"\\\\\""), ("get \"", "", "!x", "\"\"\\!\"x\""),
    ("get \"", "", "x!", "x\"\\!\"\""),
    ("get $'", "", "a'b\\!", "a\\047b\\134\\041'"), ("get ", "", "\u{202E}x", "$'\\342\\200\\256'x"),
    ("get \"", "", "a\u{1B}b", "a\"$'\\033'\"b\""), ("get '", "", "a\u{7}", "a'$'\\007'''"),
    ("get ", "", "a\u{A0}é", "a$'\\302\\240'é"),
  ]) func aNameIsQuotedForItsPlace(_ line: String, _ end: String, _ name: String, _ text: String) throws {
    #expect(try #require(BashLine(line, replacing: end)).inserted(name, isWhole: true) == text)
  }

  @Test func theCommonPartEndsWithAWholeCharacter() {
    #expect(CompletionAnswer.commonPrefix(["a\u{e9}1", "a\u{e8}1"]) == "a")
    #expect(
      CompletionAnswer.commonPrefix(["e\u{301}", "e\u{300}"]).unicodeScalars.elementsEqual("e".unicodeScalars)
    )
    #expect(CompletionAnswer.commonPrefix(["ab", "abc"]) == "ab")
    #expect(CompletionAnswer.commonPrefix(["ab", "b"]) == "")
  }
}
