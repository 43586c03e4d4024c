public import CofferRemote
internal import CHTTP

/// A vault as one object of a store with the interface of S3.
///
/// A change is a PUT of the whole object on condition that it has the entity tag that is known. Requests are signed, so
/// that a condition cannot be removed on the way.
public struct ObjectEngine: RemoteEngine {
  private let http = HTTPClient()
  private let place: Place
  private let region: String
  private var chain: CredentialChain
  /// The object as it was read or written last: an append is made of it.
  private var held: (version: String, bytes: [UInt8])?
  public private(set) var time = 0

  public init(_ url: String, environment: [String: String]) throws(RemoteFailure) {
    chain = CredentialChain(environment, http)
    region = chain.region
    place = try Place(url, region: region)
  }

  public mutating func answer(_ request: RemoteRequest) throws(RemoteFailure) -> RemoteAnswer {
    switch request {
    case .read(let known, _): return try read(known)
    case .publish(let over, _, let isWhole, let pieces):
      guard let bytes = try isWhole ? pieces[0].bytes : appended(pieces, to: over) else { return .refused }
      return try put(bytes, over: over)
    case .confirm: return .done(version: "-")
    case .remove(let version):
      guard try read(version) == .same else { return .refused }
      return try send("DELETE").status / 100 == 2 ? .done(version: "-") : .refused
    case .describe: return try describe()
    }
  }

  // MARK: Requests

  private mutating func read(_ known: String?) throws(RemoteFailure) -> RemoteAnswer {
    let answer = try send("GET", known.map { [("if-none-match", "\"\($0)\"")] } ?? [])
    switch answer.status {
    case 304: return .same
    case 200:
      guard let version = Self.version(of: answer) else { throw Self.withoutTags }
      guard answer.body.count <= RemoteMessage.maximumBytes else {
        throw RemoteFailure(.large, "The object at \(place.host) has more than 8 MiB, so it is no vault.")
      }
      held = (version, answer.body)
      return version == known ? .same : .whole(version: version, answer.body)
    case 404 where answer.element("Code") != "NoSuchBucket": return .absent
    default: throw failure(answer)
    }
  }

  private mutating func put(_ bytes: [UInt8], over version: String?) throws(RemoteFailure) -> RemoteAnswer {
    // More engines accept the tag without quotes. If the condition fails, the request is sent again with quotes.
    let conditions = version.map { [("if-match", $0), ("if-match", "\"\($0)\"")] } ?? [("if-none-match", "*")]
    for condition in conditions {
      let answer: HTTPAnswer
      do throws(HTTPFailure) { answer = try perform("PUT", [condition], bytes) } catch {
        guard case .lost(let reason) = error else { throw failure(error) }
        return .unknown(RemoteFailure(.unreachable, "The object store did not answer: \(reason)."))
      }
      switch answer.status {
      case 200...204:
        guard let version = Self.version(of: answer) else { return .unknown(Self.withoutTags) }
        // The answer of a store has no body; that of a proxy may.
        guard answer.body.isEmpty else { return .unknown(failure(answer)) }
        held = (version, bytes)
        return .done(version: version)
      case 412: continue
      case 404 where version != nil && answer.element("Code") != "NoSuchBucket": return .refused
      // What a store answers before it writes.
      case 300...399, 400, 401, 403, 404, 405, 411, 413, 501: throw failure(answer)
      // A race that was lost, a proxy, or the engine itself: the program asks again with the same condition.
      default: return .unknown(failure(answer))
      }
    }
    return .refused
  }

  /// The known object with `pieces`, or `nil` if the object is another one by now.
  private mutating func appended(
    _ pieces: [RemoteMessage.Piece], to version: String?
  ) throws(RemoteFailure) -> [UInt8]? {
    if held?.version != version { _ = try read(nil) }
    guard let held, held.version == version else { return nil }
    return held.bytes.written(pieces)
  }

  private mutating func describe() throws(RemoteFailure) -> RemoteAnswer {
    let answer = try send("HEAD")
    guard [200, 404].contains(answer.status) else { throw failure(answer) }
    let state = answer.status == 200 ? "an object of \(answer.headers["content-length"] ?? "?") bytes" : "no object"
    let keepsVersions = answer.headers["x-amz-version-id"].map { $0 != "null" } ?? false
    let versions = keepsVersions ? "; it keeps old versions, also of what erase removes" : ""
    return .text(
      "\(answer.headers["server"] ?? "an object store") at \(place.host), region \(region), \(state)\(versions)")
  }

  // MARK: HTTP

  private mutating func send(
    _ method: String, _ headers: [(name: String, value: String)] = []
  ) throws(RemoteFailure) -> HTTPAnswer {
    do throws(HTTPFailure) { return try perform(method, headers, nil) } catch { throw failure(error) }
  }

  private mutating func perform(
    _ method: String, _ headers: [(name: String, value: String)], _ body: [UInt8]?
  ) throws(HTTPFailure) -> HTTPAnswer {
    let request = HTTPRequest(method: method, url: place.url, headers: headers, body: body, isLocal: place.isLocal)
    var answer = try sendSigned(request, afresh: false)
    // The store has refused the request. Perhaps there are newer credentials, as after each hour of a role.
    if ["ExpiredToken", "TokenRefreshRequired", "InvalidToken"].contains(answer.element("Code")) {
      answer = try sendSigned(request, afresh: true)
    }
    let seconds = curl_getdate(answer.headers["date"] ?? "", nil)
    if (0..<1 << 40).contains(seconds) { time = seconds * 1_000_000 }
    return answer
  }

