@testable import CofferCore
import CofferTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(30))) struct SecretBytesTests {
  @Test(arguments: [0, 1, 63, 64, 65, 255, 256, 257, 1024, 1025, 4095, 4096, 4097, 65_536, 1 << 20, 16 << 20])
  func bytesAreReadBack(count: Int) {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
    let secret = SecretBytes(bytes)
    #expect(secret.count == count)
    #expect(secret.isEmpty == (count == 0))
    #expect(secret.array() == bytes)
    let copy = SecretBytes(bytes.lazy.map { $0 })
    #expect(copy.array() == bytes)
    #expect(copy.isEqual(to: secret))
  }

  @Test func noDescriptionShowsTheBytes() {
    let secret = SecretBytes("hunter2")
    var dumped = ""
    dump([secret], to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), "\([secret])", dumped] {
      #expect(text.contains("redacted") && !text.contains("hunter2") && !text.contains("104"))
    }
  }

  @Test func textIsReadBack() throws {
    for text in ["", "a", "a\0b\n", "caf\u{E9}", "cafe\u{301}", "🔑"] {
      #expect(try SecretBytes(text).string().utf8.elementsEqual(text.utf8))
    }
  }

  @Test(
    arguments: [[0xFF], [0xC3], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF5, 0x80, 0x80, 0x80]] as [[UInt8]]
  )
  func whatIsNotUTF8IsNoText(bytes: [UInt8]) {
    let error = #expect(throws: SecretError.self) { try SecretBytes(bytes).string() }
    #expect(error?.code == .decodingFailed)
  }

  @Test func equalityComparesAllBytes() {
    let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0) }
    #expect(isEqual(bytes, bytes))
    for index in bytes.indices {
      var other = bytes
      other[index] ^= 1
      #expect(!isEqual(bytes, other))
    }
    #expect(!isEqual(bytes, Array(bytes.dropLast())))
    #expect(!isEqual(bytes, bytes + [0]))
    #expect(isEqual([], []))
  }

  private func isEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    SecretBytes(one).isEqual(to: SecretBytes(other))
  }

  @Test func newBytesAreZero() {
    // In a block that had other contents before.
    for _ in 0..<100 { _ = SecretBytes([UInt8](repeating: 0xAA, count: 64)) }
    #expect(SecretBytes(count: 64) { _ in }.array() == [UInt8](repeating: 0, count: 64))
  }

  @Test func anErrorOfTheInitializerIsRethrown() {
    struct Failure: Error {}
    for count in [0, 10, 5000] {
      #expect(throws: Failure.self) {
        _ = try SecretBytes(count: count) { (_) throws(Failure) in throw Failure() }
      }
    }
  }

  @Test func manyThousandSecretsCanExistAtOnce() throws {
    // More than the memory mappings of a process.
    var kept: [SecretBytes] = []
    for number in 0..<80_000 { kept.append(SecretBytes("secret number \(number)")) }
    let mappings = try Self.lines(of: "/proc/self/maps").count
    #expect(mappings < 20_000)
    for (number, secret) in kept.enumerated() where number.isMultiple(of: 997) {
      #expect(try secret.string() == "secret number \(number)")
    }
    var addresses: Set<UInt> = []
    for secret in kept {
      secret.withBytes {
        $0.withUnsafeBufferPointer { _ = addresses.insert(UInt(bitPattern: $0.baseAddress)) }
      }
    }
    #expect(addresses.count == kept.count)
  }

  @Test func manyThreadsCreateAndReleaseSecrets() async {
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          for round in 0..<2000 {
            let text = String(repeating: "\(task)", count: round % 300 + 1)
            #expect(SecretBytes(text).array() == Array(text.utf8))
          }
        }
      }
    }
  }

  @Test(arguments: [16, 64, 200, 1000, 4096])
  func releasedBlocksAreWiped(count: Int) throws {
    // A block stays mapped after its release while its slab has another block in use, so the test can read it.
    let secret = SecretBytes([UInt8](repeating: 0xA5, count: count))
    var others: [(block: UnsafeMutableRawPointer, origin: GuardedMemory.Origin)] = []
    defer {
      for other in others { GuardedMemory.deallocate(other.block, count: count, origin: other.origin) }
    }
    func slab(_ origin: GuardedMemory.Origin) throws -> GuardedMemory.Slab {
      guard case .slab(let slab, _) = origin else { throw NotInASlab() }
      return slab
    }
    var (block, origin) = GuardedMemory.allocate(count)
    while try !others.contains(where: { try slab($0.origin) === slab(origin) }) {
      others.append((block, origin))
      (block, origin) = GuardedMemory.allocate(count)
    }
    block.initializeMemory(as: UInt8.self, repeating: 0xA5, count: count)
    GuardedMemory.deallocate(block, count: count, origin: origin)
    // Another thread may use the block again, with other bytes.
    #expect(
      UnsafeRawBufferPointer(start: block, count: count).filter { $0 == 0xA5 }.count < max(count / 2, 16)
    )
    #expect(secret.array() == [UInt8](repeating: 0xA5, count: count))
  }

  @Test func emptySlabsAreFreedAndTheOneThatStaysServesEverySize() throws {
    #expect(GuardedMemory.isReady)
    var blocks = GuardedMemory.Blocks()
    func take(_ sizeClass: Int) throws -> (UnsafeMutableRawPointer, GuardedMemory.Slab) {
      let taken = blocks.take(sizeClass)
      return try #require(taken)
    }
    // 1,024 blocks of the smallest size fill a slab.
    let many = try (0..<5000).map { _ in try take(0) }
    #expect(blocks.slabs.count == 5)
    for (block, slab) in many { blocks.giveBack(block, 0, to: slab) }
    #expect(blocks.slabs.count == 1)
    for sizeClass in [3, 0, 1, 2, 3] {
      let (block, slab) = try take(sizeClass)
      #expect(blocks.slabs.count == 1)
      blocks.giveBack(block, sizeClass, to: slab)
    }
    // A block in use keeps its slab.
    let kept = try take(0)
    let others = try (0..<100).map { _ in try take(3) }
    for (block, slab) in others { blocks.giveBack(block, 3, to: slab) }
    #expect(blocks.slabs.count <= 2 && blocks.slabs.contains { $0 === kept.1 })
    kept.0.storeBytes(of: 1, as: UInt8.self)
    blocks.giveBack(kept.0, 0, to: kept.1)
    #expect(blocks.slabs.count == 1)
  }

  @Test func theMemoryIsExcludedFromCoreDumps() throws {
    for count in [32, 5000] {
      let secret = SecretBytes([UInt8](repeating: 1, count: count))
      let address = secret.withBytes { $0.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
      let flags = try #require(try Self.mappingFlags(of: address))
      #expect(flags.contains("dd"), "the mapping is dumped: \(flags)")
      _ = secret.count
    }
  }

  @Test func theMemoryIsBetweenPagesWithoutAccess() throws {
    for count in [32, 5000] {
      let secret = SecretBytes([UInt8](repeating: 1, count: count))
      let address = secret.withBytes { $0.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) } }
      let mappings = try Self.lines(of: "/proc/self/maps").map {
        line -> (range: Range<UInt>, access: Substring) in
        let words = line.split(separator: " ")
        let ends = try words[0].split(separator: "-").map { try #require(UInt($0, radix: 16)) }
        return (ends[0]..<ends[1], words[1])
      }
      let memory = try #require(mappings.first { $0.range.contains(address) }).range
      for page in [memory.lowerBound - 1, memory.upperBound] {
        #expect(mappings.first { $0.range.contains(page) }?.access == "---p")
      }
      _ = secret.count
    }
  }

  /// The lines of a file in /proc. Foundation reads only the first part of such a file.
  private static func lines(of path: String) throws -> [Substring] {
    let handle = try #require(FileHandle(forReadingAtPath: path))
    var text = Data()
    while let part = try handle.read(upToCount: 65_536), !part.isEmpty { text += part }
    return String(decoding: text, as: UTF8.self).split(separator: "\n")
  }

  /// The flags of the mapping that contains the address, from /proc/self/smaps.
  private static func mappingFlags(of address: UInt) throws -> [String]? {
    var isInside = false
    for line in try lines(of: "/proc/self/smaps") {
      if let range = line.split(separator: " ").first?.split(separator: "-"), range.count == 2,
        let start = UInt(range[0], radix: 16), let end = UInt(range[1], radix: 16)
      {
        isInside = (start..<end).contains(address)
      } else if isInside, line.hasPrefix("VmFlags:") {
        return line.split(separator: " ").dropFirst().map(String.init)
      }
    }
    return nil
  }

  @Test func fingerprintsDistinguishSecrets() {
    let key = SecretBytes.random(count: 32)
    let other = SecretBytes.random(count: 32)
    let isSame = key.isEqual(to: other)
    #expect(!isSame)
    let secret = SecretBytes("secret")
    #expect(secret.fingerprint(under: key) == SecretBytes("secret").fingerprint(under: key))
    #expect(secret.fingerprint(under: key) != secret.fingerprint(under: other))
    #expect(secret.fingerprint(under: key) != SecretBytes("secreu").fingerprint(under: key))
    #expect(
      SecretBytes("").fingerprint(under: key) == SecretBytes("").fingerprint(under: key)
    )
    #expect(
      SecretBytes("").fingerprint(under: key) != SecretBytes([0]).fingerprint(under: key)
    )
  }
}

private struct NotInASlab: Error {}
