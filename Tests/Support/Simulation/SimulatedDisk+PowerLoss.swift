extension SimulatedDisk {
  /// Returns a disk with random content that the platter may hold after a power loss.
  package func afterPowerLoss(_ random: inout some RandomNumberGenerator) -> SimulatedDisk {
    withState { state in
      var next = State()
      next.omission = state.omission
      next.nextInode = state.nextInode
      var survivors: [ObjectIdentifier: Inode] = [:]
      func survivor(_ inode: Inode) -> Inode {
        if let known = survivors[ObjectIdentifier(inode)] { return known }
        let copy = Inode(inode.number)
        copy.durable = Self.survivingContent(of: inode, &random)
        copy.current = copy.durable
        survivors[ObjectIdentifier(inode)] = copy
        return copy
      }
      var entries = state.durableEntries
      for change in state.pendingEntries where Bool.random(using: &random) {
        switch change {
        case .add(let name, let inode): entries[name] = inode
        case .remove(let name): entries[name] = nil
        case .rename(let name, let newName, let inode):
          // The old name may remain, because not every file system renames atomically.
          if Int.random(in: 0..<8, using: &random) > 0 { entries[name] = nil }
          entries[newName] = inode
        }
      }
      for (name, inode) in entries.sorted(by: { $0.key < $1.key }) {
        next.entries[name] = survivor(inode)
      }
      next.durableEntries = next.entries
      return SimulatedDisk(next)
    }
  }

  private static func survivingContent(
    of inode: Inode, _ random: inout some RandomNumberGenerator
  ) -> [UInt8] {
    var content = inode.durable
    // In half of the cases everything or nothing arrived, the two most common outcomes.
    let outcome = Int.random(in: 0..<4, using: &random)
    if outcome == 0 { return inode.current }
    if outcome == 1 { return content }
    for change in inode.pending {
      switch change {
      case .truncate(let size):
        if Bool.random(using: &random) { resize(&content, to: size) }
      case .write(let offset, let bytes):
        // The size and the sectors are independent.
        if Bool.random(using: &random), content.count < offset + bytes.count {
          resize(&content, to: offset + bytes.count)
        }
        // A write arrives whole, not at all, or sector by sector, independently of earlier writes.
        let fate = Int.random(in: 0..<3, using: &random)
        if fate == 0 { put(bytes, at: offset, in: &content) }
        if fate < 2 { continue }
        var start = offset
        while start < offset + bytes.count {
          let end = min((start / 512 + 1) * 512, offset + bytes.count)
          let sector = Array(bytes[start - offset..<end - offset])
          switch Int.random(in: 0..<8, using: &random) {
          case 0...3: put(sector, at: start, in: &content)
          case 4:
            // Torn: the beginning is new, and the rest is old.
            let kept = Int.random(in: 0...sector.count, using: &random)
            put(Array(sector[..<kept]), at: start, in: &content)
          case 5:
            // Noise.
            put(sector.map { _ in UInt8.random(in: .min ... .max, using: &random) }, at: start, in: &content)
          default: break
          }
          start = end
        }
      }
    }
    return content
  }

  static func put(_ bytes: [UInt8], at offset: Int, in content: inout [UInt8]) {
    guard !bytes.isEmpty else { return }
    if content.count < offset + bytes.count { resize(&content, to: offset + bytes.count) }
    content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
  }

  static func resize(_ content: inout [UInt8], to size: Int) {
    if size < content.count {
      content.removeLast(content.count - size)
    } else {
      content += [UInt8](repeating: 0, count: size - content.count)
    }
  }
}
