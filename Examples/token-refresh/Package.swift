// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "token-refresh",
  // With the keyring, where a client on a desktop keeps its token. With `traits: []` libsecret is not needed.
  dependencies: [.package(name: "coffer", path: "../..", traits: ["Keyring"])],
  targets: [
    .target(name: "TokenStore", dependencies: [.product(name: "Coffer", package: "coffer")]),
    .executableTarget(name: "TokenRefresh", dependencies: ["TokenStore"]),
    .testTarget(
      name: "TokenStoreTests",
      dependencies: [
        "TokenStore", "TokenRefresh",
        .product(name: "Coffer", package: "coffer"),
        .product(name: "CofferTesting", package: "coffer"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
