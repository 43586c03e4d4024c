package import CofferCore
internal import CofferSystem

/// The address of a vault on an engine: `SCHEME://HOSTS/PATH`, where the scheme names the helper before its `+`.
package struct RemoteURL: Hashable, Sendable, CustomStringConvertible {
  /// The URL in its one form, by which records and pins know it: scheme and hosts in lower case, no default port.
  package let description: String
  /// The name of the helper is `coffer-remote-` and this.
  package let helper: String

  /// The ports that a URL may leave out.
  private static let defaultPorts = ["postgresql": ":5432", "s3+https": ":443", "s3+http": ":80"]

  /// Whether `text` is meant as a URL. A path that looks like one can be written with `./` before it.
  package static func isURL(_ text: String) -> Bool {
    guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
    return text[colon...].utf8.starts(with: "://".utf8)
      && text[..<colon].utf8.allSatisfy { $0.isASCIILetterOrDigit || $0 == UInt8(ascii: "+") }
  }

  /// The absolute path or the URL, in its one form, that `text` means. Throws `.invalidURL`, `.io` and `.denied`.
  package static func place(_ text: String) throws(SecretError) -> String {
    isURL(text) ? try RemoteURL(text).description : try Path.absolute(text)
  }

  /// Throws `.invalidURL`.
  package init(_ text: String) throws(SecretError) {
    func invalid(_ what: String) -> SecretError {
      SecretError(
        .invalidURL, "The URL of the vault \(what).",
        advice: "Write it as SCHEME://HOST/PATH, such as s3://BUCKET/NAME.vault or postgresql://HOST/DATABASE/VAULT.")
    }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard text.utf8.count <= 512 else { throw invalid("is too long") }
    guard Self.isURL(text), parts.count > 3 else { throw invalid("is incomplete") }
    // Printable, and nothing that has a meaning of its own: no query, no fragment, no escapes.
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), !text.contains(where: { "?#%\"'<>\\^`{|}".contains($0) })
    else { throw invalid("has a query, a fragment, or a character that it must not have") }
    let (scheme, path) = (String(parts[0].dropLast()).lowercased(), parts[3...])
    guard !parts[2].contains("@") else { throw invalid("names a user or a password, which it must not have") }
    guard path.allSatisfy({ !["", ".", ".."].contains($0) }) else { throw invalid("has an incomplete path") }
    let name = scheme.prefix { $0 != "+" }
    let hosts = parts[2].lowercased().split(separator: ",", omittingEmptySubsequences: false).map { host in
      let port = Self.defaultPorts[scheme].flatMap { host.hasSuffix($0) ? $0.count : nil }
      return String(host.dropLast(port ?? 0))
    }
    guard !name.isEmpty, name.utf8.allSatisfy(\.isASCIILetterOrDigit) else { throw invalid("has no scheme") }
    guard hosts.allSatisfy({ !$0.isEmpty && !$0.hasPrefix(":") }) else { throw invalid("names no host") }
    helper = String(name)
    description = "\(scheme)://\(hosts.joined(separator: ","))/\(path.joined(separator: "/"))"
  }
}
