#!/usr/bin/python3
"""System calls of the tool `secret` that fail, transfer nothing or are its last, one at a time, by strace.

usage: inject_faults.py SECRET [--sample NUMBER] [--seed NUMBER] [--in DIRECTORY] [COMMAND]...

SECRET is the built tool; a static one is fastest. For every changing command, or for each COMMAND, the system calls that
it makes are listed. Then the command runs again for each call and each fault, always from the same files, and afterwards
the vault, the files and the message are checked:

- the command ends, by no signal, with a status that `secret --help` lists;
- status 0: the change is there. Another status: the state before or the whole change, and no message denies a change;
- the vault opens, and takes another change;
- a key file and its slot are both there, or neither, or the message names the file;
- no value in plain text and no file is left, except for what Documentation/Reference.md names.

--sample tries so many faults of all, chosen with --seed (1). --in names the directory to work in, /dev/shm by default.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from commands import COMMANDS, VALUE
from scene import EDITING_REST, PLAIN_REST, SEALED_REST, Scene

STATUSES = {0, 1, 64, 65, 66, 69, 70, 73, 74, 75, 77, 78}
# The calls that have to do with files and descriptors, and the errors that they may return. No other call can change what
# is left behind.
ERRORS = {
    "openat": "EACCES EINTR EMFILE ENOSPC EIO", "read": "EINTR EIO", "pread64": "EINTR EIO", "write": "EINTR ENOSPC EIO",
    "pwrite64": "EINTR ENOSPC EIO", "fsync": "EINTR ENOSPC EIO", "fdatasync": "EINTR ENOSPC EIO",
    "ftruncate": "EINTR EIO", "flock": "EINTR ENOLCK", "fchmod": "EPERM EIO", "linkat": "ENOSPC ENOENT EIO",
    "rename": "EACCES ENOSPC EIO", "renameat": "EACCES ENOSPC EIO", "renameat2": "EACCES ENOSPC EINVAL EIO",
    "unlink": "EACCES EIO", "unlinkat": "EACCES EIO", "mkdir": "ENOSPC EACCES", "mkdirat": "ENOSPC EACCES",
    "rmdir": "EACCES EIO", "newfstatat": "EACCES EIO", "fstat": "EIO", "lstat": "EIO", "stat": "EIO", "statx": "EIO",
    "readlink": "EIO", "readlinkat": "EIO", "getdents64": "EIO", "getcwd": "ENOENT", "fcntl": "EMFILE", "close": "EIO",
    "access": "EACCES", "faccessat": "EACCES", "getrandom": "EINTR", "poll": "EINTR", "ppoll": "EINTR", "wait4": "EINTR",
    "mlock": "ENOMEM EPERM", "madvise": "EINVAL", "statfs": "EIO", "pipe2": "EMFILE", "signalfd4": "EMFILE",
    "lseek": "EIO", "keyctl": "EPERM ENOSYS", "add_key": "EDQUOT",
}
# The calls that may transfer nothing without an error: from a file that was cut short, or by a file system at fault.
EMPTY = {"pread64", "write", "pwrite64"}
# The first call of the tool's own code. Those before it are the dynamic linker's and the runtime's.
OWN = re.compile(r"prctl\(PR_SET_DUMPABLE")
RECORD = re.compile(r"home/state/coffer/known-vaults/[0-9a-f]{32}$")
DENIALS = re.compile(r"[Nn]othing was|not changed|was not (added|created|stored)")


class Findings:
    def __init__(self):
        self.runs, self.by_fault, self.by_status, self.failures = 0, collections.Counter(), collections.Counter(), []

    def fail(self, what, scene, fault, result):
        self.failures.append(f"{scene.command.name}, {fault}: {what}")
        said = result.stderr.decode(errors="replace").strip() if result else ""
        print(f"FAILED: {self.failures[-1]}\n  status {result.returncode if result else None}: {said}", flush=True)


def faults(scene):
    """The faults of a command: the arguments of `strace --inject`, for each call that it makes."""
    result = scene.run()
    if result.returncode != 0:
        raise SystemExit(f"{scene.command.name} fails without a fault: {result.stderr.decode()}")
    counts, is_own, found = collections.Counter(), False, []
    for line in scene.trace:
        match = re.match(r"([a-z0-9_]+)\(", line)
        if not match:
            continue
        call = match[1]
        counts[call] += 1
        if OWN.match(line):
            is_own = True
        if call not in ERRORS or not is_own:
            continue
        number = counts[call]
        found.append(f"{call}:signal=KILL:when={number}")
        found += [f"{call}:error={error}:when={number}" for error in ERRORS[call].split()]
        if call in EMPTY:
            found.append(f"{call}:retval=0:when={number}")
    return found


def check(scene, fault, before, after, findings):
    """Runs the command with a fault, and checks what is left."""
    scene.reset()
    try:
        result = scene.run("-e", f"inject={fault}")
    except subprocess.TimeoutExpired:
        return findings.fail("it hangs", scene, fault, None)
    findings.runs += 1
    is_killed = result.returncode in (-9, 137)
    findings.by_fault[fault.split(":")[1]] += 1
    findings.by_status["killed" if is_killed else result.returncode] += 1

    def fail(what):
        findings.fail(what, scene, fault, result)

    if not is_killed and result.returncode not in STATUSES:
        fail("the status is not a documented one")
    said = result.stderr.decode(errors="replace")
    files = scene.files()
    state = observed(scene)
    if isinstance(state["main"], str) or isinstance(state["other"], str):
        return fail(f"the vault does not open: {state}")
    if result.returncode == 0 and state != after["state"]:
        fail(f"the acknowledged change is missing: {state}, not {after['state']}")
    if result.returncode != 0 and state not in (before["state"], after["state"]) and not is_part(scene, state, after):
        fail(f"neither the state before nor the change: {state}")
    if state != before["state"] and result.returncode not in (0, -9, 137) and DENIALS.search(said):
        fail("the message denies a change that is there")
    check_key(scene, files, state, said, is_killed, fail)
    if "getcwd" in fault:
        # A vault that is named from a working directory that cannot be read has a record under that short name.
        files = {name: content for name, content in files.items() if not RECORD.match(name) or name in before["files"]}
    check_files(scene, files, before, after, result, is_killed, fail)
    later = scene.secret("set", "later", given="x")
    if later.returncode != 0 or scene.secret("get", "later").stdout != b"x":
        fail(f"the vault takes no further change: {later.stderr.decode()}")


def observed(scene):
    """The states of the vault, and of the other vault that the command makes or writes."""
    vault = scene.command.vault
    other = None
    if vault and os.path.exists(os.path.join(scene.work, vault)):
        key = {"init": "K", "copy": "../other"}.get(scene.command.name, "../key")
        other = scene.state(vault, key)
    return {"main": scene.state(), "other": other}


def is_part(scene, state, after):
    """`copy` stores one secret after the other."""
    if scene.command.name != "copy" or state["main"] != after["state"]["main"]:
        return False
    return state["other"]["values"].items() <= after["state"]["other"]["values"].items()


def check_key(scene, files, state, said, is_killed, fail):
    """A new key file opens the vault; without it, the vault has no slot for it."""
    key = scene.command.new_key
    if not key:
        return
    has_file = f"work/{key}" in files
    if scene.command.vault:
        if state["other"] is None and has_file and not is_killed and f"/{key}" not in said:
            fail("a key file without a vault is left, and the message does not name it")
        return
    has_slot = state["main"]["slots"] > 1
    if has_slot and not has_file:
        fail("the slot of a lost key is left")
    if has_file and not has_slot and not is_killed and f"/{key}" not in said:
        fail("a key file without a slot is left, and the message does not name it")
    if has_slot and has_file and isinstance(scene.state(key=key), str):
        fail("the new key does not open the vault")


def check_files(scene, files, before, after, result, is_killed, fail):
    """Nothing is left beyond the files before and after the command, and no value in plain text."""
    known = set(before["files"]) | set(after["files"])
    # The record of a new vault is named by the vault's id, which is random.
    records = [sum(bool(RECORD.match(name)) for name in some) for some in (files, after["files"])]
    for name in set(files) - known:
        if RECORD.match(name) and records[0] <= records[1]:
            continue
        base = os.path.basename(name)
        # A message may name the directory of an edited text, without its file.
        is_named = is_killed or os.path.dirname(name) in result.stderr.decode()
        is_sealed = SEALED_REST.match(name)
        allowed = is_sealed or EDITING_REST.match(name) and is_named
        # A new file has a temporary name just before it replaces the old one. After a kill it may stay until the next
        # writer removes it, if it holds no value.
        is_harmless = is_killed and VALUE.encode() not in files[name]
        if not allowed and not (PLAIN_REST.match(base) and (is_harmless or is_rest_of_output(scene, is_killed, result))):
            fail(f"the file {name} is left")
        may_be_plain = PLAIN_REST.match(base) and not is_sealed or EDITING_REST.match(name)
        if VALUE.encode() in files[name] and not may_be_plain:
            fail(f"a value in plain text is in {name}")
    for name in known & set(files):
        is_plain = VALUE.encode() in files[name]
        if is_plain and files[name] not in (before["files"].get(name), after["files"].get(name)):
            fail(f"a value in plain text is in a part of {name}")
    if not scene.command.output:
        return
    name = f"work/{scene.command.output}"
    is_written = files.get(name) == after["files"][name]
    if result.returncode == 0 and not is_written:
        fail("the acknowledged file is not there")
    if result.returncode != 0 and not is_killed and is_written and b"was written" not in result.stderr:
        fail("the message does not say that the file was written")


def is_rest_of_output(scene, is_killed, result):
    """Whether the new contents of a replaced file may be left: the process was killed, or could not remove them."""
    return scene.command.output != "" and (is_killed or b"cannot be" in result.stderr or result.returncode == 0)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("tool")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--in", dest="directory", default="/dev/shm")
    if "--help" in sys.argv[1:]:
        print(__doc__)
        sys.exit(0)
    known = {command.name: command for command in COMMANDS}
    try:
        options = parser.parse_args()
    except SystemExit:
        sys.exit(64)
    if not os.access(options.tool, os.X_OK) or not set(options.names) <= set(known) or not shutil.which("strace"):
        print(__doc__ + "\nCommands: " + " ".join(known) + "\nThe program strace is necessary.", file=sys.stderr)
        sys.exit(64)
    os.umask(0o077)
    findings, started = Findings(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="coffer-faults-", dir=options.directory) as root:
        commands = [known[name] for name in options.names] or COMMANDS
        for number, command in enumerate(commands):
            begun, runs = time.monotonic(), findings.runs
            run(command, os.path.join(root, command.name), options, len(commands), findings)
            print(f"{command.name}: {findings.runs - runs} faults in {time.monotonic() - begun:.0f} s", flush=True)
            shutil.rmtree(os.path.join(root, command.name))
    statuses = ", ".join(f"{status}: {count}" for status, count in sorted(findings.by_status.items(), key=str))
    kinds = ", ".join(f"{kind}: {count}" for kind, count in findings.by_fault.most_common())
    print(f"Ends: {statuses}\nFaults: {kinds}")
    print(f"{findings.runs} faults in {time.monotonic() - started:.0f} s, {len(findings.failures)} checks failed")
    sys.exit(1 if findings.failures else 0)


def run(command, root, options, command_count, findings):
    """Tries the faults of one command."""
    scene = Scene(os.path.abspath(options.tool), root, command)
    before = {"files": scene.files(), "state": observed(scene)}
    scene.reset()
    all_faults = faults(scene)
    after = {"files": scene.files(), "state": observed(scene)}
    if options.sample:
        wanted = max(1, options.sample // command_count)
        all_faults = random.Random(f"{options.seed} {command.name}").sample(all_faults, min(wanted, len(all_faults)))
    for fault in all_faults:
        check(scene, fault, before, after, findings)


main()
