internal import ArgumentParser
internal import Coffer

struct BazelCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bazel-credential",
    abstract: "Give bazel the headers it needs: a credential helper for bazel.",
    discussion: """
      bazel runs the program that --credential_helper=HOST=PATH names: make a link named bazel-credential-secret to \
      this program, and name that. Each secret of the service bazel:HOST is a header: its name is the header's, and \
      its value the header's whole text. For a token: printf 'Bearer %s' "$TOKEN" | secret set -s bazel:HOST \
      Authorization
      """
  )

  @OptionGroup(title: "Global options") var global: StoreOptions

  @Argument(help: "What bazel wants done: get.")
  var operation: String

  private struct Request: Decodable {
    var uri: String
  }
  private struct Answer: Encodable {
    var headers: [String: [String]]
  }

  func run() throws {
    guard operation == "get" else {
      throw Failure.usage("bazel asked for “\(operation)”, which this version does not know.")
    }
    let request = try ProgramJSON.input(Request.self, wanted: "an object with uri")
    guard let host = Self.host(of: request.uri) else {
      throw Failure.usage("The uri that bazel asked about has no host.")
    }
    let store = try global.store()
    var answer = Answer(headers: [:])
    for item in try store.items(inService: "bazel:" + host) {
      guard let value = try store.lookUp(item.identifier) else { continue }
      guard Self.isHeader(item.identifier.account, value) else {
        throw Failure(
          .damaged,
          "The secret “\(item.identifier.account)” in the service “bazel:\(host)” is no header: a letter in its name, or "
            + "a line end in its value, cannot be in one."
        )
      }
      answer.headers[item.identifier.account] = [try value.string()]
    }
    try ProgramJSON.line(answer)
  }

  /// The host, and the port where there is one, as the address has them.
  static func host(of uri: String) -> String? {
    let bytes = Array(uri.utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[colon...].starts(with: "://".utf8) else {
      return nil
    }
    let ends = Set("/?#".utf8)
    let authority = bytes[(colon + 3)...].prefix { !ends.contains($0) }
    let host = authority.lastIndex(of: UInt8(ascii: "@")).map { authority[($0 + 1)...] } ?? authority
    return host.isEmpty ? nil : String(decoding: host, as: UTF8.self)
  }

  /// Whether it can be sent as a header: a token of RFC 9110, and a value without control characters but tab.
  private static func isHeader(_ name: String, _ value: borrowing SecretBytes) -> Bool {
    let marks = Set("!#$%&'*+-.^_`|~".utf8)
    let isToken = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x30...0x39: true
      default: marks.contains(byte)
      }
    }
    return isToken
      && value.withBytes { bytes in
        for index in bytes.indices where (bytes[index] < 0x20 && bytes[index] != 0x09) || bytes[index] == 0x7F
        {
          return false
        }
        return true
      }
  }
}
