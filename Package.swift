// swift-tools-version: 6.2

import PackageDescription

// One set of flags for every Swift target. Warnings stop the build in CI only, so that a newer compiler's new warning
// never stops a user's.
var strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]
if Context.environment["CI"] != nil {
  strict.append(.treatAllWarnings(as: .error))
}

// The tool, its tests and the package that reads its arguments exist only for those who ask: a program that depends on
// the libraries fetches no package for a tool that it does not build. Not a trait, because a trait cannot leave out a
// target: each file of the tool would be in a condition.
let hasTool = Context.environment["COFFER_TOOL"] == "1"

let package = Package(
  name: "coffer",
  products: [
    .library(name: "Coffer", targets: ["Coffer"]),
    .library(name: "CofferRemote", targets: ["CofferRemote"]),
    .library(name: "CofferTesting", targets: ["CofferTesting"]),
    .library(name: "CofferConfigurationProvider", targets: ["CofferConfigurationProvider"]),
    .executable(name: "secret", targets: ["secret"]),
  ],
  traits: [
    .trait(
      name: "Keyring",
      description:
        "Secrets in the desktop's keyring, through libsecret. Off: neither libsecret nor GLib is needed."
    ),
    .trait(
      name: "SwiftConfiguration",
      description: "CofferConfigurationProvider: secrets as a provider of apple/swift-configuration."
    ),
    .default(enabledTraits: ["Keyring"]),
  ],
  dependencies: [
    // Not fetched without the trait of its product.
    .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: [])
  ],
  targets: [
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    // Not the flags of libsecret-1, which SwiftPM warns of: see the header.
    .systemLibrary(name: "CLibsecret", pkgConfig: "gobject-2.0", providers: [.apt(["libsecret-1-dev"])]),
    .target(
      name: "CLibsecretHeaders",
      dependencies: [.target(name: "CLibsecret", condition: .when(traits: ["Keyring"]))],
      cSettings: [.define("KEYRING", .when(traits: ["Keyring"]))]),
    .target(name: "CLinux"),

    .target(name: "CofferLibc"),
    .target(name: "CofferCore", dependencies: ["CofferLibc", "CSodium", "CLinux"]),
    .target(name: "CofferSystem", dependencies: ["CofferCore", "CofferLibc", "CLinux"]),
    .target(name: "CofferRemote", dependencies: ["CofferLibc"]),
    .target(name: "CofferVaultFormat", dependencies: ["CofferCore"]),
    .target(
      name: "CofferVault",
      dependencies: [
        "CofferCore", "CofferLibc", "CofferRemote", "CofferSystem", "CofferVaultFormat", "CSodium", "CLinux",
      ]),
    .target(
      name: "CofferKeyring",
      dependencies: [
        "CofferCore", "CofferLibc", "CofferSystem", "CLibsecretHeaders",
        .target(name: "CLibsecret", condition: .when(traits: ["Keyring"])),
      ]
    ),
    .target(
      name: "CofferConfiguration",
      dependencies: [
        "CofferCore", "CofferLibc", "CofferSystem", "CofferVault", "CLinux",
        .target(name: "CofferKeyring", condition: .when(traits: ["Keyring"])),
      ]
    ),
    .target(
      name: "Coffer",
      dependencies: [
        "CofferCore", "CofferLibc", "CofferVault", "CofferConfiguration",
        .target(name: "CofferKeyring", condition: .when(traits: ["Keyring"])),
      ]
    ),
    .target(name: "CofferTesting", dependencies: ["CofferCore"]),
    .target(
      name: "CofferConfigurationProvider",
      dependencies: [
        "Coffer", "CofferCore",
        .product(
          name: "Configuration", package: "swift-configuration",
          condition: .when(traits: ["SwiftConfiguration"])),
      ]
    ),
    // Without the tool, a program that says how to build it.
    .executableTarget(
      name: "secret", dependencies: [hasTool ? "CofferTool" : "CofferLibc"],
      swiftSettings: hasTool ? [.define("Tool")] : []),

    // Tests: `Tests/README.md` says what each proves.
    .target(
      name: "CofferSimulation", dependencies: ["CofferVault", "CofferSystem"],
      path: "Tests/Support/Simulation"),
    .target(
      name: "CofferTestSupport", dependencies: ["CofferCore", "CLinux"], path: "Tests/Support/TestSupport"),
    .executableTarget(
      name: "coffer-remote-test", dependencies: ["CofferRemote"], path: "Tests/Support/RemoteTest"),
    .executableTarget(
      name: "CofferProbe",
      dependencies: ["Coffer", "CofferConfiguration", "CofferVault", "CofferCore", "CSodium"],
      path: "Tests/Support/Probe"),

    .testTarget(
      name: "CofferCoreTests", dependencies: ["CofferCore", "CofferTesting", "CofferTestSupport"],
      path: "Tests/Unit/CofferCoreTests"),
    .testTarget(
      name: "CofferSystemTests", dependencies: ["CofferSystem", "CofferCore", "CofferTestSupport"],
      path: "Tests/Unit/CofferSystemTests"),
    .testTarget(
      name: "CofferVaultTests",
      dependencies: [
        "CofferVault", "CofferVaultFormat", "CofferRemote", "CofferSystem", "CofferCore", "CofferTesting",
        "CofferSimulation", "CofferTestSupport", "coffer-remote-test",
      ],
      path: "Tests/Unit/CofferVaultTests"),
    .testTarget(
      name: "CofferKeyringTests",
      dependencies: ["CofferKeyring", "CofferCore", "CofferTestSupport"],
      path: "Tests/Unit/CofferKeyringTests"),
    .testTarget(
      name: "CofferConfigurationTests",
      dependencies: ["CofferConfiguration", "Coffer", "CofferVault", "CofferCore", "CofferTestSupport"],
      path: "Tests/Unit/CofferConfigurationTests"),
    .testTarget(
      name: "CofferTests",
      dependencies: [
        "Coffer", "CofferCore", "CofferVault", "CofferTesting", "CofferSimulation", "CofferTestSupport",
        "CofferProbe",
      ],
      path: "Tests/Unit/CofferTests"),

    .testTarget(
      name: "CofferKeyringSystemTests",
      dependencies: [
        "Coffer", "CofferConfiguration", "CofferKeyring", "CofferVault", "CofferCore", "CofferTesting",
        "CofferTestSupport",
      ],
      path: "Tests/System/keyring/KeyringTests", resources: [.copy("Fixtures")]),
    .testTarget(
      name: "CofferMemoryTests",
      dependencies: [
        "CofferProbe", "CofferCore", "CofferVault", "CofferVaultFormat", "CofferTestSupport", "CLinux",
      ],
      path: "Tests/System/memory"),
  ],
  swiftLanguageModes: [.v6]
)

