/// Finds out whether Observation records the reads of the calling thread, which it does not tell.
///
/// Observation keeps the key paths of recorded reads in a set, and so hashes them, which hashes the arguments of their
/// subscripts. Without a recording it does not touch the key path.
final class ObservationProbe: Hashable {
  /// Only the thread that created the probe uses it before it is recorded, and nobody reads it afterwards.
  private(set) nonisolated(unsafe) var wasRecorded = false

  static func == (left: ObservationProbe, right: ObservationProbe) -> Bool { left === right }

  func hash(into hasher: inout Hasher) {
    if !wasRecorded { wasRecorded = true }
  }
}
