internal import ArgumentParser
internal import Coffer

struct BazelCredentialCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "bazel-credential", abstract: "Provide HTTP headers to bazel, as a credential helper for bazel.",
    discussion: """
      bazel runs the program that --credential_helper=HOST=PATH names: create a link bazel-credential-secret to this \
      program, and specify that. Each secret in the service bazel:HOST is a header: its name is the header's name, and \
      its value is the header's text. For a token: printf 'Bearer %s' "$TOKEN" | secret set -s bazel:HOST Authorization

      Headers are provided for https and grpcs, and for http to localhost, 127.0.0.1 and [::1].
      """)

  @OptionGroup(title: "Global options") var backendOptions: BackendOptions

  @Argument(help: "The operation that bazel requests: get.")
  var operation: String

  private struct Request: Decodable {
    var uri: String
  }

  func run() throws {
    guard operation == "get" else { throw Failure.usage("The operation “\(operation)” of bazel is not supported.") }
    let request = try ProgramJSON.input(Request.self, expected: "an object with uri")
    guard let host = Self.host(of: request.uri) else { throw Failure.usage("The uri in bazel's request has no host.") }
    var headers: [String: [String]] = [:]
    guard Self.isProtected(request.uri, host) else {
      note("secret: bazel gets no header without encryption. Use https or grpcs, or http on this machine.")
      return try Output.standard.jsonLine(["headers": headers])
    }
    let backend = try backendOptions.open()
    for identifier in try backend.identifiers(inService: "bazel:" + host) {
      guard let value = try backend.lookUp(identifier) else { continue }
      guard Self.isHeader(identifier.account, value) else {
        throw Failure(
          .damaged,
          """
          The secret “\(identifier.account)” in the service “bazel:\(host)” is not a valid header: its name or its \
          value contains a character that a header cannot contain. Rename it or store it again.
          """)
      }
      headers[identifier.account] = [try value.string()]
    }
    try Output.standard.jsonLine(["headers": headers])
  }

  /// The host of a URI, with the port if the URI has one.
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

  /// Whether nobody on the network can read what is sent to the URI: it uses TLS, or http to this machine.
  static func isProtected(_ uri: String, _ host: String) -> Bool {
    let scheme = uri.prefix { $0 != ":" }.lowercased()
    if scheme == "http" {
      return ["localhost:", "127.0.0.1:", "[::1]:"].contains { (host.lowercased() + ":").hasPrefix($0) }
    }
    return scheme == "https" || scheme == "grpcs"
  }

  /// Whether `name` is a token of RFC 9110, and `value` has no control characters except tabs.
  private static func isHeader(_ name: String, _ value: SecretBytes) -> Bool {
    let marks = Set("!#$%&'*+-.^_`|~".utf8)
    return name.utf8.allSatisfy { $0.isASCIILetterOrDigit || marks.contains($0) }
      && value.withBytes { bytes in
        bytes.indices.allSatisfy { (bytes[$0] >= 0x20 || bytes[$0] == 0x09) && bytes[$0] != 0x7F }
      }
  }
}
