// swift-tools-version: 6.2

import PackageDescription

let package = Package(
  name: "rotating-server",
  dependencies: [
    .package(name: "coffer", path: "../..", traits: ["SwiftConfiguration"]),
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
  ],
  targets: [
    .executableTarget(
      name: "RotatingServer",
      dependencies: [
        .product(name: "Coffer", package: "coffer"),
        .product(name: "CofferConfigurationProvider", package: "coffer"),
        .product(name: "Configuration", package: "swift-configuration"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "Hummingbird", package: "hummingbird"),
      ]),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "RotatingServer",
        .product(name: "Coffer", package: "coffer"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "ServiceLifecycleTestKit", package: "swift-service-lifecycle"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
