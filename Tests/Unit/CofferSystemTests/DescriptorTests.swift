import CofferCore
import CofferSystem
import CofferTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct DescriptorTests {
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
  private func pipe(of bytes: [UInt8], isNonBlocking: Bool = false) throws -> Descriptor {
    signal(SIGPIPE, SIG_IGN)
    let (reading, writing) = try Descriptor.pipe()
    if isNonBlocking {
      for end in [reading, writing] { #expect(fcntl(end.number, F_SETFL, O_NONBLOCK) == 0) }
    }
    // The thread closes its own descriptor: its closure, and what that holds, may outlive the thread.
    let number = fcntl(writing.number, F_DUPFD_CLOEXEC, 3)
    try #require(number >= 0)
    Thread {
      if isNonBlocking { usleep(20_000) }
      // Fails if the reader has stopped at its limit.
      do throws(SystemCallError) { try writeAll(bytes.span, to: number) } catch {}
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

  @Test func aDescriptorIsClosedWithItsLastReference() throws {
    var directory: Descriptor? = try Descriptor(opening: "/", O_RDONLY)
    let number = try #require(directory?.number)
    #expect(number > 2 && fcntl(number, F_GETFD) & FD_CLOEXEC != 0)
    directory = nil
    #expect(throws: SystemCallError(ENOENT)) { try Descriptor(opening: "/missing", O_RDONLY) }
  }
}
