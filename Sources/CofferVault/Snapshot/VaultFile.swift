package import CofferCore
package import CofferVaultFormat

/// A vault's file with its header parsed. Nothing in it is authenticated or decrypted.
package struct VaultFile: Sendable {
  private(set) var storage: any MediumFile
  package let header: Header
  /// The length of the header with its padding: the offset of the commit slots.
  package let headerLength: Int

  var path: String { storage.path }
  /// The offset of the first byte of the base, which the page of leases ends at.
  package var baseStart: Int { headerLength + Layout.pagesLength }

  /// Reads the header. Throws `.notAVault`, `.unsupportedVersion`, `.tampered` and `.io`.
  package init(_ storage: any MediumFile) throws(SecretError) {
    self.storage = storage
    let start = try storage.beginning(Layout.pageSize)
    guard start.starts(with: Layout.magic) else {
      throw Layout.convertedMagics.contains(where: start.starts)
        ? .convertedLineEnds(path: storage.path) : .notAVault(path: storage.path)
    }
    headerLength = Header.paddedLength(try Header.length(ofHeaderBeginning: start))
    let bytes = headerLength == start.count ? start : try storage.read(headerLength, at: 0)
    header = try Header(parsing: bytes)
  }

  /// The file, which `storage` is after later changes.
  func with(_ storage: any MediumFile) -> VaultFile {
    var file = self
    file.storage = storage
    return file
  }

  /// Throws `.denied` if only a later version of Coffer may write what the file has.
  func requireKnownFeatures() throws(SecretError) {
    if header.readOnlyCompatible == 0 { return }
    throw SecretError(
      .denied, "The vault at \(path) was last written by a later version of Coffer, and this one may only read it.",
      advice: "Update Coffer to change it.")
  }

  /// Throws `.denied` unless this user can change the vault and nobody else can. Nobody else may be able to read it
  /// either, unless `allowingReaders`.
  func prepareForChange(allowingReaders: Bool) throws(SecretError) {
    try requireKnownFeatures()
    try storage.prepareForChange(allowingReaders: allowingReaders)
  }
}