  /// Signs a request and sends it.
  private mutating func sendSigned(_ unsigned: HTTPRequest, afresh: Bool) throws(HTTPFailure) -> HTTPAnswer {
    let credentials: Credentials
    do throws(RemoteFailure) { credentials = try chain.credentials(afresh: afresh) } catch { throw .refused(error) }
    var request = unsigned
    let signature = Signature(credentials: credentials, region: region, service: "s3")
    signature.sign(&request, host: place.host, path: place.path, date: Signature.now)
    return try http.send(request)
  }

  /// The entity tag in an answer, without its quotes. A weak one names no bytes.
  private static func version(of answer: HTTPAnswer) -> String? {
    guard let tag = answer.headers["etag"] else { return nil }
    let version = tag.filter { $0 != "\"" }
    let isGood =
      (1...200).contains(version.count) && !tag.hasPrefix("W/") && version.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    return isGood && !version.hasPrefix("@") && version != "-" ? version : nil
  }

  // MARK: Failures

  private static var withoutTags: RemoteFailure {
    RemoteFailure(
      .configuration, "The object store gives objects no entity tags, so it cannot keep a vault that many change.")
  }

  private func failure(_ error: HTTPFailure) -> RemoteFailure {
    switch error {
    case .refused(let failure): failure
    case .notSent(let reason, isCertificate: true):
      RemoteFailure(
        .denied, "\(place.host) did not prove who it is: \(reason).",
        advice: "Correct the host, or install the certificate of its authority.")
    case .notSent(let reason, _), .lost(let reason):
      RemoteFailure(.unreachable, "The object store at \(place.host) cannot be reached: \(reason).")
    }
  }

  private func failure(_ answer: HTTPAnswer) -> RemoteFailure {
    let code = answer.element("Code") ?? "status \(answer.status)"
    let region = answer.headers["x-amz-bucket-region"] ?? answer.element("Region")
    let (kind, reason, advice): (RemoteFailure.Kind, String, String?) =
      switch (code, answer.status) {
      case ("RequestTimeTooSkewed", _): (.denied, "The clock of this machine is wrong by minutes.", "Set the clock.")
      case ("SignatureDoesNotMatch", _):
        (.denied, "The secret key does not belong to the access key.", "Check AWS_SECRET_ACCESS_KEY.")
      case ("InvalidAccessKeyId", _):
        (.denied, "The object store does not know the access key.", "Check AWS_ACCESS_KEY_ID.")
      case ("ExpiredToken", _), ("TokenRefreshRequired", _):
        (.denied, "The credentials have expired.", "Get new ones, and try again.")
      case ("InvalidToken", _):
        (.denied, "The session token does not belong to the access key.", "Check AWS_SESSION_TOKEN.")
      case (_, 301), (_, 307), (_, 308), ("AuthorizationHeaderMalformed", _):
        (
          .configuration, "The bucket “\(place.bucket)” is elsewhere\(region.map { ", in the region \($0)" } ?? "").",
          "Set AWS_REGION, or correct the host."
        )
      case ("NoSuchBucket", _):
        (.configuration, "There is no bucket “\(place.bucket)” at \(place.host).", "Check the URL, or make the bucket.")
      case (_, 413): (.large, "The object store takes no object of that size.", nil)
      case (_, 401), (_, 403):
        (
          .denied, "The object store does not let these credentials do that.",
          "The policy needs s3:GetObject and s3:PutObject for the object."
        )
      case (_, 501): (.configuration, "The object store has no conditional requests.", nil)
      case (_, 409), (_, 429), (_, 503): (.busy, "The object store is busy.", "Try again.")
      default: (.failed, "The object store failed.", nil)
      }
    return RemoteFailure(kind, "\(reason) The object store says \(code).", advice: advice)
  }
}

/// What a URL names: `s3://BUCKET/KEY` is AWS, `s3+https://HOST/BUCKET/KEY` another store, and `s3+http` one on this
/// machine.
struct Place {
  let (bucket, host, path, url): (String, String, String, String)
  let isLocal: Bool

  init(_ text: String, region: String) throws(RemoteFailure) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    let malformed = RemoteFailure(
      .configuration, "The URL is not one of an object.", advice: "Write s3://BUCKET/KEY or s3+https://HOST/BUCKET/KEY."
    )
    let isAWS = parts[0] == "s3:"
    guard parts.count > (isAWS ? 3 : 4), parts[1].isEmpty else { throw malformed }
    let key = Signature.escaped(parts[(isAWS ? 3 : 4)...].joined(separator: "/"))
    bucket = parts[isAWS ? 2 : 3]
    switch parts[0] {
    case "s3:":
      // A dot in the name would be one more level than the certificate has.
      let isInHost = !bucket.contains(".")
      host = "\(isInHost ? "\(bucket)." : "")s3.\(region).amazonaws.com"
      path = isInHost ? "/\(key)" : "/\(Signature.escaped(bucket))/\(key)"
      isLocal = false
    case "s3+https:", "s3+http:":
      (host, path) = (parts[2], "/\(Signature.escaped(bucket))/\(key)")
      let name = host.hasPrefix("[") ? String(host.prefix { $0 != "]" }) + "]" : String(host.prefix { $0 != ":" })
      isLocal = parts[0] == "s3+http:"
      guard !isLocal || isLoopback(name) else {
        throw RemoteFailure(
          .configuration, "Without TLS, an object store must be on this machine.", advice: "Write s3+https.")
      }
    default: throw malformed
    }
    url = "\(isLocal ? "http" : "https")://\(host)\(path)"
  }
}
