// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "token-tool",
  // With the keyring. With `traits: []` there is none, and libsodium is the only library.
  dependencies: [.package(name: "coffer", path: "../..", traits: ["Keyring"])],
  targets: [
    .executableTarget(name: "TokenTool", dependencies: [.product(name: "Coffer", package: "coffer")])
  ],
  swiftLanguageModes: [.v6]
)
