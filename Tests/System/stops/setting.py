"""A private home with a vault, in which commands run under the tracer."""

import fcntl
import os
import secrets
import shlex
import shutil
import signal
import string
import subprocess
import termios
import threading
from dataclasses import dataclass
from pathlib import Path

import secrets_of_vault as s

HERE = Path(__file__).resolve().parent
# In seconds. A command that takes longer hangs.
TIMEOUT = 120
LETTERS = string.ascii_letters + string.digits


class NotPossible(Exception):
    """The search, or a scenario, cannot be made on this machine."""


def compiled(directory):
    """Compiles the tracer, and checks that it can read the memory of a process."""
    if os.geteuid() != 0:
        raise NotPossible("Run it as root: the memory of `secret` is closed to others.")
    tracer = f"{directory}/stops"
    compiler = shutil.which("clang") or shutil.which("cc")
    if not compiler:
        raise NotPossible("There is no C compiler.")
    subprocess.run([compiler, "-O2", "-Wall", "-o", tracer, HERE / "stops.c"], check=True)
    trial = subprocess.run([tracer, "record", f"{directory}/trial", "/bin/true"], capture_output=True)
    if trial.returncode != 0:
        raise NotPossible(f"ptrace is not possible here: {trial.stderr.decode().strip()}")
    return tracer


def letters(count=32):
    """A value or a passphrase: random letters, so that no part of it occurs by chance."""
    return "".join(secrets.choice(LETTERS) for _ in range(count)).encode()


class ScenarioFailed(Exception):
    """A command of a scenario did not end as it must."""


@dataclass
class Hit:
    first: int
    last: int
    calls: list
    place: str
    address: int
    length: int
    secret: str

    @property
    def stops(self):
        return self.last - self.first + 1

    @property
    def is_guarded(self):
        return self.place.startswith("guarded anonymous memory")

    def outlives(self, recording):
        """Whether it is still there at the last stop, when the process exits by itself."""
        return recording.ends_empty and self.last == recording.stops

    def __str__(self):
        return (f"stops {self.first}-{self.last}, {', '.join(self.calls)}: {self.length} bytes of {self.secret} in {self.place} "
                f"at {self.address:x}")


@dataclass
class Recording:
    command: str
    path: str
    stops: int
    bytes: int
    before: bytes
    after: bytes
    allowed: tuple = ()
    ends_empty: bool = True
    has_leak: bool = False

    def search(self, spellings, tracer):
        file = self.path + ".secrets"
        Path(file).write_text(spellings)
        result = subprocess.run([tracer, "search", self.path, file], capture_output=True, check=True)
        hits = []
        for line in result.stdout.decode().splitlines():
            first, last, calls, _, place, address, length, secret = line.split("\t")
            names = [call_name(int(call)) for call in calls.split(",")]
            hits.append(Hit(int(first), int(last), names, place, int(address, 16), int(length),
                            secret.replace("_", " ")))
        os.unlink(self.path)
        return hits

    def reason_to_allow(self, hit):
        for exception in (INSIDE_ARGON2, *self.allowed):
            if exception.covers(hit):
                return exception.reason
        return None


@dataclass(frozen=True)
class Allowed:
    """What is documented to be outside guarded memory. With `calls`, only at stops of these system calls."""

    reason: str
    secrets: tuple
    places: tuple
    calls: tuple = ()

    def covers(self, hit):
        return (hit.secret.startswith(self.secrets) and hit.place.startswith(self.places)
                and (not self.calls or all(call.split()[-1] in self.calls for call in hit.calls)))


# libsodium computes Argon2's output on its heap and stack, and returns the work memory to the kernel before it wipes
# the heap. Every version from 1.0.16 to 1.0.22 does. The stack is wiped by `Residue.clear()` after the call.
INSIDE_ARGON2 = Allowed("inside libsodium's Argon2: its output, while it unmaps its work memory", ("Argon2 output",),
                        ("[heap]", "[stack]", "anonymous memory", "general registers", "vector registers"), ("munmap",))


def call_names():
    names = {}
    for directory in ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h"):
        if os.path.exists(directory):
            for line in Path(directory).read_text().splitlines():
                words = line.split()
                if len(words) == 3 and words[1].startswith("__NR_") and words[2].isdigit():
                    names.setdefault(int(words[2]), words[1].removeprefix("__NR_"))
            break
    return names


CALLS = call_names()


def call_name(number):
    if number >= 0xFFFFFF00:
        return signal.Signals(2**32 - number).name
    name = CALLS.get(number & 0x7FFFFFFF, str(number & 0x7FFFFFFF))
    return f"the end of {name}" if number >> 31 else name


