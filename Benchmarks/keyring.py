#!/usr/bin/python3
"""Measures the tool on a private GNOME keyring, beside secret-tool and Python's keyring, in one run.

usage: Benchmarks/keyring.py SECRET [SECRET]... [--items NUMBER] [--runs NUMBER]

SECRET    the path of a tool, built as Scripts/package builds it; several are compared with each other
--items   how many items the keyring has for `list`, `export` and `run`, 3000 by default
--runs    how often each lookup runs, 200 by default

Prints the median of each command in milliseconds. The commands of one line run in turn, so that a busy machine slows all
of them. Needs `Scripts/setup tests`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Tests/System/keyring"))

from private_session import Session  # noqa: E402

FILL = """
import sys, secretstorage
collection = secretstorage.get_default_collection(secretstorage.dbus_init())
for number in range(int(sys.argv[1])):
    attributes = {"service": "many", "username": f"name {number}", "application": "Python keyring library"}
    collection.create_item(f"Password {number}", attributes, b"a password of usual length", replace=False)
"""
LIST = """
import secretstorage
collection = secretstorage.get_default_collection(secretstorage.dbus_init())
names = sorted(item.get_attributes()["username"] for item in collection.search_items({"service": "many"}))
print("\\n".join(names))
"""


def seconds(command, environment):
    """The time until the command has ended. Spawned, not forked, so that this process costs little."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
    start = time.perf_counter()
    process = os.posix_spawnp(command[0], command, environment, file_actions=actions)
    _, status = os.waitpid(process, 0)
    end = time.perf_counter()
    os.close(null)
    if status != 0:
        sys.exit(f"{' '.join(command)} ended with {status}")
    return end - start


def compare(title, runs, commands, environment):
    """Runs the commands in turn, and prints the medians."""
    times = {name: [] for name in commands}
    for command in commands.values():
        seconds(command, environment)
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(seconds(command, environment))
    first = statistics.median(next(iter(times.values())))
    print(title)
    for name, values in times.items():
        median = statistics.median(values)
        print(f"  {median * 1000:10.2f} ms  {median / first:6.2f}  least {min(values) * 1000:9.2f} ms  {name}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("secret", nargs="+")
    parser.add_argument("--items", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    tools = [os.path.abspath(path) for path in options.secret]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        session = Session(directory)
        try:
            session.start("password")
            environment = session.environment
            store = ["secret-tool", "store", "--label=l", "service", "svc", "username", "one"]
            subprocess.run(store, env=environment, input=b"a password", check=True)
            lookup = ["secret-tool", "lookup", "service", "svc", "username", "one"]

            def ours(*arguments):
                return {f"{tool} {' '.join(arguments)}": [tool, *arguments] for tool in tools}

            compare("one value", options.runs,
                    {"secret-tool lookup": lookup, **ours("--backend", "keyring", "-s", "svc", "get", "one"),
                     **ours("-s", "svc", "get", "one"), **ours("--version")}, environment)  # fmt: skip
            subprocess.run(["/usr/bin/python3", "-c", FILL, str(options.items)], env=environment, check=True)
            keyring = ("--backend", "keyring", "-s", "many")
            compare(f"the names of {options.items} secrets", max(3, options.runs // 40),
                    {"SecretStorage": ["/usr/bin/python3", "-c", LIST], **ours(*keyring, "list")}, environment)  # fmt: skip
            compare(f"the values of {options.items} secrets", max(1, options.runs // 100),
                    {**ours(*keyring, "export"), **ours(*keyring, "run", "--all", "--", "/bin/true")}, environment)  # fmt: skip
        finally:
            session.end()


main()
