// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "token-tool",
  // Without traits: no keyring, so that libsodium is the only library.
  dependencies: [.package(name: "coffer", path: "../..", traits: [])],
  targets: [
    .executableTarget(name: "TokenTool", dependencies: [.product(name: "Coffer", package: "coffer")])
  ],
  swiftLanguageModes: [.v6]
)
