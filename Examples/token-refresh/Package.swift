// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "token-refresh",
  // With the keyring, because a client on a desktop has its token there. The build needs libsecret.
  dependencies: [.package(name: "coffer", path: "../..", traits: ["Keyring"])],
  targets: [
    .executableTarget(name: "TokenRefresh", dependencies: [.product(name: "Coffer", package: "coffer")])
  ],
  swiftLanguageModes: [.v6]
)
