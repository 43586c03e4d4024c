#!/usr/bin/env python3
"""Breaks the code in each of the ways of mutations.py and checks that a test notices.

usage: mutate.py [--list | --check] [--quarter N] [WORD]...

Tries the mutations whose name, function or tests contain one of the words; without a word, all of them, which takes two
hours. With --quarter it tries every fourth one: four numbers that follow one another try all. --list prints them. --check
only checks that each can be made, which takes a moment.

A copy of the package in .build/mutations contains every mutation, each switched off. It is built once, and one mutation
after another is switched on while its tests run. The build and the tests run as an unprivileged user in namespaces of
their own (sandbox.py), and nowhere else.

A mutation is `caught` if its tests fail, `survived` if they pass, and `broken` if it cannot be made or does not compile.

Exit status: 0 every mutation was caught, 1 a mutation survived or is broken, or the tests fail without a mutation,
64 no mutation has such a name.
"""

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import mutated_package
import sandbox
from mutations import MUTATIONS
from swift_source import Impossible

# In the sandbox.
ORIGINAL, PACKAGE = Path("/tmp/original"), Path("/tmp/package")
# A few crash histories find what many find, except for rare orders of events.
ENVIRONMENT = {"COFFER_CRASH_HISTORIES": "24", "COFFER_TOOL": "1"}
# In seconds: what a test may take without a mutation, and what it may take more with one, besides six times its time.
LONGEST, PATIENCE, SLOWNESS = 900, 30, 6


def chosen(words, quarter):
    for number, mutation in enumerate(MUTATIONS, 1):
        mutation.number = number
    return [m for m in MUTATIONS
            if (not words or any(word in text for word in words for text in (m.name, m.function, m.tests)))
            and (quarter is None or m.number % 4 == quarter % 4)]


def check(mutations, sources):
    """Prints the mutations that cannot be made, and returns the others."""
    possible = []
    for mutation in mutations:
        try:
            sources.changed_body(mutation)
            possible.append(mutation)
        except Impossible as reason:
            print(f"broken    {mutation.name}: {mutation.function}: {reason}", flush=True)
    return possible


