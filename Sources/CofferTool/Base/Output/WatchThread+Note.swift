internal import CofferSystem

extension WatchThread {
  /// Says that changes are noticed late, if the user has no inotify instance left.
  static func noteMissingEvents() {
    if shared.lacksEvents {
      note(
        "secret: inotify has no instance left (fs.inotify.max_user_instances), so that a change is noticed up to two seconds later."
      )
    }
  }
}
