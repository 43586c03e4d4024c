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
    let call: @Sendable () throws -> [SharedSecret]

    init(_ name: String, _ call: @escaping @Sendable () throws -> [SharedSecret]) {
      (testDescription, self.call) = (name, call)
    }
  }

  private static let key = SharedSecret(.random(count: 32))
  private static let value = SharedSecret(.random(count: 96))
  private static let text = {
    do { return SharedSecret(try VaultKey.text(of: key.bytes)) } catch { fatalError("\(error)") }
  }()
  private static let base64 = SharedSecret(value.bytes.base64())
  private static let sealed = value.bytes.withBytes {
    Sodium.seal($0, associatedData: [], key: key.bytes, randomness: SystemRandomness())
  }

  /// What follows the prefix, which is no secret.
  private static func body(ofIdentity text: borrowing SecretBytes) -> SharedSecret {
    SharedSecret(
      text.withBytes { SecretBytes(copying: $0.extracting("AGE-SECRET-KEY-1".utf8.count..<$0.count)) })
  }

  private static let functions = [
    Function("seal") {
      _ = value.bytes.withBytes {
        Sodium.seal($0, associatedData: [], key: key.bytes, randomness: SystemRandomness())
      }
      return [key, value]
    },
    Function("open") {
      var isAuthentic = false
      let opened = SecretBytes(count: 96) {
        isAuthentic = Sodium.open(sealed.span, associatedData: [], key: key.bytes, into: $0)
      }
      #expect(isAuthentic)
      return [key, SharedSecret(opened)]
    },
    Function("hash") {
      _ = value.bytes.withBytes { BLAKE2b.hash($0, count: 32) }
      return [value]
    },
    Function("keyedHash") {
      let hash = SecretBytes(count: 64) { BLAKE2b.hash(([1] as [UInt8]).span, key: key.bytes, into: $0) }
      return [key, SharedSecret(hash)]
    },
    Function("subkey") { [key, SharedSecret(Sodium.subkey(.knownVaults, of: key.bytes))] },
    Function("fromPortal") { [value, SharedSecret(VaultKey.derived(fromPortal: value.bytes))] },
    Function("stretch") {
      let salt = [UInt8](repeating: 1, count: 16)
      guard let key = Sodium.stretch(value.bytes, salt: salt, passes: 1, memory: 8 << 20) else {
        throw TestFailure("there is no memory")
      }
      return [value, SharedSecret(key)]
    },
    Function("text") { [key, SharedSecret(try VaultKey.text(of: key.bytes))] },
    Function("parse") { [text, SharedSecret(try VaultKey.parse(text.bytes))] },
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
      guard let shared = Sodium.sharedSecret(key.bytes, Sodium.publicKey(of: .random(count: 32))) else {
        throw TestFailure("a public key is of low order")
      }
      return [key, SharedSecret(shared)]
    },
    Function("base64") { [value, SharedSecret(value.bytes.base64())] },
    Function("decodingBase64") {
      guard let decoded = base64.bytes.withBytes({ SecretBytes.decodingBase64($0) }) else {
        throw TestFailure("that is not base64")
      }
      return [base64, SharedSecret(decoded)]
    },
    Function("fingerprint") {
      _ = value.bytes.fingerprint(under: key.bytes)
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
        Self.value.bytes.withBytes { $0.withUnsafeBytes { buffer.copyMemory(from: $0) } }
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
      secrets.flatMap { $0.bytes.withBytes { Self.windows($0.withUnsafeBytes { Array($0) }) } })
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
