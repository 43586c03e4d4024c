import CofferCore
import CofferVaultFormat
import CofferTestSupport
import Testing

/// A vault's file with every simple kind of change. Each changed file is refused, or read as an acknowledged state and
/// reported as that state. `COFFER_EXHAUSTIVE=1` tries every case instead of a sample.
@Suite(.long) struct TamperingTests {
  private static let small: [TamperedVault.Shape] = [.tailOnly, .baseOnly, .baseAndTail, .twoGenerations]

  /// Expects that `bytes` are refused or have the current state, also with a damaged commit slot.
  private func judge(_ vault: TamperedVault, _ bytes: [UInt8], _ what: @autoclosure () -> String) {
    do {
      switch try vault.outcome(of: bytes) {
      case .refused: break
      case .state(vault.current.pin, _): break
      case let outcome: Issue.record("\(what()): \(outcome)")
      }
    } catch { Issue.record("\(what()): \(error)") }
  }

  // MARK: Bits, lengths

  @Test(arguments: Self.small) func everyFlippedBitIsDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let whole = vault.current.bytes
    let anatomy = try VaultAnatomy(whole)
    var count = 0
    for offset in whole.indices {
      let bits = isExhaustive ? Array(0..<8) : [offset % 8]
      // All bytes of padding and of a seal are alike, so a sample is enough.
      let isLikeOthers = offset > 512 && offset < anatomy.slots[1].upperBound
      if !isExhaustive,
        shape == .baseAndTail ? isLikeOthers && offset % 5 != 0 : isLikeOthers || offset % 7 != 0
      {
        continue
      }
      for bit in bits {
        var bytes = whole
        bytes[offset] ^= 1 << bit
        count += 1
        let outcome: TamperedVault.Outcome
        do { outcome = try vault.outcome(of: bytes) } catch {
          Issue.record("bit \(bit) of byte \(offset): \(error)")
          continue
        }
        let expected: TamperedVault.Outcome?
        // Both slots hold the current state, so that one damaged slot loses nothing.
        if anatomy.slots.contains(where: { $0.contains(offset) }) {
          expected = .state(vault.current.pin, isRecovered: true)
        } else {
          expected = nil
        }
        switch (expected, outcome) {
        case (let expected?, _): #expect(outcome == expected, "bit \(bit) of byte \(offset)")
        case (nil, .refused(let code)):
          if offset >= anatomy.headerLength {
            #expect(code == .tampered, "bit \(bit) of byte \(offset)")
          }
        case (nil, .state): Issue.record("bit \(bit) of byte \(offset): \(outcome)")
        }
      }
    }
    print("flipped bits, \(shape): \(count)")
  }

  @Test(arguments: Self.small) func everyTruncationIsDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let whole = vault.current.bytes
    for size in stride(from: 0, to: whole.count, by: isExhaustive ? 1 : 61) {
      let outcome = try vault.outcome(of: Array(whole[..<size]))
      #expect(outcome == .refused(size < 8 ? .notAVault : .tampered), "\(size)")
    }
    for size in 1...40 {
      #expect(try vault.outcome(of: Array(whole.dropLast(size))) == .refused(.tampered))
    }
  }

  @Test(arguments: Self.small) func everyInsertedOrRemovedByteIsDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let whole = vault.current.bytes
    for offset in stride(from: 0, to: whole.count, by: isExhaustive ? 1 : 53) {
      for byte: UInt8 in isExhaustive ? [0, 1, 0x80, whole[offset]] : [whole[offset]] {
        var bytes = whole
        bytes.insert(byte, at: offset)
        judge(vault, bytes, "byte \(byte) at \(offset)")
        bytes = whole
        bytes.remove(at: offset)
        judge(vault, bytes, "without byte \(offset)")
      }
    }
  }

  @Test(arguments: Self.small) func bytesAfterTheEndAreIgnored(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let whole = vault.current.bytes
    let anatomy = try VaultAnatomy(whole)
    let current = TamperedVault.Outcome.state(vault.current.pin, isRecovered: false)
    #expect(try vault.outcome(of: whole + [0]) == current)
    #expect(try vault.outcome(of: whole + whole) == current)
    // Frames that were authentic once are ignored too.
    for frame in anatomy.frames { #expect(try vault.outcome(of: whole + whole[frame]) == current) }
  }

  // MARK: Parts in other places

  @Test(arguments: TamperedVault.Shape.allCases)
  func everyExchangedPairOfPartsIsDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let whole = vault.current.bytes
    let anatomy = try VaultAnatomy(whole)
    if shape == .manyBlocks { #expect(anatomy.blocks.count >= 2) }
    var count = 0
    for (kind, parts) in [
      ("frames", anatomy.frames), ("blocks", anatomy.blocks), ("values", anatomy.values),
      ("metadata", anatomy.sealedMetadata), ("slots", anatomy.slots),
    ] {
      for (index, one) in parts.enumerated() {
        for other in parts[(index + 1)...] where whole[one] != whole[other] {
          count += 1
          let exchanged = VaultAnatomy.exchange(one, other, in: whole)
          #expect(try vault.outcome(of: exchanged) == .refused(.tampered), "\(kind) \(one) and \(other)")
          // One part takes the place of both.
          guard one.count == other.count else { continue }
          var copied = whole
          copied.replaceSubrange(other, with: whole[one])
          if kind == "slots" {
            judge(vault, copied, "one slot twice")
          } else {
            #expect(try vault.outcome(of: copied) == .refused(.tampered), "\(kind) \(one) over \(other)")
          }
        }
      }
    }
    #expect(count > 0)
  }

  /// Every frame is left out once and repeated once.
  @Test(arguments: [TamperedVault.Shape.tailOnly, .baseAndTail])
  func missingAndRepeatedFramesAreDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let whole = vault.current.bytes
    for frame in try VaultAnatomy(whole).frames {
      var bytes = whole
      bytes.removeSubrange(frame)
      #expect(try vault.outcome(of: bytes) == .refused(.tampered))
      // Padded to the same length, so that the end is the same.
      #expect(
        try vault.outcome(of: bytes + [UInt8](repeating: 0, count: frame.count)) == .refused(.tampered))
      bytes = whole
      bytes.insert(contentsOf: whole[frame], at: frame.lowerBound)
      #expect(try vault.outcome(of: bytes) == .refused(.tampered) || frame == VaultAnatomy(whole).frames.last)
    }
  }

  // MARK: Parts of older files and of other vaults

  /// Header, slots, base and tail of each older file in the current one, separately and together.
  @Test(arguments: Self.small) func partsOfOlderFilesAreDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    for (number, generation) in vault.generations.dropLast().enumerated() {
      try splice(vault, with: generation.bytes, "generation \(number)")
    }
  }

  /// Another vault with the same key.
  @Test(arguments: Self.small) func partsOfAnotherVaultAreDetected(_ shape: TamperedVault.Shape) throws {
    let vault = try TamperedVault(shape)
    let other = try TamperedVault(shape)
    for (number, generation) in other.generations.enumerated() {
      try splice(vault, with: generation.bytes, isOther: true, "another's generation \(number)")
    }
  }

  private func splice(
    _ vault: TamperedVault, with donor: [UInt8], isOther: Bool = false, _ what: String
  ) throws {
    let whole = vault.current.bytes
    let page = Layout.pageSize
    let parts: [(String, Range<Int>)] = [
      ("header", 0..<page), ("slot 0", page..<2 * page), ("slot 1", 2 * page..<3 * page),
      ("body", 3 * page..<min(donor.count, whole.count)),
    ]
    // Every choice of parts except none and all.
    for choice in 1..<15 {
      var bytes = whole
      var names: [String] = []
      // Header, body and one slot of another vault are a whole vault.
      let isWholeOther = isOther && choice & 0b0001 != 0 && choice & 0b0110 != 0
      if isWholeOther, choice & 0b1000 != 0 || donor.count < 3 * page + 1024 { continue }
      for (index, (name, range)) in parts.enumerated() where choice & 1 << index != 0 {
        names.append(name)
        bytes.replaceSubrange(range, with: donor[range])
      }
      do {
        let outcome = try vault.outcome(of: bytes, mayBeRecovered: true)
        guard case .state(let pin, let isRecovered) = outcome else { continue }
        // With both older commit slots the file is in an older, authentic state. Only a process that read a later one
        // detects it.
        let isOlder = choice & 0b0110 == 0b0110
        // If one slot does not fit the header, the other one counts.
        let isOfDonor = choice & 0b0001 != 0 && isRecovered
        #expect(
          pin == vault.current.pin || isOlder || isOfDonor, "\(what), \(names): \(outcome)")
        if pin != vault.current.pin {
          let code = try vault.outcomeForWhoSawTheCurrentState(bytes)
          // That process detects the change, or still reads the state that it knows.
          #expect(code == .rolledBack || code == nil, "\(what), \(names): \(outcome)")
        }
      } catch { Issue.record("\(what), \(names): \(error)") }
    }
  }
}
