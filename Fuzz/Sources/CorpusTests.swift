import Foundation
import Testing

/// Runs every input of `Fuzz/Corpus` once, without the fuzzer. A broken rule stops the process.
@Suite struct CorpusTests {
  private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Corpus")

  @Test(arguments: FuzzTarget.allCases) func everyInputOfTheCorpusKeepsTheRules(_ target: FuzzTarget) throws {
    let file = Self.corpus.appendingPathComponent("\(target.rawValue).txt")
    // One input a line, in base64. The last line ends with a line feed.
    let lines = try String(contentsOf: file, encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    #expect(lines.count > 5)
    for line in lines { target.run(Array(try #require(Data(base64Encoded: String(line))))) }
  }
}
