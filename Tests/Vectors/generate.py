#!/usr/bin/env python3
"""Writes the test vectors. The files are the same, byte for byte, each time.

usage: generate.py [--check] [--verbose]

Checks that the Python reader returns the expected outcome of each vector, and then writes the files. With --check it
writes nothing, and also checks that the files are current and that commits work. With --verbose it prints the reader's
outcome for each vector.

Exit status: 0 every check passed, 1 a check failed.
"""

import json
import os
import sys

import coffer_vault
import commit_check
import vault_format as f
import vault_reader as r
import vector_cases_base
import vector_cases_commits
import vector_cases_contents
import vector_cases_frames
import vector_cases_header
import vector_cases_key_slots
import vector_key_text
from vector_suite import Suite, edited, short_value

FOLDER = os.path.dirname(os.path.abspath(__file__))


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


def outcome_of(file, entry):
    """Returns the reader's outcome for an entry, in the form of its `expect`."""
    try:
        if "key_text" in entry["credential"]:
            credential = r.Key(f.parse_key_text(entry["credential"]["key_text"].encode()))
        else:
            credential = r.Passphrase(entry["credential"]["passphrase"].encode("utf-8"))
        read = coffer_vault.contents(r.read_vault(file, credential, r.Limits(**entry.get("limits", {}))))
    except f.Refused as refused:
        return {"outcome": refused.outcome}, refused.reason
    items = [item | short_value(item.pop("value")) for item in read.pop("items")]
    del read["recovered"]
    return read | {"items": items}, ""


def key_outcome(entry):
    try:
        return {"outcome": f.OK, "key": f.parse_key_text(entry["text"].encode("utf-8")).hex()}
    except f.Refused as refused:
        return {"outcome": refused.outcome}


def generated():
    """Returns every file by name, and the suite."""
    suite = Suite()
    for cases in (
        vector_cases_contents,
        vector_cases_header,
        vector_cases_key_slots,
        vector_cases_commits,
        vector_cases_frames,
        vector_cases_base,
    ):
        cases.add(suite)
    files = suite.files()
    files["vectors.json"] = suite.json().encode()
    files["key_text.json"] = vector_key_text.text().encode()
    return files, suite


def failures(files, verbose=False):
    """Yields a line for each entry whose expectation differs from the reader's outcome."""
    for entry in json.loads(files["vectors.json"]):
        got, reason = outcome_of(edited(files[entry["vault"]], entry), entry)
        if verbose:
            print(f"{entry['name']}: {got['outcome']}: {reason}")
        if got != entry["expect"]:
            yield f"{entry['name']}: {entry['expect']['outcome']} expected, {got['outcome']} found. {reason}"
    for entry in json.loads(files["key_text.json"]):
        if key_outcome(entry) != entry["expect"]:
            yield f"{entry['name']}: {key_outcome(entry)} found"


def main(arguments):
    if arguments not in ([], ["--check"], ["--verbose"]):
        print("usage: generate.py [--check | --verbose]", file=sys.stderr)
        return 2
    files, suite = generated()
    wrong = list(failures(files, arguments == ["--verbose"]))
    if arguments:
        wrong += commit_check.failures()
    present = {name for name in os.listdir(FOLDER) if name.endswith((".vault", ".json"))}
    for name in sorted(present | set(files)):
        path = os.path.join(FOLDER, name)
        if arguments:
            current = read_file(path) if name in present else None
            if name in files and current != files[name]:
                wrong.append(f"{name} is not what generate.py makes: run it and look at the difference")
        elif name in files:
            with open(path, "wb") as stream:
                stream.write(files[name])
        if name not in files:
            wrong.append(f"{name} is not made by generate.py: remove it")
    for line in wrong:
        print(line, file=sys.stderr)
    size = sum(len(data) for data in files.values())
    print(f"{len(suite.entries)} vectors in {len(files)} files of {size} bytes; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
