package import CofferCore
internal import CofferSystem

/// The configuration file: a line `backend = NAME` or `backend = NAME:PLACE`, and a line `key-file.ID = PATH` for each
/// vault. A relative PATH begins in the directory of the file, so that a copied home directory opens.
///
/// The parser is strict, because a line that it does not know may be important. Blank lines and lines that begin
/// with `#` are kept.
struct ConfigurationFile {
  private(set) var backend: BackendSelection?
  private(set) var keyFiles: [String: String] = [:]
  private var lines: [Substring] = []

  /// Parses the text of the file at `path`. `backend` must be one of `providers`.
  init(parsing text: String, path: String, providers: [any BackendProvider]) throws(SecretError) {
    // By scalars, because CR and LF in a row are one Swift character, which is not a newline.
    lines = text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { Substring($0) }
    if lines.last?.isEmpty ?? false { lines.removeLast() }
    var seen: Set<String> = []
    for (index, line) in lines.enumerated() {
      func fail(_ what: String, _ advice: String = "Correct the line, or remove it.") -> SecretError {
        SecretError(.configuration, "Line \(index + 1) of \(path) \(what).", advice: advice)
      }
      guard let (name, value) = Self.nameAndValue(line) else {
        if Self.isComment(line) { continue }
        throw fail("is not of the form “name = value”")
      }
      if !seen.insert(name).inserted {
        throw fail("repeats the name of an earlier line", "Remove one of them.")
      }
      if name == "backend" {
        guard let selection = providers.selection(value) else { throw fail("names an unknown backend") }
        let provider = providers.first { $0.name == selection.name }
        if let place = selection.place, provider?.isRecordable(place: place) == false {
          throw fail("does not have an absolute path")
        }
        backend = selection
      } else if name.hasPrefix("key-file.") {
        let id = String(name.dropFirst("key-file.".count))
        guard Self.isVaultIdentifier(id) else {
          throw fail("has a vault id that is not 32 lower-case hexadecimal digits")
        }
        guard Self.isRecordable(value) else { throw fail("does not have a path") }
        keyFiles[id] = value
      } else {
        throw fail("has an unknown name: it is neither backend nor key-file.ID")
      }
    }
  }

  /// The file's text, with one LF at the end of each line.
  var text: String { lines.map { $0 + "\n" }.joined() }

  /// Replaces the line for `name`, or adds one at the end.
  mutating func set(_ name: String, _ value: String) {
    let line = Substring("\(name) = \(value)")
    if let index = lines.firstIndex(where: { Self.nameAndValue($0)?.0 == name }) {
      lines[index] = line
    } else {
      lines.append(line)
    }
  }

  static func isVaultIdentifier(_ id: String) -> Bool {
    id.utf8.count == 32 && id.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
  }

  /// Whether the parser reads the value back unchanged from a line.
  static func isRecordable(_ value: String) -> Bool {
    !value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 }
      && trimmed(Substring(value)).utf8.elementsEqual(value.utf8)
  }

  private static func isComment(_ line: Substring) -> Bool {
    let content = trimmed(line)
    return content.isEmpty || content.utf8.first == UInt8(ascii: "#")
  }

  private static func nameAndValue(_ line: Substring) -> (String, String)? {
    guard !isComment(line), let equals = line.firstIndex(of: "=") else { return nil }
    let name = String(trimmed(line[..<equals]))
    let value = String(trimmed(line[line.index(after: equals)...]))
    return name.isEmpty || value.isEmpty ? nil : (name, value)
  }

  /// `text` without the spaces and tabs at both ends.
  private static func trimmed(_ text: Substring) -> Substring {
    func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" }
    let rest = text.unicodeScalars.drop(while: isBlank)
    return rest.lastIndex { !isBlank($0) }.map { Substring(rest[...$0]) } ?? ""
  }
}

extension BackendConfiguration {
  /// Records the backend that ``choice()`` returns from now on, in the configuration file. `place` is the absolute path of
  /// a vault, or the alias or label of a keyring's collection.
  ///
  /// Throws `.configuration` if there is no home directory, if the file is wrong or if it cannot hold the place, and
  /// `.denied`, `.io` or `.timedOut` if the file cannot be written.
  package func record(backend: BackendName, at place: String? = nil) throws(SecretError) {
    let provider = try provider(of: backend)
    let selection = BackendSelection(backend, at: place)
    if let place {
      guard providers.selection(selection.description) == selection, provider.isRecordable(place: place),
        ConfigurationFile.isRecordable(selection.description)
      else {
        throw SecretError(
          .configuration, "The configuration file cannot hold the place of the \(backend).",
          advice:
            "Name it without line feeds and without spaces at its ends, and a vault by an absolute path.")
      }
    }
    try change { file throws(SecretError) in file.set("backend", selection.description) }
  }

  /// Records the key file of the vault with that id. The path must be absolute. Below the directory of the configuration
  /// file, it is recorded relative to that. Throws like ``record(backend:at:)``.
  package func record(keyFile: String, forVault id: String) throws(SecretError) {
    guard ConfigurationFile.isVaultIdentifier(id), keyFile.hasPrefix("/"),
      ConfigurationFile.isRecordable(keyFile)
    else {
      throw SecretError(
        .configuration,
        "The path of a key file must be absolute, on one line, and without spaces at its ends.",
        advice: "Choose another path for the key file."
      )
    }
    let directory = (configurationDirectory + "/").utf8
    let name = String(decoding: keyFile.utf8.dropFirst(directory.count), as: UTF8.self)
    let isBelow =
      keyFile.utf8.starts(with: directory) && !name.isEmpty && !name.hasPrefix("/")
      && ConfigurationFile.isRecordable(name)
    try change { file throws(SecretError) in file.set("key-file.\(id)", isBelow ? name : keyFile) }
  }

  /// Returns the path of the key file that is recorded for the vault with that id, or `nil` if there is none.
  /// Throws `.configuration`, `.denied` or `.io` if the configuration file cannot be read.
  package func recordedKeyFile(forVault id: String) throws(SecretError) -> String? {
    try recorded().keyFiles[id].map { $0.hasPrefix("/") ? $0 : "\(configurationDirectory)/\($0)" }
  }

  /// Makes the directory of the configuration file and of the default key file, unless it exists. A file `.gitignore` in it
  /// keeps both out of git. Throws `.denied` or `.io`.
  package func makeDirectory() throws(SecretError) {
    if FileStatus(of: configurationDirectory) != nil { return }
    try directories.requireHome(for: .configuration)
    try PrivateDirectory.create(configurationDirectory)
    // Another process may be making the same.
    try PrivateFile.write("*\n".utf8.span, to: configurationDirectory + "/.gitignore", replacing: true)
  }

  /// What the configuration file has. A missing file is empty.
  func recorded() throws(SecretError) -> ConfigurationFile {
    let path = configurationFile
    let text = try PrivateFile.text(of: path, as: "The configuration file \(path)", limit: 65_536)
    return try ConfigurationFile(parsing: text ?? "", path: path, providers: providers)
  }

  private func change(_ body: (inout ConfigurationFile) throws(SecretError) -> Void) throws(SecretError) {
    try makeDirectory()
    try PrivateDirectory.create(configurationDirectory)
    try PrivateDirectory.withLock(configurationDirectory, timeout: .seconds(10)) { () throws(SecretError) in
      var file = try recorded()
      try body(&file)
      try PrivateFile.write(file.text.utf8.span, to: configurationFile, replacing: true)
    }
  }
}
