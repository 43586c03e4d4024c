#if Tool
internal import CofferTool

SecretTool.main()
#else
internal import CofferLibc

let text = "This build has only Coffer's libraries. To build the tool: COFFER_TOOL=1 swift build --product secret\n"
_ = text.utf8.span.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
exit(64)
#endif
