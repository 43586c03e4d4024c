import Testing

@testable import S3

/// The examples in "Authenticating Requests: Using the Authorization Header" of the Amazon S3 API Reference.
@Suite struct SignatureTests {
  private static let credentials = Credentials(
    accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")

  private func signature(_ request: HTTPRequest, _ path: String, _ query: String = "") -> String {
    var request = request
    Signature(credentials: Self.credentials, region: "us-east-1", service: "s3").sign(
      &request, host: "examplebucket.s3.amazonaws.com", path: path, query: query, date: "20130524T000000Z")
    let authorization = request.headers.first { $0.name == "authorization" }?.value ?? ""
    return authorization.split(separator: "=").last.map(String.init) ?? ""
  }

  @Test func readingAnObject() {
    let request = HTTPRequest(url: "", headers: [("Range", "bytes=0-9")])
    #expect(
      signature(request, "/test.txt") == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41")
  }

  @Test func writingAnObject() {
    let request = HTTPRequest(
      method: "PUT", url: "",
      headers: [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")],
      body: Array("Welcome to Amazon S3.".utf8))
    #expect(Signature.escaped("/test$file.text") == "/test%24file.text")
    #expect(
      signature(request, "/test%24file.text")
        == "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd")
  }

  @Test func aQuery() {
    #expect(
      signature(HTTPRequest(url: ""), "/", "lifecycle=")
        == "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543")
    #expect(
      signature(HTTPRequest(url: ""), "/", "max-keys=2&prefix=J")
        == "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7")
  }
}
