"""Runs the tests of the mutated package: which mutations each test reaches, and whether a mutation is caught."""

import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from mutated_package import REACHED_SIZE

PR_SET_CHILD_SUBREAPER = 36
# What a mutated program may take more than the program: twenty seconds, and six times its time.
PATIENCE, SLOWNESS = 20, 6
# More than any test takes, in seconds.
LONGEST = 600
# A few histories and a few kills find what many find, except for rare orders of events.
LIMITS = {"COFFER_CRASH_HISTORIES": "24"}
# Tests of the tool that kill it at many of its calls, and so take longer than all others together.
LEFT_OUT = ("CofferToolTests.SuddenDeathTests/", "CofferToolTests.ProtocolTests/")


def become_reaper():
    """Makes orphaned processes of tests children of this process, so that `kill_children` finds them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """The children of this process, and those that it has inherited from them."""
    while True:
        try:
            tasks = Path("/proc/self/task").glob("*/children")
            return [int(child) for task in tasks for child in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass  # A thread has ended in the meantime. Another one has its children now.


def kill_children():
    """Kills every child of this process, also those that it inherits meanwhile, and waits for them."""
    while found := children():
        for child in found:
            try:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
            except (ProcessLookupError, ChildProcessError):
                pass


def end_all():
    """Kills every child of this process, and theirs, which may hold the pipe that this process reads."""
    for _ in range(20):
        for child in children():
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)


# A test with an argument for each file of this directory. Each is a test here, because all take long.
SCENARIOS = "CofferToolTests.ScenarioTests/scenario(_:)"


def scenarios(directory):
    return sorted(path.name for path in (directory / "Tests/Unit/CofferToolTests/Scenarios").glob("*.txt"))


def pattern(names):
    """A filter that selects the tests with these names alone."""
    names = {name.split(" ")[0] for name in names}
    return "^(" + "|".join(re.escape(name).replace("/", "\\/") for name in names) + ")(/|$)"


class TestBundle:
    def __init__(self, package):
        self.program = str(package.directory / ".build/debug/cofferPackageTests.xctest")
        self.directory = package.directory

    def state(self):
        """Changes when the program does."""
        status = os.stat(self.program)
        return f"{status.st_mtime_ns} {status.st_size}"

    def names(self):
        done = subprocess.run([self.program, "--testing-library", "swift-testing", "--list-tests"], check=True,
                              cwd=self.directory, stdout=subprocess.PIPE, text=True)
        names = [name for name in done.stdout.split("\n") if "/" in name and not name.startswith(LEFT_OUT)]
        if SCENARIOS in names:
            names.remove(SCENARIOS)
            names += [f"{SCENARIOS} {name}" for name in scenarios(self.directory)]
        return names

    def run(self, names, mutation, seconds, reached=None):
        """Runs tests until one fails. Returns what failed, or None.

        `seconds` is how long they take without a mutation. With `reached`, every test runs to its end, but for at most
        `seconds`, and the file of that name shows the mutations that they came to.
        """
        deadline = time.monotonic() + (seconds if reached else PATIENCE + SLOWNESS * seconds)
        temporary = tempfile.mkdtemp(prefix="coffer-mutant-")
        os.chmod(temporary, 0o755)  # for tests that change the user
        environment = {name: value for name, value in os.environ.items() if name != "CI"} | LIMITS | {
            "TMPDIR": temporary, "COFFER_MUTANT": str(mutation), "SWIFT_BACKTRACE": "enable=no",
            "COFFER_WITHOUT_SCENARIOS": " ".join(
                name for name in scenarios(self.directory) if f"{SCENARIOS} {name}" not in names)}
        if reached:
            environment["COFFER_MUTANTS_REACHED"] = reached
        command = [self.program, "--testing-library", "swift-testing", "--filter", pattern(names)]
        process = subprocess.Popen(command, cwd=self.directory, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                                   start_new_session=True)
        ended = threading.Timer(max(0, deadline - time.monotonic()), end_all)
        ended.start()
        failure = None
        try:
            for line in process.stdout:
                found = re.match(r"\S+ Test (\S+\(.*?\)) .*(recorded an issue|failed after)", line)
                if found and not line.startswith("✔"):
                    failure = found.group(1)
                    if not reached:
                        break
            else:
                if process.wait() != 0 and failure is None:
                    failure = "a hang" if time.monotonic() >= deadline else "a crash"
        finally:
            ended.cancel()
            ended.join()
            process.kill()
            process.stdout.close()
            process.wait()
            kill_children()
            shutil.rmtree(temporary, ignore_errors=True)
        return failure


def record(bundle, name, file, longest):
    """Returns what failed, how long the test takes in seconds, and the numbers of the mutations that it reaches.

    These are None if the test takes longer than `longest` seconds.
    """
    Path(file).write_bytes(bytes(REACHED_SIZE))
    start = time.monotonic()
    failure = bundle.run([name], 0, longest, reached=file)
    seconds = time.monotonic() - start
    if failure == "a hang" and longest < LONGEST:
        return None, seconds, None
    return failure, seconds, [number for number, byte in enumerate(Path(file).read_bytes()) if byte]


# The time that a process of tests takes to begin, in seconds, which is part of each test's time.
START = 0.08


def batches(tests, reach):
    """The tests in groups that run in one process each: quick ones first, so that most mutations cost little."""
    groups, limit, total = [[]], 1.0, 0.0
    for name in sorted(tests, key=lambda name: reach[name]["seconds"]):
        seconds = max(0.005, reach[name]["seconds"] - START)
        if groups[-1] and total + seconds > limit:
            groups.append([])
            total, limit = 0.0, limit * 3
        groups[-1].append(name)
        total += seconds
    return [group for group in groups if group]


def attempt(bundle, mutation, tests, reach):
    """Returns what catches the mutation, or None."""
    for group in batches(tests, reach):
        failure = bundle.run(group, mutation, sum(reach[name]["seconds"] for name in group))
        if failure:
            return f"{failure} in {group[0]}" if failure.startswith("a ") and len(group) == 1 else failure
    return None
