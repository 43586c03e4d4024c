internal import CofferLibc

enum Executable {
  /// The last part of the executable's path, which is the service of values without one.
  static var name: String {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    let link = buffer.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
    return name(link: count > 0 ? String(decoding: link, as: UTF8.self) : nil, CommandLine.arguments.first)
  }

  /// The name in the kernel's link to the executable, or else in the program's first argument.
  static func name(link: String?, _ argument: String?) -> String {
    var path = link ?? argument ?? ""
    // The kernel adds this suffix when the file was replaced, for example by an upgrade of a running program.
    if path.hasSuffix(" (deleted)") { path.removeLast(" (deleted)".count) }
    let name = path.split(separator: "/").last.map(String.init) ?? ""
    return name.isEmpty ? "swift" : name
  }
}
