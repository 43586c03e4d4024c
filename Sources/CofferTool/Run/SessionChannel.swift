internal import Coffer
internal import CofferSystem
internal import CofferLibc

/// The connection between the relay and the leader of the command's session.
struct SessionChannel {
  let descriptor: Descriptor

  /// The kinds of messages about the command. Both ends are this program, so the numbers need no encoding.
  enum Message: Int32 {
    /// To the leader: send the signal to the command, or to its process group.
    case signal, groupSignal
    /// To the leader: continue the stopped command, in the foreground of its terminal or not.
    case resumeInForeground, resumeInBackground
    /// From the leader: the signal stopped the command.
    case stopped
  }

  private typealias Fields = (message: Int32, signal: Int32)

  /// Two connected ends, closed when a program is executed.
  static func pair() throws(SecretError) -> (Descriptor, Descriptor) {
    do throws(FileSystemError) {
      var ends: [Int32] = [-1, -1]
      let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
      guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw FileSystemError(errno) }
      return (try Descriptor(opened: ends[0]), try Descriptor(opened: ends[1]))
    } catch {
      throw SecretError(.io, "A socket for the command's session cannot be created: \(error).")
    }
  }

  /// Sends a message. A failure is ignored: then the other side has ended, which this side notices in another way.
  func send(_ message: Message, _ signal: Int32 = 0) {
    var fields: Fields = (message.rawValue, signal)
    _ = CofferLibc.send(descriptor.number, &fields, MemoryLayout<Fields>.size, Int32(MSG_NOSIGNAL))
  }

  /// Receives a message that has arrived. Returns `nil` if the other side has ended.
  func receive() -> (Message, signal: Int32)? {
    var fields: Fields = (0, 0)
    let size = MemoryLayout<Fields>.size
    guard recv(descriptor.number, &fields, size, 0) == size else { return nil }
    return Message(rawValue: fields.message).map { ($0, fields.signal) }
  }
}
