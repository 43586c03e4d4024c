// Part of every mutated module. The declarations of its mutated operators follow.
internal import CMutants

/// `false` if the mutation removes the statement or the branch.
func mutantKeeps(_ number: Int32) -> Bool { !coffer_mutant(number) }

/// The condition, or `true` with the first mutation and `false` with the second.
func mutantCondition(_ number: Int32, _ other: Int32, _ condition: Bool) -> Bool {
  coffer_mutant(number) || (condition && !coffer_mutant(other))
}

func mutantTruth(_ number: Int32, _ value: Bool) -> Bool { coffer_mutant(number) ? !value : value }

/// The value, or one more with the first mutation and one less with the second.
func mutantInteger<T: FixedWidthInteger>(_ number: Int32, _ other: Int32, _ value: T) -> T {
  coffer_mutant(number) ? value &+ 1 : coffer_mutant(other) ? value &- 1 : value
}
func mutantInteger(_ number: Int32, _ other: Int32, _ value: Int) -> Int {
  coffer_mutant(number) ? value &+ 1 : coffer_mutant(other) ? value &- 1 : value
}

func mutantText(_ number: Int32, _ value: String) -> String { coffer_mutant(number) ? value + "x" : value }

func mutantFlag<T: FixedWidthInteger>(_ number: Int32, _ value: T) -> T { coffer_mutant(number) ? 0 : value }

func mutantMin<T: Comparable>(_ number: Int32, _ left: T, _ right: T) -> T {
  coffer_mutant(number) ? max(left, right) : min(left, right)
}
func mutantMax<T: Comparable>(_ number: Int32, _ left: T, _ right: T) -> T {
  coffer_mutant(number) ? min(left, right) : max(left, right)
}

func mutantConstant<T: FixedWidthInteger>(_ number: Int32, _ value: T) -> T {
  coffer_mutant(number) ? 0x5A : value
}
