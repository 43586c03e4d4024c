internal import CofferRemote
internal import Foundation
internal import S3

// coffer-remote-s3: a vault in an object store, for programs with Coffer. It gets the sealed file and never a key.

guard CommandLine.arguments.count == 2, CommandLine.arguments[1].contains("://") else {
  FileHandle.standardError.write(
    Data(
      """
      usage: coffer-remote-s3 URL     answers requests on standard input; Coffer starts it

      The URL is s3://BUCKET/KEY for AWS, or s3+https://HOST/BUCKET/KEY.

      Exit status: 0 done, 64 wrong usage, 76 a request is malformed.

      """.utf8))
  exit(64)
}
exit(
  serve { () throws(RemoteFailure) in
    try ObjectEngine(CommandLine.arguments[1], environment: ProcessInfo.processInfo.environment)
  })
