import CofferCore
import CofferTestSupport
import CofferTesting
import Testing

/// The conformance suite detects each fault, with the check for the broken rule.
@Suite(.timeLimit(.minutes(30))) struct ConformanceSuiteTests {
  static let secretFindings: [(BrokenBackend.Fault, String)] = [
    (.trimsANewline, "bytes-are-exact"), (.losesEmptyValues, "empty-is-a-value"),
    (.stopsAtNUL, "bytes-are-exact"),
    (.normalisesValues, "text-is-not-normalised"),
    (.normalisesNames, "composed-and-decomposed-names-differ"),
    (.joinsServiceAndAccount, "service-and-account-are-separate"), (.foldsCase, "names-are-verbatim"),
    (.cutsLongNames, "longest-names"), (.refusesLargeValues, "every-size-up-to-the-cap"),
    (.takesTooLargeValues, "over-the-cap-is-too-large"),
    (.dropsTooLargeSilently, "over-the-cap-is-too-large"),
    (.storesTooLargeAndThrows, "over-the-cap-is-too-large"),
    (.reportsSuccessWithoutStoring, "overwrite-replaces"), (.duplicatesOnOverwrite, "overwrite-leaves-one"),
    (.keepsTheFirstValue, "overwrite-replaces"), (.removeAlwaysSaysTrue, "remove-twice"),
    (.removeDoesNotRemove, "remove-twice"), (.removeThrowsWhenAbsent, "remove-twice"),
    (.forgetsMetadataOnOverwrite, "overwrite-without-metadata-keeps-it"),
    (.keepsOldMetadata, "overwrite-with-metadata-replaces-it"),
    (.resetsCreation, "overwrite-keeps-creation-time"),
    (.ignoresGivenCreation, "creation-time-can-be-given"), (.losesLabel, "label-is-kept"),
    (.losesExpiry, "expiry-is-kept"), (.losesAttributes, "attributes-are-kept"),
    (.acceptsInvalidMetadata, "invalid-metadata-is-refused"), (.hidesExpired, "expiry-is-kept"),
    (.setsNoTimes, "times-are-set"), (.remembersRemovedMetadata, "remove-forgets-metadata"),
    (.listIsUnsorted, "list-is-sorted-by-bytes"), (.listIgnoresService, "list-of-a-service"),
    (.listByPrefix, "list-of-a-service"), (.itemDiffersFromList, "item-agrees-with-list"),
    (.secretInError, "no-secret-in-errors"), (.secretInDescription, "no-secret-in-errors"),
    (.losesConcurrentWrites, "writers-to-different-names"), (.readsHalfWritten, "reads-during-writes"),
    (.missesDuringOverwrite, "reads-during-writes"), (.tellsNoChange, "changes-are-reported"),
    (.tellsTwice, "each-change-once"), (.tellsOneSubscriber, "changes-are-reported"),
    (.tellsOfNothing, "removing-nothing-is-no-change"),
    (.tellsOfGivenUpTransactions, "changes-of-a-transaction"),
    (.transactionIsNotUndone, "transaction-that-throws-changes-nothing"),
    (.transactionIsBlind, "transaction-sees-its-own-changes"),
    (.transactionListsThePast, "transaction-lists-its-own-changes"),
    (.transactionSwallowsErrors, "transaction-that-throws-changes-nothing"),
    (.nestedUseIsAllowed, "backend-inside-its-own-transaction-is-a-conflict"),
    (.nestedUseHangs, "backend-inside-its-own-transaction-is-a-conflict"),
    (.transactionsInterleave, "transactions-lose-no-update"),
    (.transactionIsSeenInParts, "transactions-are-atomic-for-readers"),
    (.keepsOldExpiry, "a-new-value-has-its-own-expiry"),
    (.mixesValuesInLists, "each-secret-with-its-value"),
    (.losesMetadataInLists, "each-secret-with-its-value"),
  ]

  static let versionFindings: [(BrokenBackend.Fault, String)] = [
    (.versionsAreOldestFirst, "versions-are-listed-newest-first"),
    (.equalValuesAreOneVersion, "versions-are-listed-newest-first"),
    (.replacedVersionsAreCurrent, "versions-are-listed-newest-first"),
    (.removalsAreNoVersions, "versions-are-listed-newest-first"),
    (.versionsAreThoseOfTheService, "versions-are-listed-newest-first"),
    (.storeKeepsNoHistory, "versions-are-listed-newest-first"),
    (.numbersArePositions, "version-numbers-are-stable"),
    (.numbersAreUsedAgain, "version-numbers-are-stable"),
    (.versionsAreOfTheFuture, "version-dates-are-those-of-the-changes"),
    (.versionsAreDatedWhenListed, "version-dates-are-those-of-the-changes"),
    (.versionsAreDatedWhenReplaced, "version-dates-are-those-of-the-changes"),
    (.versionsAreOf1970, "version-dates-are-those-of-the-changes"),
    (.earlierMetadataIsLost, "versions-keep-their-metadata"),
    (.earlierMetadataIsTheNewest, "versions-keep-their-metadata"),
    (.currentVersionHasNoMetadata, "versions-keep-their-metadata"),
    (.removalHasMetadata, "versions-keep-their-metadata"),
    (.versionLookUpReturnsTheNewest, "lookup-of-a-version"),
    (.versionLookUpIgnoresTheName, "lookup-of-a-version"),
    (.versionLookUpThrowsIfAbsent, "lookup-of-a-version"),
    (.removalHasAValue, "lookup-of-a-version"),
    (.versionsEndWithTheSecret, "lookup-of-a-version"),
    (.itemsIncludeRemoved, "history-is-not-among-the-secrets"),
    (.lookUpFallsBackToHistory, "history-is-not-among-the-secrets"),
    (.removedIsRemovedAgain, "history-is-not-among-the-secrets"),
    (.transactionMakesOneVersion, "transaction-makes-versions"),
    (.givenUpTransactionsLeaveVersions, "transaction-makes-versions"),
    (.nestedVersionsAreAllowed, "versions-inside-a-transaction-are-a-conflict"),
    (.restoredVersionIsMoved, "restore-an-earlier-version"),
    (.storeAfterRemovalForgetsHistory, "restore-a-removed-secret"),
    (.currentVersionIsAlsoEarlier, "restore-of-nothing-changes-nothing"),
    (.removedIsUnsorted, "removed-secrets-are-listed"),
    (.removedIgnoresService, "removed-secrets-are-listed"),
    (.removedByPrefix, "removed-secrets-are-listed"),
    (.removedIsDatedWhenListed, "removed-secrets-are-listed"),
    (.removedStaysAfterAStore, "removed-secrets-are-listed"),
    (.erasedIsListedAsRemoved, "removed-secrets-are-listed"),
    (.eraseKeepsVersions, "erase"), (.eraseKeepsTheSecret, "erase"), (.eraseDropsOthers, "erase"),
    (.eraseIgnoresRemoved, "erase"), (.eraseAlwaysSaysTrue, "erase"),
    (.eraseIsNotUndone, "erase-in-a-transaction"),
    (.transactionsHaveNoVersions, "versions-in-a-transaction"),
    (.ignoresTheHistoryOfStores, "history-none-hides-what-was-before"),
    (.ignoresTheHistoryOfRemovals, "history-none-hides-what-was-before"),
    (.forgetsThatASecretHasNoHistory, "history-none-hides-what-was-before"),
    (.limitIsNotKept, "history-limit-bounds-the-versions"),
    (.limitIsOffByOne, "history-limit-bounds-the-versions"),
    (.limitCountsRemovals, "history-limit-bounds-the-versions"),
    (.lowerLimitDropsLater, "lower-history-limit-drops-versions"),
    (.lowerLimitHidesVersions, "lower-history-limit-drops-versions"),
    (.noneKeepsOne, "history-limit-of-none"),
    (.noneStillListsRemoved, "history-limit-of-none"),
    (.tellsNotOfStoresAfterRemovals, "changes-of-versions"),
    (.tellsNotOfErasures, "changes-of-versions"),
  ]

  static let storeFindings: [(BrokenBackend.Fault, String)] =
    [.leasesAreNeverFree, .leasesExcludeNobody, .leaseIsForAllNames].map {
      ($0, "a-lease-excludes-others-until-its-release")
    }
    + [.moveIgnoresReplacing, .moveOfNothingSucceeds, .moveKeepsTheOriginal, .moveLosesMetadata].map { ($0, "move") }
    + [.withoutPromptsIsAnotherStore, .closeForgets, .unlockFails].map {
      ($0, "without-prompts-after-close-and-unlock-the-store-is-the-same")
    }

  static let findings = secretFindings + versionFindings + storeFindings

  @Test(arguments: findings)
  func findsTheFault(fault: BrokenBackend.Fault, check: String) async throws {
    var options = SecretBackendConformance.Options()
    options.changeTimeout = .milliseconds(500)
    options.setHistoryVersions = { try ($0 as? BrokenBackend)?.setHistoryVersions($1) }
    if fault == .nestedUseHangs { options.checkTimeout = .milliseconds(500) }
    let suite = SecretBackendConformance(options: options) { BrokenBackend(fault) }
    let failures = try #require(
      await #expect(throws: ConformanceFailures.self) { try await suite.run(only: [check]) }
    )
    #expect(failures.failures.map(\.check) == [check])
    #expect(failures.description.contains("\(check): "))
    // The report of the suite contains no values.
    #expect(!failures.description.contains("canary"))
  }

  @Test func everyFaultIsTried() {
    #expect(Set(Self.findings.map(\.0)) == Set(BrokenBackend.Fault.allCases).subtracting([.none]))
  }

  @Test func withoutAFaultTheBackendPasses() async throws {
    var options = SecretBackendConformance.Options()
    options.setHistoryVersions = { try ($0 as? BrokenBackend)?.setHistoryVersions($1) }
    let report = try await SecretBackendConformance(options: options) { BrokenBackend(.none) }.run()
    #expect(report.skipped.isEmpty)
  }

  @Test func severalFailuresAreAllReported() async throws {
    let names: Set = ["bytes-are-exact", "overwrite-replaces", "empty-is-a-value"]
    let suite = SecretBackendConformance { BrokenBackend(.reportsSuccessWithoutStoring) }
    let failures = try #require(
      await #expect(throws: ConformanceFailures.self) { try await suite.run(only: names) }
    )
    #expect(Set(failures.failures.map(\.check)) == names)
  }

  @Test func anUnknownCheckNameIsAFailure() async throws {
    let suite = SecretBackendConformance { MemoryBackend() }
    let failures = try #require(
      await #expect(throws: ConformanceFailures.self) { try await suite.run(only: ["no-such-check"]) }
    )
    #expect(failures.failures.map(\.check) == ["no-such-check"])
  }

  @Test func omissionsAndMissingFeaturesAreSkippedAndSaidToBe() async throws {
    var options = SecretBackendConformance.Options()
    options.omissions = [.labels, .concurrency]
    let report = try await SecretBackendConformance(options: options) { BrokenBackend(.losesLabel) }.run()
    #expect(report.skipped.contains("label-is-kept"))
    #expect(report.skipped.contains("transactions-lose-no-update"))
    #expect(!report.skipped.contains("changes-are-reported"))

    let plain = try await SecretBackendConformance { PlainBackend() }.run()
    #expect(plain.skipped.contains("changes-are-reported"))
    #expect(plain.skipped.contains("transaction-commits-all"))
    #expect(plain.skipped.contains("versions-are-listed-newest-first"))
    #expect(plain.passed.contains("bytes-are-exact"))
  }

  @Test func aBackendThatCannotBeMadeIsAFailure() async throws {
    let suite = SecretBackendConformance { throw SecretError(.unavailable, "There is none.") }
    let failures = try #require(
      await #expect(throws: ConformanceFailures.self) { try await suite.run(only: ["missing-is-nil"]) }
    )
    #expect(failures.failures.first?.message.contains("unavailable") == true)
  }

  @Test func aFailingBackendFailsEachCallOfAKind() throws {
    let backend = FailingBackend()
    let identifier = try SecretIdentifier(service: "tests", account: "a")
    backend.fail(.items, with: SecretError(.locked, "The keyring is locked."))
    for call in [
      { _ = try backend.items() }, { _ = try backend.item(identifier) },
      { _ = try backend.versions(of: identifier) }, { _ = try backend.removedItems(inService: nil) },
    ] as [() throws -> Void] {
      #expect(throws: SecretError.self) { try call() }
    }
    #expect(backend.count(of: .items) == 4)
  }

  @Test func checkNamesAreUniqueAndStable() {
    let names = SecretBackendConformance.checkNames
    #expect(Set(names).count == names.count)
    #expect(names.allSatisfy { $0.allSatisfy { $0 == "-" || $0.isLowercase } })
  }

  /// A backend that reports features and implements none of them.
  private final class Boasting: SecretBackend, PassingAccess {
    private let plain = PlainBackend()
    let features: SecretFeatures
    var base: any SecretAccess { plain }
    init(_ features: SecretFeatures) { self.features = features }
    func transaction<R, E: Error>(
      _ body: (any SecretTransaction) throws(E) -> R
    ) throws(SecretError) -> Result<R, E> {
      Result { () throws(E) in try body(OnBase(base: base)) }
    }
    private struct OnBase: SecretTransaction, PassingAccess {
      let base: any SecretAccess
    }
  }

  @Test(arguments: [SecretFeatures.transactions, .changes, [.history, .transactions]])
  func aFeatureThatIsReportedAndNotImplementedIsAFailure(_ features: SecretFeatures) async throws {
    var options = SecretBackendConformance.Options()
    options.changeTimeout = .milliseconds(100)
    let suite = SecretBackendConformance(options: options) { Boasting(features) }
    await #expect(throws: ConformanceFailures.self) { try await suite.run() }
  }
}
