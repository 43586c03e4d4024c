internal import CofferSystem
internal import CofferLibc

/// Keys, sizes and job control between the outer terminal and the inner one.
extension CommandRelay {
  /// Reads keys. They go to the inner terminal, which turns some of them into signals.
  func readKeys() {
    guard let outer = session?.outer else { return }
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(outer.descriptor, &buffer, buffer.count)
    if count > 0 {
      typed += buffer[..<count]
    } else if count == 0 || (errno != EINTR && errno != EAGAIN) {
      // The outer terminal is gone. Closing the controller hangs up the inner one.
      isTerminalGone = true
      session?.shown.abandon()
    }
  }

  func writeTyped() {
    guard let controller = session?.shown.source?.number else { return }
    let count = write(controller, typed, typed.count)
    if count >= 0 {
      typed.removeFirst(count)
    } else if errno != EINTR && errno != EAGAIN {
      typed = []
    }
  }

  /// Gives the inner terminal the size of the outer one. The kernel reports a change to the command.
  func resize() {
    guard let controller = session?.shown.source?.number, var size = session?.outer.size else { return }
    _ = ioctl(controller, UInt(TIOCSWINSZ), &size)
  }

  /// Handles a stop of the command: for using its terminal in the background, or by a key, another process or itself.
  func receive() {
    guard case (.stopped, let signal)? = session?.channel.receive() else { return isChannelOpen = false }
    guard let outer = session?.outer else { return }
    let usedTerminal = signal == SIGTTIN || signal == SIGTTOU
    if usedTerminal { ownsTerminal = true }
    if !usedTerminal || !outer.isForeground {
      showRest()
      outer.restore()
      // Stops the job of the shell that started this process, and returns when the job continues. In a process group
      // that nobody can continue, the kernel does not stop it.
      BlockedSignals.deliver(signal, toGroup: true)
    }
    resize()
    let inForeground = ownsTerminal && outer.isForeground
    if inForeground {
      // The command was started in the background, so the settings that were copied were those of a shell's prompt.
      if !hasSettings, var settings = outer.settings, let controller = session?.shown.source?.number {
        tcsetattr(controller, TCSANOW, &settings)
      }
      hasSettings = true
      outer.makeRaw()
    }
    session?.channel.send(inForeground ? .resumeInForeground : .resumeInBackground)
  }

  /// Shows what the command has printed, such as the codes that restore a screen.
  private func showRest() {
    let end = ContinuousClock.now + .seconds(1)
    while ContinuousClock.now < end, let shown = session?.shown {
      if shown.wantsToWrite {
        if Self.isReady(shown.destination, for: POLLOUT, milliseconds: 100) { shown.write() }
      } else if let source = shown.readable, Self.isReady(source, for: POLLIN) {
        shown.read()
      } else {
        return
      }
    }
  }
}
