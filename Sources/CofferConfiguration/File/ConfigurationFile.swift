package import CofferCore
internal import CofferSystem
internal import Synchronization

/// The configuration file: an entry `backend = "NAME"` or `backend = "NAME:PLACE"`, and in the table `[key-files]` an
/// entry `ID = "PATH"` for each vault. A relative PATH starts at the directory of this file, so that it is still right
/// in a copy of the home directory.
///
/// An unknown entry is an error, because it may be important. A change writes one line, and keeps all others.
struct ConfigurationFile {
  struct Entries: Hashable, Sendable {
    fileprivate(set) var backend: BackendSelection?
    fileprivate(set) var keyFiles: [String: String] = [:]
  }
  private(set) var entries = Entries()
  /// In bytes.
  static let maximumLength = 65_536
  private static let maximumText = 4096
  private var lines: [Substring]
  private let root: TOMLTable

  /// Parses the text of the file at `path`. `backend` must be one of `providers`.
  init(parsing text: String, path: String, providers: [any BackendProvider]) throws(SecretError) {
    // By scalars, because CR and LF in a row are one Swift character, which is not a newline.
    lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { Substring($0) }
    if lines.last?.isEmpty ?? false { lines.removeLast() }
    do throws(LineProblem) {
      var reader = TOMLReader(bytes: Array(text.utf8))
      root = try reader.read()
      try read(providers)
    } catch {
      throw SecretError(
        .configuration, "Line \(error.line) of \(path) \(error.text).",
        advice: "Correct the line, or remove it.")
    }
  }

  private mutating func read(_ providers: [any BackendProvider]) throws(LineProblem) {
    for entry in root.entries {
      switch (entry.name, entry.value) {
      case ("backend", _):
        guard let selection = try providers.selection(entry.text(maximum: Self.maximumText)) else {
          throw entry.problem("names an unknown backend")
        }
        let provider = providers.first { $0.name == selection.name }
        if let place = selection.place, provider?.isRecordable(place: place) == false {
          throw entry.problem("does not have an absolute path")
        }
        entries.backend = selection
      case ("key-files", .table(let table)) where !table.isInline:
        for entry in table.entries {
          guard Self.isVaultIdentifier(entry.name) else {
            throw entry.problem("has a vault id that is not 32 lower-case hexadecimal digits")
          }
          entries.keyFiles[entry.name] = try entry.text(maximum: Self.maximumText)
        }
      default: throw entry.problem("has “\(entry.name)” where backend or [key-files] is expected")
      }
    }
  }

  /// The file's text, with one LF at the end of each line.
  var text: String { lines.map { $0 + "\n" }.joined() }

  mutating func set(backend: BackendSelection) {
    put("backend", backend.description, at: root.entries.first { $0.name == "backend" }?.line, orAfter: 0)
  }

  mutating func set(keyFile: String, forVault id: String) {
    guard let table = root.entries.first(where: { $0.name == "key-files" }),
      case .table(let keyFiles) = table.value
    else {
      lines += (lines.isEmpty ? [] : [""]) + ["[key-files]"]
      return put(id, keyFile, at: nil, orAfter: lines.count)
    }
    let entry = keyFiles.entries.first { $0.name == id }
    put(id, keyFile, at: entry?.line, orAfter: keyFiles.entries.map(\.line).max() ?? table.line)
  }

  private mutating func put(_ name: String, _ value: String, at line: Int?, orAfter last: Int) {
    let text = Substring("\(name) = \(Self.quoted(value))")
    if let line { lines[line - 1] = text } else { lines.insert(text, at: last) }
  }

  /// `text` as a basic string of TOML.
  static func quoted(_ text: String) -> String {
    let escaped = text.unicodeScalars.map { scalar -> String in
      if "\"\\".unicodeScalars.contains(scalar) { return "\\\(scalar)" }
      if scalar.value >= 0x20 && scalar.value != 0x7F { return String(scalar) }
      return "\\u00" + UInt8(scalar.value).hexadecimal
    }
    return "\"\(escaped.joined())\""
  }

  static func isVaultIdentifier(_ id: String) -> Bool {
    id.utf8.count == 32 && id.utf8.allSatisfy { $0.isASCIIDigit || (97...102).contains($0) }
  }
}

extension BackendConfiguration {
  /// Records the backend that ``choice()`` returns from now on, in the configuration file. `place` is the absolute path
  /// of a vault, or the alias or label of a keyring's collection.
  ///
  /// Throws `.configuration` if there is no home directory, if the file is invalid or if it cannot hold the place, and
  /// `.denied`, `.io` or `.timedOut` if the file cannot be written.
  package func record(backend: BackendName, at place: String? = nil) throws(SecretError) {
    let provider = try provider(of: backend)
    let selection = BackendSelection(backend, at: place)
    if let place, providers.selection(selection.description) != selection || !provider.isRecordable(place: place) {
      throw SecretError(
        .configuration, "The configuration file cannot hold the place of the \(backend).",
        advice: "Name a vault by an absolute path.")
    }
    try change { file in file.set(backend: selection) }
  }

