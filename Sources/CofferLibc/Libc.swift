// The system's C library, for all modules.
#if canImport(Musl)
@_exported public import Musl
#elseif canImport(Glibc)
@_exported public import Glibc
#else
#error("Coffer keeps secrets of programs on Linux. On Apple's systems, use the keychain.")
#endif
