#!/usr/bin/python3
"""Tests the tool with each provider of the Secret Service: the same behaviours, one outcome each.

usage: providers.py SECRET [--ci | PROVIDER...] [--table]

SECRET    the path of the tool
--ci      gnome-keyring and scripted providers
PROVIDER  only the providers whose names contain one of these words
--table   print the outcomes as the rows of a table

Each provider runs on a private bus with files of its own. The outcomes must be those of Documentation/Keyrings.md.
Without --ci, a provider that is not installed is named, and its Debian packages, and is not tested. Exit status: 0 if
every outcome is the documented one, 1 if one is not or a provider of --ci is missing, 64 for wrong usage.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

import provider_services
from private_session import FAILURES, check

PROVIDERS = [provider_services.GnomeKeyring, provider_services.PasswordlessGnomeKeyring, provider_services.KeePassXC,
             provider_services.KWallet, provider_services.Scripted]
SCRIPTED = [provider_services.ScriptedKeePassXC, provider_services.ScriptedKWallet]
IN_CI = [PROVIDERS[0], PROVIDERS[1], PROVIDERS[4], *SCRIPTED]
DOCUMENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Documentation/Keyrings.md")
VALUES = [b"", b"\0\1\xff", b"a\nb\n", b"back\\slash\\n", b" outer spaces ", b"{TITLE}", b"{REF:P@T:x}", b'{"a": "b"}', b"{ {1} {{}} {", "pä\U0001f511".encode(),
          b"\r\n", b"\n", b"coffer:base64:YQ==", b"[section]\nkey=value", b"x" * 200_000]  # fmt: skip


class Subject:
    """The tool with one provider."""

    def __init__(self, tool, session):
        self.tool, self.session = tool, session
        #: The calls that failed, for the message about an outcome.
        self.failed = []

    def run(self, *arguments, given=b"", service="svc"):
        options = ["--backend", "keyring"] + (["-s", service] if service else [])
        result = self.session.run(self.tool, *options, *arguments, given=given)
        if result.returncode != 0:
            self.failed.append(f"{arguments[0]}: {result.returncode} after {result.seconds:.1f} s, {result.stderr.decode()}")
        return result

    def description(self, name):
        """What `info` tells about the secret."""
        return json.loads(self.run("info", "--json", name).stdout or b'{"attributes": null}')

    def set(self, name, value, *options):
        return self.run("set", "--verbatim", "--allow-empty", *options, name, given=value).returncode == 0

    def get(self, name):
        result = self.run("get", name)
        return result.stdout if result.returncode == 0 else None

    def store_elsewhere(self, name, value, *attributes, label="label"):
        """Stores with secret-tool."""
        self.session.run("secret-tool", "store", "--label", label, "service", "svc", "username", name, *attributes, given=value)

    def look_up_elsewhere(self, name):
        return self.session.run("secret-tool", "lookup", "service", "svc", "username", name).stdout

    def search_elsewhere(self, name):
        """What secret-tool finds: its lines, attributes among them."""
        result = self.session.run("secret-tool", "search", "--all", "service", "svc", "username", name)
        return (result.stdout + result.stderr).decode().splitlines()

    def restart(self):
        self.session.stop()
        self.session.open()


def answer(holds):
    return "yes" if holds else "no"


def any_bytes(subject):
    return answer(all(subject.set("bytes", value) and subject.get("bytes") == value for value in VALUES))


def as_text(subject):
    texts = ["pä b".encode(), b" a\\b\nc ", b"a {b}", b'{"a": 1}']
    same = []
    for text in texts:
        subject.set("text", text)
        same.append(subject.look_up_elsewhere("text") == text)
    return {
        (True, True, True, True): "all text", (True, True, False, True): "text without { before a letter",
        (True, False, True, True): "text without control characters, backslashes and outer spaces",
    }.get(tuple(same), f"no: {same}")  # fmt: skip


def one_item(subject):
    subject.store_elsewhere("update", b"old", "target", "work")
    subject.set("update", b"new")
    lines = subject.search_elsewhere("update")
    return answer(subject.look_up_elsewhere("update") == b"new" and lines.count("attribute.target = work") == 1
                  and sum(line.startswith("label = ") for line in lines) == 1)


def without_display(subject):
    done = [subject.set("shown", b"1"), subject.set("shown", b"2"), subject.run("move", "shown", "moved").returncode == 0,
            subject.get("moved") == b"2", subject.get("shown") is None, subject.run("remove", "moved").returncode == 0,
            subject.get("moved") is None]  # fmt: skip
    return answer(all(done))


def survives_kill(subject):
    subject.set("killed", b"first")
    # Every provider has written by then. What counts is the time after the last change.
    time.sleep(8 if isinstance(subject.session, provider_services.KWallet) else 1)
    kept, old = [], b"first"
    for turn in range(3):
        value = f"value {turn}".encode()
        subject.set("killed", value)
        subject.restart()
        found = subject.get("killed")
        if found not in (value, old):
            return f"no, and the old value is lost too: {found}"
        kept.append(found == value)
        old = found
    return answer(all(kept))


def whole_after_kill(subject):
    """Whether a kill after each kind of write leaves the state before it or the state after it."""
    torn = []
    for kind in ("create", "update", "label", "attribute", "expiry", "move", "remove"):
        names, values = [f"{kind} old", f"{kind} new"], [b"first", b"second"]
        if kind != "create":
            subject.set(names[0], values[0])
            # Every provider has written by then.
            time.sleep(8 if isinstance(subject.session, provider_services.KWallet) else 1)
        if kind == "create":
            subject.set(names[0], values[0])
        elif kind == "update":
            subject.set(names[0], values[1])
        elif kind == "label":
            subject.set(names[0], values[1], "--label", "a label")
        elif kind == "attribute":
            subject.set(names[0], values[1], "--attribute", "size=big")
        elif kind == "expiry":
            subject.set(names[0], values[1], "--expires", "2099-01-01")
        elif kind == "move":
            subject.run("move", *names)
        else:
            subject.run("remove", names[0])
        subject.restart()
        found = [subject.get(name) for name in names]
        whole = {"create": [[None, None], [values[0], None]], "move": [[values[0], None], [values[0]] * 2, [None, values[0]]],
                 "remove": [[values[0], None], [None, None]]}.get(kind, [[value, None] for value in values])
        if found not in whole:
            torn.append(kind)
    return "yes" if not torn else "not of: " + ", ".join(torn)


def concurrent_creation(subject):
    command = [subject.tool, "--backend", "keyring", "-s", "svc", "set", "--label", "{}", "at once"]
    processes = []
    for number in range(8):
        processes.append(subprocess.Popen([word.format(number) for word in command], env=subject.session.environment,
                                          stdin=subprocess.PIPE, stderr=subprocess.DEVNULL))
        processes[-1].stdin.write(f"value {number}".encode())
        processes[-1].stdin.close()
    statuses = [process.wait(60) for process in processes]
    labels = [line for line in subject.search_elsewhere("at once") if line.startswith("label = ")]
    return answer(statuses == [0] * 8 and len(labels) == 1)


def sees_all(subject):
    subject.run("set", "elsewhere", given=b"1", service="other")
    found = subject.run("find", "elsewhere", service=None).stdout
    exported = json.loads(subject.run("export", "--all-services", service=None).stdout or b'{"secrets": []}')["secrets"]
    names = {(entry["service"], entry["account"]) for entry in exported}
    return answer(found == b"secret://other/elsewhere\n" and {("other", "elsewhere"), ("svc", "text")} <= names)


def own_attributes(subject):
    subject.store_elsewhere("attributes", b"1", "colour", "red")
    subject.set("attributes", b"2")
    first = subject.description("attributes")["attributes"]
    subject.set("attributes", b"3", "--attribute", "size=big")
    second = subject.description("attributes")["attributes"]
    return answer(first == {"colour": "red"} and second == {"size": "big", "colour": "red"})


def reports_changes(subject):
    process = subprocess.Popen([subject.tool, "--backend", "keyring", "-s", "svc", "watch", "seen"], stdout=subprocess.PIPE,
                               env=subject.session.environment, stderr=subprocess.DEVNULL)
    lines = []
    reader = threading.Thread(target=lambda: lines.extend(iter(process.stdout.readline, b"")))
    reader.start()
    deadline = time.monotonic() + 20
    turn = 0
    try:
        # The first store may come before the subscription.
        while not lines and time.monotonic() < deadline:
            turn += 1
            # A new item each time: KeePassXC asks before secret-tool may replace one.
            subject.store_elsewhere("seen", b"value", "number", f"{turn}")
            time.sleep(0.2)
        seen = len(lines)
        while len(lines) == seen and time.monotonic() < deadline:
            turn += 1
            subject.set("seen", f"{turn}".encode())
            time.sleep(0.2)
        return answer(len(lines) > seen > 0)
    finally:
        process.terminate()
        process.wait()
        reader.join()


def every_session(subject):
    subject.set("session", b"value")
    count = 300 if isinstance(subject.session, provider_services.KWallet) else 5
    return answer(all(subject.get("session") == b"value" for _ in range(count)))


def says_late(subject):
    return answer(b"before it writes" in subject.run("doctor").stdout)


def locked(subject):
    if not subject.session.locks:
        return "cannot be locked"
    subject.set("locked", b"value")
    subject.session.lock()
    commands = [["get", "locked"], ["set", "locked"], ["remove", "locked"], ["move", "locked", "other"], ["list"]]
    results = [subject.run(*command, given=b"new") for command in commands]
    subject.restart()
    done = all(result.returncode == 77 and result.seconds < 9 for result in results) and subject.get("locked") == b"value"
    return answer(done) if done else f"no: {[(result.returncode, round(result.seconds, 1)) for result in results]}"


# The rows of the table, in the order in which they are tested.
BEHAVIOURS = {
    "values of any bytes come back": any_bytes,
    "stored so that other programs read it": as_text,
    "an update keeps the item and its attributes": one_item,
    "`set`, `move` and `remove` without a display": without_display,
    "`find` and `export` see every secret": sees_all,
    "the provider's own attributes are not shown or copied": own_attributes,
    "eight processes that create one secret leave one item": concurrent_creation,
    "`watch` and `values` report changes": reports_changes,
    "every call gets a working session": every_session,
    "an update survives a kill of the provider at once": survives_kill,
    "a kill at once after any write leaves the old state or the new one": whole_after_kill,
    "`secret doctor` says that changes are written late": says_late,
    "locked: status 77 within seconds, and nothing is lost": locked,
}


def documented():
    """The outcomes in the document: for each row, those of the providers."""
    with open(DOCUMENT) as file:
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in file if line.startswith("|")]
    names = next((row[1:] for row in rows if row[1:] == [provider.name for provider in PROVIDERS]), None)
    if names is None:
        sys.exit(f"{DOCUMENT} has no table with these columns: {', '.join(p.name for p in PROVIDERS)}")
    return {row[0]: dict(zip(names, row[1:])) for row in rows if row[0] in BEHAVIOURS}


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        sys.exit(0 if "--help" in arguments or "-h" in arguments else 64)
    tool, words = os.path.abspath(arguments[0]), [word for word in arguments[1:] if not word.startswith("--")]
    chosen = IN_CI if "--ci" in arguments else PROVIDERS + SCRIPTED
    chosen = [p for p in chosen if not words or any(word.lower() in p.name.lower() for word in words)]
    expected, outcomes = documented(), {}
    for provider in chosen:
        if missing := provider.missing():
            print(f"NOT TESTED: {provider.name}: install {' '.join(missing)}")
            if "--ci" in arguments:
                FAILURES.append(provider.name)
            continue
        with tempfile.TemporaryDirectory() as directory:
            session = provider(directory)
            try:
                session.open()
                for behaviour, function in BEHAVIOURS.items():
                    started = time.monotonic()
                    subject = Subject(tool, session)
                    outcome = function(subject)
                    outcomes[behaviour, provider.name] = outcome
                    if session.daemon.poll() is not None:
                        outcome += f", and the provider ended with {session.daemon.returncode}"
                        session.open()
                    wanted = expected.get(behaviour, {}).get(provider.column or provider.name, "")
                    wanted = provider.differences.get(behaviour, wanted)
                    # A note in brackets explains an outcome.
                    wanted = re.sub(r" \(.*\)$", "", wanted)
                    what = f"{provider.name}: {behaviour}: {outcome} [{time.monotonic() - started:.1f} s]"
                    check(what, outcome == wanted, f"documented: {wanted or 'nothing'}; {subject.failed[-3:]}")
            finally:
                session.end()
    if "--table" in arguments:
        print("|  | " + " | ".join(p.name for p in PROVIDERS) + " |\n|---" * len(PROVIDERS) + "|")
        for behaviour in BEHAVIOURS:
            print(f"| {behaviour} | " + " | ".join(outcomes.get((behaviour, p.name), "") for p in PROVIDERS) + " |")
    print(f"{len(FAILURES)} checks failed")
    sys.exit(1 if FAILURES else 0)


if __name__ == "__main__":
    main()
