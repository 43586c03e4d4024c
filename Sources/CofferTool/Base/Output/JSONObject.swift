/// An object of JSON, without the fields that are `nil`.
struct JSONObject: Encodable, ExpressibleByDictionaryLiteral {
  private struct Field: Encodable {
    let value: any Encodable

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(value)
    }
  }
  private let fields: [String: Field]

  init(dictionaryLiteral fields: (String, (any Encodable)?)...) {
    self.fields = Dictionary(
      uniqueKeysWithValues: fields.compactMap { name, value in value.map { (name, Field(value: $0)) } })
  }

  func encode(to encoder: any Encoder) throws { try fields.encode(to: encoder) }
}
