#!/usr/bin/python3
"""Counts what the main commands of the tool `secret` cost, and compares it with figures.json. No clock is read.

usage: figures.py SECRET KEYRING [--write] [--in DIRECTORY]

SECRET is the static tool, optimised. KEYRING is one with the keyring, whose `get` is counted, on a private keyring: the debug
build. For each command:

- instructions, without those of memset and memcpy, by valgrind's callgrind;
- system calls that do not wait, of all threads and children, and the bytes that they read and write, by strace;
- page faults.

The smallest of three runs counts, and of the bytes the largest. More than 3 % above the file's instructions, calls or size, or 10 % above its bytes or
page faults, is a failure: a change that needs more changes the file too, with --write, and says why. Far less is said. On
another processor than the one that the file names, libsodium and glibc choose other code: there the instructions are only
printed.

Exit status: 0 nothing costs more, 1 something does, 64 wrong usage.
"""

import argparse
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "keyring"))
from private_session import Session  # noqa: E402

FILE = HERE / "figures.json"
# One for each run.
NAMES = ["NAME_100", "NAME_500", "NAME_900"]
MARGINS = {"instructions": 3, "calls": 3, "size": 3, "bytes": 10, "faults": 10}
CREDENTIAL = b"protocol=https\nhost=example.com\n\n"
COMMANDS = {
    "--version": (["--version"], b""),
    "get": (["get", "{}"], b""),
    "set": (["set", "{}"], b"another value"),
    "list": (["list"], b""),
    "run": (["run", "--set", "A={}", "--", "/bin/true"], b""),
    "git-credential get": (["git-credential", "get"], CREDENTIAL),
}
# Their number depends on the moment at which another thread or process answers.
WAITS = re.compile(r"\b(futex|poll|ppoll|sched_yield|restart_syscall|clock_nanosleep)\b|EAGAIN|--- SIG|\+\+\+ ")
COPIES = re.compile(r"mem(set|cpy|move|pcpy)|bzero")


def processor():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "CPU part"))]
    return f"{platform.machine()} {names[0] if names else ''}".strip()


class Scene:
    """A program, and a home of its own that is put back before each run."""

    def __init__(self, program, directory, environment=None):
        self.directory = directory
        self.directory.mkdir(mode=0o700)
        self.program, self.stripped = directory / "secret", directory / "stripped"
        # valgrind 3.19 cannot read Swift's debug information, and needs the names of functions.
        subprocess.run(["strip", "--strip-debug", "-o", self.program, program], check=True)
        subprocess.run(["strip", "-o", self.stripped, program], check=True)
        self.home, self.saved = directory / "home", directory / "saved"
        self.home.mkdir()
        self.environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **(environment or {}), "HOME": str(self.home)}

    def save(self):
        shutil.copytree(self.home, self.saved)

    def restore(self):
        shutil.rmtree(self.home)
        shutil.copytree(self.saved, self.home)

    def run(self, arguments, data=b"", before=()):
        command = [*before, str(self.program), *arguments]
        result = subprocess.run(
            command, input=data, capture_output=True, env=self.environment, cwd=self.home, timeout=300)
        if result.returncode != 0:
            sys.exit(f"{' '.join(arguments)} ended with {result.returncode}: {result.stderr.decode(errors='replace')}")

    def instructions(self, arguments, data):
        output = self.directory / "callgrind"
        tool = ["valgrind", "-q", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={output}"]
        # `run` becomes the other program, which valgrind does not follow.
        self.run(arguments, data, [*tool, "--dump-before=execve"])
        dumps = sorted(self.directory.glob("callgrind*"))
        total = sum(counted(dump.read_text()) for dump in dumps)
        for dump in dumps:
            dump.unlink()
        return total

    def calls(self, arguments, data):
        output = self.directory / "strace"
        self.run(arguments, data, ["strace", "-f", "-qq", "-s", "0", "-o", str(output)])
        lines = [line for line in output.read_text().splitlines() if "unfinished" not in line and not WAITS.search(line)]
        moved = r"(?:p?readv?2?|pread64|p?writev?2?|pwrite64|sendto|sendmsg|recvfrom|recvmsg)"
        sizes = [re.search(rf"(?:\b{moved}\(|\b{moved} resumed>).*= (\d+)$", line) for line in lines]
        return len(lines), sum(int(size[1]) for size in sizes if size)

    def faults(self, arguments, data):
        text = "import os,resource,sys; child=os.posix_spawn(sys.argv[1],sys.argv[1:],os.environ); os.waitpid(child,0); " \
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt, file=sys.stderr)"
        result = subprocess.run(
            ["/usr/bin/python3", "-c", text, str(self.program), *arguments], input=data, capture_output=True,
            env=self.environment, cwd=self.home, check=True, timeout=300)
        return int(result.stderr.split()[-1])


