import Foundation

/// The fuzz targets. Each takes bytes and stops the process if a parser traps or if its result breaks a rule.
enum FuzzTarget: String, CaseIterable {
  case header
  case keySlot = "key-slot"
  case commitState = "commit-state"
  case frame
  case knownVault = "known-vault"
  case block
  case root
  case recentChanges = "recent-changes"
  case keyText = "key-text"
  case ageText = "age-text"
  case pinText = "pin-text"
  case configuration
  /// Parts of a vault, which are sealed with the right keys and opened.
  case sealedVault = "sealed-vault"
  case dotenv
  case exchangeJSON = "exchange-json"
  case gitCredential = "git-credential"
  case dockerCredential = "docker-credential"
  case template
  case projectFile = "project-file"
  case recoveryKey = "recovery-key"
  case redaction

  /// The target that `COFFER_FUZZ_TARGET` names.
  static let chosen: FuzzTarget = {
    let name = ProcessInfo.processInfo.environment["COFFER_FUZZ_TARGET"] ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
      let names = allCases.map(\.rawValue).joined(separator: " ")
      fatalError("Set COFFER_FUZZ_TARGET to one of: \(names)")
    }
    return target
  }()

  func run(_ input: [UInt8]) {
    switch self {
    case .header: ParserTargets.header(input)
    case .keySlot: ParserTargets.keySlot(input)
    case .commitState: ParserTargets.commitState(input)
    case .frame: ParserTargets.frame(input)
    case .knownVault: ParserTargets.knownVault(input)
    case .block: ParserTargets.block(input)
    case .root: ParserTargets.root(input)
    case .recentChanges: ParserTargets.recentChanges(input)
    case .keyText: ParserTargets.keyText(input)
    case .ageText: ParserTargets.ageText(input)
    case .pinText: ParserTargets.pinText(input)
    case .configuration: ParserTargets.configuration(input)
    case .sealedVault: SealedVault(input).check()
    case .dotenv: ProgramTargets.dotenv(input)
    case .exchangeJSON: ProgramTargets.exchangeJSON(input)
    case .gitCredential: ProgramTargets.gitCredential(input)
    case .dockerCredential: ProgramTargets.dockerCredential(input)
    case .template: ProgramTargets.template(input)
    case .projectFile: ProgramTargets.projectFile(input)
    case .recoveryKey: ProgramTargets.recoveryKey(input)
    case .redaction: ProgramTargets.redaction(input)
    }
  }
}

/// Stops the process if the condition does not hold. libFuzzer then saves the input.
func require(_ condition: Bool, _ rule: @autoclosure () -> String) {
  if !condition { fatalError("broken rule: \(rule())") }
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  FuzzTarget.chosen.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}
