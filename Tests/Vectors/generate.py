#!/usr/bin/env python3
"""Writes the test vectors. The files are the same, byte for byte, each time.

usage: generate.py [--check | --verbose]

Checks that the Python reader returns the expected outcome of each vector, and then writes the files. With --check it
writes nothing, and also checks that the files are current, that each numbered check has a vector, and that changes work.
--verbose is --check, and prints the reader's outcome for each vector.

Exit status: 0 every check passed, 1 a check failed, 2 wrong usage.
"""

import json
import os
import sys

import check_numbers
import commit_check
import vector_cases_base
import vector_cases_commits
import vector_cases_contents
import vector_cases_ends
import vector_cases_frames
import vector_cases_header
import vector_cases_history
import vector_cases_hybrid
import vector_cases_index
import vector_cases_key_slots
import vector_cases_leases
import vector_cases_merged
import vector_cases_merges
import vector_cases_recipients
import vector_cases_records
import vector_cases_root
import vector_cases_writers
import vector_example
import vector_identities
import vector_key_text
import vector_known_vaults
import vector_lookups
import vector_merged
import vector_merges
import vector_pins
import vector_writers
from vector_outcome import identity_outcome, key_outcome, outcome_of
from vector_suite import Suite, edited

FOLDER = os.path.dirname(os.path.abspath(__file__))


def read_file(path):
    with open(path, "rb") as stream:
        return stream.read()


def generated():
    """Returns every file by name, the suite, and a line for each merge and each operation that is not as it is stated."""
    suite = Suite()
    for cases in (
        vector_cases_contents,
        vector_cases_header,
        vector_cases_key_slots,
        vector_cases_recipients,
        vector_cases_commits,
        vector_cases_leases,
        vector_cases_ends,
        vector_cases_frames,
        vector_cases_records,
        vector_cases_base,
        vector_cases_root,
        vector_cases_index,
        vector_cases_history,
        vector_cases_merges,
        vector_known_vaults,
    ):
        cases.add(suite)
    files = suite.files()
    vector_merged.add(suite, files)
    files["vectors.json"] = suite.json().encode()
    hybrid = Suite()
    vector_cases_hybrid.add(hybrid)
    files["hybrid.json"] = hybrid.json().encode()
    files["key_text.json"] = vector_key_text.text().encode()
    files["known_vaults.json"] = vector_known_vaults.text(suite).encode()
    files["identities.json"] = vector_identities.text().encode()
    files["pins.json"] = vector_pins.text(suite).encode()
    files[vector_lookups.NAME] = vector_lookups.text(suite, files).encode()
    merges = vector_cases_merged.made()
    files[vector_merges.BASE], files[vector_merges.NAME] = merges.made[merges.base], merges.text().encode()
    writers = vector_cases_writers.made(suite)
    files[vector_writers.BASE], files[vector_writers.NAME] = writers.made, writers.text().encode()
    files["example.txt"] = vector_example.text(suite).encode()
    return files, suite, merges.wrong + writers.wrong


def files_of_format_1():
    """The vaults that the tool wrote, and what is in them."""
    folder = os.path.join(FOLDER, "format-1")
    return {name: read_file(os.path.join(folder, name)) for name in os.listdir(folder)}


def failures(files, verbose=False):
    """Yields a line for each entry whose expectation differs from the reader's outcome."""
    for entry in json.loads(files["vectors.json"]):
        got, reason = outcome_of(edited(files[entry["vault"]], entry), entry)
        if verbose:
            print(f"{entry['name']}: {got['outcome']}: {reason}")
        if got != entry["expect"]:
            yield f"{entry['name']}: {entry['expect']['outcome']} expected, {got['outcome']} found. {reason}"
    for entry in json.loads(files.get("key_text.json", "[]")):
        if key_outcome(entry) != entry["expect"]:
            yield f"{entry['name']}: {key_outcome(entry)} found"
    for entry in json.loads(files.get("identities.json", "[]")):
        if identity_outcome(entry) != entry["expect"]:
            yield f"identities.json: {entry['name']}: {identity_outcome(entry)} found"


def main(arguments):
    if arguments not in ([], ["--check"], ["--verbose"]):
        print("usage: generate.py [--check | --verbose]", file=sys.stderr)
        return 2
    files, suite, misstated = generated()
    wrong = list(failures(files, arguments == ["--verbose"]))
    wrong += failures(files_of_format_1())
    wrong += vector_known_vaults.failures(suite, files["known_vaults.json"])
    wrong += vector_pins.failures(suite, files["pins.json"])
    wrong += vector_lookups.failures(suite, files)
    wrong += misstated
    if arguments:
        wrong += check_numbers.failures(files)
        wrong += commit_check.failures()
    present = {name for name in os.listdir(FOLDER) if name.endswith((".vault", ".json", ".txt"))}
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
