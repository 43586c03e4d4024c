internal import CHTTP
internal import Glibc

/// Signs requests with AWS's signature version 4, over libsodium's SHA-256 and HMAC. Source: "Create a signed AWS API
/// request" in the IAM User Guide.
struct Signature {
  let credentials: Credentials
  let region: String
  let service: String

  /// Adds the headers that sign the request. `path` is the escaped path of its URL, `query` the escaped query in order.
  /// `date` is the time as `20130524T000000Z`.
  func sign(_ request: inout HTTPRequest, host: String, path: String, query: String = "", date: String) {
    let hash = Self.hash(request.body ?? []).hex
    request.headers += [("host", host), ("x-amz-date", date)]
    if service == "s3" { request.headers.append(("x-amz-content-sha256", hash)) }
    if let token = credentials.token { request.headers.append(("x-amz-security-token", token)) }
    let signed = request.headers.map { ($0.name.lowercased(), $0.value) }.sorted { $0.0 < $1.0 }
    let names = signed.map(\.0).joined(separator: ";")
    let canonical = [
      request.method, path, query, signed.map { "\($0.0):\($0.1)\n" }.joined(), names, hash,
    ].joined(separator: "\n")
    let day = String(date.prefix(8))
    let scope = "\(day)/\(region)/\(service)/aws4_request"
    let text = "AWS4-HMAC-SHA256\n\(date)\n\(scope)\n\(Self.hash(Array(canonical.utf8)).hex)"
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [day, region, service, "aws4_request", text] { key = Self.authenticate(part, key) }
    request.headers.append(
      (
        "authorization",
        "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope),SignedHeaders=\(names),Signature=\(key.hex)"
      ))
  }

  static func hash(_ bytes: [UInt8]) -> [UInt8] {
    var hash = [UInt8](repeating: 0, count: Int(crypto_hash_sha256_BYTES))
    crypto_hash_sha256(&hash, bytes, UInt64(bytes.count))
    return hash
  }

  private static func authenticate(_ text: String, _ key: [UInt8]) -> [UInt8] {
    var state = crypto_auth_hmacsha256_state()
    var tag = [UInt8](repeating: 0, count: Int(crypto_auth_hmacsha256_BYTES))
    crypto_auth_hmacsha256_init(&state, key, key.count)
    crypto_auth_hmacsha256_update(&state, Array(text.utf8), UInt64(text.utf8.count))
    crypto_auth_hmacsha256_final(&state, &tag)
    return tag
  }

  /// The path with every byte escaped that is not unreserved in a URI, except for slashes.
  static func escaped(_ path: String) -> String {
    path.utf8.map { byte in
      let isKept =
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) || "-._~/".utf8.contains(byte)
      return isKept ? String(UnicodeScalar(byte)) : "%" + [byte].hex.uppercased()
    }.joined()
  }

  /// The present time as `20130524T000000Z`.
  static var now: String {
    var (seconds, parts) = (time(nil), tm())
    gmtime_r(&seconds, &parts)
    var text = [CChar](repeating: 0, count: 32)
    strftime(&text, text.count, "%Y%m%dT%H%M%SZ", &parts)
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}

extension [UInt8] {
  var hex: String {
    map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
