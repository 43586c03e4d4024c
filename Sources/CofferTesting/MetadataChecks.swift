internal import CofferCore
internal import FoundationEssentials

extension ConformanceCheck {
  static let metadataChecks: [ConformanceCheck] = [
    ConformanceCheck(name: "times-are-set") { context in
      let identifier = try context.identifier("timed")
      try context.store("1", identifier)
      let metadata = try context.metadata(identifier)
      for (time, name) in [(metadata.created, "created"), (metadata.modified, "modified")] {
        try context.expect(time != nil, "“\(name)”, after a store", expected: "a time", found: "nil")
      }
    },

    ConformanceCheck(name: "label-is-kept", omittedBy: .labels) { context in
      let identifier = try context.identifier("labelled")
      for label in ["A label", "Zürich/100 %\n\"x\"", "cafe\u{301}", String(repeating: "l", count: 1024)] {
        try context.store("1", identifier, SecretMetadata(label: label))
        try context.expectLabel(label, try context.metadata(identifier), "after a store with a label")
      }
    },

    ConformanceCheck(name: "expiry-is-kept", omittedBy: .expiry) { context in
      let identifier = try context.identifier("expiring")
      for seconds in [4_102_444_800, 1_700_000_001, 1, 0] {
        let expiry = Date(timeIntervalSince1970: Double(seconds))
        try context.store("1", identifier, SecretMetadata(expires: expiry))
        let situation = "after a store with an expiry of \(seconds) seconds since 1970"
        try context.expectSecond(expiry, try context.metadata(identifier).expires, situation)
        try context.expectValue("1", identifier, situation)
      }
    },

    ConformanceCheck(name: "attributes-are-kept", omittedBy: .attributes) { context in
      let identifier = try context.identifier("with attributes")
      // Names that a backend may use internally, and attributes at every limit.
      let internalNames = [
        "service", "account", "label", "created", "modified", "expires", "xdg:schema", "server", "user",
      ]
      let atLimits = (0..<SecretMetadata.maximumAttributeCount).map { index in
        let name = "\(index)-" + String(repeating: "n", count: SecretMetadata.maximumAttributeNameLength)
        return (
          String(name.prefix(SecretMetadata.maximumAttributeNameLength)),
          String(repeating: "v", count: SecretMetadata.maximumAttributeValueLength)
        )
      }
      for attributes in [
        [:], ["name": "value", "empty": "", "spaces and/slash": "a\nb=c", "имя": "значение"],
        Dictionary(uniqueKeysWithValues: internalNames.map { ($0, "other") }),
        Dictionary(uniqueKeysWithValues: atLimits),
      ] {
        let situation = "after a store with \(attributes.count) attributes"
        try context.store("1", identifier, SecretMetadata(attributes: attributes))
        try context.expectAttributes(attributes, try context.metadata(identifier), situation)
        try context.expectValue("1", identifier, situation)
        try context.expectListed(["with attributes"], situation)
      }
    },

    ConformanceCheck(name: "creation-time-can-be-given", omittedBy: .givenCreationTime) { context in
      let identifier = try context.identifier("imported")
      let created = Date(timeIntervalSince1970: 1_000_000_000)
      var metadata = SecretMetadata()
      metadata.created = created
      try context.store("1", identifier, metadata)
      try context.expectSecond(
        created, try context.metadata(identifier).created, "“created”, after a store that set it")
    },

    ConformanceCheck(name: "overwrite-keeps-creation-time", omittedBy: .creationTime) { context in
      let identifier = try context.identifier("overwritten")
      var (first, second) = (SecretMetadata(), SecretMetadata())
      first.created = Date(timeIntervalSince1970: 1_000_000_000)
      second.created = Date(timeIntervalSince1970: 2_000_000_000)
      try context.store("1", identifier, first)
      let created = try context.metadata(identifier).created
      for metadata in [nil, SecretMetadata(), second] {
        try context.store("2", identifier, metadata)
        try context.expectSecond(
          created, try context.metadata(identifier).created, "“created”, after an overwrite")
      }
    },

    ConformanceCheck(name: "overwrite-without-metadata-keeps-it") { context in
      let identifier = try context.identifier("kept")
      try context.store("1", identifier, context.sample)
      try context.store("2", identifier)
      let situation = "after an overwrite without metadata"
      try context.expectValue("2", identifier, situation)
      try context.expectMetadata(context.sample, identifier, situation)
    },

    ConformanceCheck(name: "a-new-value-has-its-own-expiry", omittedBy: .expiry) { context in
      let identifier = try context.identifier("new value")
      let later = Date(timeIntervalSince1970: 2_100_000_000)
      for expires in [nil, later] {
        try context.store("1", identifier, context.sample)
        try context.backend.store(SecretBytes("2"), for: identifier, metadata: .newValue(expires: expires))
        var expected = context.sample
        expected.expires = expires
        try context.expectMetadata(expected, identifier, "after a store of a new value")
      }
    },

    ConformanceCheck(name: "overwrite-with-metadata-replaces-it") { context in
      let identifier = try context.identifier("replaced")
      let metadata = context.other
      try context.store("1", identifier, context.sample)
      try context.store("2", identifier, metadata)
      try context.expectMetadata(metadata, identifier, "after an overwrite with other metadata")
      try context.expectNoSampleLabel(identifier, "after an overwrite with metadata without a label")
    },

    ConformanceCheck(name: "remove-forgets-metadata") { context in
      let identifier = try context.identifier("forgotten")
      try context.store("1", identifier, context.sample)
      try context.backend.remove(identifier)
      try context.expect(try context.backend.item(identifier), toBe: nil, "item, after a removal")
      try context.store("2", identifier)
      let situation = "after a removal and a store without metadata"
      try context.expectMetadata(SecretMetadata(), identifier, situation)
      try context.expectNoSampleLabel(identifier, situation)
    },

    ConformanceCheck(name: "invalid-metadata-is-refused") { context in
      let (new, existing) = try context.identifiers("new", "existing")
      try context.store("before", existing)
      let long = String(repeating: "x", count: 1025)
      let tooMany = Dictionary(uniqueKeysWithValues: (0...32).map { ("\($0)", "") })
      for metadata in [
        SecretMetadata(label: long), SecretMetadata(label: "a\0b"), SecretMetadata(attributes: ["": "x"]),
        SecretMetadata(attributes: [long: "x"]), SecretMetadata(attributes: ["x": long]),
        SecretMetadata(attributes: ["x": "a\0b"]), SecretMetadata(attributes: tooMany),
      ] {
        for identifier in [new, existing] {
          try context.expectError([.invalidMetadata], "a store with invalid metadata") {
            try context.store("after", identifier, metadata)
          }
        }
        try context.expectValue("before", existing, "after an overwrite with invalid metadata")
        try context.expectValue(nil, new, "after a store with invalid metadata")
      }
    },
  ]
}

