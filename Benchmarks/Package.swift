// swift-tools-version: 6.2

import PackageDescription

// A separate package, so that Coffer does not depend on its benchmarks.
let package = Package(
  name: "coffer-benchmarks",
  dependencies: [.package(name: "coffer", path: "..", traits: [])],
  targets: [
    .systemLibrary(name: "CBenchmarkSodium", pkgConfig: "libsodium"),
    .executableTarget(
      name: "CofferBenchmarks",
      dependencies: ["CBenchmarkSodium", .product(name: "Coffer", package: "coffer")]
    ),
  ],
  swiftLanguageModes: [.v6]
)