if hasTool {
  package.dependencies.append(
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"))
  package.targets += [
    .target(name: "CEarlyInit"),
    .target(
      name: "CofferTool",
      dependencies: [
        "Coffer", "CofferConfiguration", "CofferVault", "CofferSystem", "CofferCore", "CofferLibc", "CLinux",
        "CEarlyInit",
        .target(name: "CofferKeyring", condition: .when(traits: ["Keyring"])),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]
    ),
    .testTarget(
      name: "CofferToolTests",
      dependencies: [
        "CofferTool", "secret", "CofferSystem", "CofferCore", "CofferSimulation", "CofferTestSupport",
        "coffer-remote-test",
      ],
      path: "Tests/Unit/CofferToolTests", exclude: ["Scenarios", "Protocols"]),
    // The fuzz targets, run on the inputs that the fuzzer found before; `Fuzz/fuzz.sh` searches on from there.
    .testTarget(
      name: "CofferFuzzTests",
      dependencies: [
        "CofferTool", "Coffer", "CofferConfiguration", "CofferVault", "CofferVaultFormat", "CofferSystem",
        "CofferCore", "CofferSimulation", "CofferTestSupport",
      ],
      path: "Fuzz/Sources"),
  ]
}

for target in package.targets
where target.type != .system && !["CLinux", "CEarlyInit", "CLibsecretHeaders"].contains(target.name) {
  target.swiftSettings = (target.swiftSettings ?? []) + strict
}
