internal import Coffer
internal import FoundationEssentials

/// The options of `set` and `generate` for a secret's metadata.
struct GivenMetadata {
  private let label: String?
  private let changesExpiry: Bool
  /// The new time, if the expiry changes.
  private var expires: Date?
  private let attributes: [(name: String, value: String)]

  /// Each of `attributes` has the form `name=value`.
  init(label: String? = nil, expires: String?, attributes: [String] = []) throws(Failure) {
    (self.label, changesExpiry) = (label, expires != nil)
    if let text = expires, text != "never" {
      let now = Date()
      guard let moment = TimeText.moment(text, now: now) else {
        throw .usage("“\(text)” is not a valid time for --expires. Write \(TimeText.forms).")
      }
      guard moment > now else {
        throw .usage("“\(text)” of --expires is in the past. Write a later time; a day means its first moment in UTC.")
      }
      self.expires = moment
    }
    self.attributes = try attributes.map { text throws(Failure) in
      guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
        throw .usage("An --attribute has no name or no equals sign. Write --attribute NAME=VALUE.")
      }
      return (String(text[..<equals]), String(text[text.index(after: equals)...]))
    }
  }

  /// The metadata of the secret with these changes. A new value does not keep the expiry of the old one.
  func applied(to existing: SecretMetadata?, isNewValue: Bool) -> SecretMetadata {
    var metadata = existing ?? SecretMetadata()
    if let label { metadata.label = label.isEmpty ? nil : label }
    if changesExpiry || isNewValue { metadata.expires = expires }
    for (name, value) in attributes { metadata.attributes[name] = value }
    return metadata
  }
}
