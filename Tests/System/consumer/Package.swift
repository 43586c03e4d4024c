// swift-tools-version: 6.2

import PackageDescription

// A package of a user: programs that depend on Coffer, without the keyring if CONSUMER_TRAITS is `none`.
let traits: Set<Package.Dependency.Trait> = Context.environment["CONSUMER_TRAITS"] == "none" ? [] : [.defaults]

let package = Package(
  name: "consumer",
  dependencies: [.package(name: "coffer", path: "../../..", traits: traits)],
  targets: [
    .executableTarget(name: "Consumer", dependencies: [.product(name: "Coffer", package: "coffer")]),
    .executableTarget(name: "TopLevel", dependencies: [.product(name: "Coffer", package: "coffer")]),
  ],
  swiftLanguageModes: [.v6]
)
