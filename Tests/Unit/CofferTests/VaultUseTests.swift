import Coffer
import CofferCore
import CofferTestSupport
import Foundation
import Synchronization
import Testing

/// Values in a real vault.
@Suite(.timeLimit(.minutes(30))) struct VaultUseTests {
  let directory: TemporaryDirectory
  let path: String
  let key = [UInt8](repeating: 7, count: 32)

  init() throws {
    directory = try TemporaryDirectory(inMemory: true)
    path = directory.file("test.vault")
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
  }

  private func open() -> VaultBackend { VaultBackend(path: path, key: SecretBytes(key)) }

  /// The inotify instances of this process.
  private static func inotifyInstances() throws -> Int {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count { name in
      var buffer = [CChar](repeating: 0, count: 64)
      return readlink("/proc/self/fd/\(name)", &buffer, 63) > 0
        && String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
          == "anon_inode:inotify"
    }
  }

  /// The vault is away for a while, or has other bytes, and then is as it was before.
  @Test(arguments: [false, true]) func aStreamGoesOnWhenTheVaultCanBeReadAgain(_ isDamaged: Bool) async throws {
    let value = SecurelyStoredValue<String>(key: "token", service: "tests", backend: open())
    try await value.set("1")
    let found = Mutex<[Result<String?, SecretError>]>([])
    let task = Task { for await result in value.results { found.withLock { $0.append(result) } } }
    defer { task.cancel() }
    try await eventually("no first value") { found.withLock { $0.last } == .success("1") }
    let (bytes, away) = (try Data(contentsOf: URL(filePath: path)), directory.file("away"))
    if isDamaged {
      try Data("junk".utf8).write(to: URL(filePath: path))
    } else {
      try FileManager.default.moveItem(atPath: path, toPath: away)
    }
    try await eventually("no failure") { if case .failure = found.withLock({ $0.last }) { true } else { false } }
    if isDamaged {
      try bytes.write(to: URL(filePath: path))
      chmod(path, 0o600)
    } else {
      try FileManager.default.moveItem(atPath: away, toPath: path)
    }
    try await eventually("no value again") { found.withLock { $0.last } == .success("1") }
  }

  @Test func manyObservedBackendsShareOneInstanceOfInotify() async throws {
    var streams: [AsyncStream<String?>] = []
    for _ in 0..<60 {
      streams.append(SecurelyStoredValue<String>(key: "token", service: "tests", backend: open()).values)
    }
    #expect(try Self.inotifyInstances() < 20)
    try open().write("changed", "token")
    for stream in streams {
      for await value in stream where value == "changed" { break }
    }
  }

  @Test func manyBackendsThatWereReadAreNotWatched() throws {
    var backends: [VaultBackend] = []
    for _ in 0..<60 {
      let backend = open()
      #expect(
        SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend).wrappedValue == nil)
      backends.append(backend)
    }
    #expect(try Self.inotifyInstances() < 20)
  }

  @Test func aStartedProgramGetsNoDescriptorAndNoLockOfTheVault() async throws {
    let backend = open()
    try backend.write("one", "token")
    let stream = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend).values
    let lease = try #require(try backend.tryLease(identifier("token")))
    let output = Pipe()
    // The program is started while the vault is locked for a change, and runs on.
    let program = try backend.withTransaction { transaction in
      try transaction.store(SecretBytes("two"), for: identifier("token"))
      return try ChildProcess(
        ["sh", "-c", "ls -l /proc/self/fd; echo end; exec sleep 600"], environment: directory.environment(),
        streams: [.null, .descriptor(output.fileHandleForWriting.fileDescriptor)])
    }
    var listing = ""
    while !listing.hasSuffix("end\n") {
      listing += String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
    }
    for name in [directory.path, "inotify", "eventfd"] { #expect(!listing.contains(name), "\(listing)") }
    lease.release()
    var options = VaultOptions()
    options.lockTimeout = .seconds(1)
    let source = VaultCredentialSource("the test") { [key] _ in .key(SecretBytes(key)) }
    let other = VaultBackend(path: path, credentials: [source], options: options)
    // A process that another test starts at this moment holds copies of the locks until it is executed.
    try await eventually("the lease is held") { try other.tryLease(identifier("token")) != nil }
    try await eventually("the vault is locked") {
      thrown { () throws(SecretError) in _ = try other.remove(identifier("token")) } == nil
    }
    #expect(program.status() == nil)
    withExtendedLifetime(stream) {}
  }

  @Test func aNoticeNamesTheValueThatMadeTheChangeAndNobodyForChangesByOthers() async throws {
    let (one, two) = (open(), open())
    var changes = one.changes().makeAsyncIterator()
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: one)
    try await token.set("by the value")
    #expect(await changes.next()?.origin != nil)
    try one.write("by the backend", "token")
    #expect(await changes.next()?.origin == nil)
    try two.write("by another object", "token")
    // The write notices the change of the other object, which it has not made.
    try await SecurelyStoredValue<String>(key: "other", service: "tests", backend: one).set("x")
    #expect(await changes.next()?.origin == nil)
    #expect(await changes.next()?.origin != nil)
  }

  @Test func aVaultThatIsMadeLaterIsObserved() async throws {
    let path = directory.file("sub/later.vault")
    let backend = VaultBackend(path: path, key: SecretBytes(key))
    let token = SecurelyStoredValue<String>(key: "token", service: "tests", backend: backend)
    var values = token.values.makeAsyncIterator()
    #expect(await values.next() == .some(nil))
    #expect(token.lastError?.code == .vaultNotFound)
    try directory.makeDirectory("sub")
    try VaultBackend.create(at: path, credential: .key(SecretBytes(key)))
    try VaultBackend(path: path, key: SecretBytes(key)).write("stored", "token")
    while let value = await values.next(), value != "stored" {}
    #expect(token.lastError == nil)
  }

  @Test func aLeaseHoldsBetweenObjectsAndOnlyForItsSecret() throws {
    let (one, two) = (open(), open())
    let (a, b) = (
      try SecretIdentifier(service: "s", account: "a"), try SecretIdentifier(service: "s", account: "b")
    )
    let lease = try #require(try one.tryLease(a))
    #expect(try one.tryLease(a) == nil)
    #expect(try two.tryLease(a) == nil)
    #expect(try two.tryLease(b) != nil)
    lease.release()
    #expect(try two.tryLease(a) != nil)
    #expect(try directory.mode(of: "test.vault.leases") == 0o600)
    // A lease of a file that was removed meanwhile excludes nobody who comes later.
    let old = try #require(try one.tryLease(a))
    try FileManager.default.removeItem(atPath: path + ".leases")
    #expect(try two.tryLease(a) != nil)
    old.release()
  }

  @Test func aVaultWithoutSourcesAdvisesASource() throws {
    let backend = VaultBackend(path: path, credentials: [])
    let error = try #require(thrown { () throws(SecretError) in try backend.unlock() })
    #expect(error.code == .locked)
    #expect(!error.description.contains("COFFER_"))
    let configuration = BackendConfiguration(environment: directory.environment(["COFFER_VAULT": path]))
    let configured = try #require(
      thrown { () throws(SecretError) in _ = try configuration.backend().items(inService: nil) })
    #expect(configured.code == .locked && configured.description.contains("COFFER_KEY_FILE"))
  }

  @Test func theErrorOfASourceIsThrown() throws {
    let failing = VaultCredentialSource("the key service") { request throws(SecretError) in
      #expect(request.vault.path.hasSuffix("test.vault"))
      throw SecretError(.unavailable, "The key service does not answer.")
    }
    let backend = VaultBackend(path: path, credentials: [failing])
    #expect(thrown { () throws(SecretError) in try backend.unlock() }?.code == .unavailable)
  }
}
