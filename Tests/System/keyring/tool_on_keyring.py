#!/usr/bin/python3
"""Tests the tool on a real GNOME keyring and without one.

usage: tool_on_keyring.py SECRET

SECRET    the path of the tool

Starts a private dbus-daemon and gnome-keyring-daemon in a temporary directory. Exit status: 0 if every check passed,
1 if not, 64 for wrong usage.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from private_session import FAILURES, PYTHON_KEYRING, Session, check

def check_failure(situation, result, status, seconds):
    holds = result.returncode == status and result.stderr and result.seconds < seconds
    check(f"{situation}: a message and exit status {status} within {seconds} seconds", holds, result)
    print(f"   {result.seconds * 1000:.0f} ms: {result.stderr.decode().strip()}")


def sharing(tool, session):
    secret = [tool, "--backend", "keyring", "-s", "svc"]
    lookup = ["secret-tool", "lookup", "service", "svc", "username", "alice"]
    # Python's keyring drops one final line feed, and keyring 23.9 drops the value if there is none.
    result = session.run(*secret, "set", "alice", given=b"from coffer")
    check("set succeeds", result.returncode == 0, result)
    check("secret-tool reads what set stored", session.run(*lookup).stdout == b"from coffer")
    result = session.run(*PYTHON_KEYRING, "get", "svc", "alice")
    check("Python's keyring reads what set stored", result.stdout == b"from coffer\n")
    store = ["secret-tool", "store", "--label=alice", "service", "svc", "username", "alice"]
    session.run(*store, given=b"from secret-tool")
    check("get reads what secret-tool stored", session.run(*secret, "get", "alice").stdout == b"from secret-tool")
    session.run(*PYTHON_KEYRING, "set", "svc", "alice", given=b"from python\n")
    check("get reads what Python's keyring stored", session.run(*secret, "get", "alice").stdout == b"from python")
    session.run(*secret, "set", "alice", given=b"last")
    check("list prints the name", session.run(*secret, "list").stdout == b"alice\n")
    check("info prints the name", b"alice" in session.run(*secret, "info", "alice").stdout)
    ran = session.run(*secret, "run", "--set", "T=alice", "--", "sh", "-c", 'printf %s "$T"; exit 3')
    check("run passes the value and returns the exit status", (ran.stdout, ran.returncode) == (b"last", 3), ran)
    # Python's item differs from that of secret-tool in “application”.
    check("remove --all succeeds", session.run(*secret, "remove", "--all", "alice").returncode == 0)
    check("secret-tool no longer finds a removed secret", session.run(*lookup).returncode == 1)
    missing = session.run(*secret, "get", "alice")
    is_missing = (missing.returncode, missing.stdout) == (1, b"")
    check("get of a missing secret prints nothing and exits with 1", is_missing, missing)
    check("verify supports vaults only and exits with 69", session.run(*secret, "verify").returncode == 69)
    session.run(*secret, "set", "kept", given=b"kept")


def ownership(tool, session):
    """Items that another program tells apart by an attribute are not removed or moved by their common name."""
    secret = [tool, "--backend", "keyring", "-s", "vpn"]

    def values():
        found = session.run("secret-tool", "search", "--all", "service", "vpn").stdout
        return sorted(line for line in found.splitlines() if line.startswith(b"secret = "))

    for target in ("work", "home"):
        store = ["secret-tool", "store", "--label", target, "service", "vpn", "username", "ann", "target", target]
        session.run(*store, given=target.encode())
    both = [b"secret = home", b"secret = work"]
    check("secret-tool stores two items with one user name", values() == both, values())
    for command in (["remove", "ann"], ["move", "ann", "ann2"]):
        result = session.run(*secret, *command)
        lists_labels = "“work”".encode() in result.stderr and "“home”".encode() in result.stderr
        check(f"{command[0]} refuses two different items with 64", result.returncode == 64 and lists_labels, result)
        check(f"{command[0]} that is refused changes nothing", values() == both, values())
    session.run(*secret, "set", "bob", given=b"bob")
    result = session.run(*secret, "remove", "bob", "ann")
    kept = session.run(*secret, "get", "bob").stdout == b"bob"
    check("remove of two names removes neither if one is that of two items", result.returncode == 64 and kept, result)
    session.run(*secret, "remove", "bob")
    result = session.run(*secret, "move", "--all", "ann", "ann2")
    check("move --all moves both items", result.returncode == 0 and values() == both, result)
    result = session.run(*secret, "remove", "--all", "ann2")
    check("remove --all removes both items", result.returncode == 0 and values() == [], result)


def copying(tool, session):
    """Copies what Python's keyring stored into a vault, completely, and again after the copy was killed."""
    expected = {f"user {number}": f"password {number}".encode() for number in range(30)}
    for name, value in expected.items():
        session.run(*PYTHON_KEYRING, "set", "https://example.com", name, given=value + b"\n")
    result = session.run(tool, "--backend", "vault", "init")
    check("init says that the keyring's secrets stay there", b"The secrets in your keyring stay there" in result.stderr, result)
    nameless = ["secret-tool", "store", "--label=no user name", "service", "https://example.com", "user", "ann"]
    session.run(*nameless, given=b"1")
    vault = [tool, "--backend", "vault", "-s", "https://example.com"]
    copy = [tool, "copy", "-s", "https://example.com", "--from", "keyring", "--to", "vault"]
    result = session.run(*vault, "get", "user 1")
    check("a missing secret names the keyring that has it", b"The keyring has it: add --backend keyring" in result.stderr
          and result.returncode == 1, result)
    session.run(*vault, "set", "only here", given=b"1")
    result = session.run(tool, "--backend", "keyring", "-s", "https://example.com", "get", "only here")
    check("a missing secret names the vault that has it", b"The vault has it: add --backend vault" in result.stderr
          and result.returncode == 1, result)
    session.run(*vault, "remove", "--purge", "only here")
    result = session.run(*copy)
    check("copy copies 30 secrets of Python's keyring", b"Copied and compared: 30," in result.stderr, result)
    said = "“no user name” was not copied: it has no service and user name".encode()
    check("copy names an item that it passes over", said in result.stderr and b"not copied: 1." in result.stderr, result)
    copied = {name: session.run(*vault, "get", name).stdout for name in expected}
    check("each copied value is complete", copied == expected)

    session.run(*vault, "remove", "--purge", *expected)
    duration, killed = result.seconds, 0
    for turn in range(20):
        process = subprocess.Popen(copy, env=session.environment, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=duration * turn / 19)
        except subprocess.TimeoutExpired:
            process.kill()
        killed += process.wait() == -signal.SIGKILL
        found = json.loads(session.run(*vault, "export").stdout or b'{"secrets": []}')["secrets"]
        whole = all(expected[entry["account"]] == entry["value"].encode() for entry in found)
        check(f"copy killed, turn {turn}: the vault is valid and each of its {len(found)} values is complete", whole
              and session.run(tool, "--backend", "vault", "verify").returncode == 0)
        if turn % 5 == 4:
            result = session.run(*copy)
            check("another copy completes the vault", result.returncode == 0
                  and session.run(*vault, "list").stdout.count(b"\n") == 30, result)
            session.run(*vault, "remove", "--purge", *expected)
    check("at least one copy was killed", killed > 0)


