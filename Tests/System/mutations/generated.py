#!/usr/bin/env python3
"""Makes every small change to the code of the vault that it can think of, and checks that a test notices each.

usage: generated.py [--sample N [--seed S]] [--only WORD]... [--survivors] [--with-equivalent] [--list] [--record]
                    [--remember] [--minutes N] [--longest SECONDS [--at-least PERCENT]] [--vault | --keyring]
                    [--tests WORD]... [--workers N] [--skip-build]

The changes are to CofferSystem, CofferVaultFormat and CofferVault, or to CofferKeyring: comparisons, conditions,
constants, arithmetic, flags, calls and assignments that are left out, texts, and randomness that is constant. A copy of
the package contains all of them, each switched off. It is built once, in .build/mutations; a change that the compiler
rejects is left out.
Then each test runs alone and records which changes it reaches, and each change is switched on while the tests run that
reach it, quickest first, until one fails.

A change that no test notices must be in equivalent.txt, with the reason why it makes no difference that counts.

--sample N          tries N changes, chosen by kind and file; --seed S chooses others
--only WORD         tries those whose description contains WORD
--survivors         tries those that survived the last time
--with-equivalent   also tries those of equivalent.txt
--list              prints the changes and tries none
--remember          writes rejected.txt: what the compiler rejects, which a first build then need not find out
--record            records again which tests reach what; otherwise only for new tests
--minutes N         tries changes for N minutes; the next run goes on if the sources are the same
--longest SECONDS   leaves out tests that take longer alone: a quick look
--at-least PERCENT  with --longest: exit status 0 if so many are caught, because the tests left out catch others
--vault             builds and runs only the tests of CofferSystem and CofferVault
--keyring           changes CofferKeyring, and runs its tests, also those with a real keyring
--tests WORD        runs only tests whose name contains WORD: a quick look
--workers N         tries N changes at a time; 1 unless given
--skip-build        runs what was built the last time, if only tests were changed since

Exit status: 0 every change was caught or is in equivalent.txt, 1 a change survived, or the tests fail without one,
64 wrong usage.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

import mutated_tests
from mutated_package import KEYRING, MODULES, ROOT, BuildFailure, MutatedPackage

SCRATCH = ROOT / ".build/mutations"
EQUIVALENT = Path(__file__).resolve().parent / "equivalent.txt"
TEST_TARGETS = ["CofferSystemTests", "CofferVaultTests", "CofferConfigurationTests", "CofferFuzzTests", "CofferToolTests"]
KEYRING_TEST_TARGETS = ["CofferKeyringTests", "CofferKeyringSystemTests"]


def equivalents():
    """The reasons by the keys of the changes. A paragraph is a reason, and then the changes, indented."""
    reasons, reason = {}, []
    lines = EQUIVALENT.read_text("utf-8").split("\n") if EQUIVALENT.is_file() else []
    for line in lines:
        if line.startswith("#"):
            continue
        if line.startswith("    "):
            reasons[line.strip()] = " ".join(reason)
        elif line.strip():
            reason.append(line.strip())
        else:
            reason = []
    return reasons


def digest(*parts):
    found = hashlib.sha256()
    for part in parts:
        found.update(str(part).encode())
    return found.hexdigest()


def load(package, name, default):
    path = package.scratch / name
    return json.loads(path.read_text("utf-8")) if path.is_file() else default


def save(package, name, value):
    path = package.scratch / name
    path.with_suffix(".new").write_text(json.dumps(value, indent=0), "utf-8")
    path.with_suffix(".new").replace(path)


def in_parallel(work, inputs, workers):
    """Yields the input and the result of each call, as they come."""
    if not inputs:
        return
    with multiprocessing.Pool(min(workers, len(inputs)), initializer=mutated_tests.become_reaper) as pool:
        yield from pool.imap_unordered(work, inputs)


class Recorder:
    def __init__(self, bundle, longest):
        self.bundle, self.longest = bundle, longest

    def __call__(self, name):
        file = self.bundle.directory.parent / f"reached-{os.getpid()}"
        result = mutated_tests.record(self.bundle, name, str(file), self.longest)
        if result[0]:
            # Once more, because the machine may be under load.
            result = mutated_tests.record(self.bundle, name, str(file), self.longest)
        return name, result


class Attempt:
    def __init__(self, bundle, reach, longest, end):
        self.bundle, self.reach, self.longest, self.end = bundle, reach, longest, end

    def __call__(self, mutation):
        if time.monotonic() > self.end:
            return mutation, None
        tests = [name for name, test in self.reach.items()
                 if mutation.number in test["reached"] and test["seconds"] <= self.longest]
        start = time.monotonic()
        caught = mutated_tests.attempt(self.bundle, mutation.number, tests, self.reach) if tests else None
        return mutation, {"caught": caught, "tests": len(tests), "seconds": round(time.monotonic() - start, 1)}


def recorded(package, bundle, arguments):
    """Which mutations each test reaches, in how many seconds, and the tests that fail without a mutation."""
    known, sources = load(package, "reach.json", {}), package.sources_digest()
    # A test that was changed reaches about what it did; with --record every test is recorded again.
    if known.get("state") != sources or arguments.record:
        known = {"state": sources, "tests": {}}
    longest = arguments.longest
    names = [name for name in bundle.names() if not arguments.tests or any(word in name for word in arguments.tests)]
    failed = []

    def must_run(name):
        test = known["tests"].get(name)
        return test is None or test.get("over", longest) < longest

    for name, result in in_parallel(
            Recorder(bundle, longest), [name for name in names if must_run(name)], arguments.workers):
        failure, seconds, reached = result
        if failure:
            failed.append(f"{name}: {failure}")
            continue
        # A test that took too long is tried again when more is allowed.
        too_long = reached is None
        known["tests"][name] = {"over": longest} if too_long else {"seconds": round(seconds, 3), "reached": reached}
        save(package, "reach.json", known)
    reach = {name: test | {"reached": set(test["reached"])} for name, test in known["tests"].items()
             if test.get("reached") and name in names}
    return reach, failed


def sampled(mutations, count, seed):
    """As many of each kind and file as their share, chosen by a hash, so that the choice outlives other changes."""
    groups = defaultdict(list)
    for mutation in mutations:
        groups[mutation.kind, mutation.file].append(mutation)
    ranked = []
    for group in groups.values():
        group.sort(key=lambda m: digest(seed, m.key))
        ranked += [((place + 0.5) / len(group), digest(seed, m.key), m) for place, m in enumerate(group)]
    return [m for _, _, m in sorted(ranked, key=lambda entry: entry[:2])[:count]]


def chosen(arguments, package, reasons, results):
    mutations = package.compiled()
    if not arguments.with_equivalent:
        mutations = [m for m in mutations if m.key not in reasons]
    if arguments.only:
        mutations = [m for m in mutations if any(word in m.key for word in arguments.only)]
    if arguments.survivors:
        survived = {key for key, result in results.items() if not result["caught"]}
        mutations = [m for m in mutations if m.key in survived]
    if arguments.sample:
        mutations = sampled(mutations, arguments.sample, arguments.seed)
    return mutations


def report(package, mutations, results, reasons, at_least):
    survivors = [m for m in mutations if not results[m.key]["caught"]]
    print("\nby kind:")
    for kind in sorted({m.kind for m in mutations}):
        of_kind = [m for m in mutations if m.kind == kind]
        caught = sum(bool(results[m.key]["caught"]) for m in of_kind)
        print(f"  {kind:11} {len(of_kind):5} tried, {caught:5} caught")
    stale = [key for key in reasons if key not in {m.key for m in package.mutations}]
    for key in stale:
        print(f"no longer in the code, so its reason can go: {key}")
    unexplained = [m for m in survivors if m.key not in reasons]
    print(f"{len(package.mutations)} changes, {len(package.mutations) - len(package.compiled())} of them rejected by the compiler; "
          f"{len(mutations)} tried, {len(mutations) - len(survivors)} caught, {len(survivors)} survived, "
          f"{len(survivors) - len(unexplained)} of them with a reason; {len(reasons)} reasons")
    for mutation in unexplained:
        print(f"survived: line {mutation.line}, {results[mutation.key]['tests']} tests: {mutation.key}")
    if at_least is not None:
        return 0 if len(mutations) - len(survivors) >= at_least / 100 * len(mutations) else 1
    return 1 if unexplained else 0


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", action="append")
    parser.add_argument("--tests", action="append")
    parser.add_argument("--at-least", type=float)
    for option in "--skip-build", "--survivors", "--vault", "--keyring", "--with-equivalent", "--record", "--remember", "--list":
        parser.add_argument(option, action="store_true")
    parser.add_argument("--longest", type=float, default=mutated_tests.LONGEST)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--workers", type=int, default=1)
    try:
        arguments = parser.parse_args()
    except SystemExit:
        return 64
    if arguments.help:
        print(__doc__)
        return 0
    if arguments.keyring:
        package = MutatedPackage(SCRATCH / "keyring", KEYRING_TEST_TARGETS, KEYRING)
    else:
        package = MutatedPackage(SCRATCH, TEST_TARGETS[:2] if arguments.vault else TEST_TARGETS, MODULES)
    package.scratch.mkdir(parents=True, exist_ok=True)
    sources = tuple(f"Sources/{module}/" for module in package.modules)
    reasons = {key: reason for key, reason in equivalents().items() if key.startswith(sources)}
    if arguments.list:
        for mutation in chosen(arguments, package, reasons, load(package, "results.json", {})):
            print(f"{mutation.line:4} {mutation.key}")
        return 0
    start = time.monotonic()
    try:
        if arguments.skip_build:
            package.load_rejected()
        else:
            package.build()
    except BuildFailure as failure:
        print(f"generated.py: {failure}", file=sys.stderr)
        return 1
    if arguments.remember:
        package.remember()
    print(f"{len(package.mutations)} changes, {len(package.compiled())} compile; "
          f"built after {time.monotonic() - start:.0f} s", flush=True)
    bundle = mutated_tests.TestBundle(package)
    state = bundle.state()
    reach, failed = recorded(package, bundle, arguments)
    if failed:
        print("left out, because they fail without a change:", *failed, sep="\n  ")
    print(f"{len(reach)} tests reach a change; recorded after {time.monotonic() - start:.0f} s", flush=True)
    end = time.monotonic() + 60 * arguments.minutes
    # What one test catches is caught, whatever other tests there are. What survived is tried again with other tests.
    states = {True: package.sources_digest(), False: f"{state} {arguments.longest} {arguments.tests or ''}"}

    def is_known(mutation):
        result = results.get(mutation.key)
        return bool(result) and result["state"] == states[bool(result["caught"])]

    results = load(package, "results.json", {})
    mutations = chosen(arguments, package, reasons, results)
    left = [m for m in mutations if not is_known(m)]
    left = sampled(left, len(left), arguments.seed)
    for count, (mutation, result) in enumerate(in_parallel(Attempt(bundle, reach, arguments.longest, end), left, arguments.workers)):
        if not result:
            continue
        results[mutation.key] = result | {"state": states[bool(result["caught"])]}
        outcome = f"caught by {result['caught']}" if result["caught"] else f"SURVIVED {result['tests']} tests"
        print(f"{result['seconds']:5.1f} s  {mutation.key}: {outcome}", flush=True)
        if count % 20 == 0:
            save(package, "results.json", results)
    save(package, "results.json", results)
    tried = [m for m in mutations if is_known(m)]
    if len(tried) < len(mutations):
        print(f"stopped with {len(mutations) - len(tried)} changes left")
        if arguments.at_least is None or not tried:
            return 1
        mutations = tried
    status = report(package, mutations, results, reasons, arguments.at_least)
    print(f"ended after {time.monotonic() - start:.0f} s")
    return 1 if failed else status


if __name__ == "__main__":
    sys.exit(main())
