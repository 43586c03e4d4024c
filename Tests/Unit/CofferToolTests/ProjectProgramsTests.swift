import CofferTestSupport
import Foundation
import Testing

/// Real programs that get the secrets of a project's file.
@Suite struct ProjectProgramsTests {
  private static let value = #"it's "$HOME" \n and é"#

  /// A project with a vault, whose variable TOKEN has ``value`` by default and `staged` in the profile staging.
  private func project() throws -> Sandbox {
    let sandbox = try Sandbox()
    try Data(Self.value.utf8).write(to: URL(filePath: "\(sandbox.workingDirectory)/value"))
    let made = try sandbox.shell(
      """
      printf 'vault = "v"\\n[variables]\\nTOKEN = "token"\\n[profiles.staging.variables]\\nTOKEN = "staged"\\n' > .coffer.toml
      secret init && secret set token --from-file value && printf staged | secret set staged
      """)
    try #require(made.status == 0, "\(made.errorText)")
    return sandbox
  }

  /// Runs `command`, which must print the value of TOKEN and nothing else.
  private func expect(_ value: String = value, from command: String, in sandbox: Sandbox) throws {
    let result = try sandbox.shell(command)
    #expect(result.outputText == value, "\(command): \(result.errorText)")
    #expect(result.status == 0, "\(command): \(result.errorText)")
  }

  @Test(.needs("make")) func aRecipeOfMakeGetsTheSecrets() throws {
    let sandbox = try project()
    try Data("deploy:\n\t@printf %s \"$$TOKEN\"\n".utf8)
      .write(to: URL(filePath: "\(sandbox.workingDirectory)/Makefile"))
    try expect(from: "secret run -- make deploy", in: sandbox)
    try expect("staged", from: "secret run -P staging -- make deploy", in: sandbox)
  }

  @Test(.needs("direnv")) func direnvLoadsTheSecretsOfAProject() throws {
    let sandbox = try project()
    try Data("eval \"$(secret export --format shell --quiet)\"\n".utf8)
      .write(to: URL(filePath: "\(sandbox.workingDirectory)/.envrc"))
    try expect(from: "direnv allow && direnv exec . sh -c 'printf %s \"$TOKEN\"'", in: sandbox)
    try expect(
      "staged", from: "COFFER_PROFILE=staging direnv exec . sh -c 'printf %s \"$TOKEN\"'", in: sandbox)
  }

  @Test(.enabled(if: TestRun.firstMissing(["npm", "node"]) == nil, "there is no npm"))
  func aScriptOfNpmGetsTheSecrets() throws {
    let sandbox = try project()
    try Data(
      #"{"name": "p", "scripts": {"deploy": "node -e 'process.stdout.write(process.env.TOKEN)'"}}"#.utf8
    )
    .write(to: URL(filePath: "\(sandbox.workingDirectory)/package.json"))
    try expect(from: "secret run -- npm run --silent deploy", in: sandbox)
  }

  /// docker-compose reads the file without a Docker engine.
  @Test(.enabled(if: TestRun.firstMissing(["docker-compose"]) == nil, "there is no docker-compose"))
  func dockerComposeReadsWhatIsExported() throws {
    let sandbox = try project()
    try Data("services:\n  one:\n    image: x\n    environment:\n      TOKEN: ${TOKEN}\n".utf8)
      .write(to: URL(filePath: "\(sandbox.workingDirectory)/docker-compose.yml"))
    let seen = """
      docker-compose config | python3 -c 'import sys, yaml
      print(yaml.safe_load(sys.stdin)["services"]["one"]["environment"]["TOKEN"].replace("$$", "$"), end="")'
      """
    try expect(from: "secret run -- sh -c \(Self.quoted(seen))", in: sandbox)
    try expect(
      "staged",
      from:
        "secret export -P staging --format docker -o e && docker-compose --env-file e config | grep -o staged | tr -d '\\n'",
      in: sandbox)
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.replacingOccurrences(of: "'", with: #"'\''"#) + "'"
  }
}
