internal import CLinux

/// The kind of a file system, by the numbers of linux/magic.h.
package enum FileSystemKind: Hashable, Sendable {
  case memory, network(String), fuse, overlay, other

  /// The kind of the file system that `path` is on, or `nil` if it cannot be determined.
  package init?(of path: String) {
    let type = coffer_file_system_type(path)
    if type == -1 { return nil }
    self =
      switch UInt32(truncatingIfNeeded: type) {
      case 0x0102_1994, 0x8584_58F6: .memory  // tmpfs, ramfs
      case 0x6969: .network("NFS")
      case 0xFF53_4D42, 0xFE53_4D42, 0x517B: .network("SMB")
      case 0x00C3_6400: .network("Ceph")
      case 0x0102_1997: .network("9P")
      case 0x6573_5546: .fuse
      case 0x5346_414F: .network("AFS")
      case 0x794C_7630: .overlay
      default: .other
      }
  }
}
