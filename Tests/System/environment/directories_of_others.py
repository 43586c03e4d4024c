#!/usr/bin/env python3
"""Root's commands change nothing in a directory of another user, nor where its links lead.

usage: directories_of_others.py SECRET [--sample]

SECRET is the built tool. Each variable that names a directory is tried with each command, or with a sample of them. Only
root can own directories of another user. The mounts are in a mount namespace of this script and disappear with it: a
directory in memory takes the place of root's home, because root uses it if HOME belongs to another user.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import hashlib
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import tempfile

OTHER = 54_321
VARIABLES = ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"]
SAMPLE = {"init", "set", "edit", "unlock", "doctor"}

# The arguments, the input, and the statuses besides 0: a kernel without keyrings, and a command that ends only by a signal.
COMMANDS = [
    ("set b", "x", ()), ("get a", "", ()), ("list", "", ()), ("find a", "", ()), ("info a", "", ()), ("move a m", "", ()),
    ("remove a", "", ()), ("edit a", "", ()), ("edit --insecure-storage a", "", ()), ("generate g", "", ()),
    ("history a", "", ()), ("restore a", "", ()), ("watch a", "", (124,)), ("run --set A=a -- true", "", ()),
    ("run --redact --set A=a -- true", "", ()), ("allow", "", (73,)), ("check", "", (78,)), ("inject", "secret://secret/a", ()), ("import -", "N=1", ()),
    ("import --from pass store", "", (69, 77)), ("export --format json", "", ()), ("copy --from vault --to vault:other", "", (66,)),
    ("init --vault V", "", ()), ("init --vault W --key-file K", "", ()), ("init", "", (73,)), ("unlock", "", (69,)),
    ("lock", "", ()), ("verify", "", ()), ("trust", "", ()), ("merge other", "", (66,)), ("git-merge-driver o a b p", "", (1,)), ("git-textconv a", "", ()),
    ("history-limit --versions 2", "", ()), ("key list", "", ()),
    ("key new --output N", "", ()),
    ("key add --key-file K", "", ()), ("key add --passphrase", "correct horse", ()), ("key remove x", "", (64, 66)),
    ("key change-passphrase", "correct horse", (64, 77)), ("key recover", "x", (64, 65, 78)), ("rekey", "", ()),
    ("git-credential store", "protocol=https\nhost=h\nusername=u\npassword=p\n\n", ()), ("docker-credential list", "", ()),
    ("cargo-credential", "", (64, 65)), ("bazel-credential get", '{"uri":"https://h"}', ()),
    ("terraform-credentials get h", "", ()), ("keyring get s a", "", (1,)), ("doctor", "", ()), ("remote check none://h/a", "", (69,)), ("completions bash", "", ()),
    ("complete bash -- 'secret get ' 11 9", "", ()),
]

# The editor does what the other user could do in a directory of theirs: a link takes the place of the file's directory.
EDITOR = """#!/bin/sh
d=$(dirname "$1")
echo changed > "$1"
case $d in "$THEIRS"/*) mv "$d" "$d.moved"; ln -s "$VICTIM" "$d";; esac
"""

FAILURES = []


def check(what, holds, detail=""):
    if not holds:
        print(f"FAILED: {what} ({detail})")
        FAILURES.append(what)


def content(*roots):
    """Every file below the directories, with what a change of it would change."""
    found = {}
    for root in roots:
        for directory, names, files in os.walk(root):
            for path in [directory, *(os.path.join(directory, name) for name in names + files)]:
                status = os.lstat(path)
                text = None
                if stat.S_ISREG(status.st_mode):
                    with open(path, "rb") as file:
                        text = hashlib.sha256(file.read()).hexdigest()
                found[path] = (status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns, status.st_ctime_ns, text)
    return found


def made(*parts, owner=0):
    path = os.path.join(*parts)
    os.makedirs(path, mode=0o700)
    os.chown(path, owner, owner)
    return path


class Place:
    """A home of root, a directory of another user, and one of root to which its links lead."""

    def __init__(self, base, tool, variable, home):
        self.base = made(base, "run")
        self.theirs = made(self.base, "theirs", owner=OTHER)
        self.victim = made(self.base, "victim")
        self.work = made(self.base, "work")
        for name in ("coffer/known-vaults", "share/coffer", "state/coffer/known-vaults"):
            made(self.victim, name)
        for name in ("kept", "coffer/kept", "share/coffer/kept", ".password-store/kept"):
            os.makedirs(os.path.dirname(f"{self.victim}/{name}"), exist_ok=True)
            with open(f"{self.victim}/{name}", "w") as file:
                file.write("kept")
        for name in ("coffer", ".config", ".local", ".cache", ".gnupg", ".password-store", "secret"):
            os.symlink(self.victim, f"{self.theirs}/{name}")
            os.lchown(f"{self.theirs}/{name}", OTHER, OTHER)
        with open(f"{made(self.work, 'store')}/entry.gpg", "w") as file:
            file.write("not encrypted")
        editor = f"{self.work}/editor"
        with open(editor, "w") as file:
            file.write(EDITOR)
        os.chmod(editor, 0o700)
        own = made(self.base, "own")
        self.tool = tool
        self.environment = {
            "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": own, "TMPDIR": made(own, "tmp"), "EDITOR": editor,
            "THEIRS": self.theirs, "VICTIM": self.victim, "XDG_RUNTIME_DIR": made(own, "run"), variable: self.theirs,
        }
        if variable == "TMPDIR":
            del self.environment["XDG_RUNTIME_DIR"]
        for name in os.listdir(home):
            shutil.rmtree(f"{home}/{name}")

    def run(self, arguments, given):
        return subprocess.run(
            ["timeout", "1" if arguments.startswith("watch") else "60", "sh", "-c", f'exec "$0" {arguments}', self.tool],
            env=self.environment, cwd=self.work, input=given.encode(), capture_output=True, start_new_session=True)


def attempt(base, tool, variable, home, arguments, given, statuses):
    place = Place(base, tool, variable, home)
    before = content(place.theirs, place.victim)
    for line, text, allowed in (("init", "", ()), ("set a", "value", ()), ("set a", "value 2", ()), (arguments, given, statuses)):
        if line in ("allow", "check"):
            with open(f"{place.work}/.coffer.toml", "w") as file:
                file.write('service = "secret"\n[variables]\nA = "a"\n')
        result = place.run(line, text)
        what = f"{variable}: secret {line}"
        check(f"{what} has status {result.returncode}", result.returncode in (0, *allowed), result.stderr.decode())
    after = content(place.theirs, place.victim)
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    check(f"{variable}: secret {arguments} changes nothing", not changed, changed)
    if variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME") and not arguments.startswith("complete "):
        said = f"secret: {variable} is not used, because other users can change what is in the directory."
        check(f"{variable}: secret {arguments} says so once", result.stderr.decode().count(said) == 1, result.stderr.decode())
    shutil.rmtree(place.base)


def main(tool, is_sample):
    help_text = subprocess.run([tool, "--help"], capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^  ([a-z-]+)  ", help_text[help_text.index("SUBCOMMANDS"):], re.MULTILINE))
    tried = {arguments.split()[0] for arguments, _, _ in COMMANDS}
    check("each command is tried", not listed - tried, listed - tried)
    home = pwd.getpwuid(0).pw_dir
    with tempfile.TemporaryDirectory() as base:
        disk = made(base, "disk")
        memory = made(base, "memory")
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        for place in (home, memory):
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", place], check=True)
        shutil.copy(tool, f"{memory}/secret")
        count = 0
        for variable in VARIABLES:
            # Without a directory in memory, --insecure-storage uses TMPDIR.
            if variable == "TMPDIR":
                subprocess.run(["mount", "--bind", disk, "/dev/shm"], check=True)
            for arguments, given, statuses in COMMANDS:
                if is_sample and arguments.split()[0] not in SAMPLE:
                    continue
                if variable == "TMPDIR" and arguments == "edit a":
                    statuses = (69,)
                attempt(memory, f"{memory}/secret", variable, home, arguments, given, statuses)
                count += 1
            if variable == "TMPDIR":
                subprocess.run(["umount", "/dev/shm"], check=True)
        print(f"{count} cases, {len(FAILURES)} failed")
        for place in (home, memory):
            subprocess.run(["umount", "--lazy", place], check=True)
    sys.exit(1 if FAILURES else 0)


if __name__ == "__main__":
    if sys.argv[1:] == ["--help"]:
        print(__doc__)
        sys.exit(0)
    if len(sys.argv) not in (2, 3) or not os.path.isfile(sys.argv[1]) or sys.argv[2:] not in ([], ["--sample"]):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    if os.geteuid() != 0:
        print("Skipped: only root can own directories of another user.")
        sys.exit(0)
    if os.environ.get("COFFER_IN_NAMESPACE") != "1":
        os.environ["COFFER_IN_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", sys.executable, *sys.argv])
    main(os.path.abspath(sys.argv[1]), len(sys.argv) == 3)
