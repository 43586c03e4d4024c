// swift-tools-version: 6.2

import PackageDescription

// A package of a user: programs that depend on Coffer.
let package = Package(
  name: "consumer",
  dependencies: [.package(name: "coffer", path: "../../..")],
  targets: [
    .executableTarget(name: "Consumer", dependencies: [.product(name: "Coffer", package: "coffer")]),
    .executableTarget(name: "TopLevel", dependencies: [.product(name: "Coffer", package: "coffer")]),
  ],
  swiftLanguageModes: [.v6]
)
