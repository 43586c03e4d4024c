#!/usr/bin/env python3
"""Breaks the vault in one small way after the other, and sees whether its tests notice.

    Tests/Mutations/run                 all of mutations.py
    Tests/Mutations/run barrier lock    those whose name has one of the words in it
    Tests/Mutations/run --list

The vault's modules and tests are copied to a directory of their own and built there, so the tree is not touched; for
what is tried on the built tool, everything is.
Exit status 1: a mutation survived, or could not be tried.
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

from mutations import MUTATIONS

ROOT = Path(__file__).resolve().parent.parent.parent
DIRECTORIES = ["Sources/CSodium", "Sources/CLinux", "Sources/CLibsecret", "Sources/CofferCore", "Sources/CofferVault",
               "Sources/CofferKeyring", "Sources/Coffer", "Sources/CofferTesting", "Tests/Simulation",
               "Tests/CofferVaultTests", "Tests/Probe", "Tests/Memory", "Tests/Vectors"]
STATIC = ["--disable-default-traits", "--static-swift-stdlib", "-Xswiftc", "-static-executable",
          "--scratch-path", ".build/static"]
# Long enough for the slowest of the tests on a slow machine; a mutation that makes a test hang has been noticed.
PATIENCE = 900


def manifest():
    """The package's own manifest without the targets that are not copied."""
    text = (ROOT / "Package.swift").read_text("utf-8")
    return text + '''
let kept: Set<String> = [
  "CSodium", "CLinux", "CLibsecret", "CofferCore", "CofferVault", "CofferKeyring", "Coffer", "CofferTesting",
  "CofferSimulation", "CofferVaultTests", "CofferProbe", "CofferMemoryTests",
]
package.targets.removeAll { !kept.contains($0.name) }
package.products.removeAll()
package.dependencies.removeAll()
'''


def is_command(tests):
    return "/run " in tests


def copy_for_tests(scratch):
    for name in DIRECTORIES:
        shutil.copytree(ROOT / name, scratch / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    (scratch / "Package.swift").write_text(manifest(), "utf-8")


def copy_for_commands(scratch):
    shutil.copytree(ROOT, scratch, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", ".build", ".git"),
                    dirs_exist_ok=True)


def call(scratch, *arguments):
    """Exit status and output. A status of None: it took longer than anything should."""
    # With CI set a warning would stop the build, and a mutation may well deserve one.
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    process = subprocess.Popen(arguments, cwd=scratch, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None, ""


def build(scratch, tests):
    """Exit status and output. The fuzzer is built by its command; what does not compile is found here before."""
    if is_command(tests):
        flags = STATIC if "STATIC" in tests else []
        for product in "secret", "CofferProbe":
            status, output = call(scratch, "swift", "build", "--product", product, *flags)
            if status != 0:
                break
        return status, output
    return call(scratch, "swift", "build", "--build-tests")


def run(scratch, tests):
    if is_command(tests):
        static = str(scratch / ".build/static/debug/secret")
        dynamic = str(scratch / ".build/debug/secret")
        return call(scratch, *tests.replace("SECRET", dynamic).replace("STATIC", static).split())
    return call(scratch, "swift", "test", "--skip-build", "--filter", tests)


def failures(output):
    """The tests, or what of a command, that are said to have failed."""
    found = re.findall(r"✘ Test (\w+)\(.*?failed after", output) + re.findall("^FAILED:? (.*)", output, re.M)
    return sorted(set(found))


def attempt(scratch, mutation):
    """What became of one mutation: `caught`, `survived` or `broken`, and by what."""
    path = scratch / mutation["file"]
    original = path.read_text("utf-8")
    if original.count(mutation["find"]) != 1:
        return "broken", f"its text is {original.count(mutation['find'])} times in {mutation['file']}"
    try:
        path.write_text(original.replace(mutation["find"], mutation["replace"]), "utf-8")
        status, output = build(scratch, mutation["tests"])
        if status != 0:
            errors = [line for line in output.splitlines() if "error:" in line]
            return "broken", "it does not compile: " + " ".join(errors[:2])
        status, output = run(scratch, mutation["tests"])
        if status is None:
            return "caught", "a test that does not end"
        if status != 0:
            # A command that names no failure has said last what is wrong.
            last = (output.strip().splitlines() or [""])[-1] if is_command(mutation["tests"]) else ""
            return "caught", ", ".join(failures(output)) or last or "the tests' process"
        return "survived", mutation["tests"]
    finally:
        path.write_text(original, "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", help="try only mutations whose name has one of these in it")
    parser.add_argument("--list", action="store_true", help="print the mutations and try none")
    arguments = parser.parse_args()
    chosen = [m for m in MUTATIONS if not arguments.words or any(word in m["name"] for word in arguments.words)]
    if arguments.list:
        for mutation in chosen:
            print(f"{mutation['name']}: {mutation['reason']} ({mutation['tests']})")
        return 0
    if not chosen:
        print("No mutation has such a name.", file=sys.stderr)
        return 1
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
                outcome, by = attempt(scratch, mutation)
                counts[outcome] += 1
                print(f"{outcome:9} {mutation['name']}: {by} ({time.monotonic() - start:.0f} s)", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 0 if counts["caught"] == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
