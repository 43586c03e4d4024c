// swift-tools-version: 6.2

import PackageDescription

// One set of flags for every Swift target. Warnings stop the build in CI only, so that a newer
// compiler's new warning never stops a user's.
var strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
if Context.environment["CI"] != nil {
  strict.append(.treatAllWarnings(as: .error))
}

let package = Package(
  name: "coffer",
  products: [
    .library(name: "Coffer", targets: ["Coffer"]),
    .library(name: "CofferTesting", targets: ["CofferTesting"]),
    .executable(name: "secret", targets: ["secret"]),
  ],
  traits: [
    .trait(
      name: "Keyring",
      description:
        "Secrets in the desktop's keyring, through libsecret. Off: neither libsecret nor GLib is needed."
    ),
    .default(enabledTraits: ["Keyring"]),
  ],
  dependencies: [
    // For the `secret` tool alone: the libraries depend on no package.
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0")
  ],
  targets: [
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "CLibsecret", pkgConfig: "libsecret-1", providers: [.apt(["libsecret-1-dev"])]),
    .target(name: "CLinux"),
    .target(name: "CStart"),

    .target(name: "CofferCore", dependencies: ["CSodium", "CLinux"]),
    .target(name: "CofferVault", dependencies: ["CofferCore", "CSodium", "CLinux"]),
    .target(
      name: "CofferKeyring",
      dependencies: [
        "CofferCore",
        .target(name: "CLibsecret", condition: .when(traits: ["Keyring"])),
      ]
    ),
    .target(
      name: "Coffer",
      dependencies: [
        "CofferCore", "CofferVault", "CLinux",
        .target(name: "CofferKeyring", condition: .when(traits: ["Keyring"])),
      ]
    ),
    .target(name: "CofferTesting", dependencies: ["CofferCore"]),
    .executableTarget(
      name: "secret",
      dependencies: [
        "Coffer", "CLinux", "CStart",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),

    // The disk that the vault's tests run on: it loses power, and its calls fail, where they say.
    .target(name: "CofferSimulation", dependencies: ["CofferVault"], path: "Tests/Simulation"),

    // A process of its own for tests that look into its memory, and kill it.
    .executableTarget(
      name: "CofferProbe", dependencies: ["Coffer", "CofferCore", "CofferVault"], path: "Tests/Probe"),

    .testTarget(
      name: "CofferMemoryTests", dependencies: ["CofferProbe", "CofferCore", "CofferVault"],
      path: "Tests/Memory"),
    .testTarget(
      name: "CofferKeyringTests",
      dependencies: ["CofferKeyring", "CofferCore", "CofferTesting"],
      resources: [.copy("Fixtures")]
    ),
    .testTarget(name: "CofferCoreTests", dependencies: ["CofferCore", "CofferTesting"]),
    .testTarget(
      name: "CofferVaultTests", dependencies: ["CofferVault", "CofferTesting", "CofferSimulation"]),
    .testTarget(name: "CofferTests", dependencies: ["Coffer", "CofferTesting"]),
    .testTarget(
      name: "SecretTests", dependencies: ["secret", "CofferCore"], exclude: ["Scenarios", "Protocols"]),
    // What is fuzzed, on what the fuzzer found before; `Fuzz/run` goes on from there.
    .testTarget(
      name: "CofferFuzzTests", dependencies: ["secret", "Coffer", "CofferVault", "CofferSimulation"],
      path: "Fuzz/Sources"),
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system && !["CLinux", "CStart"].contains(target.name) {
  target.swiftSettings = (target.swiftSettings ?? []) + strict
}
