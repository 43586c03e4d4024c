extension BrokenBackend {
  /// The rule that a backend breaks.
  enum Fault: String, CaseIterable, Sendable {
    case leasesAreNeverFree, leasesExcludeNobody, leaseIsForAllNames
    case moveIgnoresReplacing, moveOfNothingSucceeds, moveKeepsTheOriginal, moveLosesMetadata
    case withoutPromptsIsAnotherStore, closeForgets, unlockFails
    case none
    case trimsANewline, losesEmptyValues, stopsAtNUL, normalisesValues, normalisesNames,
      joinsServiceAndAccount
    case foldsCase, cutsLongNames, refusesLargeValues, takesTooLargeValues, dropsTooLargeSilently
    case storesTooLargeAndThrows
    case reportsSuccessWithoutStoring, duplicatesOnOverwrite, keepsTheFirstValue
    case removeAlwaysSaysTrue, removeDoesNotRemove, removeThrowsWhenAbsent
    case forgetsMetadataOnOverwrite, keepsOldMetadata, resetsCreation, ignoresGivenCreation, losesLabel
    case losesExpiry, losesAttributes, acceptsInvalidMetadata, hidesExpired, setsNoTimes,
      remembersRemovedMetadata
    case listIsUnsorted, listIgnoresService, listByPrefix, itemDiffersFromList
    case secretInError, secretInDescription
    case losesConcurrentWrites, readsHalfWritten, missesDuringOverwrite
    case tellsNoChange, tellsTwice, tellsOneSubscriber, tellsOfNothing, tellsOfGivenUpTransactions
    case transactionIsNotUndone, transactionIsBlind, transactionSwallowsErrors
    case transactionListsThePast
    case nestedUseIsAllowed, nestedUseHangs, transactionsInterleave, transactionIsSeenInParts

    case keepsOldExpiry, mixesValuesInLists, losesMetadataInLists

    // Faults of a backend with history.
    case versionsAreOldestFirst, equalValuesAreOneVersion, replacedVersionsAreCurrent, removalsAreNoVersions
    case versionsAreThoseOfTheService, currentVersionIsAlsoEarlier, storeKeepsNoHistory
    case numbersArePositions, numbersAreUsedAgain
    case versionsAreOfTheFuture, versionsAreDatedWhenListed, versionsAreDatedWhenReplaced, versionsAreOf1970
    case earlierMetadataIsLost, earlierMetadataIsTheNewest, currentVersionHasNoMetadata, removalHasMetadata
    case versionLookUpReturnsTheNewest, versionLookUpIgnoresTheName, versionLookUpThrowsIfAbsent
    case removalHasAValue, versionsEndWithTheSecret
    case itemsIncludeRemoved, lookUpFallsBackToHistory, removedIsRemovedAgain
    case restoredVersionIsMoved, storeAfterRemovalForgetsHistory
    case removedIsUnsorted, removedIgnoresService, removedByPrefix, removedIsDatedWhenListed
    case removedStaysAfterAStore, erasedIsListedAsRemoved
    case eraseKeepsVersions, eraseKeepsTheSecret, eraseIgnoresRemoved, eraseAlwaysSaysTrue, eraseDropsOthers
    case eraseIsNotUndone, transactionsHaveNoVersions
    case ignoresTheHistoryOfStores, ignoresTheHistoryOfRemovals, forgetsThatASecretHasNoHistory
    case limitIsNotKept, limitIsOffByOne, limitCountsRemovals, lowerLimitDropsLater, lowerLimitHidesVersions
    case noneKeepsOne, noneStillListsRemoved
    case transactionMakesOneVersion, givenUpTransactionsLeaveVersions, nestedVersionsAreAllowed
    case tellsNotOfStoresAfterRemovals, tellsNotOfErasures
  }
}
