// A server that knows its clients by a token, which is rotated without a restart.
//
//     printf %s "$TOKEN" | secret -s com.example.rotating-server set api.token
//     HTTP_PORT=8080 RotatingServer
//     curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/
//
// Whoever sets `api.token` anew with `secret`, while the server runs, rotates the token: from then on, only the new one
// is accepted.

import Coffer
import CofferConfigurationProvider
import Configuration
import Glibc
import Hummingbird
import ServiceLifecycle

@main
enum RotatingServer {
  static func main() async {
    do {
      try await run()
    } catch {
      // An error of Coffer says what happened and what to do. It never contains a secret.
      let message = Array("\(error)\n".utf8)
      write(STDERR_FILENO, message, message.count)
      exit(1)
    }
  }

  static func run() async throws {
    // The store that `secret init` has chosen, as one object that the whole server shares.
    let backend = try await DefaultBackend.current()
    let scope = SecretScope(service: "com.example.rotating-server", backend: backend)
    // The token comes from the store, and what is not secret from variables such as HTTP_PORT.
    let secrets = ConfigReader(provider: SecretsProvider(in: scope))
    let settings = ConfigReader(provider: EnvironmentVariablesProvider())

    // Without a token, or with a locked store, the server does not start.
    let token = AccessToken(try await secrets.fetchRequiredString(forKey: "api.token"))

    let router = Router()
    router.get("/") { request, _ -> String in
      guard token.isShown(by: request) else { throw HTTPError(.unauthorized) }
      return "welcome\n"
    }
    let application = Application(
      router: router,
      configuration: .init(
        address: .hostname("127.0.0.1", port: settings.int(forKey: "http.port", default: 0))),
      onServerRunning: { channel in
        if let port = channel.localAddress?.port { print("listening on port \(port)") }
      }
    )
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        // The services end in reverse order: the store is closed last.
        services: [
          SecretsService(backend: backend), TokenRotation(secrets: secrets, token: token), application,
        ],
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: application.logger
      )
    )
    try await group.run()
    print("the store is closed")
  }
}
