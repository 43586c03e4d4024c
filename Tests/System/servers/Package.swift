// swift-tools-version: 6.2

import PackageDescription

// What Coffer has for servers, tested from another package: Coffer itself neither fetches nor builds what this depends
// on.
let package = Package(
  name: "servers",
  dependencies: [
    .package(name: "coffer", path: "../../..", traits: ["SwiftConfiguration"]),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.6.0"),
  ],
  targets: [
    .testTarget(
      name: "ServerTests",
      dependencies: [
        .product(name: "Coffer", package: "coffer"),
        .product(name: "CofferTesting", package: "coffer"),
        .product(name: "CofferConfigurationProvider", package: "coffer"),
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "ConfigurationTesting", package: "swift-configuration"),
        // Imported by the code in the document.
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "Logging", package: "swift-log"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
