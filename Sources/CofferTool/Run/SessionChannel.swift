internal import Coffer
internal import CofferSystem
internal import Glibc

/// The connection between the relay and the leader of the command's session.
struct SessionChannel: ~Copyable {
  let descriptor: Descriptor

  enum Message: Equatable {
    /// To the leader: send the signal to the command, or to its process group.
    case signal(Int32, toGroup: Bool)
    /// To the leader: continue the stopped command, in the foreground of its terminal or not.
    case resume(inForeground: Bool)
    /// From the leader: the signal stopped the command.
    case stopped(by: Int32)

    private var fields: (kind: Int32, value: Int32) {
      switch self {
      case .signal(let signal, let toGroup): (toGroup ? 1 : 0, signal)
      case .resume(let inForeground): (2, inForeground ? 1 : 0)
      case .stopped(let signal): (3, signal)
      }
    }

    var bytes: [UInt8] {
      [fields.kind, fields.value].flatMap { number in
        stride(from: 0, to: 32, by: 8).map { UInt8(truncatingIfNeeded: number >> $0) }
      }
    }

    init?(_ bytes: [UInt8]) {
      guard bytes.count == 8 else { return nil }
      let numbers = [0, 4].map { start in
        (0..<4).reduce(Int32(0)) { $0 | Int32(bytes[start + $1]) << Int32(8 * $1) }
      }
      switch numbers[0] {
      case 0, 1: self = .signal(numbers[1], toGroup: numbers[0] == 1)
      case 2: self = .resume(inForeground: numbers[1] == 1)
      case 3: self = .stopped(by: numbers[1])
      default: return nil
      }
    }
  }

  init(_ descriptor: Descriptor) { self.descriptor = descriptor }

  /// Two connected ends, closed when a program is executed.
  static func pair() throws(SecretError) -> (Descriptor, Descriptor) {
    do throws(SystemCallError) {
      var ends: [Int32] = [-1, -1]
      let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw SystemCallError(errno) }
      return (try Descriptor(opened: ends[0]), try Descriptor(opened: ends[1]))
    } catch {
      throw SecretError(
        .io, "A socket for the command's session cannot be created: \(systemMessage(error.number)).")
    }
  }

  /// The end that this process inherited. Programs that it executes do not inherit it.
  init(inherited number: Int32) throws(SystemCallError) {
    descriptor = try Descriptor(opened: number)
    _ = fcntl(descriptor.number, F_SETFD, FD_CLOEXEC)
  }

  /// Sends a message. The other side reads every message soon, or has ended, which its end reports.
  func send(_ message: Message) {
    let bytes = message.bytes
    _ = Glibc.send(descriptor.number, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  }

  /// Receives a message that has arrived. Returns `nil` if the other side has ended.
  func receive() -> Message? {
    var bytes = [UInt8](repeating: 0, count: 8)
    let count = recv(descriptor.number, &bytes, bytes.count, 0)
    return count == 8 ? Message(bytes) : nil
  }
}
