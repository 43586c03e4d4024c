import CofferCore
import CofferSimulation
import CofferSystem
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
    let pin: String?
    let pins: [String]?
    let path: String?
    let vector: String?
    let expect: Expectation
  }

  @Test func everyPinHasItsJudgement() throws {
    let judgements = try JSONDecoder().decode(
      [Judgement].self, from: Data(contentsOf: Vector.directory.appending(path: "pins.json")))
    #expect(judgements.count >= 20)
    let vectors = Dictionary(uniqueKeysWithValues: try Vector.all().map { ($0.name, $0) })
    for judgement in judgements {
      let found = try outcome(judgement, vectors)
      #expect(found == judgement.expect.outcome, "\(judgement.name) (\(judgement.comment))")
    }
  }

  private func outcome(
    _ judgement: Judgement, _ vectors: [String: Vector]
  ) throws -> String {
    // Any vault will do to find out whether a text is a pin.
    let vector = try #require(vectors[judgement.vector ?? "ok-created"])
    let (disk, path) = (SimulatedDisk(), judgement.path ?? "/v/vault")
    _ = try disk.locate(path, followingLink: true).directory.create(path)
    disk.overwrite(path, with: try vector.bytes())
    var options = vector.options
    options.pins = try judgement.pins ?? [#require(judgement.pin)]
    let backend = VaultBackend(
      path: path, credentials: [VaultCredentialSource(vector.credential)], options: options,
      environment: VaultEnvironment(fileSystem: disk, user: 0, uptime: { .zero }, sleep: { _ in }))
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
