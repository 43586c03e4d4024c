// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "token-refresh",
  // Without traits: no keyring, so that libsodium is the only library.
  dependencies: [.package(name: "coffer", path: "../..", traits: [])],
  targets: [
    .executableTarget(name: "TokenRefresh", dependencies: [.product(name: "Coffer", package: "coffer")])
  ],
  swiftLanguageModes: [.v6]
)