extension ConformanceContext {
  /// Metadata with every part that the backend keeps.
  var sample: SecretMetadata {
    let omissions = options.omissions
    return SecretMetadata(
      label: omissions.contains(.labels) ? nil : "A label of its own",
      expires: omissions.contains(.expiry) ? nil : Date(timeIntervalSince1970: 2_000_000_000),
      attributes: omissions.contains(.attributes) ? [:] : ["environment": "staging", "owner": "cafe\u{301}"]
    )
  }

  /// Other metadata, without a label and an expiry.
  var other: SecretMetadata { SecretMetadata(attributes: sample.attributes.isEmpty ? [:] : ["other": "1"]) }

  func metadata(_ identifier: SecretIdentifier) throws -> SecretMetadata {
    guard let item = try backend.item(identifier) else {
      throw Expectation("item, after a store", expected: "an item", found: "nil")
    }
    return item.metadata
  }

  /// Compares the metadata of the current version as ``expectMetadata(_:in:_:)`` does.
  func expectMetadata(
    _ expected: SecretMetadata, _ identifier: SecretIdentifier, _ situation: String
  ) throws {
    try expectMetadata(expected, in: try metadata(identifier), situation)
  }

  /// Compares the label if one is expected, the expiry to the second, and the attributes.
  func expectMetadata(_ expected: SecretMetadata, in found: SecretMetadata, _ situation: String) throws {
    // A keyring sets a label of its own on an item without one.
    if let label = expected.label { try expectLabel(label, found, situation) }
    try expectSecond(expected.expires, found.expires, "“expires”, \(situation)")
    try expectAttributes(expected.attributes, found, situation)
  }

  func expectSecond(_ expected: Date?, _ found: Date?, _ situation: String) throws {
    func text(_ date: Date?) -> String {
      date.map { "\(Int($0.timeIntervalSince1970.rounded(.down))) seconds since 1970" } ?? "nil"
    }
    try expect(text(found) == text(expected), situation, expected: text(expected), found: text(found))
  }

  fileprivate func expectLabel(_ expected: String, _ found: SecretMetadata, _ situation: String) throws {
    let label = found.label ?? ""
    try expect(
      label.utf8.elementsEqual(expected.utf8), situation, expected: "a label of \(expected.utf8.count) bytes",
      found: found.label == nil ? "no label" : "a different label of \(label.utf8.count) bytes")
  }

  fileprivate func expectNoSampleLabel(_ identifier: SecretIdentifier, _ situation: String) throws {
    guard let old = sample.label else { return }
    try expect(
      try metadata(identifier).label != old, situation, expected: "another label or none",
      found: "the old label")
  }

  fileprivate func expectAttributes(
    _ expected: [String: String], _ found: SecretMetadata, _ situation: String
  ) throws {
    try expect(
      found.attributes == expected, situation, expected: "the \(expected.count) attributes of the store",
      found: "\(found.attributes.count) attributes that differ from them")
  }
}
