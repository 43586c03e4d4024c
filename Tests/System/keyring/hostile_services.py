#!/usr/bin/python3
"""Tests the tool on Secret Services that answer against the protocol, or never.

usage: hostile_services.py SECRET [NAME]...

SECRET    the path of the tool
NAME      only these services of KeyringTests/Fixtures/scripted_service.py

Every command must end by itself within 25 seconds, with a message and a status of its own, and GLib must find no
error in what the tool does: its warnings end the process here. Exit status: 0 if every check passed, 1 if not, 64 for
wrong usage.
"""

import os
import re
import sys
import tempfile

from private_session import FAILURES, Session, check

HOSTILE = (
    "search-strings search-numbers search-nothing search-one search-huge search-foreign strings-for-paths "
    "nothing-for-paths properties-numbers properties-nothing session-plain session-string session-numbers "
    "session-nothing session-no-path session-long-key session-no-key session-other-key secret-short secret-string "
    "secret-other-session secret-locked secret-no-session secret-huge item-vanishes errors ends"
).split()
COMMANDS = (["get", "alice"], ["list"], ["info", "alice"], ["find", "alice"], ["set", "alice"], ["remove", "alice"],
            ["move", "alice", "bob"], ["export"], ["doctor"])
# 1 is “no such secret”: true for a service that finds nothing.
STATUSES = {0, 1, 64, 69, 73, 74, 75, 77}
# The commands that cannot succeed, or find that there is no secret, on any of the services with these names.
REFUSED = {"search-strings", "search-numbers", "search-nothing", "search-one", "errors"}


def examine(tool, session, name):
    for command in COMMANDS:
        session.start_scripted("hostile", name)
        result = session.run(tool, "--backend", "keyring", "-s", "svc", *command, given=b"new")
        session.stop()
        holds = result.returncode in STATUSES and result.seconds < 25
        message = result.stdout if command == ["doctor"] else result.stderr
        says = message or result.returncode == 0 or (command[0], result.returncode) == ("find", 1)
        holds = holds and says and not re.search(b"GLib|libsecret", result.stderr)
        if name in REFUSED and command != ["doctor"]:
            holds = holds and result.returncode not in (0, 1)
        check(f"{name}: {command[0]} ends with {result.returncode} after {result.seconds:.1f} s", holds, result)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 64)
    tool = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as directory:
        session = Session(directory)
        session.environment["G_DEBUG"] = "fatal-criticals,fatal-warnings"
        try:
            for name in sys.argv[2:] or HOSTILE:
                examine(tool, session, name)
        finally:
            session.end()
    print(f"{len(FAILURES)} checks failed")
    sys.exit(1 if FAILURES else 0)


main()
