/// Names a process that has locked the whole file, as “12 of user 1000”. Returns `nil` if the system does not tell: the
/// process may be in another container, and some file systems have another device number there.
package func holderOfLock(onFile path: String) -> String? {
  guard let file = FileStatus(of: path), let locks = beginning(ofFile: "/proc/locks", count: 1 << 16) else {
    return nil
  }
  let (major, minor) = (file.device >> 8 & 0xFFF, file.device & 0xFF | file.device >> 12 & 0xFFF00)
  let place = [major, minor].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined(separator: ":")
  for line in String(decoding: locks, as: UTF8.self).split(separator: "\n") {
    // Such as “1: FLOCK  ADVISORY  WRITE 12 fe:00:34 0 EOF”.
    let fields = line.split(separator: " ")
    guard fields.count > 5, fields[1] == "FLOCK", fields[5] == "\(place):\(file.inode)",
      let owner = FileStatus(of: "/proc/\(fields[4])")?.owner
    else { continue }
    return "\(fields[4]) of user \(owner)"
  }
  return nil
}
