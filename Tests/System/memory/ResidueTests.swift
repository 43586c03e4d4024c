import CofferCore
import CofferTestSupport
@testable import CofferVault
import CofferVaultFormat
import Glibc
import Testing

/// What a call of libsodium leaves on the stack, looked at right after each function that makes such calls. A search at
/// system calls does not see it, because a later function may wipe the stack before the next system call.
@Suite struct ResidueTests {
  struct Function: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Calls the function, and returns the secrets that it worked on.
    let call: @Sendable () throws -> [SecretBytes]

    init(_ name: String, _ call: @escaping @Sendable () throws -> [SecretBytes]) {
      (testDescription, self.call) = (name, call)
    }
  }

  private static let key = SecretBytes.random(count: 32)
  private static let value = SecretBytes.random(count: 96)
  private static let text = {
    do { return try VaultKey.text(of: key) } catch { fatalError("\(error)") }
  }()
  private static let base64 = value.base64()
  private static let sealed = value.withBytes {
    Sodium.seal($0, associatedData: [], key: key, randomness: SystemRandomness())
  }

  /// What follows the prefix, which is no secret.
  private static func body(ofIdentity text: SecretBytes) -> SecretBytes {
    text.withBytes { SecretBytes($0.extracting("AGE-SECRET-KEY-1".utf8.count..<$0.count)) }
  }

  private static let functions = [
    Function("seal") {
      _ = value.withBytes {
        Sodium.seal($0, associatedData: [], key: key, randomness: SystemRandomness())
      }
      return [key, value]
    },
    Function("open") {
      var isAuthentic = false
      let opened = SecretBytes(count: 96) {
        isAuthentic = Sodium.open(sealed.span, associatedData: [], key: key, into: $0)
      }
      #expect(isAuthentic)
      return [key, opened]
    },
    Function("hash") {
      _ = value.withBytes { BLAKE2b.hash($0, count: 32) }
      return [value]
    },
    Function("keyedHash") {
      let hash = SecretBytes(count: 64) { BLAKE2b.hash(([1] as [UInt8]).span, key: key, into: $0) }
      return [key, hash]
    },
    Function("subkey") { [key, Sodium.subkey(.knownVaults, of: key)] },
    Function("fromPortal") { [value, VaultKey.derived(fromPortal: value)] },
    Function("stretch") {
      let salt = [UInt8](repeating: 1, count: 16)
      guard let key = Sodium.stretch(value, salt: salt, passes: 1, memory: 8 << 20) else {
        throw TestFailure("there is no memory")
      }
      return [value, key]
    },
    Function("text") { [key, try VaultKey.text(of: key)] },
    Function("parse") { [text, try VaultKey.parse(text)] },
    Function("identity") {
      [try VaultIdentity.generate(isPostQuantum: VaultIdentity.supportsPostQuantum).secret]
    },
    Function("textOfIdentity") {
      let identity = try VaultIdentity.generate(isPostQuantum: false)
      return [identity.secret, body(ofIdentity: identity.text())]
    },
    Function("parseIdentity") {
      let text = try VaultIdentity.generate(isPostQuantum: false).text()
      return [body(ofIdentity: text)] + (try VaultIdentity.parse(text)).map(\.secret)
    },
    Function("sharedSecret") {
      guard let shared = Sodium.sharedSecret(key, Sodium.publicKey(of: .random(count: 32))) else {
        throw TestFailure("a public key is of low order")
      }
      return [key, shared]
    },
    Function("base64") { [value, value.base64()] },
    Function("decodingBase64") {
      guard let decoded = base64.withBytes({ SecretBytes.decodingBase64($0) }) else {
        throw TestFailure("that is not base64")
      }
      return [base64, decoded]
    },
    Function("fingerprint") {
      _ = value.fingerprint(under: key)
      return [key, value]
    },
  ]

  @Test(arguments: functions) func aFunctionLeavesNoSecretOnTheStack(_ function: Function) throws {
    // The first call resolves symbols, and makes the secrets that all functions share.
    _ = try count(after: function)
    #expect(try count(after: function) == 0)
  }

  @Test func theSearchFindsWhatAFunctionLeaves() throws {
    let leaking = Function("leaking") {
      withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { buffer in
        Self.value.withBytes { $0.withUnsafeBytes { buffer.copyMemory(from: $0) } }
      }
      return [Self.value]
    }
    _ = try count(after: leaking)
    #expect(try count(after: leaking) > 0)
  }

  /// The number of places below the stack pointer that have eight consecutive bytes of a secret after the call.
  private func count(after function: Function) throws -> Int {
    let size = 16_384
    let copy = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 16)
    defer { copy.deallocate() }
    let secrets = try function.call()
    Self.copyDeadStack(to: copy, size)
    let windows = Set(
      secrets.flatMap { $0.withBytes { Self.windows($0.withUnsafeBytes { Array($0) }) } })
    return Self.windows(Array(UnsafeRawBufferPointer(start: copy, count: size))).count {
      windows.contains($0)
    }
  }

  @inline(never) private static func copyDeadStack(to copy: UnsafeMutableRawPointer, _ size: Int) {
    var mark: UInt8 = 0
    withUnsafeMutablePointer(to: &mark) { _ = memcpy(copy, UnsafeRawPointer($0) - size, size) }
  }

  private static func windows(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.indices.dropLast(7).map { Array(bytes[$0..<$0 + 8]) }
  }
}
