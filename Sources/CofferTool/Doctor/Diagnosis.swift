internal import Coffer
internal import CofferConfiguration
internal import Glibc

/// The findings of `doctor`: those about the backend, and those about what the tool itself uses.
struct Diagnosis {
  private(set) var findings: [Finding] = []

  init(_ options: GlobalOptions, _ configuration: CofferConfiguration) {
    do throws(Failure) {
      let backend = BackendDiagnosis(
        configuration, backend: try options.backend.selected(), service: options.serviceName,
        canAsk: configuration.canPrompt)
      findings = backend.findings.map { Finding($0) }
    } catch {
      findings = [Finding(subject: "backend", grade: .bad, status: error.status, text: error.message)]
    }
    examineMemory()
    examineEditing()
    if let mistaken = Environment.value("SECRET_BACKEND") {
      add(
        .note, "environment", "SECRET_BACKEND is \(mistaken), but only libsecret uses that variable",
        "Use COFFER_BACKEND.")
    }
  }

  private mutating func examineMemory() {
    if SecretBytes.isMemoryLocked {
      add(.ok, "memory", "values are locked in memory, and core files are disabled")
    } else {
      add(
        .note, "memory", "values cannot be locked in memory, so they may be written to swap space",
        "Raise the limit with ulimit -l, or encrypt the swap space.")
    }
  }

  private mutating func examineEditing() {
    if EditingFile.memoryPlaces.isEmpty {
      add(
        .note, "editing", "there is no file system in memory for secret edit, at XDG_RUNTIME_DIR or /dev/shm",
        "Use secret set, or secret edit --insecure-storage.")
    }
    for directory in EditingFile.leftBehind() {
      add(
        .note, "editing", "an interrupted secret edit left a value in \(directory)",
        "Check whether you need it, and remove the directory.")
    }
  }

  private mutating func add(
    _ grade: Finding.Grade, _ subject: String, _ text: String, _ advice: String? = nil
  ) {
    findings.append(Finding(subject: subject, grade: grade, status: .done, text: text, advice: advice))
  }
}
