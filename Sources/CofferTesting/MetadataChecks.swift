internal import CofferCore
internal import FoundationEssentials

extension ConformanceCheck {
  static let metadataChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "times-are-set") { context in
      let identifier = try context.identifier("timed")
      try context.store("1", identifier)
      let metadata = try context.metadata(identifier)
      try context.expect(metadata.created != nil, "a secret that was stored has no time of creation")
      try context.expect(metadata.modified != nil, "a secret that was stored has no time of modification")
    },

    ConformanceCheck(name: "label-is-kept", omittedBy: .labels) { context in
      let identifier = try context.identifier("labelled")
      for label in ["A label", "Zürich/100 %\n\"x\"", "cafe\u{301}", String(repeating: "l", count: 1024)] {
        try context.store("1", identifier, SecretMetadata(label: label))
        let found = try context.metadata(identifier).label ?? ""
        try context.expect(found.utf8.elementsEqual(label.utf8), "a label is not the one that was stored")
      }
    },

    ConformanceCheck(name: "expiry-is-kept", omittedBy: .expiry) { context in
      let identifier = try context.identifier("expiring")
      for seconds in [4_102_444_800, 1_700_000_001, 1, 0] {
        try context.store(
          "1",
          identifier,
          SecretMetadata(expires: Date(timeIntervalSince1970: Double(seconds)))
        )
        let found = try context.metadata(identifier).expires?.timeIntervalSince1970
        try context.expect(
          found.map { Int($0.rounded(.down)) } == seconds,
          "an expiry of \(seconds) is not kept to the second"
        )
        try context.expectValue("1", identifier, "whatever its expiry")
      }
    },

    ConformanceCheck(name: "attributes-are-kept", omittedBy: .attributes) { context in
      let identifier = try context.identifier("with attributes")
      // Names that a backend may be tempted to use itself, and the most of everything.
      let own = [
        "service", "account", "label", "created", "modified", "expires", "xdg:schema", "server", "user",
      ]
      let many = (0..<SecretMetadata.maximumAttributeCount).map { index in
        let name = "\(index)-" + String(repeating: "n", count: SecretMetadata.maximumAttributeNameLength)
        return (
          String(name.prefix(SecretMetadata.maximumAttributeNameLength)),
          String(repeating: "v", count: SecretMetadata.maximumAttributeValueLength)
        )
      }
      for attributes in [
        [:], ["name": "value", "empty": "", "spaces and/slash": "a\nb=c", "имя": "значение"],
        Dictionary(uniqueKeysWithValues: own.map { ($0, "other") }), Dictionary(uniqueKeysWithValues: many),
      ] {
        try context.store("1", identifier, SecretMetadata(attributes: attributes))
        let found = try context.metadata(identifier).attributes
        try context.expect(
          found == attributes,
          "\(attributes.count) attributes are not the ones that were stored"
        )
        try context.expectValue("1", identifier, "with \(attributes.count) attributes")
        let listed = try context.backend.items(inService: context.service).map(\.identifier)
        try context.expect(
          listed == [identifier],
          "with \(attributes.count) attributes it is not listed once"
        )
      }
    },

    ConformanceCheck(name: "creation-time-can-be-given", omittedBy: .givenCreationTime) { context in
      let identifier = try context.identifier("imported")
      let created = Date(timeIntervalSince1970: 1_000_000_000)
      try context.store("1", identifier, SecretMetadata(created: created))
      try context.expect(
        context.isSameSecond(try context.metadata(identifier).created, created),
        "a time of creation that was given is not kept"
      )
    },

    ConformanceCheck(name: "overwrite-keeps-creation-time", omittedBy: .creationTime) { context in
      let identifier = try context.identifier("overwritten")
      try context.store("1", identifier, SecretMetadata(created: Date(timeIntervalSince1970: 1_000_000_000)))
      let first = try context.metadata(identifier).created
      for metadata in [
        nil, SecretMetadata(), SecretMetadata(created: Date(timeIntervalSince1970: 2_000_000_000)),
      ] {
        try context.store("2", identifier, metadata)
        try context.expect(
          context.isSameSecond(try context.metadata(identifier).created, first),
          "the time of creation changed when the secret was overwritten"
        )
      }
    },

    ConformanceCheck(name: "overwrite-without-metadata-keeps-it") { context in
      let identifier = try context.identifier("kept")
      try context.store("1", identifier, context.sample)
      try context.store("2", identifier)
      try context.expectValue("2", identifier, "after it was overwritten without metadata")
      try context.expectMetadata(
        context.sample,
        try context.metadata(identifier),
        "overwriting without metadata"
      )
    },

    ConformanceCheck(name: "overwrite-with-metadata-replaces-it") { context in
      let identifier = try context.identifier("replaced")
      try context.store("1", identifier, context.sample)
      try context.store("2", identifier, SecretMetadata(attributes: ["new": "1"]))
      let expected = SecretMetadata(attributes: ["new": "1"])
      let found = try context.metadata(identifier)
      try context.expectMetadata(expected, found, "overwriting with other metadata")
      try context.expect(
        context.sample.label == nil || found.label != context.sample.label,
        "a label is still there after it was overwritten with none"
      )
    },

    ConformanceCheck(name: "remove-forgets-metadata") { context in
      let identifier = try context.identifier("forgotten")
      try context.store("1", identifier, context.sample)
      try context.backend.remove(identifier)
      try context.expect(
        try context.backend.item(identifier) == nil,
        "item(_:) knows a secret that was removed"
      )
      try context.store("2", identifier)
      let found = try context.metadata(identifier)
      try context.expect(
        found.attributes.isEmpty && found.expires == nil
          && (context.sample.label == nil || found.label != context.sample.label),
        "a new secret has the metadata of one that was removed"
      )
    },

    ConformanceCheck(name: "metadata-out-of-bounds-is-refused") { context in
      let (fresh, existing) = (try context.identifier("fresh"), try context.identifier("existing"))
      try context.store("before", existing)
      let long = String(repeating: "x", count: 1025)
      let tooMany = Dictionary(uniqueKeysWithValues: (0...32).map { ("\($0)", "") })
      for metadata in [
        SecretMetadata(label: long), SecretMetadata(label: "a\0b"), SecretMetadata(attributes: ["": "x"]),
        SecretMetadata(attributes: [long: "x"]), SecretMetadata(attributes: ["x": long]),
        SecretMetadata(attributes: ["x": "a\0b"]), SecretMetadata(attributes: tooMany),
      ] {
        for identifier in [fresh, existing] {
          try context.expectError([.invalidMetadata], from: "storing with metadata out of bounds") {
            () throws(SecretError) in
            try context.backend.store(SecretBytes(copying: "after"), for: identifier, metadata: metadata)
          }
        }
        try context.expectValue(nil, fresh, "after metadata out of bounds was refused")
        try context.expectValue("before", existing, "after metadata out of bounds was refused")
      }
    },
  ]
}