def call(*command, seconds=LONGEST):
    """Returns the exit status and the output. The status is None if the command took longer."""
    process = subprocess.Popen(command, cwd=PACKAGE, env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return None, ""
    finally:
        end_all(process)


def end_all(process):
    """Ends what a call has left running. In the sandbox, the processes of its namespace are no others' (kill(2))."""
    if os.getpid() != 1:
        sys.exit("This is not the first process of a sandbox.")
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    process.wait()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def is_command(tests):
    return (PACKAGE / tests.split()[0]).is_file()


def run(tests, seconds=LONGEST):
    if not is_command(tests):
        return call("swift", "test", "--skip-build", "--filter", tests, seconds=seconds)
    command = tests.replace("SECRET", ".build/debug/secret").replace("STATIC", ".build/static/release/secret").split()
    if "every_stop" in command[0]:
        # The tracer must be root, and is root of a namespace in which it still is this user.
        command = ["unshare", "--user", "--map-root-user", *command]
    return call(*command, seconds=seconds)


def built(sources, mutations, has_static):
    """Builds the package with the mutations, and with `has_static` the static program. Returns those that compile, or
    `None` if the package does not."""
    commands = [("swift", "build", "--build-tests", "--disable-automatic-resolution")]
    if has_static:
        commands.append(("Scripts/static", "secret", "CofferProbe"))
    while mutations:
        lines = mutated_package.write(sources, mutations, PACKAGE)
        for command in commands:
            status, output = call(*command, seconds=None)
            if status != 0:
                break
        else:
            return mutations
        broken = {}
        for path, line, message in re.findall(rf"^{PACKAGE}/(\S+?):(\d+):\d+: error: (.*)$", output, re.M):
            for first, last, number in lines[path]:
                if first <= int(line) <= last:
                    broken.setdefault(number, message)
        if not broken:
            print("The build fails.\n" + output[-5000:])
            return None
        for mutation in mutations:
            if mutation.number in broken:
                print(f"broken    {mutation.name}: it does not compile: {broken[mutation.number]}", flush=True)
        mutations = [m for m in mutations if m.number not in broken]
    return mutations


def switch(number):
    mutated_package.SWITCH.unlink(missing_ok=True)
    if number:
        mutated_package.SWITCH.symlink_to(str(number))


def attempt(mutation, seconds):
    """Returns `caught` or `survived`, and what caught the mutation."""
    switch(mutation.number)
    status, output = run(mutation.tests, seconds)
    switch(None)
    if status == 0:
        return "survived", mutation.tests
    if status is None:
        return "caught", "a test that hangs"
    found = re.findall(r"✘ Test (\w+)\(.*?failed after", output) + re.findall("^FAILED:? (.*)", output, re.M)
    # A command that names no failure explains it in its last line.
    last = (output.strip().splitlines() or [""])[-1]
    return "caught", ", ".join(sorted(set(found)))[:200] or last[:200]


def why_useless(tests):
    """Why tests cannot notice a mutation: they fail without one, or there are none. Otherwise `None`."""
    status, output = run(tests)
    if status != 0:
        return f"{tests} fails without a mutation, status {status}\n{output[-3000:]}"
    if not is_command(tests) and "Test run with 0 tests" in output:
        return f"no test has the name {tests}"
    return None


def main_inside(words, quarter):
    sandbox.refuse_outside()
    # A program that is searched for in a directory that may not be read is not missing but denied.
    os.environ["PATH"] = ":".join(path for path in os.environ["PATH"].split(":") if os.access(path, os.R_OK | os.X_OK))
    wanted, start = chosen(words, quarter), time.monotonic()
    sources = mutated_package.Sources(ORIGINAL)
    # All of them, whichever are tried, so that the next run has little to compile.
    possible = built(sources, check(MUTATIONS, sources), any("STATIC" in m.tests for m in wanted))
    if possible is None:
        return 1
    mutations = [m for m in wanted if m in possible]
    print(f"built after {time.monotonic() - start:.0f} s", flush=True)
    counts = {"caught": 0, "survived": 0, "broken": len(wanted) - len(mutations)}
    for tests in dict.fromkeys(m.tests for m in mutations):
        group = [m for m in mutations if m.tests == tests]
        begin = time.monotonic()
        reason = why_useless(tests)
        seconds = time.monotonic() - begin
        if reason:
            counts["broken"] += len(group)
            print(f"broken    {len(group)} mutations: {reason}", flush=True)
            continue
        for mutation in group:
            begin = time.monotonic()
            outcome, detail = attempt(mutation, PATIENCE + SLOWNESS * seconds)
            counts[outcome] += 1
            print(f"{outcome:9} {mutation.name}: {detail} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()), f"in {time.monotonic() - start:.0f} s")
    return 0 if counts["caught"] == len(wanted) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="try only what contains WORD")
    parser.add_argument("--list", action="store_true", help="print the mutations and try none")
    parser.add_argument("--check", action="store_true", help="check that each can be made and try none")
    parser.add_argument("--quarter", type=int, metavar="N", help="try every fourth, beginning with number N")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        return main_inside(arguments.words, arguments.quarter)
    root = Path(__file__).resolve().parents[3]
    mutations = chosen(arguments.words, arguments.quarter)
    if not mutations:
        print("mutate.py: no mutation has such a name; --list prints all names", file=sys.stderr)
        return 64
    if arguments.list:
        for mutation in mutations:
            print(f"{mutation.name}: {mutation.function}: {mutation.reason} ({mutation.tests})")
        return 0
    possible = check(mutations, mutated_package.Sources(root))
    if arguments.check or not possible:
        return 0 if len(possible) == len(mutations) else 1
    scratch = root / ".build/mutations"
    if not (root / ".build/checkouts").is_dir():
        # There is no network in the sandbox.
        subprocess.run(["swift", "package", "resolve"], cwd=root, env=os.environ | ENVIRONMENT, check=True)
    mutated_package.copy(root, scratch / PACKAGE.name, scratch / ORIGINAL.name)
    quarter = [] if arguments.quarter is None else ["--quarter", str(arguments.quarter)]
    return sandbox.enter(scratch, Path(__file__).name, ["--inside", *quarter, *arguments.words])


if __name__ == "__main__":
    sys.exit(main())
