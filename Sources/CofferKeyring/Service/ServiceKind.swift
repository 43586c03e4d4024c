#if Keyring
internal import CofferSystem

/// The program that provides the Secret Service, where its behaviour differs from the protocol.
enum ServiceKind {
  case gnomeKeyring
  case keePassXC
  /// KWallet's daemons: kwalletd5, kwalletd6 and ksecretd.
  case kWallet
  /// Another program, or one whose name cannot be read, for example because it runs in another container.
  case other

  init(process id: UInt32?) {
    let bytes = id.flatMap { beginning(ofFile: "/proc/\($0)/comm", count: 16) } ?? []
    self.init(name: String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
  }

  /// `name` is the name of the process, of which the kernel keeps 15 bytes.
  init(name: String) {
    switch name {
    case "gnome-keyring-d": self = .gnomeKeyring
    case _ where name == "ksecretd" || name.hasPrefix("kwalletd"): self = .kWallet
    case _ where name.hasPrefix("keepassxc"): self = .keePassXC
    default: self = .other
    }
  }
}
#endif
