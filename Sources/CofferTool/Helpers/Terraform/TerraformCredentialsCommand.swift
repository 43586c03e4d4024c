internal import ArgumentParser
internal import Coffer

struct TerraformCredentialsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    "terraform-credentials", abstract: "Store terraform's tokens, as a credentials helper for terraform.",
    discussion: """
      terraform runs ~/.terraform.d/plugins/terraform-credentials-secret: create a link of that name to this program, \
      and write credentials_helper "secret" {} to ~/.terraformrc. The token for a host is the secret token in the \
      service terraform:HOST.
      """)

  @OptionGroup(title: "Global options") var backendOptions: BackendOptions

  @Argument(help: "The operation that terraform requests: get, store, or forget.")
  var operation: String

  @Argument(help: "The host that the token is for.")
  var host: String

  func run() throws {
    let identifier = try SecretIdentifier(service: "terraform:" + host, account: "token")
    switch operation {
    case "get":
      let token = try backendOptions.open().lookUp(identifier)?.string()
      try Output.standard.jsonLine(["token": token].compactMapValues(\.self))
    case "store":
      let properties = try ProgramJSON.input([String: String].self, expected: "an object with token and nothing else")
      guard let token = properties["token"], properties.count == 1 else {
        throw Failure.usage("Only a token can be stored, and the input has other fields. Nothing was stored.")
      }
      try backendOptions.open().storeIfChanged(SecretBytes(token), for: identifier)
    case "forget": try backendOptions.open().remove(identifier)
    default: throw Failure.usage("The operation “\(operation)” of terraform is not supported.")
    }
  }
}