def failures(tool, session):
    secret = [tool, "--backend", "keyring", "-s", "svc"]
    session.stop()
    session.start()
    result = session.run(*secret, "get", "kept")
    check_failure("a locked keyring", result, status=77, seconds=5)
    session.stop()
    session.start("password")
    check("a locked keyring loses nothing", session.run(*secret, "get", "kept").stdout == b"kept")

    nowhere = dict(session.environment, DBUS_SESSION_BUS_ADDRESS=f"unix:path={session.directory}/nowhere")
    result = session.run(*secret, "get", "kept", environment=nowhere)
    check_failure("no bus", result, status=69, seconds=5)

    session.stop()
    result = session.run(*secret, "get", "kept")
    check_failure("no service", result, status=69, seconds=5)
    session.start("password")
    check("the next call after a start of the daemon succeeds", session.run(*secret, "get", "kept").stdout == b"kept")

    result = session.run(tool, "doctor", "--backend", "keyring", "--json")
    check("doctor reports a working keyring and exits with 0", result.returncode == 0, result)
    json.loads(result.stdout)
    result = session.run(tool, "doctor", "--backend", "keyring", environment=nowhere)
    check("doctor without a bus exits with 69", result.returncode == 69, result)


def collections(tool, session):
    """`--collection` selects a collection by its alias or label."""
    secret = [tool, "-s", "svc"]
    session.run(*secret, "--collection", "session", "set", "placed", given=b"in memory")
    check("an item is in its collection", session.run(*secret, "--collection=session", "get", "placed").stdout == b"in memory")
    check("and in no other", session.run(*secret, "get", "--collection", "Login", "placed").returncode == 1)
    check("all collections are searched", session.run(*secret, "--backend", "keyring", "get", "placed").returncode == 0)
    check("a missing collection is 78", session.run(*secret, "--collection", "none", "list").returncode == 78)
    result = session.run(*secret, "--collection", "session", "--backend", "vault", "list")
    check("--collection with another backend is wrong usage", result.returncode == 64, result)

    def stored(*options, **more):
        return session.run(*secret, *options, "get", "placed", environment={**session.environment, **more}).stdout == b"in memory"

    check("--backend names a collection", stored("--backend", "keyring:session") and not stored("--backend", "keyring:Login"))
    check("COFFER_BACKEND names a collection",
          stored(COFFER_BACKEND="keyring:session") and not stored(COFFER_BACKEND="keyring:Login"))  # fmt: skip
    check("--backend keyring means all collections", stored("--backend", "keyring", COFFER_BACKEND="keyring:Login"))
    statuses = [session.run(tool, "doctor", "--backend", f"keyring:{name}").returncode for name in ("Login", "none")]
    check("doctor examines the named collection", statuses == [0, 78], statuses)
    copy = [tool, "copy", "-s", "svc", "--from", "keyring:session", "--to", "keyring:Login"]
    result = session.run(*copy)
    check("copy copies between two collections", result.returncode == 0 and stored("--backend", "keyring:Login"), result)
    result = session.run(tool, "copy", "--from", "keyring:Login", "--to", "keyring")
    check("copy from a collection to all is wrong usage", result.returncode == 64, result)
    session.run(*secret, "--collection", "Login", "remove", "placed")
    session.run(tool, "init", "--backend", "keyring:session")
    check("init records a collection", stored() and session.run(*secret, "set", "here", given=b"1").returncode == 0)
    os.remove(f"{session.directory}/home/.config/coffer/config.toml")
    check("and set stores there", session.run(*secret, "--collection", "session", "list").stdout == b"here\nplaced\n")
    session.run(*secret, "--collection", "session", "remove", "placed", "here")


