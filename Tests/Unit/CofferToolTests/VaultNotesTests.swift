import CofferTestSupport
import Foundation
import Testing

/// Notes that depend on who runs the tool. The scenarios test the other notes.
@Suite(.needs("setpriv")) struct VaultNotesTests {
  /// Only the owner can change the mode of the file.
  @Test(.enabled(if: geteuid() == 0, "only root can give a file to another user"))
  func aReaderOfRootsVaultIsNotToldToCloseIt() throws {
    let sandbox = try Sandbox()
    #expect(try sandbox.shell("secret init && printf x | secret set a").status == 0)
    sandbox.environment["COFFER_KEY"] = try sandbox.shell("cat ../home/config/coffer/key").outputText
      .trimmingCharacters(in: .newlines)
    let prepared = try sandbox.shell(
      """
      mv ../home/data/coffer/default.vault V && rm -r ../home/config ../home/state && chmod 644 V && \
      cp $(readlink -f ../bin/secret) . && chown -R 54321 .. && chown 0 V
      """)
    #expect(prepared.status == 0, "\(prepared.errorText)")
    let reader = "setpriv --reuid 54321 --regid 54321 --clear-groups ./secret --vault V get a"
    let read = try sandbox.shell(reader)
    #expect(read.outputText == "x" && read.errorText == "", "\(read.errorText)")
    // Root reads the vault of another user if its pin is given.
    #expect(try sandbox.shell("chown 54321 V; secret --vault V get a").status == 77)
    let pinned = try sandbox.shell(
      "COFFER_PIN=$(chown 0 V; secret --vault V verify | sed -n 's/^pin: //p'); chown 54321 V; export COFFER_PIN; secret --vault V get a"
    )
    #expect(pinned.outputText == "x", "\(pinned.errorText)")
    for (mode, isTold) in [("644", true), ("640", true), ("604", true), ("600", false)] {
      let own = try sandbox.shell("chown 54321 V; chmod \(mode) V; \(reader)")
      #expect(own.outputText == "x", "\(own.errorText)")
      #expect(own.errorText.contains("Other users can read") == isTold, "\(mode): \(own.errorText)")
    }
  }
}
