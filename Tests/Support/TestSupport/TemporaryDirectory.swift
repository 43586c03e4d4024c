import Foundation

/// A directory of a test's own, and the environment of a user whose home it is.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init() throws {
    var template = Array((NSTemporaryDirectory() + "/coffer-tests-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw POSIXError(.EIO) }
    path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch {
      print("\(path) was not removed: \(error)")
    }
  }

  package func file(_ name: String) -> String { path + "/" + name }

  package func environment(_ more: [String: String] = [:]) -> [String: String] {
    ["HOME": path, "PATH": "/usr/bin:/bin"].merging(more) { $1 }
  }

  @discardableResult
  package func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
    let file = path + "/" + name
    try FileManager.default.createDirectory(
      atPath: (file as NSString).deletingLastPathComponent,
      withIntermediateDirectories: true
    )
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
    return file
  }

  package func mode(of name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path + "/" + name)[.posixPermissions] as? Int
  }

  package func text(of name: String) throws -> String {
    try String(contentsOfFile: path + "/" + name, encoding: .utf8)
  }
}
