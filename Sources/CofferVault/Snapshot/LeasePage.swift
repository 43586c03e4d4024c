package import CofferCore
package import CofferVaultFormat

/// The leases of a vault on an engine, which stand in a page of the file after the commit slots.
package struct LeasePage {
  package struct Lease {
    /// Random bytes, new each time the lease is taken.
    package let taking: Bytes16
    /// In milliseconds since 1970, by the engine's clock.
    package let end: Int
  }

  /// How often the page was written. 0: never, and the page is zeros.
  package var counter = 0
  /// By the lookup ids of their secrets.
  package var leases: [Bytes16: Lease] = [:]
}

extension LeasePage {
  /// Parses the plaintext of the page. Throws `.tampered`.
  init(parsing bytes: [UInt8]) throws(SecretError) {
    var reader = ByteReader(bytes, part: "the page of leases")
    counter = try reader.number()
    let count = try reader.number()
    guard count <= Layout.maximumLeases else { throw reader.failure("has too many leases") }
    var last: Bytes16?
    for _ in 0..<count {
      let id = try reader.bytes16()
      guard last.map({ $0 < id }) ?? true else { throw reader.failure("is not in order") }
      leases[id] = Lease(taking: try reader.bytes16(), end: try reader.number())
      last = id
    }
    try reader.zeros(CommitState.length - reader.position)
    try reader.expectEnd()
  }

  /// The page in a file with `header`. Throws `.tooLarge`.
  func sealed(by keys: DerivedKeys, for header: Header) throws(SecretError) -> [UInt8] {
    if counter == 0 { return zeros(Layout.pageSize) }
    let list = leases.sorted { $0.key < $1.key }.flatMap { encode($0, $1.taking, $1.end) }
    var bytes = encode(counter, leases.count) + list
    bytes += zeros(CommitState.length - bytes.count)
    _ = try acceptable { () throws(SecretError) in try LeasePage(parsing: bytes) }
    return keys.seal(bytes, .leases(headerMAC: header.mac))
  }

  /// The page for another file. `other` is that of a file whose header it takes over.
  func moved(over other: LeasePage = LeasePage()) -> LeasePage {
    var page = self
    let last = max(counter, other.counter)
    if last > 0 { page.counter = last + 1 }
    return page
  }
}

extension VaultSnapshot {
  /// Reads the page of leases. Throws `.tampered` and `.io`.
  package func leases() throws(SecretError) -> LeasePage {
    let page = try file.storage.read(Layout.pageSize, at: file.baseStart - Layout.pageSize)
    if page.allSatisfy({ $0 == 0 }) { return LeasePage() }
    guard let bytes = keys.open(page.span, .leases(headerMAC: file.header.mac)) else {
      throw .tampered("the page of leases is not authentic")
    }
    return try LeasePage(parsing: bytes)
  }
}
