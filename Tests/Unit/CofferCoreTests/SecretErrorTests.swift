import CofferCore
import Foundation
import Testing

@Suite struct SecretErrorTests {
  @Test func theDescriptionIsTheReasonAndTheAdvice() throws {
    let error = SecretError(.locked, "The vault is locked.", advice: "Give its key.")
    #expect("\(error)" == "The vault is locked. Give its key.")
    #expect("\(SecretError(.io, "The disk is full."))" == "The disk is full.")
    #expect("\(SecretError.Code.wrongKey)" == "wrongKey")
  }

  @Test func theDescriptionSaysWhatWasChanged() throws {
    let effects: [SecretError.Effect] = [.none, .changed, .unknown]
    let texts = effects.map { SecretError(.io, "It failed.", advice: "Look.", effect: $0).description }
    #expect(
      texts == [
        "It failed. Look.", "It failed. The change stays. Look.",
        "It failed. It is not known whether the change was made. Look.",
      ])
    let error = SecretError(.io, "It failed.", effect: .unknown)
    #expect(error.about(try SecretIdentifier(service: "s", account: "a")).effect == .unknown)
  }

  @Test func aboutKeepsAnExistingIdentifier() throws {
    let (one, two) = (
      try SecretIdentifier(service: "s", account: "1"), try SecretIdentifier(service: "s", account: "2")
    )
    let error = SecretError(.io, "x").about(one)
    #expect(error.identifier == one)
    #expect(error.about(two).identifier == one)
    #expect(error.code == .io && error.reason == "x" && error.advice == nil)
  }

  @Test func theLocalizedDescriptionIsTheDescription() {
    let error: any Error = SecretError(.locked, "The vault is locked.", advice: "Give its key.")
    #expect(error.localizedDescription == "The vault is locked. Give its key.")
    #expect((error as? any LocalizedError)?.recoverySuggestion == "Give its key.")
  }

  @Test func aCodeCanBeCaught() throws {
    func kind(_ error: any Error) -> String {
      do { throw error } catch SecretError.Code.locked { return "locked" } catch { return "another" }
    }
    #expect(kind(SecretError(.locked, "x")) == "locked")
    #expect(kind(SecretError(.io, "x")) == "another")
    #expect(kind(CancellationError()) == "another")
    func typed(_ error: SecretError) -> Bool {
      do throws(SecretError) { throw error } catch SecretError.Code.wrongKey { return true } catch {
        return false
      }
    }
    #expect(typed(SecretError(.wrongKey, "x")) && !typed(SecretError(.io, "x")))
  }

  @Test func codesAreEqualIfTheirNamesAre() {
    #expect(SecretError.Code("locked") == .locked)
    #expect(SecretError.Code("another") != .locked)
  }

  @Test func errorsContainNoValue() throws {
    let canary = "canary-5up3r-s3cr3t"
    let backend = MemoryBackend()
    let identifier = try SecretIdentifier(service: "s", account: "a")
    var errors: [SecretError] = []
    func note(_ body: () throws(SecretError) -> Void) {
      do throws(SecretError) { try body() } catch { errors.append(error) }
    }
    let large = Array(canary.utf8) + [UInt8](repeating: 65, count: MemoryBackend.maximumSecretSize)
    note { () throws(SecretError) in try backend.store(SecretBytes(large), for: identifier) }
    note { () throws(SecretError) in _ = try SecretBytes(Array(canary.utf8) + [0xFF]).string() }
    // Metadata is not secret, but does not belong in an error.
    let long = canary + String(repeating: "x", count: 1024)
    for metadata in [
      SecretMetadata(label: long), SecretMetadata(attributes: [long: ""]),
      SecretMetadata(attributes: ["a": long]),
    ] {
      note { () throws(SecretError) in
        try backend.store(SecretBytes(canary), for: identifier, metadata: .replace(metadata))
      }
    }
    note { () throws(SecretError) in _ = try SecretIdentifier(service: long, account: "a") }
    note { () throws(SecretError) in _ = try SecretIdentifier(service: "a", account: canary + "\0") }
    #expect(errors.count == 7)
    for error in errors {
      var text = "\(error) \(String(reflecting: error))"
      dump(error, to: &text)
      #expect(!text.contains(canary))
    }
  }
}