def counted(text):
    """The instructions of a callgrind file, without those of functions that fill and copy memory."""
    total, skip, is_call = 0, False, False
    for line in text.splitlines():
        if line.startswith("fn="):
            skip = bool(COPIES.search(line))
        elif line.startswith("calls="):
            is_call = True  # the next line is the cost of the called function
        elif line[:1] in "0123456789+-*" and line:
            if not is_call and not skip:
                total += int(line.split()[-1])
            is_call = False
    return total


def row(scene, arguments, data):
    rows = []
    for name in NAMES:
        command = [argument.replace("{}", name) for argument in arguments]
        scene.restore()
        instructions = scene.instructions(command, data)
        scene.restore()
        calls, moved = scene.calls(command, data)
        scene.restore()
        rows.append((instructions, calls, moved, scene.faults(command, data)))
    instructions, calls, moved, faults = zip(*rows)
    # A name whose part of the file is shorter than the others' would be luck.
    return {"instructions": min(instructions), "calls": min(calls), "bytes": max(moved), "faults": min(faults)}


def of_vault(program, directory):
    scene = Scene(program, directory)
    lines = "".join(f"NAME_{number}='value {number}'\n" for number in range(1000))
    scene.run(["init"])
    scene.run(["import", "-"], lines.encode())
    scene.run(["git-credential", "store"], CREDENTIAL[:-1] + b"username=ann\npassword=hunter2\n\n")
    scene.save()
    found = {name: row(scene, *command) for name, command in COMMANDS.items()}
    found["the program"] = {"size": scene.stripped.stat().st_size}
    return found


def of_keyring(program, directory):
    session = Session(str(directory / "session"))
    try:
        session.start("password")
        scene = Scene(program, directory / "keyring", session.environment)
        scene.run(["--backend", "keyring", "set", "name"], b"value")
        scene.save()
        return {"keyring get": row(scene, ["--backend", "keyring", "get", "name"], b"")}
    finally:
        session.end()


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("keyring", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--in", dest="place", default="/dev/shm")
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    try:
        options = parser.parse_args()
    except SystemExit:
        sys.exit(64)
    with tempfile.TemporaryDirectory(dir=options.place) as directory:
        directory = pathlib.Path(directory)
        found = of_vault(options.program.resolve(), directory / "vault") | of_keyring(options.keyring.resolve(), directory)
    if options.write:
        FILE.write_text(json.dumps({"processor": processor(), "figures": found}, indent=2) + "\n")
        return
    known = json.loads(FILE.read_text())
    is_same = known["processor"] == processor()
    failures = 0
    for name, row in known["figures"].items():
        for key, old in row.items():
            new = found[name][key]
            change = 100 * (new - old) / max(old, 1)
            verdict = "" if abs(change) <= MARGINS[key] else "less: write it into the file" if change < 0 else "MORE"
            if verdict == "MORE" and key == "instructions" and not is_same:
                verdict = "another processor: not judged"
            failures += verdict == "MORE"
            print(f"{name:20} {key:13} {old:>12,} {new:>12,} {change:+6.1f} %  {verdict}".rstrip())
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
