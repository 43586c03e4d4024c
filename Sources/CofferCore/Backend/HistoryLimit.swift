/// How many earlier versions of each secret a backend keeps, and for how long.
public struct HistoryLimit: Hashable, Sendable {
  /// The number of earlier versions of one secret: 0…1000. With 0 a backend keeps none.
  public let versions: Int
  /// The number of days after which an earlier version is dropped, counted from the change that replaced or removed it:
  /// 0…36,500. With 0, age does not matter.
  public let days: Int

  /// The limit of a new vault: 10 versions for 90 days.
  public static let standard = HistoryLimit(uncheckedVersions: 10, days: 90)
  /// No earlier versions.
  public static let none = HistoryLimit(uncheckedVersions: 0, days: 0)

  /// The largest number of earlier versions that a limit can keep.
  package static let maximumVersions = 1000

  /// Creates a limit, or returns `nil` if a number is out of bounds.
  public init?(versions: Int, days: Int) {
    guard (0...Self.maximumVersions).contains(versions), (0...36_500).contains(days) else { return nil }
    self.init(uncheckedVersions: versions, days: days)
  }

  private init(uncheckedVersions versions: Int, days: Int) { (self.versions, self.days) = (versions, days) }
}
