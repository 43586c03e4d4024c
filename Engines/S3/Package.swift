// swift-tools-version: 6.2

import PackageDescription

// The helper for vaults in an object store with the interface of S3, a program of its own: Coffer itself links nothing
// of libcurl.
let settings: [SwiftSetting] =
  [
    .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
  ] + (Context.environment["CI"] == nil ? [] : [.treatAllWarnings(as: .error)])
let package = Package(
  name: "coffer-remote-s3",
  products: [.executable(name: "coffer-remote-s3", targets: ["coffer-remote-s3"])],
  dependencies: [.package(name: "coffer", path: "../..", traits: [])],
  targets: [
    // libcurl for HTTP and TLS, libsodium for SHA-256 and HMAC.
    .systemLibrary(
      name: "CHTTP", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev", "libsodium-dev"])]),
    .target(
      name: "S3", dependencies: ["CHTTP", .product(name: "CofferRemote", package: "coffer")],
      swiftSettings: settings),
    .executableTarget(
      name: "coffer-remote-s3", dependencies: ["S3", .product(name: "CofferRemote", package: "coffer")],
      swiftSettings: settings),
    .testTarget(name: "S3Tests", dependencies: ["S3"], path: "Tests", swiftSettings: settings),
  ],
  swiftLanguageModes: [.v6]
)