def prompting(tool, session):
    """A signal removes the prompt from the screen; a prompt that nobody can see is not called dismissed."""
    environment = dict(session.environment, DISPLAY=":0")
    del environment["COFFER_NO_PROMPT"]
    session.stop()
    for number in (signal.SIGINT, signal.SIGTERM):
        session.start_scripted("never")
        get = [tool, "--backend", "keyring", "-s", "svc", "get", "alice"]
        # A shell starts background jobs with SIGINT ignored.
        process = subprocess.Popen(get, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        session.wait(lambda: "Prompt" in session.scripted_calls(), "a prompt")
        process.send_signal(number)
        message = process.communicate(timeout=30)[1]
        ended = (process.returncode, "Dismiss" in session.scripted_calls(), message)
        check(f"{number.name} dismisses the prompt and ends the process", ended == (-number, True, b""), ended)
        session.stop()
    session.start()
    result = session.run(tool, "--backend", "keyring", "-s", "svc", "get", "kept", environment=environment)
    says = b"no program on the session bus can show its prompt" in result.stderr
    check("without a program for prompts the keyring is locked, not dismissed", result.returncode == 77 and says, result)
    session.stop()
    session.start("password")


def calls(tool, session):
    """How many calls each command may make on a service with 100 secrets. Each secret costs one or two calls."""
    for command, limit in (
        (["list"], 105), (["list", "--long"], 105), (["find", "name"], 105), (["info", "name 1"], 5),
        (["export"], 210), (["export", "--format", "dotenv"], 210), (["run", "--all", "--", "true"], 210),
        (["get", "name 1"], 7),
    ):  # fmt: skip
        session.stop()
        session.start_scripted("counted", "100")
        result = session.run(tool, "--backend", "keyring", "-s", "svc", *command)
        made = session.scripted_calls()
        check(f"{' '.join(command)} makes no unnecessary call", result.returncode == 0 and len(made) <= limit,
              (made, result.stderr))  # fmt: skip
    session.stop()
    session.start("password")


def watching(tool, session):
    """`watch` prints a line when another process stores the secret."""
    process = subprocess.Popen(
        [tool, "--backend", "keyring", "-s", "svc", "watch", "seen"],
        env=session.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    seen = []
    reader = threading.Thread(target=lambda: seen.append(process.stdout.readline()))
    reader.start()
    time.sleep(1)
    session.run("secret-tool", "store", "--label=seen", "service", "svc", "username", "seen", given=b"1")
    reader.join(timeout=20)
    process.send_signal(signal.SIGTERM)
    process.wait()
    reader.join(timeout=20)
    check("watch prints a line for a store by secret-tool", seen and b"seen" in seen[0], seen)


def restarting(tool, session):
    """`run --restart` starts the command again when another program stores the secret."""
    secret = [tool, "--backend", "keyring", "-s", "svc"]
    session.run(*secret, "set", "given", given=b"first")
    script = 'echo "$G"; exec sleep 1000'
    process = subprocess.Popen([*secret, "run", "--restart", "--set", "G=given", "--", "sh", "-c", script],
                               env=session.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    lines, said = [], []
    readers = [threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, b""))),
               threading.Thread(target=lambda: said.extend(iter(process.stderr.readline, b"")))]  # fmt: skip
    for reader in readers:
        reader.start()
    session.wait(lambda: lines, "the command")
    session.run("secret-tool", "store", "--label=given", "service", "svc", "username", "given", given=b"second")
    session.wait(lambda: len(lines) > 1, "the command with the new value")
    session.run(*secret, "remove", "given")
    session.wait(lambda: any(b"was not restarted" in line for line in said), "the message")
    session.run(*secret, "set", "given", given=b"third")
    session.wait(lambda: len(lines) > 2, "the command with the third value")
    process.send_signal(signal.SIGTERM)
    status = process.wait(timeout=20)
    for reader in readers:
        reader.join(timeout=20)
    check("run --restart passes each new value", lines == [b"first\n", b"second\n", b"third\n"], lines)
    check("run --restart says why", said.count("secret: Restarting the command, because “given” changed.\n".encode()) == 2, said)
    check("run --restart ends as its command", status == -signal.SIGTERM, status)


