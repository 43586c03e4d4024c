#!/usr/bin/env python3
"""Breaks the code in one of the ways of mutations.py at a time and checks that a test notices.

usage: mutate.py [--list | --check] [WORD]...

Tries the mutations of mutations.py whose name contains one of the words; without a word, all of them. --list prints
them and tries none. --check tries none either, and only checks that each can be made. The sources are copied to a
temporary directory and built there, so the working tree stays as it is. A mutation is `caught` if its tests fail, `survived` if they pass, and `broken` if it could not be tried: its text
is not in the file exactly once, or the changed code does not compile.

Exit status: 0 every mutation was caught, 1 a mutation survived or is broken, or the tests fail without a mutation,
64 no mutation has such a name.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from manifest import keep
from mutations import MUTATIONS

ROOT = Path(__file__).resolve().parents[3]
# The test targets that are built for mutations whose tests are a filter of `swift test`. Everything that they do not
# depend on is left out of the build.
TEST_TARGETS = ["CofferVaultTests", "CofferMemoryTests"]
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".build", ".git")
# In seconds: more than the slowest test takes on a slow machine. A test that takes longer hangs, which counts as caught.
TIMEOUT = 900


def is_command(tests):
    """Whether `tests` is a command rather than a filter of `swift test`."""
    return (ROOT / tests.split()[0]).is_file()


def copy_for_commands(scratch):
    shutil.copytree(ROOT, scratch, symlinks=True, ignore=NOT_COPIED, dirs_exist_ok=True)


def copy_for_tests(scratch):
    copy_for_commands(scratch)
    with open(scratch / "Package.swift", "a", encoding="utf-8") as manifest:
        manifest.write(keep(TEST_TARGETS) + "package.products.removeAll()\npackage.dependencies.removeAll()\n")


def call(scratch, *arguments):
    """Returns the exit status and the output. The status is None if the command timed out."""
    # CI turns warnings into errors, and a mutation may cause a warning.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    process = subprocess.Popen(arguments, cwd=scratch, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=TIMEOUT)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None, ""


def build(scratch, tests):
    """Returns the exit status and the output of the build that `tests` needs.

    The fuzzer is built by its own script. The products are built before it, so that a mutation that does not compile
    is not counted as caught.
    """
    if "STATIC" in tests:
        return call(scratch, "Scripts/static", "secret", "CofferProbe")
    if is_command(tests):
        for product in "secret", "CofferProbe":
            status, output = call(scratch, "swift", "build", "--product", product)
            if status != 0:
                break
        return status, output
    return call(scratch, "swift", "build", "--build-tests")


def run(scratch, tests):
    if is_command(tests):
        static = str(scratch / ".build/static/release/secret")
        dynamic = str(scratch / ".build/debug/secret")
        return call(scratch, *tests.replace("SECRET", dynamic).replace("STATIC", static).split())
    return call(scratch, "swift", "test", "--skip-build", "--filter", tests)


def failures(output):
    """The names of the tests, or of the checks of a command, that failed."""
    found = re.findall(r"✘ Test (\w+)\(.*?failed after", output) + re.findall("^FAILED:? (.*)", output, re.M)
    return sorted(set(found))


def why_impossible(directory, mutation):
    """Why the mutation cannot be made, or `None`."""
    path = directory / mutation["file"]
    if not path.is_file():
        return f"there is no file {mutation['file']}"
    count = path.read_text("utf-8").count(mutation["find"])
    return None if count == 1 else f"its text is in {mutation['file']} {count} times, not once"


def attempt(scratch, mutation):
    """Returns `caught`, `survived` or `broken`, and what caught the mutation or why it is broken."""
    reason = why_impossible(scratch, mutation)
    if reason:
        return "broken", reason
    path = scratch / mutation["file"]
    original = path.read_text("utf-8")
    try:
        path.write_text(original.replace(mutation["find"], mutation["replace"]), "utf-8")
        status, output = build(scratch, mutation["tests"])
        if status != 0:
            errors = [line for line in output.splitlines() if "error:" in line]
            return "broken", "it does not compile: " + " ".join(errors[:2])
        status, output = run(scratch, mutation["tests"])
        if status is None:
            return "caught", "a test that hangs"
        if status != 0:
            # A command that names no failure explains it in its last line.
            last = (output.strip().splitlines() or [""])[-1] if is_command(mutation["tests"]) else ""
            return "caught", ", ".join(failures(output)) or last or "the end of the test process"
        return "survived", mutation["tests"]
    finally:
        path.write_text(original, "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="try only mutations whose name contains WORD")
    parser.add_argument("--list", action="store_true", help="print the mutations and try none")
    parser.add_argument("--check", action="store_true", help="check that each can be made and try none")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if not arguments.words or any(word in m["name"] for word in arguments.words)]
    if not chosen:
        print("mutate.py: no mutation has such a name; --list prints all names", file=sys.stderr)
        return 64
    if arguments.check:
        reasons = [(m["name"], why_impossible(ROOT, m)) for m in chosen]
        for name, reason in reasons:
            if reason:
                print(f"broken    {name}: {reason}")
        return 1 if any(reason for _, reason in reasons) else 0
    if arguments.list:
        for mutation in chosen:
            print(f"{mutation['name']}: {mutation['reason']} ({mutation['tests']})")
        return 0
    counts = {"caught": 0, "survived": 0, "broken": 0}
    of_tests = [m for m in chosen if not is_command(m["tests"])]
    of_commands = [m for m in chosen if is_command(m["tests"])]
    for mutations, copy in (of_tests, copy_for_tests), (of_commands, copy_for_commands):
        if not mutations:
            continue
        with tempfile.TemporaryDirectory(prefix="coffer-mutations-") as name:
            scratch = Path(name)
            copy(scratch)
            print("without a mutation: ", end="", flush=True)
            all_tests = list(dict.fromkeys(m["tests"] for m in mutations))
            for tests in all_tests if copy is copy_for_commands else ["|".join(all_tests)]:
                status, output = build(scratch, tests)
                if status == 0:
                    status, output = run(scratch, tests)
                if status != 0:
                    print(f"{tests} fails\n" + output[-3000:])
                    return 1
            print("the tests pass", flush=True)
            for mutation in mutations:
                start = time.monotonic()
                outcome, detail = attempt(scratch, mutation)
                counts[outcome] += 1
                print(f"{outcome:9} {mutation['name']}: {detail} ({time.monotonic() - start:.0f} s)", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 0 if counts["caught"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
