/// The version of Coffer. The packages and the manual ask the built program for it.
enum Version {
  static let current = "0.1.0"
}
