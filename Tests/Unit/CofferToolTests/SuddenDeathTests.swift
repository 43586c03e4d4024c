import CofferTestSupport
import Foundation
import Testing

/// Commands that are killed at various moments. A change is complete or absent, and no value is left in a
/// file.
@Suite(.long) struct SuddenDeathTests {
  private let canary = Sandbox.canary()
  private let sandbox: Sandbox

  /// Creates a vault with one secret, a key file, and the passphrase “old”, which is in the file p.
  init() throws {
    sandbox = try Sandbox()
    try perform(
      "umask 077; echo old > p; secret init && printf x | secret set a && secret key add --passphrase < p")
  }

  private func perform(_ command: String) throws {
    let result = try sandbox.shell(command)
    try #require(result.status == 0, "\(command): \(result.outputText)\(result.errorText)")
  }

  /// Runs `command` to its end, and then kills it at moments spread over that duration. Before each run, the
  /// vault is in the state after `preparation`. After each run, `check` prints the problems that it finds.
  private func kill(_ command: String, preparation: String = ":", check: String) throws {
    try perform("\(preparation) && cp -a ../home ../before")
    let clock = ContinuousClock()
    let times = 20
    var killed = 0
    var duration = Duration.zero
    for turn in -1..<times {
      try perform("rm -rf ../home && cp -a ../before ../home")
      let start = clock.now
      let process = try sandbox.start(command)
      var status = process.status()
      while status == nil {
        if turn >= 0, clock.now - start >= duration * turn / (times - 1) {
          process.send(SIGKILL, toGroup: true)
        }
        try #require(clock.now - start < .seconds(120), "hung: \(command)")
        usleep(200)
        status = process.status()
      }
      if turn < 0 {
        duration = clock.now - start
        try #require(status == 0, "\(command) fails even if it is not killed")
      } else if status == -SIGKILL {
        killed += 1
      }
      let result = try sandbox.shell("secret verify 2>&1 >/dev/null; \(check)")
      #expect(
        result.outputText == "" && result.errorText == "",
        "turn \(turn): \(command)\n\(result.outputText)\n\(result.errorText)")
      let found = try sandbox.shell("grep -r -l -F \(canary) ..")
      #expect(found.outputText == "", "turn \(turn): \(command)")
    }
    #expect(killed > 0)
  }

  /// Checks that the key file, and the passphrase in `file`, open the vault and that it has its secret.
  private func opens(_ file: String) -> String {
    "test \"$(secret get a)\" = x || echo key; "
      + "test \"$(XDG_CONFIG_HOME=$PWD/none COFFER_PASSPHRASE_FILE=\(file) secret get a)\" = x || echo passphrase; "
  }

  /// Reads the secret with only the key file K.
  private let withK = "XDG_CONFIG_HOME=$PWD/none COFFER_KEY_FILE=../home/K secret get a"

  @Test func keyAdd() throws {
    try kill(
      "secret key add --key-file ../home/K",
      check:
        "case $(secret key list | wc -l) in 2) ;; 3) test \"$(\(withK))\" = x || echo new key;; *) echo slots;; "
        + "esac; " + opens("p"))
  }

  @Test func keyRemove() throws {
    try kill(
      "COFFER_PASSPHRASE_FILE=p secret key remove $(secret key list | tail -1 | cut -f1)",
      preparation: "secret key add --key-file ../home/K 2>/dev/null",
      check: "case $(secret key list | wc -l) in 3) test \"$(\(withK))\" = x || echo old key;; "
        + "2) \(withK) 2>/dev/null && echo open;; *) echo slots;; esac; " + opens("p"))
  }

  @Test func keyChangePassphrase() throws {
    try perform("umask 077; echo new > q")
    try kill(
      "secret key change-passphrase < q",
      check: "test $(secret key list | wc -l) = 2 || echo slots; test \"$(secret get a)\" = x || echo key; "
        + "export XDG_CONFIG_HOME=$PWD/none; test $({ COFFER_PASSPHRASE_FILE=p secret get a; echo; "
        + "COFFER_PASSPHRASE_FILE=q secret get a; } 2>/dev/null | grep -c x) = 1 || echo passphrase")
  }

  @Test func rekey() throws {
    try kill("COFFER_PASSPHRASE_FILE=p secret rekey", check: opens("p"))
  }

  /// A shell command that prints the lines of a .env file. The canary appears only in its output.
  private var lines: String {
    let halves = (canary.prefix(10), canary.dropFirst(10))
    return "seq 400 | sed 's/.*/N&=\(halves.0)/' | sed 's/$/\(halves.1)/'"
  }

  @Test func importing() throws {
    try kill(
      "\(lines) | secret import -",
      check: "case $(secret list | wc -l) in 1) ;; 401) for n in 1 200 400; do "
        + "secret get N$n | grep -q -x -F $(\(lines) | sed 's/N1=//;q') || echo value $n; done;; *) echo part;; esac; "
        + "test \"$(secret get a)\" = x || echo before")
  }

  @Test func copying() throws {
    try kill(
      "secret copy --from vault --to vault:../home/data/copy",
      preparation: "secret init --vault ../home/data/copy --key-file ../home/L 2>/dev/null && "
        + "\(lines) | head -40 | secret import - 2>/dev/null",
      // The copied secrets are correct, and a second run copies the others.
      check: "secret --vault ../home/data/copy verify > /dev/null; "
        + "secret --vault ../home/data/copy list | while read -r name; do test \"$(secret --vault ../home/data/copy "
        + "get $name)\" = \"$(secret get $name)\" || echo $name; done; "
        + "secret copy --from vault --to vault:../home/data/copy 2> said || cat said; "
        + "test $(secret --vault ../home/data/copy list | wc -l) = 41 || echo incomplete")
  }

  @Test func editing() throws {
    // A runtime directory in memory that only this test uses.
    let memory = "/dev/shm/" + (sandbox.directory as NSString).lastPathComponent
    try FileManager.default.createDirectory(
      atPath: memory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: memory) }
    sandbox.environment["XDG_RUNTIME_DIR"] = memory
    let halves = (canary.prefix(10), canary.dropFirst(10))
    sandbox.environment["EDITOR"] = "printf %s%s \(halves.0) \(halves.1) >"
    try kill(
      "secret edit a",
      // `doctor` reports a value that is left in memory, and there is none on the disk.
      check:
        "case $(secret get a) in x|\(halves.0)\(halves.1)) ;; *) echo value;; esac; secret doctor > said; "
        // What is left is locked until the last process of the group has ended.
        + "for d in $XDG_RUNTIME_DIR/secret-edit-*; do test ! -e $d || grep -q -F $d said "
        + "|| { sleep 3; secret doctor > said; grep -q -F $d said; } || echo $d; rm -rf $d; done"
    )
  }
}
