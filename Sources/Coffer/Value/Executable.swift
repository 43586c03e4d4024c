internal import Glibc

/// The program that runs.
enum Executable {
  /// The last part of the executable's path: the service where none is named.
  static var name: String {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes { buffer in
      buffer.withMemoryRebound(to: CChar.self) { characters in
        characters.baseAddress.map { readlink("/proc/self/exe", $0, characters.count) } ?? 0
      }
    }
    return name(
      link: count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil,
      CommandLine.arguments.first
    )
  }

  /// From what the kernel says, else from what the program was called as.
  static func name(link: String?, _ argument: String?) -> String {
    var path = link ?? argument ?? ""
    // What the kernel adds once the file was replaced, as an upgrade does to a program that keeps running.
    if path.hasSuffix(" (deleted)") { path.removeLast(" (deleted)".count) }
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    return name.isEmpty ? "swift" : name
  }
}
