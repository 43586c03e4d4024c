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

    /// Both ends are this program, so that the numbers need no encoding.
    fileprivate typealias Fields = (kind: Int32, value: Int32)

    fileprivate var fields: Fields {
      switch self {
      case .signal(let signal, let toGroup): (toGroup ? 1 : 0, signal)
      case .resume(let inForeground): (2, inForeground ? 1 : 0)
      case .stopped(let signal): (3, signal)
      }
    }

    fileprivate init?(_ fields: Fields) {
      switch fields.kind {
      case 0, 1: self = .signal(fields.value, toGroup: fields.kind == 1)
      case 2: self = .resume(inForeground: fields.value == 1)
      case 3: self = .stopped(by: fields.value)
      default: return nil
      }
    }
  }

  init(_ descriptor: Descriptor) { self.descriptor = descriptor }

  /// Two connected ends, closed when a program is executed.
  static func pair() throws(SecretError) -> (Descriptor, Descriptor) {
    do throws(FileSystemError) {
      var ends: [Int32] = [-1, -1]
      let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw FileSystemError(errno) }
      return (try Descriptor(opened: ends[0]), try Descriptor(opened: ends[1]))
    } catch {
      throw SecretError(
        .io, "A socket for the command's session cannot be created: \(error).")
    }
  }

  /// The end that this process inherited. Programs that it executes do not inherit it.
  init(inherited number: Int32) throws(FileSystemError) {
    descriptor = try Descriptor(opened: number)
    _ = fcntl(descriptor.number, F_SETFD, FD_CLOEXEC)
  }

  /// Sends a message. The other side reads every message soon, or has ended, which its end reports.
  func send(_ message: Message) {
    var fields = message.fields
    _ = Glibc.send(descriptor.number, &fields, MemoryLayout<Message.Fields>.size, Int32(MSG_NOSIGNAL))
  }

  /// Receives a message that has arrived. Returns `nil` if the other side has ended.
  func receive() -> Message? {
    var fields: Message.Fields = (0, 0)
    let size = MemoryLayout<Message.Fields>.size
    return recv(descriptor.number, &fields, size, 0) == size ? Message(fields) : nil
  }
}
