internal import CofferRemote
internal import Foundation

struct Credentials: Sendable {
  let accessKey: String
  let secretKey: String
  var token: String?
  /// When they end, or `nil` if they do not.
  var expires: Date?

  /// Whether they are good for five more minutes.
  var isFresh: Bool { expires.map { $0.timeIntervalSinceNow > 300 } ?? true }
}

/// Finds credentials where AWS's own programs look for them, in their order. Source: "Standardized credential
/// providers" in the AWS SDKs and Tools Reference Guide.
struct CredentialChain {
  private let environment: [String: String]
  private let http: HTTPClient
  private var found: Credentials?

  /// The longest wait for a service of the machine's own network: a second.
  private static let localTimeout = Duration.seconds(1)
  /// The longest wait for a `credential_process`: 4 seconds.
  private static let processTimeout = DispatchTimeInterval.seconds(4)

  /// Variables that are empty count as not set: CI systems make these of secrets that are missing.
  init(_ environment: [String: String], _ http: HTTPClient) {
    (self.environment, self.http) = (environment.filter { !$0.value.isEmpty }, http)
  }

  var region: String {
    environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"] ?? profile["region"] ?? "us-east-1"
  }

  /// The credentials for the next request. With `afresh`, those that were found before are not used any more.
  mutating func credentials(afresh: Bool) throws(RemoteFailure) -> Credentials {
    if afresh { found = nil }
    if let found, found.isFresh { return found }
    do throws(RemoteFailure) {
      for source in [fromEnvironment, fromWebIdentity, fromProfile, fromContainer, fromMachine] {
        guard let credentials = try source() else { continue }
        found = credentials
        return credentials
      }
      throw RemoteFailure(
        .denied, "There are no credentials for the object store.",
        advice: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE.")
    } catch {
      // The old ones may be good for some minutes.
      guard let found, let expires = found.expires, expires > Date() else { throw error }
      return found
    }
  }

  // MARK: Sources

  private func fromEnvironment() throws(RemoteFailure) -> Credentials? {
    guard let access = environment["AWS_ACCESS_KEY_ID"], let secret = environment["AWS_SECRET_ACCESS_KEY"] else {
      return nil
    }
    return Credentials(accessKey: access, secretKey: secret, token: environment["AWS_SESSION_TOKEN"])
  }

  /// A token of the platform is exchanged for credentials, in one call of the security token service.
  private func fromWebIdentity() throws(RemoteFailure) -> Credentials? {
    guard let file = environment["AWS_WEB_IDENTITY_TOKEN_FILE"], let role = environment["AWS_ROLE_ARN"] else {
      return nil
    }
    let query = [
      ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", role),
      ("RoleSessionName", environment["AWS_ROLE_SESSION_NAME"] ?? "coffer"),
      ("WebIdentityToken", try Self.text(ofFile: file)),
    ].map { "\($0)=\(Signature.escaped($1).replacing("/", with: "%2F"))" }.joined(separator: "&")
    var request = HTTPRequest(method: "POST", url: "https://sts.\(region).amazonaws.com/", body: Array(query.utf8))
    request.headers = [("content-type", "application/x-www-form-urlencoded")]
    let answer = try send(request, "The security token service")
    guard answer.status == 200, let access = answer.element("AccessKeyId"),
      let secret = answer.element("SecretAccessKey")
    else {
      throw RemoteFailure(
        .denied, "The security token service gave no credentials: \(answer.element("Code") ?? "\(answer.status)").",
        advice: "Check AWS_ROLE_ARN and the trust policy of the role.")
    }
    return Credentials(
      accessKey: access, secretKey: secret, token: answer.element("SessionToken"),
      expires: answer.element("Expiration").flatMap(Self.date))
  }

  /// The settings of the chosen profile, as the files have them now.
  private var profile: [String: String] {
    let home = environment["HOME"] ?? "/"
    let name = environment["AWS_PROFILE"] ?? "default"
    let files = [
      (environment["AWS_CONFIG_FILE"] ?? "\(home)/.aws/config", name == "default" ? name : "profile \(name)"),
      (environment["AWS_SHARED_CREDENTIALS_FILE"] ?? "\(home)/.aws/credentials", name),
    ]
    return files.reduce(into: [:]) { $0.merge(Self.section($1.1, ofFile: $1.0)) { $1 } }
  }

  private func fromProfile() throws(RemoteFailure) -> Credentials? {
    let profile = profile
    if let access = profile["aws_access_key_id"], let secret = profile["aws_secret_access_key"] {
      return Credentials(accessKey: access, secretKey: secret, token: profile["aws_session_token"])
    }
    guard let command = profile["credential_process"] else { return nil }
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", command]
    (process.standardInput, process.standardOutput) = (FileHandle.nullDevice, output)
    do {
      try process.run()
      // With all that it has started: Foundation makes it the first of its process group.
      let end = DispatchWorkItem { kill(-process.processIdentifier, SIGKILL) }
      DispatchQueue.global().asyncAfter(deadline: .now() + Self.processTimeout, execute: end)
      let data = try output.fileHandleForReading.read(upToCount: 1 << 16) ?? Data()
      process.waitUntilExit()
      end.cancel()
      if let found = Self.credentials(in: data) { return found }
    } catch {
      // It could not be started.
    }
    throw RemoteFailure(
      .denied, "The credential_process of the profile gave no credentials.", advice: "Run it by hand to see why.")
  }

  private func fromContainer() throws(RemoteFailure) -> Credentials? {
    var url = environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"]
    if let path = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] { url = "http://169.254.170.2\(path)" }
    guard let url else { return nil }
    // The addresses of ECS and EKS, and this machine. Anything else needs TLS.
    let host = URLComponents(string: url)?.host ?? ""
    let isKnown = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23", "[fd00:ec2::23]"].contains(host)
    guard url.hasPrefix("https://") || isKnown || isLoopback(host) else {
      throw RemoteFailure(
        .configuration, "AWS_CONTAINER_CREDENTIALS_FULL_URI names a host that is not known, without TLS.")
    }
    var request = HTTPRequest(url: url, timeout: Self.localTimeout, isLocal: true)
    let file = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]
    if let token = try file.map(Self.text) ?? environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"] {
      request.headers.append(("authorization", token))
    }
    let answer = try send(request, "The service of the container")
    if let found = Self.credentials(in: Data(answer.body)) { return found }
    throw RemoteFailure(
      .denied, "The service of the container gave no credentials, but status \(answer.status).",
      advice: "Check the role of the task or the pod.")
  }

  /// Of the role of the virtual machine. Asked last, because on other machines nobody answers.
  private func fromMachine() throws(RemoteFailure) -> Credentials? {
    if environment["AWS_EC2_METADATA_DISABLED"]?.lowercased() == "true" { return nil }
    func ask(_ path: String, _ header: (name: String, value: String), put: Bool = false) -> String? {
      var request = HTTPRequest(
        url: "http://169.254.169.254/latest" + path, headers: [header], timeout: Self.localTimeout, isLocal: true)
      if put { (request.method, request.body) = ("PUT", []) }
      do throws(HTTPFailure) {
        let answer = try http.send(request)
        return answer.status == 200 ? answer.text : nil
      } catch { return nil }
    }
    let path = "/meta-data/iam/security-credentials/"
    guard let token = ask("/api/token", ("x-aws-ec2-metadata-token-ttl-seconds", "300"), put: true) else { return nil }
    let header = ("x-aws-ec2-metadata-token", token)
    guard let role = ask(path, header)?.split(whereSeparator: \.isNewline).first else { return nil }
    return ask(path + role, header).flatMap { Self.credentials(in: Data($0.utf8)) }
  }

  // MARK: Reading

  private func send(_ request: HTTPRequest, _ name: String) throws(RemoteFailure) -> HTTPAnswer {
    do throws(HTTPFailure) { return try http.send(request) } catch {
      throw RemoteFailure(
        .unreachable, "\(name) cannot be reached.", advice: "Check the network of this machine.")
    }
  }

  private static func credentials(in data: Data) -> Credentials? {
    guard let all = try? JSONSerialization.jsonObject(with: data) as? [String: Any],
      let access = all["AccessKeyId"] as? String, let secret = all["SecretAccessKey"] as? String
    else { return nil }
    return Credentials(
      accessKey: access, secretKey: secret, token: all["SessionToken"] as? String ?? all["Token"] as? String,
      expires: (all["Expiration"] as? String).flatMap(date))
  }

  private static func date(_ text: String) -> Date? { try? Date(text, strategy: .iso8601) }

  private static func text(ofFile path: String) throws(RemoteFailure) -> String {
    do {
      return try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    } catch {
      throw RemoteFailure(.configuration, "The file \(path) cannot be read.")
    }
  }

  /// The settings in a section of a file in INI form, or none.
  private static func section(_ name: String, ofFile path: String) -> [String: String] {
    guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return [:] }
    var (current, settings): (String, [String: String]) = ("", [:])
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("#") || line.hasPrefix(";") { continue }
      if line.hasPrefix("["), let end = line.firstIndex(of: "]") {
        current = line[..<end].dropFirst().trimmed
      } else if current == name, let equals = line.firstIndex(of: "=") {
        settings[line[..<equals].trimmed] = line[equals...].dropFirst().trimmed
      }
    }
    return settings
  }
}
