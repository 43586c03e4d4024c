import CofferCore
import CofferTestSupport
import CofferVault
import Foundation
import Testing

/// The judgements of `Tests/Vectors/pins.json`: a pin, a vault, and the outcome that each reader must have.
@Suite struct PinVectorTests {
  private struct Judgement: Decodable {
    struct Expectation: Decodable { let outcome: String }
    let name: String
    let comment: String
    let pin: String
    let vector: String?
    let expect: Expectation
  }

  @Test func everyPinHasItsJudgement() throws {
    let judgements = try JSONDecoder().decode(
      [Judgement].self, from: Data(contentsOf: Vector.directory.appending(path: "pins.json")))
    #expect(judgements.count >= 20)
    let vectors = Dictionary(uniqueKeysWithValues: try Vector.all().map { ($0.name, $0) })
    let scratch = try TemporaryDirectory()
    for judgement in judgements {
      let found = try outcome(judgement, in: scratch, vectors)
      #expect(found == judgement.expect.outcome, "\(judgement.name) (\(judgement.comment))")
    }
  }

  private func outcome(
    _ judgement: Judgement, in scratch: TemporaryDirectory, _ vectors: [String: Vector]
  ) throws -> String {
    // Any vault shows whether a text is a pin.
    let vector = try #require(vectors[judgement.vector ?? "ok-created"])
    let path = scratch.file("vector")
    try Data(vector.bytes()).write(to: URL(filePath: path))
    #expect(chmod(path, 0o600) == 0)
    var options = vector.options
    options.pins = [judgement.pin]
    let backend = VaultBackend(
      path: path, credentials: [VectorCredential(vector.credential)], options: options)
    do throws(SecretError) {
      let report = try backend.verify()
      return report.showsPins ? "accepted" : "unverifiable"
    } catch {
      if judgement.vector == nil, error.code != .configuration { return "accepted" }
      return Self.outcomes[error.code] ?? "\(error)"
    }
  }

  private static let outcomes: [SecretError.Code: String] = [
    .configuration: "invalid-pin", .unexpectedVault: "another-vault", .unexpectedKey: "another-key",
    .rolledBack: "rolled-back",
  ]
}
