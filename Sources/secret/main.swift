#if Tool
internal import CofferTool

SecretTool.main()
#else
internal import CofferLibc

fputs("This build has only Coffer's libraries. To build the tool: COFFER_TOOL=1 swift build --product secret\n", stderr)
exit(64)
#endif
