// swift-tools-version: 6.2

import PackageDescription

// The helper for vaults in PostgreSQL, a program of its own: Coffer itself links nothing of libpq.
let package = Package(
  name: "coffer-remote-postgresql",
  products: [.executable(name: "coffer-remote-postgresql", targets: ["coffer-remote-postgresql"])],
  dependencies: [.package(name: "coffer", path: "../..", traits: [])],
  targets: [
    .systemLibrary(name: "CPostgreSQL", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    .executableTarget(
      name: "coffer-remote-postgresql",
      dependencies: ["CPostgreSQL", .product(name: "CofferRemote", package: "coffer")],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
      ] + (Context.environment["CI"] == nil ? [] : [.treatAllWarnings(as: .error)])),
  ],
  swiftLanguageModes: [.v6]
)