class Setting:
    def __init__(self, tool, directory, tracer, mode):
        self.tool, self.directory, self.tracer, self.mode = tool, directory, tracer, mode
        self.vault = directory / "x.vault"
        self.environment = {"HOME": str(directory), "PATH": "/usr/bin:/bin", "COFFER_VAULT": str(self.vault)}
        for variable, name in (("XDG_CONFIG_HOME", "c"), ("XDG_STATE_HOME", "s"), ("XDG_DATA_HOME", "d")):
            self.environment[variable] = str(directory / name)
        self.recordings, self.values, self.passphrases, self.keys, self.stretched = [], [], [], [], {}

    # What the secrets are

    def value(self, count=32):
        self.values.append(letters(count))
        return self.values[-1]

    def passphrase(self, count=32):
        self.passphrases.append(letters(count))
        return self.passphrases[-1]

    def key_file(self, name="key"):
        """The path of a key file, which the tool makes if it is not there."""
        return self.directory / name

    def secrets(self, recording):
        keys, identities = list(self.keys), []
        for path in sorted(self.directory.glob("key*")) + sorted((self.directory / "c" / "coffer").glob("key*")):
            text = path.read_bytes()
            if s.IDENTITY in text:
                identities += s.of_identity_file(text)
            else:
                keys.append(s.f.parse_key_text(text))
        found = s.of_credentials(keys, self.passphrases, identities) | {("value", value) for value in self.values}
        for data in {recording.before, recording.after} - {b""}:
            found |= s.of_vault(data, keys, self.passphrases, self.stretched, identities)
        return found

    # Commands

    def prepare(self, *arguments, given=b"", **environment):
        """Runs a command of the tool that is not searched."""
        return subprocess.run([self.tool, *arguments], env=self.environment | environment, input=given, check=True,
                              capture_output=True, timeout=TIMEOUT).stdout

    def status(self, *arguments):
        """The exit status of a command that is not searched and may fail."""
        return subprocess.run([self.tool, *arguments], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=TIMEOUT).returncode

    def search(self, *arguments, given=b"", typed=(), allowed=(), program=None, status=0, descriptors=(),
               ends_empty=True, has_leak=False, **environment):
        """Runs a command under the tracer.

        `typed` are lines for prompts on a terminal, which the command has only then. Unless `ends_empty` is false, guarded
        memory must be empty at the last stop. With `has_leak`, something must be found.
        """
        before = self.vault.read_bytes() if self.vault.exists() else b""
        path = str(self.directory / f"recording{len(self.recordings)}")
        reading, writing = os.pipe()
        os.dup2(writing, 9)
        os.close(writing)
        command = [self.tracer, self.mode, path, program or self.tool, *map(str, arguments)]
        terminal = Terminal(typed) if typed else None
        process = subprocess.Popen(
            command, env=self.environment | environment, stdin=terminal.slave if terminal else subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, pass_fds=(9, *descriptors), preexec_fn=terminal and terminal.take,
        )
        os.close(9)
        if terminal:
            terminal.answer()
        output, errors = process.communicate(None if terminal else given, timeout=TIMEOUT)
        if terminal:
            terminal.close()
        summary = os.read(reading, 200).split()
        os.close(reading)
        name = shlex.join(map(str, arguments)).replace(str(self.directory) + "/", "")
        if process.returncode != 0 or len(summary) != 3:
            raise NotPossible(f"{name}: the tracer failed: {errors.decode()}")
        if int(summary[2]) != status:
            raise ScenarioFailed(f"{name}: status {int(summary[2])}, {errors.decode()}")
        after = self.vault.read_bytes() if self.vault.exists() else b""
        self.recordings.append(Recording(name, path, int(summary[0]), int(summary[1]), before, after, tuple(allowed),
                                         ends_empty and self.mode == "record", has_leak))
        return output


class Terminal:
    """A terminal on which lines are typed: each after a prompt, when the echo is off."""

    def __init__(self, lines):
        self.lines = list(lines)
        self.master, self.slave = os.openpty()

    def take(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def answer(self):
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        seen = b""
        for line in self.lines:
            while not seen.endswith(b": "):
                try:
                    seen += os.read(self.master, 1)
                except OSError:
                    return
            seen = b""
            os.write(self.master, line + b"\n")
        try:
            while os.read(self.master, 1000):
                pass
        except OSError:
            pass

    def close(self):
        os.close(self.slave)
        os.close(self.master)
