internal import ArgumentParser

/// The option `--json`, of the commands whose output has a machine-readable form.
struct JSONOption: ParsableArguments {
  @Flag(help: "Print machine-readable output as JSON.")
  var json = false

  /// Prints `value` as JSON with the option, and `text` without it. In one call, because a reader such as head may stop
  /// after the first line.
  func print<Value: Encodable>(
    _ value: @autoclosure () throws -> Value, or text: @autoclosure () throws -> String
  ) throws {
    if json { try Output.standard.json(value()) } else { try Output.standard.write(text()) }
  }

  /// Prints `object` as JSON with the option, and nothing without it.
  func print(_ object: JSONObject) throws { if json { try Output.standard.json(object) } }
}
