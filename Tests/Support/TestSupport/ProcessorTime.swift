internal import Foundation
internal import Testing

/// The time in seconds that this thread has used a processor: the fields 14 and 15 of /proc/PID/stat, in hundredths.
package func processorTime() throws -> Double {
  let status = try String(contentsOfFile: "/proc/thread-self/stat", encoding: .utf8)
  let fields = try #require(status.split(separator: ")").last).split(separator: " ")
  let (user, system) = (try #require(Double(fields[11])), try #require(Double(fields[12])))
  return (user + system) / 100
}
