import Glibc

/// The time of a monotonic clock, in seconds.
func seconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Runs `one` and `other` alternately, so that both see the same noise, and returns the median seconds of each.
func compare(
  rounds: Int, _ one: () throws -> Void, _ other: () throws -> Void
) rethrows -> (one: Double, other: Double) {
  var ones: [Double] = []
  var others: [Double] = []
  for _ in 0..<rounds {
    ones.append(try time(one))
    others.append(try time(other))
  }
  return (median(ones), median(others))
}

func time(_ body: () throws -> Void) rethrows -> Double {
  let start = seconds()
  try body()
  return seconds() - start
}

func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(values.count) }

func percentile99(_ values: [Double]) -> Double { values.sorted()[values.count * 99 / 100] }

/// Prints a row of the table: the work, both times in seconds, their ratio, and whether it is within the budget, if it has
/// one.
func report(_ work: String, _ one: Double, over other: Double, budget: Double?) {
  func microseconds(_ value: Double) -> String {
    let tenths = Int((value * 1e7).rounded())
    return "\(tenths / 10).\(tenths % 10) µs"
  }
  let ratio = (one / other * 100).rounded() / 100
  let verdict = budget.map { ratio <= $0 ? "\($0) | within" : "\($0) | OVER" } ?? "|"
  print("| \(work) | \(microseconds(one)) | \(microseconds(other)) | \(ratio) | \(verdict) |")
}
