#!/usr/bin/python3
"""Searches the memory and the registers of the tool at every system call, for every key, passphrase and value.

usage: every_stop.py [--keep] [--hits] [--at-random N] SECRET [SCENARIO]...

SECRET is the built tool; optimised builds, static and with `-z now`, are the ones that count. If CofferProbe is beside
it, the library's own scenarios are searched too. Each scenario runs in a private home under `stops.c`, which stops the
process at the entry and the exit of every system call, and records every written page and all registers. The secrets
are then derived from the vault files with the second implementation in Tests/Vectors: master keys, subkeys, former
subkeys, the key of each slot, what Argon2 returns, the keys of single messages, keys in binary and as text, passphrases,
and values. Any 8 consecutive bytes of one, raw or as 16 hexadecimal digits or 11 characters of base64, count as found.
They may be in guarded memory, and at the end of the process not even there. What is documented to be elsewhere is
allowed where the scenario says so, and printed at the end with its reason and the number of hits.

--keep         leaves the recordings, and prints where
--hits         prints every hit, allowed ones included
--at-random N  stops each scenario at random moments instead, in N runs, and prints what is found: inside a call of
               libsodium its registers and stack hold what it works on

A scenario that is not possible here is left out; with CI in the environment that is a failure.

Exit status: 0 nothing was found, 1 something was found, 64 wrong usage, 70 the search is not possible here.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import scenarios
from secrets_of_vault import spellings
from setting import NotPossible, ScenarioFailed, Setting, compiled


def parsed():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "), description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--hits", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--at-random", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("secret", help=argparse.SUPPRESS)
    parser.add_argument("scenarios", nargs="*", help=argparse.SUPPRESS)
    parser.error = lambda message: (print(f"every_stop.py: {message}", file=sys.stderr), sys.exit(64))
    return parser.parse_args()


class Totals:
    def __init__(self):
        self.processes = self.stops = self.bytes = self.secrets = 0
        self.allowed, self.found = Counter(), []


def run(name, scenario, arguments, tracer, totals, mode):
    directory = tempfile.mkdtemp(prefix="coffer-memory-", dir=os.path.realpath(tempfile.gettempdir()))
    try:
        setting = Setting(os.path.abspath(arguments.secret), Path(directory), tracer, mode)
        scenario(setting)
        for recording in setting.recordings:
            secrets = setting.secrets(recording)
            totals.processes += 1
            totals.stops += recording.stops
            totals.bytes += recording.bytes
            totals.secrets += len(secrets)
            hits = recording.search(spellings(secrets), tracer)
            if arguments.hits:
                for hit in hits:
                    print(f"  {recording.command}: {hit}")
            report(name, recording, hits, totals)
    finally:
        if arguments.keep:
            print(f"{name}: {directory}")
        else:
            shutil.rmtree(directory)


def report(name, recording, hits, totals):
    groups = {}
    for hit in hits:
        if hit.is_guarded and not hit.outlives(recording):
            continue
        reason = recording.reason_to_allow(hit)
        if reason:
            totals.allowed[reason] += 1
            continue
        groups.setdefault((hit.secret, hit.place), []).append(hit)
    if recording.has_leak:
        if not any(place == "[heap]" for _, place in groups):
            totals.found.append(name)
            print(f"FAILED: {name}: the search does not find a deliberate leak")
        return
    for (secret, place), found in sorted(groups.items()):
        stops = len(set().union(*(range(hit.first, hit.last + 1) for hit in found)))
        calls = ", ".join(dict.fromkeys(hit.calls[0] for hit in found))
        text = (f"{name}: {recording.command}: {max(hit.length for hit in found)} bytes of {secret} in {place}, "
                f"at {stops} of {recording.stops} stops, first seen at {calls[:150]}")
        totals.found.append(text)
        print(f"FOUND: {text}", flush=True)


def main():
    arguments = parsed()
    all_scenarios = scenarios.named(os.path.abspath(arguments.secret))
    unknown = set(arguments.scenarios) - set(all_scenarios)
    if unknown or not os.access(arguments.secret, os.X_OK):
        names = "\n".join(f"  {name}" for name in all_scenarios)
        print(f"{__doc__}\nThe scenarios:\n{names}", file=sys.stderr)
        sys.exit(64)
    os.umask(0o077)
    started, totals = time.monotonic(), Totals()
    with tempfile.TemporaryDirectory() as directory:
        try:
            tracer = compiled(directory)
        except NotPossible as error:
            print(f"every_stop.py: {error}", file=sys.stderr)
            sys.exit(70)
        for _ in range(max(1, arguments.at_random)):
            for name in arguments.scenarios or all_scenarios:
                mode = "sample" if arguments.at_random else "record"
                try:
                    run(name, all_scenarios[name], arguments, tracer, totals, mode)
                except NotPossible as error:
                    print(f"left out: {name}: {error}")
                    if "CI" in os.environ:
                        totals.found.append(name)
                except ScenarioFailed as error:
                    print(f"FAILED: {name}: {error}")
                    totals.found.append(name)
    for reason, hits in sorted(totals.allowed.items()):
        print(f"allowed: {reason}: {hits} hits")
    print(f"{totals.processes} processes, {totals.stops} stops, {totals.bytes >> 20} MiB of memory, {totals.secrets} "
          f"secrets searched for in {time.monotonic() - started:.0f} s; found or failed: {len(totals.found)}")
    sys.exit(1 if totals.found else 0)


if __name__ == "__main__":
    main()
