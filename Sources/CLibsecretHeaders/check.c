// Compiled before the Swift code that includes the headers, so that their absence is one error.
#if defined(KEYRING) && !__has_include(<gio/gio.h>)
#error "The keyring needs the Debian package libsecret-1-dev. Without a keyring, write traits: [] in the .package line of coffer, or build coffer itself with --disable-default-traits."
#endif
