import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(30))) struct DescriptorTests {
  private func read(_ descriptor: Descriptor, limit: Int, deadline: ContinuousClock.Instant? = nil)
    throws(SecretError) -> [UInt8]?
  {
    let bytes = try readToEnd(of: descriptor.number, named: "it", limit: limit, deadline: deadline)
    return bytes?.withBytes { bytes in bytes.indices.map { bytes[$0] } }
  }

  @Test(arguments: [0, 1, 4095, 4096, 4097, 16_384, 100_000])
  func everyByteUpToTheLimitIsRead(count: Int) throws {
    let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for limit in [count - 1, count, count + 1] where limit >= 0 {
      #expect(try read(pipe(of: bytes), limit: limit) == (limit < count ? nil : bytes))
    }
  }

  /// The reading end of a pipe that a thread writes `bytes` to and then closes.
  private func pipe(
    of bytes: [UInt8], isNonBlocking: Bool = false, after delay: UInt32 = 20_000
  ) throws -> Descriptor {
    signal(SIGPIPE, SIG_IGN)
    let (reading, writing) = try Descriptor.pipe()
    if isNonBlocking {
      for end in [reading, writing] { #expect(fcntl(end.number, F_SETFL, O_NONBLOCK) == 0) }
    }
    // The thread gets a copy of the number and closes it: a `Descriptor` in the closure could live longer than the
    // thread.
    let number = fcntl(writing.number, F_DUPFD_CLOEXEC, 3)
    try #require(number >= 0)
    Thread {
      if isNonBlocking { usleep(delay) }
      // Fails if the reader has stopped at its limit.
      do throws(FileSystemError) { try writeAll(bytes.span, to: number) } catch {}
      close(number)
    }.start()
    return reading
  }

  @Test func aNonBlockingDescriptorIsWaitedFor() throws {
    let bytes = [UInt8](repeating: 1, count: 1 << 20)
    #expect(try read(pipe(of: bytes, isNonBlocking: true), limit: bytes.count) == bytes)
  }

  @Test(arguments: [Duration.zero, .milliseconds(50), .seconds(-1)])
  func aWriterThatDoesNotCloseTimesOut(timeout: Duration) throws {
    let (reading, writing) = try Descriptor.pipe()
    try writeAll("half".utf8.span, to: writing.number)
    let start = ContinuousClock.now
    let error = thrown { () throws(SecretError) in
      _ = try read(reading, limit: 100, deadline: .now + timeout)
    }
    #expect(error?.code == .timedOut)
    #expect(ContinuousClock.now - start >= timeout)
    withExtendedLifetime(writing) {}
  }

  @Test func failuresNameWhatFailed() throws {
    let reading = thrown { () throws(SecretError) in _ = try readToEnd(of: -1, named: "the input", limit: 1) }
    #expect(reading?.code == .io)
    #expect(reading?.reason == "Could not read the input: Bad file descriptor.")
    let writing = thrown { () throws(SecretError) in try writeAll("x".utf8.span, to: -1, named: "the output")
    }
    #expect(writing?.reason == "Could not write to the output: Bad file descriptor.")
  }

  /// A waiting thread must not poll.
  @Test func aWaitUsesLessThanATenthOfAProcessor() throws {
    func share(_ body: () throws -> Void) throws -> Double {
      let (before, start) = (try processorTime(), ContinuousClock.now)
      try body()
      return try (processorTime() - before) / ((ContinuousClock.now - start) / .seconds(1))
    }
    let input = try pipe(of: [1], isNonBlocking: true, after: 200_000)
    var bytes: [UInt8]?
    let shareOfReading = try share { bytes = try read(input, limit: 10) }
    #expect(shareOfReading < 0.1 && bytes == [1])
    let output = try pipeWithoutReader(after: 200_000)
    var failure: FileSystemError?
    let shareOfWriting = try share {
      do throws(FileSystemError) {
        try writeAll([UInt8](repeating: 1, count: 1 << 20).span, to: output.number)
      } catch { failure = error }
    }
    #expect(shareOfWriting < 0.1 && failure == FileSystemError(EPIPE))
  }

  /// The non-blocking writing end of a pipe that nobody reads, and whose other end is closed after some microseconds.
  private func pipeWithoutReader(after delay: UInt32) throws -> Descriptor {
    signal(SIGPIPE, SIG_IGN)
    let (reading, writing) = try Descriptor.pipe()
    #expect(fcntl(writing.number, F_SETFL, O_NONBLOCK) == 0)
    let number = fcntl(reading.number, F_DUPFD_CLOEXEC, 3)
    try #require(number >= 0)
    Thread {
      usleep(delay)
      close(number)
    }.start()
    return writing
  }

  @Test func aDescriptorIsNeverAStandardStream() throws {
    let (found, numbers, names) = try withoutDescriptors {
      let directory = try Descriptor(opening: "/", O_RDONLY)
      let (reading, writing) = try Descriptor.pipe()
      let found = [directory, reading, writing].map { ($0.number, fcntl($0.number, F_GETFD)) }
      let names = try Path.names(inDirectory: "/proc/thread-self/fd")
      let numbers = (0..<50).filter { fcntl(Int32($0), F_GETFD) != -1 }
      withExtendedLifetime((directory, reading, writing)) {}
      return (found, numbers, names.count)
    }
    #expect(found.allSatisfy { $0.0 > 2 && $0.1 == FD_CLOEXEC }, "\(found)")
    // No other descriptor stays open. There were 5 names, because a directory is open twice while its names are read.
    #expect(Set(found.map(\.0)).count == 3 && Set(numbers) == Set(found.map { Int($0.0) }) && names == 5)
  }

  /// Runs in a process of its own, because the limit applies to every thread.
  @Test func aStandardStreamThatCannotBeMovedIsAnError() async {
    await #expect(processExitsWith: .success) {
      // Other threads, such as libdispatch's, may open a file at any moment.
      let (failure, isOpen) = try withoutDescriptors {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = 3
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 {
          throw TestFailure("setrlimit(2) failed")
        }
        defer {
          limit.rlim_cur = limit.rlim_max
          setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        var failure: Int32 = 0
        do throws(FileSystemError) { _ = try Descriptor(opening: "/dev/null", O_RDONLY) } catch {
          failure = error.number
        }
        return (failure, fcntl(0, F_GETFD) != -1)
      }
      #expect(failure == EINVAL && !isOpen, "\(failure), \(isOpen)")
    }
  }

  @Test func aDescriptorIsClosedWithItsLastReference() throws {
    let directory = try TemporaryDirectory()
    let path = try directory.write("", to: "file")
    func isOpen() throws -> Bool {
      try Path.names(inDirectory: "/proc/self/fd").contains { name in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)"))?.hasPrefix(path)
          ?? false
      }
    }
    var file: Descriptor? = try Descriptor(opening: path, O_RDONLY)
    let number = try #require(file?.number)
    #expect(try number > 2 && fcntl(number, F_GETFD) & FD_CLOEXEC != 0 && isOpen())
    file = nil
    #expect(try !isOpen())
    #expect(throws: FileSystemError(ENOENT)) { try Descriptor(opening: "/missing", O_RDONLY) }
  }
}
