#if Keyring
import CofferTestSupport
import Foundation
import Testing

/// The functions of libsecret are declared in this package. A C compiler rejects a second declaration that differs.
@Suite struct DeclarationTests {
  @Test(.needs("clang", "pkg-config")) func theDeclarationsAreThoseOfTheInstalledLibrary() throws {
    let directory = try TemporaryDirectory()
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardized
    let header = root.appending(path: "Sources/CLibsecret/shim.h").path()
    func accepts(_ replaced: String, _ replacement: String) throws -> Bool {
      let declarations = try String(contentsOfFile: header, encoding: .utf8)
      let changed = declarations.replacing(replaced, with: replacement)
      try directory.write(changed, to: "shim.h")
      // libsecret declares some of the calls only with this definition.
      try directory.write(
        "#define SECRET_API_SUBJECT_TO_CHANGE 1\n#include <libsecret/secret.h>\n#include \"shim.h\"\n",
        to: "both.c")
      let command = "clang -fsyntax-only $(pkg-config --cflags libsecret-1) both.c"
      let environment = ProcessInfo.processInfo.environment
      return try ChildProcess.run(["sh", "-c", command], environment: environment, directory: directory.path)
        .status == 0
    }
    #expect(try accepts("gssize length", "gssize length"))
    #expect(try !accepts("gssize length", "int length"))
  }
}
#endif