  /// Records the key file of the vault with that id. The path must be absolute. A path below the directory of the
  /// configuration file is recorded relative to that directory. Throws like ``record(backend:at:)``.
  package func record(keyFile: String, forVault id: String) throws(SecretError) {
    guard ConfigurationFile.isVaultIdentifier(id), keyFile.hasPrefix("/") else {
      throw SecretError(
        .configuration, "The path of a key file must be absolute.", advice: "Choose another path for it.")
    }
    let directory = (configurationDirectory + "/").utf8
    let name = String(decoding: keyFile.utf8.dropFirst(directory.count), as: UTF8.self)
    let isBelow = keyFile.utf8.starts(with: directory) && !name.isEmpty && !name.hasPrefix("/")
    try change { file in file.set(keyFile: isBelow ? name : keyFile, forVault: id) }
  }

  /// Returns the path of the key file that is recorded for the vault with that id, or `nil` if there is none. Throws
  /// `.configuration`, `.denied` or `.io` if the configuration file cannot be read.
  package func recordedKeyFile(forVault id: String) throws(SecretError) -> String? {
    try recorded().keyFiles[id].map { $0.hasPrefix("/") ? $0 : "\(configurationDirectory)/\($0)" }
  }

  /// Makes the directory of the configuration file and of the default key file, unless it exists. A file `.gitignore`
  /// in it keeps both out of git. Throws `.denied` or `.io`.
  package func makeDirectory() throws(SecretError) {
    if FileStatus(of: configurationDirectory) != nil { return }
    try directories.requireHome(for: .configuration)
    try PrivateDirectory.create(configurationDirectory)
    // Replaces the file, because another process may be creating it too.
    try PrivateFile.write("*\n".utf8.span, to: configurationDirectory + "/.gitignore", replacing: true)
  }

  /// The entries of the configuration file, read now or less than a second ago.
  func recorded() throws(SecretError) -> ConfigurationFile.Entries {
    try lastRead.entries { () throws(SecretError) in try read().entries }
  }

  /// Reads the configuration file. A missing file is empty.
  private func read() throws(SecretError) -> ConfigurationFile {
    let text = try PrivateFile.text(
      of: configurationFile, as: "The configuration file \(configurationFile)", limit: ConfigurationFile.maximumLength)
    return try parsed(text ?? "")
  }

  private func parsed(_ text: String) throws(SecretError) -> ConfigurationFile {
    try ConfigurationFile(parsing: text, path: configurationFile, providers: providers)
  }

  private func change(_ body: (inout ConfigurationFile) -> Void) throws(SecretError) {
    try makeDirectory()
    try PrivateDirectory.create(configurationDirectory)
    try PrivateDirectory.withLock(configurationDirectory, timeout: .seconds(10)) { () throws(SecretError) in
      var file = try read()
      body(&file)
      // What cannot be read back is not written.
      var isReadable = file.text.utf8.count <= ConfigurationFile.maximumLength
      do throws(SecretError) { _ = try parsed(file.text) } catch { isReadable = false }
      guard isReadable else {
        throw SecretError(
          .configuration, "The configuration file \(configurationFile) cannot hold the change.",
          advice: "Use a shorter path or name, without a NUL, or remove lines that are not needed any more.")
      }
      try lastRead.forget { () throws(SecretError) in
        try PrivateFile.write(file.text.utf8.span, to: configurationFile, replacing: true)
      }
    }
  }

  /// The entries of the last read, so that the steps of one call do not read the file again. Thread-safe.
  final class LastRead: Sendable {
    private let last = Mutex<(entries: ConfigurationFile.Entries, time: ContinuousClock.Instant)?>(nil)
    private static let period = Duration.seconds(1)

    /// Returns the entries that were read less than a second ago, or else calls `read`. An empty result is not kept,
    /// because another program may write entries soon.
    func entries(
      _ read: () throws(SecretError) -> ConfigurationFile.Entries
    ) throws(SecretError) -> ConfigurationFile.Entries {
      try last.withLock { last throws(SecretError) in
        if let last, .now - last.time < Self.period { return last.entries }
        let entries = try read()
        last = entries == ConfigurationFile.Entries() ? nil : (entries, .now)
        return entries
      }
    }

    /// Forgets the entries and runs `write`. Other threads read the file before or after it.
    func forget(_ write: () throws(SecretError) -> Void) throws(SecretError) {
      try last.withLock { last throws(SecretError) in
        last = nil
        try write()
      }
    }
  }
}
