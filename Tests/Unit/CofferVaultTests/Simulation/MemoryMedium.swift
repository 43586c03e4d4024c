import CofferCore
import CofferSystem
import CofferVault
import Synchronization

/// A medium in memory without locks: a change is refused if another one came first. A test can also have the next ones
/// refused, run something before them, or have them end without a confirmation. Thread-safe.
final class MemoryMedium: VaultMedium {
  /// What happens when the next change is published.
  enum Event: @unchecked Sendable {  // a test publishes on one thread
    case refusal
    case unconfirmed
    /// Runs the closure first. Another change that it makes takes precedence.
    case interruption(() -> Void)
  }

  private struct State {
    var bytes: [UInt8]?
    /// The number of changes so far.
    var version = 0
    var events: [Event] = []
    var leases: Set<Int64> = []
    var watchers: [ObjectIdentifier: @Sendable () -> Void] = [:]
  }

  private let state = Mutex(State())
  let path = "memory"

  /// The bytes of the file.
  var bytes: [UInt8]? { state.withLock { $0.bytes } }
  /// The events that have not happened yet. They happen in their order.
  var events: [Event] {
    get { state.withLock { $0.events } }
    set { state.withLock { $0.events = newValue } }
  }

  func open() throws(SecretError) -> any MediumFile {
    let (bytes, version) = state.withLock { ($0.bytes, $0.version) }
    guard let bytes else { throw SecretError(.vaultNotFound, "There is no vault.", advice: "Make one.") }
    return MemoryFile(bytes, version, self)
  }

  func requireVacant() throws(SecretError) {
    if bytes != nil { throw SecretError(.alreadyExists, "There is a vault.", advice: "Use it.") }
  }

  func newFile() throws(SecretError) -> any MediumDraft {
    try requireVacant()
    return MemoryDraft(after: 0, self)
  }

  func isSamePlace(as other: any VaultMedium) -> Bool { other === self }

  func watch(_ onChange: @escaping @Sendable () -> Void) throws(SecretError) -> any DirectoryWatch {
    let watch = Watch(self)
    state.withLock { $0.watchers[ObjectIdentifier(watch)] = onChange }
    return watch
  }

  private final class Watch: DirectoryWatch {
    private let medium: MemoryMedium
    let isAlive = true
    init(_ medium: MemoryMedium) { self.medium = medium }
    deinit { medium.state.withLock { _ = $0.watchers.removeValue(forKey: ObjectIdentifier(self)) } }
  }

  /// Applies `change` if the file has the given version. Returns the new file and its version as well.
  fileprivate func publish(
    after version: Int, _ change: ([UInt8]) throws(SecretError) -> [UInt8]
  ) throws(SecretError) -> (Publication, [UInt8], Int)? {
    let event = state.withLock { $0.events.isEmpty ? nil : $0.events.removeFirst() }
    if case .refusal = event { return nil }
    if case .interruption(let run) = event { run() }
    let (old, found) = state.withLock { ($0.bytes ?? [], $0.version) }
    guard found == version else { return nil }
    let new = try change(old)
    let watchers = state.withLock { state in
      guard state.version == version else { return nil as [@Sendable () -> Void]? }
      (state.bytes, state.version) = (new, version + 1)
      return Array(state.watchers.values)
    }
    guard let watchers else { return nil }
    watchers.forEach { $0() }
    if case .unconfirmed = event {
      return (.unconfirmed(SecretError(.io, "The line broke.", advice: "Try again.")), new, version + 1)
    }
    return (.done, new, version + 1)
  }

  fileprivate func tryLease(_ number: Int64) -> Lease? {
    state.withLock { $0.leases.insert(number).inserted } ? Lease(number, self) : nil
  }

  fileprivate final class Lease: Sendable {
    private let (number, medium): (Int64, MemoryMedium)
    init(_ number: Int64, _ medium: MemoryMedium) { (self.number, self.medium) = (number, medium) }
    deinit { medium.state.withLock { _ = $0.leases.remove(number) } }
  }

  fileprivate func isAt(_ version: Int) -> Bool { state.withLock { $0.version == version } }
}

private final class MemoryFile: MediumFile {
  private let medium: MemoryMedium
  private let content: Mutex<(bytes: [UInt8], version: Int)>
  let names = ["/memory"]
  let isWritable = true
  let isReadableByOthers = false
  let mustBeReplaced = false
  var path: String { medium.path }

  init(_ bytes: [UInt8], _ version: Int, _ medium: MemoryMedium) {
    self.medium = medium
    content = Mutex((bytes, version))
  }

  private var bytes: [UInt8] { content.withLock { $0.bytes } }
  func size() throws(SecretError) -> Int { bytes.count }
  func beginning(_ count: Int) throws(SecretError) -> [UInt8] { Array(bytes.prefix(count)) }

  func read(_ count: Int, at offset: Int) throws(SecretError) -> [UInt8] {
    let bytes = bytes
    guard offset + count <= bytes.count else { throw SecretError(.tampered, "The file is cut short.") }
    return Array(bytes[offset..<offset + count])
  }

  func current() throws(SecretError) -> (any MediumFile)? {
    medium.isAt(content.withLock { $0.version }) ? self : nil
  }
  func prepareForChange(allowingReaders: Bool) throws(SecretError) {}
  func tryLock(exclusive: Bool) throws(SecretError) -> Bool { true }
  func unlock() throws(SecretError) {}
  func tryLease(_ number: Int64) throws(SecretError) -> (any Sendable)? { medium.tryLease(number) }
  func synchronize() throws(SecretError) {}

  func draft() throws(SecretError) -> any MediumDraft {
    MemoryDraft(after: content.withLock { $0.version }, medium)
  }

  func publish(_ appendix: Appendix) throws(SecretError) -> (Publication, any MediumFile) {
    let version = content.withLock { $0.version }
    let published = try medium.publish(after: version) { old throws(SecretError) in
      var new = Array(old.prefix(appendix.offset))
      new += appendix.bytes
      for slot in appendix.slots {
        new.replaceSubrange(slot.offset..<slot.offset + slot.page.count, with: slot.page)
      }
      return new
    }
    guard let (publication, bytes, newVersion) = published else { return (.refused, self) }
    content.withLock { $0 = (bytes, newVersion) }
    return (publication, self)
  }
}

private final class MemoryDraft: MediumDraft {
  private let medium: MemoryMedium
  private let version: Int
  private var bytes: [UInt8] = []

  init(after version: Int, _ medium: MemoryMedium) { (self.version, self.medium) = (version, medium) }

  func write(_ new: [UInt8], at offset: Int) throws(SecretError) {
    if bytes.count < offset + new.count {
      bytes += [UInt8](repeating: 0, count: offset + new.count - bytes.count)
    }
    bytes.replaceSubrange(offset..<offset + new.count, with: new)
  }

  func publish() throws(SecretError) -> Publication {
    try medium.publish(after: version) { _ in bytes }?.0 ?? .refused
  }
}
