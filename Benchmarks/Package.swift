// swift-tools-version: 6.2

import PackageDescription

// A package of its own, so that the library never depends on what measures it.
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
