internal import CHTTP
internal import CofferRemote
internal import Glibc

struct HTTPRequest {
  var method = "GET"
  var url: String
  var headers: [(name: String, value: String)] = []
  var body: [UInt8]?
  var timeout = Duration.seconds(10)
  /// Whether the request goes to an address of the machine's own network, past every proxy, and may be without TLS.
  var isLocal = false
}

struct HTTPAnswer {
  let status: Int
  /// By their names in lower case.
  let headers: [String: String]
  let body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }

  /// The text of the first element with that name in an answer in XML.
  func element(_ name: String) -> String? {
    guard let start = text.firstRange(of: "<\(name)>"),
      let end = text[start.upperBound...].firstRange(of: "</\(name)>")
    else { return nil }
    return String(text[start.upperBound..<end.lowerBound])
  }
}

enum HTTPFailure: Error {
  /// Nothing was sent: no such host, no connection, a wrong certificate.
  case notSent(String, isCertificate: Bool)
  /// The connection broke, or the time was over. The request may have arrived.
  case lost(String)
  /// There are no credentials to sign the request with.
  case refused(RemoteFailure)
}

/// Sends requests, over one connection as long as that stays open. Not thread-safe.
final class HTTPClient {
  private let curl = curl_easy_init()
  /// The longest body of an answer: 9 MiB. An object has at most 8.
  private static let maximumBody = 9 << 20

  deinit { curl_easy_cleanup(curl) }

  /// What callbacks of libcurl write to.
  private final class Received {
    var headers: [String: String] = [:]
    var body: [UInt8] = []
  }

  func send(_ request: HTTPRequest) throws(HTTPFailure) -> HTTPAnswer {
    guard let curl else { throw .notSent("libcurl cannot be used", isCertificate: false) }
    // Keeps the connection.
    curl_easy_reset(curl)
    let received = Received()
    var list: UnsafeMutablePointer<curl_slist>?
    // Without these, libcurl would wait for "100 Continue", and send a wrong content type. Ceph since 20.2.4 refuses a
    // type that is not signed.
    for header in ["Expect:", "Content-Type:"] { list = curl_slist_append(list, header) }
    for (name, value) in request.headers { list = curl_slist_append(list, "\(name): \(value)") }
    defer { curl_slist_free_all(list) }
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_TIMEOUT_MS, Int(request.timeout / .milliseconds(1)))
    set(CURLOPT_CONNECTTIMEOUT_MS, min(5000, Int(request.timeout / .milliseconds(1))))
    set(CURLOPT_TCP_KEEPALIVE, 1)
    coffer_curl_set_pointer(curl, CURLOPT_HTTPHEADER, list)
    coffer_curl_set_pointer(curl, CURLOPT_WRITEDATA, Unmanaged.passUnretained(received).toOpaque())
    coffer_curl_set_pointer(curl, CURLOPT_HEADERDATA, Unmanaged.passUnretained(received).toOpaque())
    coffer_curl_set_receiver(curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      guard let bytes, let context else { return 0 }
      let received = Unmanaged<Received>.fromOpaque(context).takeUnretainedValue()
      guard received.body.count + size * count <= HTTPClient.maximumBody else { return 0 }
      received.body += UnsafeRawBufferPointer(start: bytes, count: size * count)
      return size * count
    }
    coffer_curl_set_receiver(curl, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      guard let bytes, let context else { return 0 }
      let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self)
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.count == 2 {
        let received = Unmanaged<Received>.fromOpaque(context).takeUnretainedValue()
        received.headers[parts[0].lowercased()] = parts[1].trimmed
      }
      return size * count
    }
    set(CURLOPT_URL, request.url)
    set(CURLOPT_PROTOCOLS_STR, request.isLocal ? "http,https" : "https")
    if request.isLocal { set(CURLOPT_NOPROXY, "*") }
    if request.method == "HEAD" { set(CURLOPT_NOBODY, 1) } else { set(CURLOPT_CUSTOMREQUEST, request.method) }
    if let body = request.body {
      set(CURLOPT_POSTFIELDSIZE, body.count)
      // With one byte more, so that there is an address: without one, libcurl reads the body from standard input.
      _ = coffer_curl_set_pointer(curl, CURLOPT_COPYPOSTFIELDS, body + [0])
    }
    let code = curl_easy_perform(curl)
    guard code == CURLE_OK else { throw failure(code) }
    return HTTPAnswer(status: coffer_curl_status(curl), headers: received.headers, body: received.body)
  }

  private func set(_ option: CURLoption, _ value: Int) { _ = coffer_curl_set_number(curl, option, value) }

  // libcurl copies the text.
  private func set(_ option: CURLoption, _ text: String) { _ = coffer_curl_set_pointer(curl, option, text) }

  private func failure(_ code: CURLcode) -> HTTPFailure {
    let text = String(cString: curl_easy_strerror(code))
    // libcurl may have sent the request on a connection that died, and then failed to connect again.
    if coffer_curl_sent(curl) != 0 { return .lost(text) }
    switch code {
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_ISSUER_ERROR:
      return .notSent(text, isCertificate: true)
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_URL_MALFORMAT,
      CURLE_UNSUPPORTED_PROTOCOL:
      return .notSent(text, isCertificate: false)
    default: return .lost(text)
    }
  }
}

extension Substring {
  var trimmed: String {
    String(drop { $0.isWhitespace }.reversed().drop { $0.isWhitespace }.reversed())
  }
}
