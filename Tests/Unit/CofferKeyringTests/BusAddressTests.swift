#if Keyring
import CofferCore
import CofferTestSupport
import Foundation
import Testing

@testable import CofferKeyring

@Suite struct BusAddressTests {
  private func find(_ address: String?, in directory: String = "/nowhere") -> Result<String, SecretError> {
    var environment = ["XDG_RUNTIME_DIR": directory]
    environment["DBUS_SESSION_BUS_ADDRESS"] = address
    return Result { () throws(ServiceFailure) in try BusAddress.find(in: environment) }
      .mapError(\.secretError)
  }

  private func code(_ result: Result<String, SecretError>) -> SecretError.Code? {
    if case .failure(let error) = result { error.code } else { nil }
  }

  @Test func theVariableTakesPrecedence() throws {
    let directory = try TemporaryDirectory()
    let socket = try ListeningSocket(directory.file("bus"))
    defer { socket.close() }
    #expect(find("unix:path=/a", in: directory.path) == .success("unix:path=/a"))
    #expect(find("unix:path=/a;unix:path=/b") == .success("unix:path=/a;unix:path=/b"))
  }

  @Test func autolaunchAddressesAreSkipped() {
    #expect(find("autolaunch:;unix:path=/a;autolaunch:scope=*user") == .success("unix:path=/a"))
    #expect(code(find("autolaunch:;autolaunch:scope=*install-path")) == .unavailable)
  }

  @Test(arguments: ["nonsense", "unix:", "unix:path=/a\0b", "unix:path=/a;nonsense"])
  func anAddressThatGDBusDoesNotSupportIsAConfigurationError(_ address: String) {
    #expect(code(find(address)) == .configuration)
  }

  @Test(arguments: [nil, ""])
  func theSocketInTheRuntimeDirectoryIsTheDefault(_ address: String?) throws {
    let directory = try TemporaryDirectory()
    let socket = try ListeningSocket(directory.file("bus"))
    defer { socket.close() }
    #expect(find(address, in: directory.path) == .success("unix:path=\(directory.path)/bus"))
  }

  @Test func aMissingSocketIsUnavailable() throws {
    let directory = try TemporaryDirectory()
    #expect(code(find(nil, in: directory.path)) == .unavailable)
    try directory.write("not a socket", to: "bus")
    #expect(code(find(nil, in: directory.path)) == .unavailable)
  }

  @Test(.enabled(if: getuid() == 0, "only root can give a socket to another user"))
  func aSocketOfAnotherUserIsDenied() throws {
    let directory = try TemporaryDirectory()
    let socket = try ListeningSocket(directory.file("bus"))
    defer { socket.close() }
    #expect(chown(directory.file("bus"), 65534, 65534) == 0)
    #expect(code(find(nil, in: directory.path)) == .denied)
    // In a directory of another user, who can exchange it after this check.
    #expect(chown(directory.file("bus"), 0, 0) == 0 && chown(directory.path, 65534, 65534) == 0)
    if case .success(let address) = find(nil, in: directory.path) {
      #expect(!address.contains(directory.path))
    }
  }
}

/// A socket that accepts connections into its queue, and never answers.
final class ListeningSocket {
  private let descriptor: Int32

  init(_ path: String) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let result = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0, listen(descriptor, 100) == 0 else { throw TestFailure("No socket could be made.") }
  }

  func close() { Glibc.close(descriptor) }
}
#endif
