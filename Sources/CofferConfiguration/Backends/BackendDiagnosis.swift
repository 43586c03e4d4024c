package import CofferCore

/// The findings about the backend in use, for a program that explains them to a person.
package struct BackendDiagnosis: Sendable {
  /// One fact.
  package struct Finding: Hashable, Sendable {
    package enum Grade: String, Sendable {
      /// As it should be.
      case ok
      /// Worth knowing: it does not keep the backend from working.
      case note
      /// It keeps the backend from working, or gives secrets away.
      case bad
    }

    /// What the finding is about, such as `vault` or `key file`.
    package let subject: String
    package let grade: Grade
    /// The kind of the finding, for a program that gives its own advice. `nil` if there is nothing to do.
    package let code: SecretError.Code?
    /// A clause about the subject, in lower case and without a full stop, or the sentence of an error.
    package let text: String
    /// A sentence, or `nil` if there is nothing to do.
    package let advice: String?
  }

  package let configuration: CofferConfiguration
  /// The store to examine, or `nil` for the one that the configuration names.
  package private(set) var place: String?
  /// The service whose secrets are counted.
  package let service: String
  /// Whether the program can ask a person for a passphrase.
  package let canAsk: Bool
  /// The subject of the findings that are added next.
  package var subject = "backend"
  package private(set) var findings: [Finding] = []

  /// Examines the backend that `selected` names, or the one that `configuration` chooses.
  package init(
    _ configuration: CofferConfiguration,
    backend selected: BackendSelection?,
    service: String,
    canAsk: Bool
  ) {
    self.configuration = configuration
    self.service = service
    self.canAsk = canAsk
    var provider: (any BackendProvider)?
    var selection = selected
    do throws(SecretError) {
      if let selected {
        provider = try configuration.provider(of: selected.name)
        place = selected.place
        ok("\(selected.name), selected by an option")
      } else {
        let choice = try configuration.choice()
        selection = BackendSelection(choice.backend, at: choice.place)
        provider = try configuration.provider(of: choice.backend)
        place = choice.place
        ok("\(choice.backend). \(choice.reason)")
      }
      try provider?.examine(&self)
    } catch {
      bad(error.reason, error.code, error.advice)
    }
    guard let provider else { return }
    provider.examineSurroundings(&self)
    subject = "environment"
    let used = selection ?? BackendSelection(provider.name)
    for variable in configuration.unusedVariables(with: used) {
      note("\(variable) has no effect with the backend \(used)", nil, "Unset it.")
    }
  }

  package mutating func ok(_ text: String) { add(.ok, text, nil, nil) }

  package mutating func note(_ text: String, _ code: SecretError.Code? = nil, _ advice: String? = nil) {
    add(.note, text, code, advice)
  }

  package mutating func bad(_ text: String, _ code: SecretError.Code, _ advice: String? = nil) {
    add(.bad, text, code, advice)
  }

  private mutating func add(
    _ grade: Finding.Grade, _ text: String, _ code: SecretError.Code?, _ advice: String?
  ) {
    findings.append(Finding(subject: subject, grade: grade, code: code, text: text, advice: advice))
  }
}