def locking(tool, session):
    """`watch` says that the keyring was locked, and shows no prompt."""
    session.stop()
    session.start_scripted_keyring()
    secret = [tool, "--backend", "keyring", "-s", "svc"]
    session.run(*secret, "set", "seen", given=b"1")
    environment = dict(session.environment, DISPLAY=":0")
    del environment["COFFER_NO_PROMPT"]
    process = subprocess.Popen([*secret, "watch", "seen"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(process.stderr.readline, b"")))
    reader.start()
    session.wait(lambda: lines, "watch")
    service = "/org/freedesktop/secrets"
    session.run("dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets", service,
                "org.freedesktop.Secret.Service.Lock", f"array:objpath:{service}/collection/scripted")
    deadline = time.monotonic() + 10
    # The service tells a change of the collection, and one of the item.
    while sum(b"is locked" in line for line in lines) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    said = sum(b"is locked" in line for line in lines)
    process.kill()
    process.wait()
    reader.join(timeout=20)
    check("watch shows no prompt after a lock", said == 2, lines)
    session.stop()
    session.start("password")


def unreadable(tool, session):
    """An item that the service does not let be read is named, and ends only the commands about it."""
    secret = [tool, "--backend", "keyring", "-s", "svc"]
    for deviation, named in (("refuses-alice", b"/org/freedesktop/secrets/collection/scripted/1"), ("hides-alice", "“alice”".encode())):
        session.stop()
        if os.path.exists(f"{session.directory}/items.json"):
            os.remove(f"{session.directory}/items.json")
        session.start_scripted_keyring(deviation)
        for name in ("alice", *(f"name {number}" for number in range(9))):
            session.run(*secret, "set", name, given=b"value")
        lists = [["list"], ["list", "--long"], ["find", "name"], ["doctor"]] if deviation == "refuses-alice" else []
        for command in [*lists, ["export"], ["export", "--format", "dotenv"]]:
            result = session.run(*secret, *command)
            others = b"name 8" in result.stdout or b"NAME_8" in result.stdout or b"name%208" in result.stdout or command == ["doctor"]
            said = result.stderr.count(b"cannot be read") == 1 and named in result.stderr
            check(f"{deviation}: {' '.join(command)} names the item, goes on and exits with 74",
                  result.returncode == 74 and others and said, result)  # fmt: skip
        commands = [["get", "alice"]] + ([["set", "alice"], ["remove", "alice"], ["info", "alice"]] if lists else [])
        for command in [*commands, ["run", "--all", "--", "true"], ["export", "alice", "name 1"]]:
            result = session.run(*secret, *command, given=b"new")
            check(f"{deviation}: {command[0]} fails with 74", result.returncode == 74 and not result.stdout, result)
    environment = dict(session.environment, COFFER_KEY_FILE=f"{session.directory}/home/.config/coffer/key")
    copy = [tool, "copy", "-s", "svc", "--from", "keyring", "--to", "vault"]
    result = session.run(*copy, environment=environment)
    check("copy copies the others", result.returncode == 74 and b"Copied and compared: 9," in result.stderr, result)
    session.stop()
    session.start("password")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 64)
    tool = os.path.abspath(sys.argv[1])
    for program in ("dbus-daemon", "dbus-send", "gnome-keyring-daemon", "secret-tool"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing: run Scripts/setup tests")
    with tempfile.TemporaryDirectory() as directory:
        session = Session(directory)
        try:
            session.start("password")
            sharing(tool, session)
            ownership(tool, session)
            copying(tool, session)
            failures(tool, session)
            collections(tool, session)
            prompting(tool, session)
            watching(tool, session)
            restarting(tool, session)
            locking(tool, session)
            unreadable(tool, session)
            calls(tool, session)
        finally:
            session.end()
    print(f"{len(FAILURES)} checks failed")
    sys.exit(1 if FAILURES else 0)


main()
