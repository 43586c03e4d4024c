"""What the attacks share: machines with a private home each, a vault between them, and checks of what a victim does."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Vectors"))

import known_vaults as k  # noqa: E402
import vault_changes as c  # noqa: E402
import vault_format as f  # noqa: E402
import vault_pins as pins  # noqa: E402
import vault_reader as r  # noqa: E402
import vault_records as p  # noqa: E402
import vault_writer as w  # noqa: E402

LABELS = itertools.count()

SERVICE, TOKEN = "secret", "token"
GENUINE, EVIL, FRESH = b"the owner's value", b"the attacker's value", b"a value that the attacker wants to read"
# In seconds. A command that takes longer hangs.
TIMEOUT = 60
REFUSED, DENIED, USAGE = 65, 77, 78
TRUST = b"secret trust"


USES = [("get", TOKEN), ("verify",), ("list",)]


class SettingFailed(Exception):
    """A command that prepares an attack failed."""


class Checks:
    """The results, one line for each."""

    def __init__(self):
        self.attack, self.count, self.failures = "", 0, []

    def check(self, what, holds, detail=""):
        self.count += 1
        print(f"{'ok' if holds else 'FAILED'}: {self.attack}: {what}" + ("" if holds else f" ({detail})"), flush=True)
        if not holds:
            self.failures.append(f"{self.attack}: {what}")


def shown(result):
    return f"{result.args[1:]}: status {result.returncode}, {result.stdout!r}, {result.stderr!r}"


class Machine:
    """A user's home on one machine. Each machine remembers for itself what it saw of the vault."""

    def __init__(self, tool, home, vault, key):
        self.tool, self.home, self.vault = tool, home, vault
        home.mkdir(mode=0o700)
        directories = {"XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state", "XDG_DATA_HOME": "data", "TMPDIR": "tmp"}
        self.environment = {"HOME": str(home), "PATH": os.environ["PATH"], "COFFER_KEY_FILE": str(key)}
        for variable, name in directories.items():
            (home / name).mkdir(mode=0o700)
            self.environment[variable] = str(home / name)

    def run(self, *arguments, given=b"", vault=None, cwd=None):
        """Runs the tool on the vault, or on `vault` from the directory `cwd` as a shell would after `cd`."""
        environment = self.environment | {"COFFER_VAULT": str(vault or self.vault)}
        if cwd:
            environment["PWD"] = str(cwd)
        return subprocess.run(
            [self.tool, *arguments], env=environment, input=given, capture_output=True, timeout=TIMEOUT, cwd=cwd
        )

    def done(self, *arguments, given=b"", **options):
        """Runs a command that is a part of the setting, and has to succeed."""
        result = self.run(*arguments, given=given, **options)
        if result.returncode != 0:
            raise SettingFailed(shown(result))
        return result

    def store(self, value, name=TOKEN, **options):
        """Makes a new version, also of the same value."""
        return self.done("set", "--verbatim", "--label", str(next(LABELS)), name, given=value, **options)

    def pin(self, **options):
        return json.loads(self.done("verify", "--json", **options).stdout)["pin"]

    def pinned(self, *given):
        """This machine with the pins in its environment."""
        self.environment["COFFER_PIN"] = " ".join(given)
        return self

    def trust(self, *arguments, **options):
        """What a person does who was sent the pin by another way: gives it to the command."""
        said = self.run("trust", *arguments, **options)
        pin = re.search(rb"Its pin is (coffer-pin-v1:[\w-]+)", said.stderr)
        if said.returncode == 0:
            return said
        if not pin:
            raise SettingFailed(shown(said))
        return self.done("trust", *arguments, "--pin", pin[1].decode(), **options)

    def record(self, subject):
        """The file of the record about a path or, with `k.vault_subject`, about a vault."""
        return self.home / "state" / "coffer" / "known-vaults" / k.record_name(subject)

    def forget(self):
        """Leaves nothing of what this machine saw, as in each run of CI."""
        shutil.rmtree(self.home / "state" / "coffer", ignore_errors=True)


