internal import ArgumentParser
internal import Coffer

struct TerraformCredentialsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "terraform-credentials",
    abstract: "Keep terraform's tokens: a credentials helper for terraform.",
    discussion: """
      terraform runs ~/.terraform.d/plugins/terraform-credentials-secret: make a link of that name to this program, \
      and write credentials_helper "secret" {} into ~/.terraformrc. The token for a host is the secret named token \
      in the service terraform:HOST.
      """
  )

  @OptionGroup(title: "Global options") var global: StoreOptions

  @Argument(help: "What terraform wants done: get, store, or forget.")
  var operation: String

  @Argument(help: "The host that the token is for.")
  var host: String

  private struct Credentials: Codable {
    var token: String?
  }

  func run() throws {
    let identifier = try SecretIdentifier(service: "terraform:" + host, account: "token")
    switch operation {
    case "get":
      let value = try global.store().lookUp(identifier)
      try ProgramJSON.line(Credentials(token: try value?.string()))
    case "store":
      let text = try ValueInput.readAll(0, named: "standard input")
      let properties = try ProgramJSON.decode(
        text, as: [String: String].self, wanted: "an object with token and nothing else")
      guard let token = properties["token"], properties.count == 1 else {
        throw Failure.usage(
          "Only a token can be kept, and terraform gave something else beside or instead. Nothing was stored."
        )
      }
      try global.store().store(SecretBytes(copying: token), for: identifier)
    case "forget": try global.store().remove(identifier)
    default: throw Failure.usage("terraform asked for “\(operation)”, which this version does not know.")
    }
  }
}
