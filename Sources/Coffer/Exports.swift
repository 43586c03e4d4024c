// One `import Coffer` is enough.
@_exported public import CofferConfiguration
@_exported public import CofferCore
@_exported public import CofferVault

#if Keyring
@_exported public import CofferKeyring
#endif
