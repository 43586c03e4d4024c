internal import CofferCore
internal import FoundationEssentials

extension Check {
  static let metadataChecks: [Check] = [
    Check(name: "times-are-set") { context, _, a in
      try context.store("1", a)
      let metadata = try context.metadata(a)
      for (time, name) in [(metadata.created, "created"), (metadata.modified, "modified")] {
        try context.expect(time != nil, "“\(name)”, after a store", expected: "a time", found: "nil")
      }
    },

    Check(name: "label-is-kept", omittedBy: .labels) { context, _, a in
      for label in ["A label", "Zürich/100 %\n\"x\"", "cafe\u{301}", String(repeating: "l", count: 1024)] {
        try context.store("1", a, SecretMetadata(label: label))
        try context.expectLabel(label, try context.metadata(a), "after a store with a label")
      }
    },

    Check(name: "expiry-is-kept", omittedBy: .expiry) { context, _, a in
      for seconds in [4_102_444_800, 1_700_000_001, 1, 0] {
        let expiry = Date(timeIntervalSince1970: Double(seconds))
        try context.store("1", a, SecretMetadata(expires: expiry))
        let situation = "after a store with an expiry of \(seconds) seconds since 1970"
        try context.expectSecond(expiry, try context.metadata(a).expires, situation)
        try context.expectValue("1", a, situation)
      }
    },

    Check(name: "attributes-are-kept", omittedBy: .attributes) { context, _, a in
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
        try context.store("1", a, SecretMetadata(attributes: attributes))
        try context.expectAttributes(attributes, try context.metadata(a), situation)
        try context.expectValue("1", a, situation)
        try context.expectListed(["a"], situation)
      }
    },

    Check(name: "creation-time-can-be-given", omittedBy: .creationTime) { context, _, a in
      let created = Date(timeIntervalSince1970: 1_000_000_000)
      var metadata = SecretMetadata()
      metadata.created = created
      try context.store("1", a, metadata)
      try context.expectSecond(created, try context.metadata(a).created, "“created”, after a store that set it")
    },

    Check(name: "overwrite-keeps-creation-time", omittedBy: .creationTime) { context, _, a in
      var (first, second) = (SecretMetadata(), SecretMetadata())
      first.created = Date(timeIntervalSince1970: 1_000_000_000)
      second.created = Date(timeIntervalSince1970: 2_000_000_000)
      try context.store("1", a, first)
      let created = try context.metadata(a).created
      for metadata in [nil, SecretMetadata(), second] {
        try context.store("2", a, metadata)
        try context.expectSecond(created, try context.metadata(a).created, "“created”, after an overwrite")
      }
    },

    Check(name: "overwrite-without-metadata-keeps-it") { context, _, a in
      try context.store("1", a, context.sample)
      try context.store("2", a)
      let situation = "after an overwrite without metadata"
      try context.expectValue("2", a, situation)
      try context.expectMetadata(context.sample, a, situation)
    },

    Check(name: "a-new-value-has-its-own-expiry", omittedBy: .expiry) { context, backend, a in
      let later = Date(timeIntervalSince1970: 2_100_000_000)
      for expires in [nil, later] {
        try context.store("1", a, context.sample)
        try backend.store(SecretBytes("2"), for: a, metadata: .newValue(expires: expires))
        var expected = context.sample
        expected.expires = expires
        try context.expectMetadata(expected, a, "after a store of a new value")
      }
    },

    Check(name: "overwrite-with-metadata-replaces-it") { context, _, a in
      let metadata = context.other
      try context.store("1", a, context.sample)
      try context.store("2", a, metadata)
      try context.expectMetadata(metadata, a, "after an overwrite with other metadata")
      try context.expectNoSampleLabel(a, "after an overwrite with metadata without a label")
    },

    Check(name: "remove-forgets-metadata") { context, backend, a in
      try context.store("1", a, context.sample)
      try backend.remove(a)
      try context.expect(try backend.item(a), toBe: nil, "item, after a removal")
      try context.store("2", a)
      let situation = "after a removal and a store without metadata"
      try context.expectMetadata(SecretMetadata(), a, situation)
      try context.expectNoSampleLabel(a, situation)
    },

    Check(name: "invalid-metadata-is-refused") { context, _, _ in
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
    if let item = try backend.item(identifier) { return item.metadata }
    throw Expectation("item, after a store", expected: "an item", found: "nil")
  }

  /// Compares the metadata of the current version as ``expectMetadata(_:in:_:)`` does.
  func expectMetadata(_ expected: SecretMetadata, _ identifier: SecretIdentifier, _ situation: String) throws {
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

  fileprivate func expectAttributes(_ expected: [String: String], _ found: SecretMetadata, _ situation: String) throws {
    try expect(
      found.attributes == expected, situation, expected: "the \(expected.count) attributes of the store",
      found: "\(found.attributes.count) attributes that differ from them")
  }
}
