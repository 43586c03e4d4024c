// swift-tools-version: 6.2

import PackageDescription

// A package of its own: every target is built for libFuzzer and AddressSanitizer, from the same sources,
// which `Sources` has links to. `run` builds it and links the fuzzer.
let instrumented: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing"]),
]

let package = Package(
  name: "coffer-fuzz",
  products: [.library(name: "CofferFuzz", type: .static, targets: ["CofferFuzz"])],
  targets: [
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium"),
    .target(name: "CLinux"),
    .target(name: "CofferCore", dependencies: ["CSodium", "CLinux"], swiftSettings: instrumented),
    .target(
      name: "CofferVault", dependencies: ["CofferCore", "CSodium", "CLinux"], swiftSettings: instrumented),
    .target(name: "CofferKeyring", dependencies: ["CofferCore"], swiftSettings: instrumented),
    .target(
      name: "Coffer", dependencies: ["CofferCore", "CofferVault", "CofferKeyring", "CLinux"],
      swiftSettings: instrumented),
    .target(
      name: "CofferFuzz", dependencies: ["Coffer", "CofferVault", "CofferCore"], swiftSettings: instrumented),
  ],
  swiftLanguageModes: [.v6]
)
