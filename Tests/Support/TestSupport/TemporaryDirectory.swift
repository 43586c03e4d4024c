internal import Foundation
internal import Testing

/// A private directory, which is removed when the object is released.
package final class TemporaryDirectory: Sendable {
  package let path: String

  /// `inMemory` prefers `/dev/shm`, where a program that syncs often does not wait for a disk.
  package init(inMemory: Bool = false) throws {
    var parent = FileManager.default.temporaryDirectory.path
    if inMemory, FileManager.default.isWritableFile(atPath: "/dev/shm") { parent = "/dev/shm" }
    var template = Array((parent + "/coffer-tests-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp failed: \(errno)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    do { try FileManager.default.removeItem(atPath: path) } catch {
      Issue.record("The directory \(path) could not be removed: \(error)")
    }
  }

  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// The environment of a user whose home is this directory.
  package func environment(_ more: [String: String] = [:]) -> [String: String] {
    ["HOME": path, "PATH": "/usr/bin:/bin"].merging(more) { $1 }
  }

  /// Makes a directory, with those above it, that only the user can open.
  package func makeDirectory(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: file(name), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
  }

  /// Writes a file, in a directory that is made if there is none, and returns its path.
  @discardableResult
  package func write(_ text: String, to name: String, mode: Int = 0o600) throws -> String {
    let file = file(name)
    try FileManager.default.createDirectory(
      atPath: (file as NSString).deletingLastPathComponent,
      withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
    )
    try Data(text.utf8).write(to: URL(fileURLWithPath: file))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
    return file
  }

  package func mode(of name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: file(name))[.posixPermissions] as? Int
  }

  package func text(of name: String) throws -> String {
    try String(contentsOfFile: file(name), encoding: .utf8)
  }
}