class Scene:
    """A directory with a vault, its owner's machine, and the attacker's hands on the files."""

    def __init__(self, tool, directory, checks, name="x.vault"):
        self.tool, self.directory, self.check = tool, Path(directory), checks.check
        self.data = self.directory / "data"
        self.data.mkdir(mode=0o700)
        self.vault = self.data / name
        self.key = self.directory / "owner.key"
        self.owner = self.machine("owner")

    def machine(self, name, key=None):
        return Machine(self.tool, self.directory / name, self.vault, key or self.key)

    def made(self):
        """Creates the vault, and stores the first value: change 2."""
        self.owner.done("init", "--key-file", str(self.key))
        self.owner.store(GENUINE)
        return self

    # The attacker

    def copy(self, name="copy"):
        """Keeps a copy of the vault file."""
        target = self.directory / name
        shutil.copyfile(self.vault, target)
        target.chmod(0o600)
        return target

    def place(self, file):
        """Puts a copy of `file` in the vault's place, as `mv` does."""
        temporary = self.data / ".moved"
        shutil.copyfile(file, temporary)
        temporary.chmod(0o600)
        temporary.rename(self.vault)

    def overwrite(self, file):
        """Puts the bytes of `file` in the vault file itself, as `cp` does."""
        with open(self.vault, "r+b") as stream:
            stream.write(file.read_bytes())
            stream.truncate()

    # What the victim must do

    def refused(self, machine, what, status=REFUSED, words=(TRUST,), pin=None, commands=None, **options):
        """Every command refuses the vault, prints no value of it, and changes nothing. So does a verification with `pin`."""
        before = snapshot(self.data)
        wrong = []
        expected = [(*command, status, words) for command in (EVERY_COMMAND if commands is None else commands)]
        if pin:
            expected.append((("verify", "--pin", pin), b"", REFUSED, (b"pin",)))
        for arguments, given, status, words in expected:
            result = machine.run(*arguments, given=given, **options)
            holds = result.returncode == status and EVIL not in result.stdout and GENUINE not in result.stdout
            # `doctor` gives its advice on the standard output.
            said = result.stdout + result.stderr
            if not holds or EVIL in result.stderr or not all(word in said for word in words):
                wrong.append(shown(result))
        if snapshot(self.data) != before:
            wrong.append("a file beside or of the vault was changed")
        self.check(what, not wrong, "; ".join(wrong))

    def accepted(self, machine, what, value=GENUINE, words=(), silent=False, commands=USES, **options):
        """The value is returned. `words` are in the messages; with `silent` there is no message."""
        wrong = []
        for arguments in commands:
            result = machine.run(*arguments, **options)
            if result.returncode != 0 or (arguments[0] == "get" and result.stdout != value):
                wrong.append(shown(result))
            if (silent and result.stderr) or not all(word in result.stdout + result.stderr for word in words):
                wrong.append(shown(result))
        self.check(what, not wrong, "; ".join(wrong))

    def authentic(self, file, value=EVIL):
        """The teeth of an attack: a machine that never saw the vault opens what the attacker made."""
        name = f"stranger{len(list(self.directory.iterdir()))}"
        stranger = self.machine(name)
        alone = self.directory / f"{name}.vault"
        shutil.copyfile(file, alone)
        alone.chmod(0o600)
        result = stranger.run("get", TOKEN, vault=alone)
        self.check("a machine that never saw the vault takes the forgery", result.stdout == value, shown(result))


EVERY_COMMAND = [
    (("get", TOKEN), b""), (("list",), b""), (("set", "--verbatim", TOKEN), FRESH), (("remove", TOKEN), b""),
    (("history", TOKEN), b""), (("inject",), f"{{{{ secret://{SERVICE}/{TOKEN} }}}}".encode()), (("export",), b""),
    (("rekey",), b""), (("doctor",), b""), (("verify",), b""),
]


def snapshot(directory):
    """Every name in a directory, with the target of a link and the bytes of a file."""
    found = {}
    for path in sorted(Path(os.path.realpath(directory)).iterdir()):
        found[path.name] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
    return found


class Watch:
    """A process that keeps the vault open, and what it prints."""

    def __init__(self, machine):
        environment = machine.environment | {"COFFER_VAULT": str(machine.vault)}
        self.process = subprocess.Popen(
            [machine.tool, "watch"], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.printed, self.said = [], []
        self.readers = [
            threading.Thread(target=lambda: self.printed.extend(self.process.stdout), daemon=True),
            threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True),
        ]
        for reader in self.readers:
            reader.start()
        self.wait(lambda: any(b"Watching" in line for line in self.said))

    def refuses(self):
        """Waits for what it says about a change. Returns whether it refuses the vault and reports no change."""
        self.wait(lambda: self.printed or any(TRUST in line for line in self.said))
        return not self.printed and any(TRUST in line for line in self.said)

    def wait(self, condition):
        """Waits for a condition; returns whether it came to hold."""
        deadline = time.monotonic() + TIMEOUT
        while not condition() and time.monotonic() < deadline and self.process.poll() is None:
            time.sleep(0.02)
        return bool(condition())

    def stop(self):
        self.process.kill()
        self.process.wait()


# The attacker's file, made with the second implementation


def credential(path):
    return r.Key(f.parse_key_text(Path(path).read_bytes()))


def opened(path, key):
    return r.read_vault(Path(path).read_bytes(), credential(key))


def put(value, name=TOKEN):
    now = int(time.time() * 1000)
    item = {"service": SERVICE, "account": name, "value": value.hex(), "created": now, "modified": now}
    return {"put": item}


def advance(path, key, sequence, value=EVIL):
    """Stores `value` in the vault at `path`, again and again until its sequence is `sequence`."""
    count = sequence - opened(path, key).state.sequence
    c.commit(path, credential(key), [put(value)] * count)


def sequence_of(pin):
    return pins.Pin.parse(pin).sequence


def rewritten(vault, sequence, value, lineage=None, slots=None, forgets=False):
    """The bytes of a new file for the vault, with `value` and the root's sequence.

    `lineage` are subkeys 7 that the maker knows. With `slots` the file has a master key of its own. A file that `forgets`
    says nothing of the changes before the last two.
    """
    state = replace(vault.state, sequence=sequence - 2)
    root = vault.root
    if forgets:
        root = replace(root, sequence=sequence - 2, floor=sequence - 2)
        vault = replace(vault, frames=(), recent=())
    if lineage:
        header = vault.header
        sealer = w.Sealer(vault.master, header.vault_id, header.file_id, root.lookup_key, w.system_random)
        fields = dict(root.fields) | {p.LINEAGE: sealer.lineage(lineage)}
        root = replace(root, fields=tuple(sorted(fields.items())), lineage=tuple(lineage))
    description = {"changes": [put(value)]} | ({"slots": slots} if slots else {})
    data, _ = c.rewritten(replace(vault, states=(state, state), root=root), description, w.system_random)
    return data
