/// What a helper answers to a request.
public enum RemoteAnswer: Equatable, Sendable {
  /// The answers to a request to read. `version` names a state of the object.
  case same
  case absent
  case whole(version: String, [UInt8])
  /// The object is the known one with these pieces written over it and behind it, in this order.
  case changed(version: String, [RemoteMessage.Piece])
  /// A change was made, and will not be lost by a failure that the engine promises to survive. After `confirm`,
  /// everything that can be read is as safe.
  case done(version: String)
  /// The object is in another state than the known one. The request changed nothing.
  case refused
  /// The change may have been made, or may still be.
  case unknown(RemoteFailure)
  case failed(RemoteFailure)
  /// The answers to `describe`: lines for a person.
  case text(String)
}

/// Why a helper cannot do what was asked.
public struct RemoteFailure: Error, Equatable, Sendable {
  /// What a program can do about a failure.
  public enum Kind: String, Sendable {
    /// The engine cannot be reached, or does not answer in time.
    case unreachable
    /// Others use the engine or the object, or it has too much to do.
    case busy
    /// The engine does not let this user do it.
    case denied
    /// The URL, the credentials or the engine is not set up correctly.
    case configuration
    /// The object is too large for the engine.
    case large
    /// The engine failed, for example because its disk is full.
    case failed
  }
  public let kind: Kind
  /// One sentence, and then perhaps one or more that say what to do. Never a secret.
  public let reason: String
  public let advice: String?

  public init(_ kind: Kind, _ reason: String, advice: String? = nil) {
    (self.kind, self.reason, self.advice) = (kind, reason, advice)
  }
}

/// What a program asks a helper.
public enum RemoteRequest: Equatable, Sendable {
  /// Reads what is newer than the version `known`. With `queueing`, first waits until it is this writer's turn, if the
  /// engine can do that; the next change ends the turn.
  case read(known: String?, queueing: Bool)
  /// Replaces the version `over`, or makes the object if that is `nil`. `pieces` are written over the known bytes and
  /// behind them. Without a known version, or if `isWhole`, the one piece is the whole object. `id` names this change:
  /// 32 hexadecimal digits.
  case publish(over: String?, id: String, isWhole: Bool, [RemoteMessage.Piece])
  /// Waits until what can be read now will not be lost.
  case confirm
  /// Removes the object if it has that version. Only for objects of `secret remote check`.
  case remove(version: String)
  /// What a person should know of the engine: its program and version, and what this user may do.
  case describe
}

extension RemoteRequest {
  package var message: RemoteMessage {
    switch self {
    case .read(let known, let queueing): RemoteMessage(["read", known ?? "-", queueing ? "queue" : "now"])
    case .publish(let over, let id, let isWhole, let pieces):
      RemoteMessage(["publish", over ?? "-", id, isWhole ? "whole" : "append"], pieces)
    case .confirm: RemoteMessage(["confirm"])
    case .remove(let version): RemoteMessage(["remove", version])
    case .describe: RemoteMessage(["describe"])
    }
  }

  /// Returns `nil` if the message is no request.
  package init?(_ message: RemoteMessage) {
    func version(_ word: String) -> String? { word == "-" ? nil : word }
    let (words, pieces) = (message.words, message.pieces)
    switch (words[0], words.count) {
    case ("read", 3) where pieces.isEmpty: self = .read(known: version(words[1]), queueing: words[2] == "queue")
    case ("publish", 4) where words[3] == "whole" ? pieces.count == 1 : pieces.count == 2 && words[1] != "-":
      self = .publish(over: version(words[1]), id: words[2], isWhole: words[3] == "whole", pieces)
    case ("confirm", 1): self = .confirm
    case ("remove", 2): self = .remove(version: words[1])
    case ("describe", 1): self = .describe
    default: return nil
    }
  }
}

extension RemoteAnswer {
  /// The message for the answer. `time` is the engine's time in microseconds since 1970.
  package func message(time: Int) -> RemoteMessage {
    func text(_ words: [String], _ lines: [String?]) -> RemoteMessage {
      RemoteMessage(words, [.init(Array(lines.compactMap(\.self).joined(separator: "\n").utf8.prefix(4096)))])
    }
    let time = String(time)
    return switch self {
    case .same: RemoteMessage(["same", time])
    case .absent: RemoteMessage(["absent", time])
    case .whole(let version, let bytes): RemoteMessage(["whole", time, version], [.init(bytes)])
    case .changed(let version, let pieces): RemoteMessage(["changed", time, version], pieces)
    case .done(let version): RemoteMessage(["done", time, version])
    case .refused: RemoteMessage(["refused", time])
    case .unknown(let failure): text(["unknown", time, failure.kind.rawValue], [failure.reason, failure.advice])
    case .failed(let failure): text(["failed", time, failure.kind.rawValue], [failure.reason, failure.advice])
    case .text(let lines): text(["text", time], [lines])
    }
  }

  /// The answer in a message, and the engine's time. Returns `nil` if the message is no answer.
  package static func parse(_ message: RemoteMessage) -> (answer: RemoteAnswer, time: Int)? {
    let (words, pieces) = (message.words, message.pieces)
    guard words.count > 1, let time = Int(words[1]), time >= 0, words.dropFirst(2).allSatisfy({ $0.utf8.count <= 200 })
    else { return nil }
    var failure: RemoteFailure? {
      guard words.count == 3, pieces.count == 1, let kind = RemoteFailure.Kind(rawValue: words[2]) else { return nil }
      let lines = printable(Array(pieces[0].bytes.prefix(1000))).split(separator: "\n")
      guard let first = lines.first else { return nil }
      let advice = lines.dropFirst().joined(separator: " ")
      return RemoteFailure(
        kind, first.hasSuffix(".") ? String(first) : "\(first).", advice: advice.isEmpty ? nil : advice)
    }
    let answer: RemoteAnswer?
    switch (words[0], words.count, pieces.count) {
    case ("same", 2, 0): answer = .same
    case ("absent", 2, 0): answer = .absent
    case ("whole", 3, 1) where pieces[0].offset == 0: answer = .whole(version: words[2], pieces[0].bytes)
    case ("changed", 3, 1...4): answer = .changed(version: words[2], pieces)
    case ("done", 3, 0): answer = .done(version: words[2])
    case ("refused", 2, 0): answer = .refused
    case ("unknown", _, _): answer = failure.map { .unknown($0) }
    case ("failed", _, _): answer = failure.map { .failed($0) }
    case ("text", 2, 1): answer = .text(printable(Array(pieces[0].bytes.prefix(1000))))
    default: answer = nil
    }
    return answer.map { ($0, time) }
  }

  /// The text without control characters: a person sees it.
  private static func printable(_ bytes: [UInt8]) -> String {
    let isKept: (Unicode.Scalar) -> Bool = { $0 == "\n" || $0.properties.generalCategory != .control }
    return String(String(decoding: bytes, as: UTF8.self).unicodeScalars.filter(isKept))
  }
}
