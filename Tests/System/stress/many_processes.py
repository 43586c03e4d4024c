#!/usr/bin/env python3
"""Many processes change one vault while they are killed at random moments.

usage: many_processes.py SECRET [KILLS [PROCESSES]]

SECRET is the built tool; CofferProbe must be built beside it. Half of the PROCESSES workers (default: 8) run a probe
that keeps the vault open and stores, removes, changes several secrets at once, compacts and changes key slots. The
others run one command of the tool after another. All are killed with SIGKILL until KILLS (default: 200) have died.

Each worker has its own secrets. A change that a process reported as done must be in the vault from then on. A change
that was under way when its process died must be in the vault as a whole or not at all. The vault is verified all the
time. COFFER_STRESS_SEED repeats the choices of a run.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

# The number of keys in StressWorker.swift.
KEYS = 6
# In seconds. A call that takes longer hangs.
TIMEOUT = 600
BUSY = 75


class Failure(Exception):
    pass


class Run:
    """The state that all workers share."""

    def __init__(self, tool, probe, directory, kills):
        self.tool = tool
        self.probe = probe
        os.mkdir(f"{directory}/data")
        self.vault = f"{directory}/data/vault"
        self.environment = {"HOME": directory, "PATH": os.environ["PATH"], "COFFER_VAULT": self.vault}
        self.left = kills
        self.lock = threading.Lock()
        self.failures = []

    def count_kill(self):
        with self.lock:
            self.left -= 1

    def fail(self, text):
        with self.lock:
            self.failures.append(text)

    def is_over(self):
        return self.left <= 0 or self.failures

    def command(self, arguments, given=b"", statuses=(0,)):
        """Runs the tool, and repeats the command if the vault is busy."""
        while True:
            result = subprocess.run(
                [self.tool, *arguments], env=self.environment, input=given, capture_output=True, timeout=TIMEOUT
            )
            if result.returncode in statuses:
                return result
            if result.returncode != BUSY:
                raise Failure(f"{arguments} ended with status {result.returncode}: {result.stderr.decode()}")

    def get(self, name):
        result = self.command(["get", name], statuses=(0, 1))
        return result.stdout if result.returncode == 0 else None

    def look_at_files(self, after_a_rewrite=False):
        """Killed rewrites may leave their temporary files, which the next rewrite removes."""
        found = sorted(os.listdir(os.path.dirname(self.vault)))
        temporary = [name for name in found if re.fullmatch(r"\.vault\.[0-9a-f]{16}\.unfinished", name)]
        if [name for name in found if name not in temporary] != ["vault"] or (after_a_rewrite and temporary):
            self.fail(f"the directory of the vault contains {found}")


class Worker(threading.Thread):
    """Starts processes that change its keys, kills them, and tracks every state that its keys may be in."""

    def __init__(self, number, run, seed):
        super().__init__()
        self.run_state = run
        self.prefix = f"worker{number}"
        self.random = random.Random(seed * 1000 + number)
        self.names = [f"{self.prefix}.{key}" for key in range(KEYS)]
        # Each state is a tuple of values, with None for a missing secret.
        self.possible = {(None,) * KEYS}
        self.acknowledged = 0
        self.kills = 0

    def run(self):
        try:
            while not self.run_state.is_over():
                self.work()
        except (Failure, subprocess.TimeoutExpired, OSError) as failure:
            self.run_state.fail(f"{self.prefix}: {failure}")

    def changed(self, change):
        """The possible states after `change`, which maps names to values."""
        return {
            tuple(change.get(name, value) for name, value in zip(self.names, state)) for state in self.possible
        }

    def see(self, found):
        """Keeps the possible states that agree with the values that were read."""
        agreeing = {
            state for state in self.possible
            if all(found.get(name, value) == value for name, value in zip(self.names, state))
        }
        if not agreeing:
            raise Failure(f"found {found}, expected one of {self.possible}")
        self.possible = agreeing

    def died(self, process):
        if process.wait(timeout=TIMEOUT) != -signal.SIGKILL:
            raise Failure(f"a process ended with status {process.returncode}")
        self.kills += 1
        self.run_state.count_kill()


class ToolWorker(Worker):
    """Runs one command after another. A timer kills half of them."""

    def __init__(self, number, run, seed):
        super().__init__(number, run, seed)
        self.step = 0

    def work(self):
        self.step += 1
        name = f"{self.prefix}.{self.random.randrange(KEYS)}"
        value = None
        if self.random.random() >= 0.2:
            # A large value now and then makes the vault due for a rewrite.
            count = 10_000 if self.random.random() < 0.05 else 2
            value = f"{self.prefix}.{self.step}.".encode() * count
        arguments = ["remove", name] if value is None else ["set", "--verbatim", name]
        changed = self.changed({name: value})
        process = subprocess.Popen(
            [self.run_state.tool, *arguments], env=self.run_state.environment, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )
        killer = None
        if self.random.random() < 0.5:
            killer = threading.Timer(self.random.random() * 0.05, process.kill)
            killer.start()
        try:
            _, errors = process.communicate(value or b"", timeout=TIMEOUT)
        finally:
            process.kill()
        if killer:
            killer.cancel()
        status = process.returncode
        if status == -signal.SIGKILL:
            self.died(process)
            self.possible |= changed
            self.see({name: self.run_state.get(name)})
        elif status == 0 or (value is None and status == 1):
            self.possible = changed
            self.acknowledged += 1
        elif status != BUSY:
            raise Failure(f"{arguments} ended with status {status}: {errors.decode()}")

    def finish(self):
        for name in self.names:
            self.see({name: self.run_state.get(name)})


class ProbeWorker(Worker):
    """Runs probes, which keep the vault open and report each call before and after it."""

    def __init__(self, number, run, seed):
        super().__init__(number, run, seed)
        # No two processes write the same value.
        self.lives = 0
        self.interrupted = 0
        self.under_way = None

    def work(self):
        self.lives += 1
        process = subprocess.Popen(
            [self.run_state.probe, "stress", self.run_state.vault, self.prefix, str(self.lives * 1_000_000)],
            env=self.run_state.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        try:
            self.follow(process)
            process.kill()
            for line in process.stdout.read().decode().splitlines():
                self.hear(line)
            errors = process.stderr.read().decode()
            if errors:
                raise Failure(errors)
            self.died(process)
            if self.under_way:
                self.interrupted += 1
                self.possible |= self.under_way
                self.under_way = None
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

    def follow(self, process):
        """Reads a random number of lines, and then waits for a part of the duration of a call."""
        for _ in range(self.random.randrange(24)):
            line = process.stdout.readline().decode()
            if not line.endswith("\n"):
                return
            self.hear(line)
        time.sleep(self.random.random() * 0.02)

    def hear(self, line):
        word, *fields = line.split()
        change = {f"{self.prefix}.{key}": None if value == "-" else value
                  for key, value in (field.split("=") for field in fields)}
        if word == "intent":
            self.under_way = self.changed(change)
        elif word == "done":
            self.possible, self.under_way = self.under_way, None
            self.acknowledged += 1
        elif word == "refused":
            self.under_way = None
        elif word in ("snapshot", "read"):
            self.see(change)
        else:
            raise Failure(f"the probe printed {line}")

    def finish(self):
        for name in self.names:
            value = self.run_state.get(name)
            if value is not None:
                step = value.split(b".")[1].decode()
                unit = f"{self.prefix}.{step}.".encode()
                count = len(value) // len(unit)
                value = f"{step}x{count}" if value == unit * count else "?"
            self.see({name: value})


def main():
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        sys.exit(0)
    is_valid = len(sys.argv) in (2, 3, 4) and all(number.isdigit() for number in sys.argv[2:])
    if not is_valid or not os.path.isfile(sys.argv[1]):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    tool = os.path.abspath(sys.argv[1])
    probe = os.path.join(os.path.dirname(tool), "CofferProbe")
    if not os.path.exists(probe):
        sys.exit(f"There is no {probe}. Build the product CofferProbe beside {tool}.")
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    processes = int(sys.argv[3]) if len(sys.argv) > 3 else 8
    seed = int(os.environ.get("COFFER_STRESS_SEED", time.time()))
    with tempfile.TemporaryDirectory() as directory:
        run = Run(tool, probe, directory, kills)
        run.command(["init"])
        workers = [(ProbeWorker if number % 2 == 0 else ToolWorker)(number, run, seed) for number in range(processes)]
        for worker in workers:
            worker.start()
        verified = 0
        try:
            while any(worker.is_alive() for worker in workers):
                run.command(["verify"])
                run.look_at_files()
                verified += 1
                workers[0].join(timeout=2)
            for worker in workers:
                worker.join()
            run.command(["verify"])
            # A new limit makes a new file.
            run.command(["history-limit", "--versions", "9", "--purge"])
            run.look_at_files(after_a_rewrite=True)
        except (Failure, subprocess.TimeoutExpired) as failure:
            run.fail(str(failure))
        for worker in workers:
            worker.join()
            try:
                worker.finish()
            except Failure as failure:
                run.fail(f"{worker.prefix}: {failure}")
        print(
            f"seed {seed}: {processes} processes, {sum(worker.kills for worker in workers)} kills, "
            f"{sum(worker.kills for worker in workers[::2])} of them with the vault open and "
            f"{sum(worker.interrupted for worker in workers[::2])} of those during a call, "
            f"{sum(worker.acknowledged for worker in workers)} acknowledged changes, {verified + 1} verifications, "
            f"{len(run.failures)} failures"
        )
        for failure in run.failures:
            print(f"FAILED: {failure[:2000]}")
        sys.exit(1 if run.failures else 0)


main()
