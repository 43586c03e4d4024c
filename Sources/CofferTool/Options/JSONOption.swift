internal import ArgumentParser

/// The option `--json`, of the commands whose output has a machine-readable form.
struct JSONOption: ParsableArguments {
  @Flag(help: "Print machine-readable output as JSON.")
  var json = false
}