extension ConformanceContext {
  /// Metadata with everything in it that the backend is said to keep.
  var sample: SecretMetadata {
    let omissions = options.omissions
    return SecretMetadata(
      label: omissions.contains(.labels) ? nil : "A label of its own",
      expires: omissions.contains(.expiry) ? nil : Date(timeIntervalSince1970: 2_000_000_000),
      attributes: omissions.contains(.attributes) ? [:] : ["environment": "staging", "owner": "cafe\u{301}"]
    )
  }

  func metadata(_ identifier: SecretIdentifier) throws -> SecretMetadata {
    guard let item = try backend.item(identifier) else {
      throw Expectation("item(_:) knows nothing of a secret that was stored")
    }
    return item.metadata
  }

  func isSameSecond(_ one: Date?, _ other: Date?) -> Bool {
    one.map { Int($0.timeIntervalSince1970.rounded(.down)) }
      == other.map { Int($0.timeIntervalSince1970.rounded(.down)) }
  }

  /// Compares label where one is expected, expiry to the second, and attributes.
  func expectMetadata(_ expected: SecretMetadata, _ found: SecretMetadata, _ call: String) throws {
    // A keyring gives a label of its own to an item without one.
    if let label = expected.label {
      try expect(
        (found.label ?? "").utf8.elementsEqual(label.utf8),
        "\(call) did not leave the label that it should"
      )
    }
    try expect(
      isSameSecond(found.expires, expected.expires),
      "\(call) did not leave the expiry that it should"
    )
    try expect(found.attributes == expected.attributes, "\(call) did not leave the attributes that it should")
  }
}
