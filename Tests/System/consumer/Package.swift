// swift-tools-version: 6.2

import PackageDescription

// A program in a package of its own, as a user would write it.
let package = Package(
  name: "consumer",
  dependencies: [.package(name: "coffer", path: "../../..", traits: [])],
  targets: [
    .executableTarget(name: "Consumer", dependencies: [.product(name: "Coffer", package: "coffer")])
  ],
  swiftLanguageModes: [.v6]
)
