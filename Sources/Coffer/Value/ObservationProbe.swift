/// Finds out whether Observation records the reads of the calling thread, for which it has no API.
///
/// Observation keeps the key paths of recorded reads in a set. It therefore hashes each key path, including the
/// arguments of its subscripts. Without a recording, it does not hash the key path.
final class ObservationProbe: Hashable {
  /// Only the thread that created the probe uses it before it is recorded, and nobody reads it afterwards.
  private(set) nonisolated(unsafe) var wasRecorded = false

  static func == (left: ObservationProbe, right: ObservationProbe) -> Bool { left === right }

  func hash(into hasher: inout Hasher) {
    if !wasRecorded { wasRecorded = true }
  }
}
