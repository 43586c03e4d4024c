#!/usr/bin/python3
"""Measures `secret run --redact` with one value and with many, in one run.

usage: Benchmarks/redact.py SECRET [--secrets NUMBER] [--megabytes NUMBER] [--runs NUMBER]

SECRET       the path of a tool, built as Scripts/package builds it
--secrets    how many values are redacted, 1,000 by default
--megabytes  the size of the output, 200 by default
--runs       how often each command runs, 5 by default

Prints the median seconds of each command, and the ratios. The commands run in turn, so that a busy machine slows all of
them. Then prints how long the start takes with 10 times the values and with a value of 16 MB, more than without redaction,
and how much of a value is shown on a terminal when the output pauses in it, and after how long.
"""

import argparse
import os
import pty
import secrets
import select
import statistics
import subprocess
import tempfile
import time


def seconds(command, environment):
    """The time until the output of the command has passed through a pipe."""
    start = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        while os.read(process.stdout.fileno(), 1 << 16):
            pass
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return time.perf_counter() - start


def pause(command, environment):
    """What a command shows on a terminal until it is silent for half a second, and when the last of it arrived."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(command[0], command, environment)
    shown, start, last = b"", None, None
    while select.select([terminal], [], [], 5 if start is None else 0.5)[0]:
        data = os.read(terminal, 1 << 16)
        last = time.perf_counter()
        start = start or last
        shown += data
    os.close(terminal)
    os.waitpid(process, 0)
    return shown, last - start


def main():
    parser = argparse.ArgumentParser(usage="Benchmarks/redact.py SECRET [option]...")
    parser.add_argument("secret")
    parser.add_argument("--secrets", type=int, default=1000)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    tool = os.path.abspath(options.secret)
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "dumb"}
        values = {f"s{number}": secrets.token_urlsafe(30) for number in range(options.secrets)}
        subprocess.run([tool, "init"], env=environment, check=True, capture_output=True)
        text = "".join(f"{name}={value}\n" for name, value in values.items()).encode()
        subprocess.run([tool, "import", "-"], env=environment, input=text, check=True, capture_output=True)
        output = f"{home}/output"
        line = "2026-01-01T00:00:00Z INFO request id=%d path=/api/users/%d status=200 token=%s\n"
        block = "".join(line % (secrets.randbits(40), number, secrets.token_hex(8)) for number in range(10000)).encode()
        with open(output, "wb") as file:
            for _ in range(options.megabytes * 1_000_000 // len(block) + 1):
                file.write(block)
        redacted = [tool, "run", "--redact"]
        commands = {
            "a pipe without redaction": ["cat", output],
            "one value": redacted + ["--set", "A=s0", "--", "cat", output],
            f"{options.secrets} values": redacted + ["--all", "--", "cat", output],
        }
        times = {name: [] for name in commands}
        for _ in range(options.runs):
            for name, command in commands.items():
                times[name].append(seconds(command, environment))
        medians = [statistics.median(times[name]) for name in commands]
        for name, median in zip(commands, medians):
            print(f"{name}: {median:.2f} s")
        print(f"{options.secrets} values / one value: {medians[2] / medians[1]:.2f}")
        text = "".join(f"t{number}={secrets.token_urlsafe(24)}\n" for number in range(10 * options.secrets)).encode()
        subprocess.run([tool, "-s", "many", "import", "-"], env=environment, input=text, check=True, capture_output=True)
        lines = "".join(secrets.token_urlsafe(48) + "\n" for _ in range(16_000_000 // 65)).encode()
        subprocess.run([tool, "set", "lines"], env=environment, input=lines, check=True, capture_output=True)
        for what, given in [(f"{10 * options.secrets} values", ["-s", "many"]), ("16 MB", ["--file", "A=lines"])]:
            plain, redacting = (
                statistics.median(seconds([tool, "run", *more, *given, "--", "true"], environment) for _ in range(options.runs))
                for more in ([], ["--redact"]))
            print(f"the start with {what}: {plain:.2f} s, and {redacting - plain:.2f} s more with --redact")
        beginning = values["s0"][:20]
        script = f"printf 'shown {beginning}'; sleep 3"
        shown, delay = pause(redacted + ["--set", "A=s0", "--", "sh", "-c", script], environment)
        print(f"of {len(beginning)} bytes of a value, {len(shown) - 6} are shown after {delay * 1000:.0f} ms")


main()
