import Foundation
import Testing

/// Every input of the corpus once, without the fuzzer. A broken rule stops the process, as it does there.
@Suite struct CorpusTests {
  private static let corpus = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().appendingPathComponent("Corpus")

  @Test(arguments: FuzzTarget.allCases) func whatWasFoundBeforeStillHolds(_ target: FuzzTarget) throws {
    let directory = Self.corpus.appendingPathComponent(target.rawValue)
    let inputs = try FileManager.default.contentsOfDirectory(at: directory, includingPropertiesForKeys: nil)
    #expect(inputs.count > 5)
    for input in inputs { target.run(Array(try Data(contentsOf: input))) }
  }
}
