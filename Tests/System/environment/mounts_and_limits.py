#!/usr/bin/env python3
"""The tool in environments that a unit test cannot make: mounts, a full disk, and limits of the process.

usage: mounts_and_limits.py SECRET [PART]...

PART is one of full_disk, read_only, single_file, value_files, overlay, hostile_directory, limits, memory_limit, times, empty_root,
no_memory and unknown_user; by default all of them. SECRET is the built tool. It must be static: one check runs it in an empty root directory. The mounts are in a mount
namespace of this script and disappear with it, which takes root or user namespaces.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time

FAILURES = []


def check(what, holds, detail=""):
    print(("ok: " if holds else "FAILED: ") + what + ("" if holds else f" ({detail})"))
    if not holds:
        FAILURES.append(what)


class Vault:
    def __init__(self, tool, directory, file=None):
        self.tool = tool
        self.directory = directory
        self.file = file or f"{directory}/vault"
        self.environment = {
            "HOME": f"{HOME}/home",
            "PATH": os.environ["PATH"],
            "COFFER_VAULT": self.file,
            "COFFER_KEY_FILE": f"{HOME}/key",
        }

    def run(self, *arguments, given=b"", prefix=()):
        started = time.monotonic()
        result = subprocess.run(
            [*prefix, self.tool, *arguments], env=self.environment, input=given, capture_output=True, timeout=60
        )
        result.seconds = time.monotonic() - started
        return result

    def make(self):
        result = self.run("init")
        if result.returncode != 0:
            sys.exit(f"init failed: {result.stderr.decode()}")
        return self

    def holds(self, name, value):
        result = self.run("get", name)
        return result.returncode == 0 and result.stdout == value


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def directory(name):
    path = f"{HOME}/{name}"
    os.makedirs(path, mode=0o700)
    return path


def full_disk(tool):
    place = directory("full")
    mount("-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", place)
    vault = Vault(tool, place).make()
    vault.run("set", "before", given=b"kept")
    stored = []
    for number in range(200):
        value = bytes([number % 250 + 1]) * 20_000
        result = vault.run("set", "--verbatim", f"large {number}", given=value)
        if result.returncode != 0:
            break
        stored.append((f"large {number}", value))
    check("set on a full disk exits with 74", result.returncode == 74, result)
    check("the message names the reason", b"no room" in result.stderr, result.stderr)
    check("the first secret is kept", vault.holds("before", b"kept"))
    check("every stored value is kept", all(vault.holds(*item) for item in stored))
    check("the vault verifies", vault.run("verify").returncode == 0)
    # Overwriting makes half of the file dead, so each change attempts a rewrite, for which there is no room.
    for _ in range(30):
        result = vault.run("set", "--verbatim", stored[0][0], given=stored[0][1])
    check("a rewrite that fails for lack of room loses no value", all(vault.holds(*item) for item in stored))
    check("the vault still verifies", vault.run("verify").returncode == 0)
    check("the failed rewrite leaves no file", os.listdir(place) == ["vault"], os.listdir(place))
    # A remove appends a frame like any change, so it needs room as well.
    # With the device named, mount(8) does not pass the old options again: another user namespace sees another uid there.
    mount("-o", "remount,size=4m,mode=700", "tmpfs", place)
    for name, _ in stored[1:]:
        check(f"with more room, {name} can be removed", vault.run("remove", name).returncode == 0)
    # The removed values are earlier versions until the limit drops them.
    check("with more room, the history can be dropped", vault.run("history-limit", "--versions", "0", "--purge").returncode == 0)
    check("the file shrinks", os.stat(vault.file).st_size < 300_000, os.stat(vault.file).st_size)
    check("a further secret can be stored", vault.run("set", "after", given=b"x").returncode == 0)
    check("the further secret and the first can be read", vault.holds("after", b"x") and vault.holds("before", b"kept"))


def read_only(tool):
    place = directory("read-only")
    vault = Vault(tool, place).make()
    vault.run("set", "a", given=b"1")
    mount("--bind", place, place)
    mount("-o", "remount,ro,bind", place)
    check("a vault on a read-only mount can be read", vault.holds("a", b"1"))
    result = vault.run("set", "a", given=b"2")
    check("writing it exits with 77", result.returncode == 77, result)
    check("verify does not write", vault.run("verify").returncode == 0)
    result = Vault(tool, place, f"{place}/other").run("init")
    check("init on a read-only mount exits with 77", result.returncode == 77, result)


def single_file(tool):
    place = directory("single")
    source = Vault(tool, directory("source")).make()
    source.run("set", "a", given=b"1")
    target = f"{place}/vault"
    os.close(os.open(target, os.O_CREAT, 0o600))
    mount("--bind", source.file, target)
    vault = Vault(tool, place)
    check("a vault that is a mount point can be read", vault.holds("a", b"1"))
    # Large values that replace one another make the vault due for a rewrite, which cannot replace a mount point.
    for number in range(40):
        result = vault.run("set", "large", given=bytes([number + 1]) * 100_000)
        if result.returncode != 0:
            break
    check("it can be written without a rewrite", result.returncode == 0, result)
    check("the written values can be read", vault.holds("large", bytes([40]) * 100_000) and source.holds("a", b"1"))
    check("no temporary file is left", os.listdir(place) == ["vault"], os.listdir(place))


def value_files(tool):
    """What a command mounts in the directory of its value files is not theirs."""
    vault = Vault(tool, directory("values")).make()
    vault.run("set", "a", given=b"1")
    other, runtime = directory("other"), directory("runtime")
    for name in ("kept", "below/kept"):
        os.makedirs(os.path.dirname(f"{other}/{name}"), exist_ok=True)
        with open(f"{other}/{name}", "w") as file:
            file.write("text")
    script = f"""d=$(dirname "$A"); mkdir -p "$d/x/y"; touch "$d/file"; mount --bind {other} "$d/x/y"
        mount --bind {other}/kept "$d/file"; cp "$A" "$d/x/copy" """
    result = vault.run("run", "--file", "A=a", "--", "sh", "-c", script, prefix=("env", f"XDG_RUNTIME_DIR={runtime}"))
    check("a command that mounts something ends", result.returncode == 0, result)
    check("what is mounted is kept", all(open(f"{other}/{n}").read() == "text" for n in ("kept", "below/kept")))
    left = [name for _, _, names in os.walk(runtime) for name in names]
    check("values beside it are removed", sorted(left) == ["file", "kept", "kept"], left)
    check("what is left is named", b"could not be removed" in result.stderr, result)
    subprocess.run(f"umount {runtime}/*/file {runtime}/*/y {runtime}/*/*/y", shell=True, capture_output=True)


def overlay(tool):
    lower, upper, work, merged = (directory(f"overlay-{name}") for name in ("lower", "upper", "work", "merged"))
    vault = Vault(tool, lower).make()
    vault.run("set", "a", given=b"1")
    # The kernel may refuse an overlay whose directories are on an overlay.
    if subprocess.run(
        ["mount", "-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={upper},workdir={work}", merged],
        capture_output=True,
    ).returncode:
        check("an overlay can be mounted", False, "mount -t overlay failed")
        return
    over = Vault(tool, merged)
    check("a vault in a lower layer can be read", over.holds("a", b"1"))
    check("a change copies the vault to the upper layer", over.run("set", "b", given=b"2").returncode == 0)
    check("both secrets can be read", over.holds("a", b"1") and over.holds("b", b"2"))
    check("the vault in the lower layer is unchanged", vault.run("get", "b").returncode == 1)
    check("the copy verifies", over.run("verify").returncode == 0)
    check("doctor reports the container layer", b"in a container's own layer" in over.run("--backend", "vault", "doctor").stdout)


def hostile_directory(tool):
    place = directory("games")
    vault = Vault(tool, place).make()
    other = Vault(tool, directory("elsewhere")).make()
    victim = f"{HOME}/victim"
    with open(victim, "w") as file:
        file.write("untouched")
    vault.run("set", "a", given=b"1")
    stop = threading.Event()

    def play():
        # The vault is renamed away and back; in between a link to another file has its name.
        while not stop.is_set():
            os.rename(vault.file, f"{place}/aside")
            os.symlink(victim, vault.file)
            os.unlink(vault.file)
            os.rename(f"{place}/aside", vault.file)
            time.sleep(0.001)

    player = threading.Thread(target=play)
    player.start()
    statuses = set()
    for number in range(150):
        statuses.add(vault.run("set", f"name {number % 7}", given=b"x").returncode)
        statuses.add(vault.run("get", "a").returncode)
    stop.set()
    player.join()
    # 65, 66 and 77 are true of the moments in between: no vault, another file, a link.
    check("during renames and links the exit status is true", statuses <= {0, 65, 66, 77}, statuses)
    check("the target of the link is unchanged", open(victim).read() == "untouched")
    check("the vault verifies and keeps its secret", vault.run("verify").returncode == 0 and vault.holds("a", b"1"))
    check("another vault is unchanged", other.run("list").stdout == b"")


def limits(tool):
    place = directory("limits")
    vault = Vault(tool, place).make()
    vault.run("set", "a", given=b"1")
    prefix = ("prlimit", "--memlock=0:0")
    check("the tool works without locked memory", vault.run("get", "a", prefix=prefix).stdout == b"1")
    size = os.stat(vault.file).st_size
    result = vault.run("set", "b", given=b"x" * 50_000, prefix=("prlimit", f"--fsize={size + 1000}"))
    check("a file size limit exits with 74 instead of a signal", result.returncode == 74, result)
    check("the file size limit loses no value", vault.holds("a", b"1") and vault.run("verify").returncode == 0)
    result = vault.run("get", "a", prefix=("prlimit", "--nofile=4"))
    check("too few descriptors exit with 0 or 74", result.returncode in (0, 74), result)
    result = vault.run("get", "a", prefix=("prlimit", "--as=400000000"))
    check("a limit on address space exits with 0 or 74", result.returncode in (0, 74), result)


def memory_limit(tool):
    """A control group with less memory than key derivation takes: the kernel would kill the process."""
    vault = Vault(tool, directory("memory"))
    vault.environment["COFFER_PASSPHRASE_FILE"] = f"{HOME}/passphrase"
    with open(f"{HOME}/passphrase", "w") as file:
        os.chmod(f"{HOME}/passphrase", 0o600)
        file.write("correct horse")
    del vault.environment["COFFER_KEY_FILE"]
    vault.run("init", "--passphrase")
    check("a vault with a passphrase can be written", vault.run("set", "a", given=b"1").returncode == 0)
    first = os.path.isdir("/sys/fs/cgroup/memory")
    group = f"/sys/fs/cgroup/{'memory/' if first else ''}coffer-{os.getpid()}"
    try:
        os.mkdir(group)
        with open(f"{group}/{'memory.limit_in_bytes' if first else 'memory.max'}", "w") as file:
            file.write(str(48 << 20))
    except OSError as error:
        check("a control group with a limit can be made", False, error)
        return
    inside = ("sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', group)
    result = vault.run("get", "a", prefix=inside)
    check("too little memory for key derivation exits with 74 and a message", result.returncode == 74
          and b"MiB are left" in result.stderr, f"{result.returncode} {result.stderr.decode()}")
    with open(f"{group}/{'memory.limit_in_bytes' if first else 'memory.max'}", "w") as file:
        file.write(str(96 << 20))
    result = vault.run("get", "a", prefix=inside)
    check("with enough memory the vault opens", result.stdout == b"1", f"{result.returncode} {result.stderr.decode()}")
    os.rmdir(group)


def times(tool):
    vault = Vault(tool, directory("times")).make()
    vault.run("set", "a", given=b"1")
    for time_of_file in (0, 2**33):
        os.utime(vault.file, (time_of_file, time_of_file))
        check("the times of the file do not prevent a change", vault.run("set", "a", given=b"2").returncode == 0)
        check("the times of the file do not prevent reading", vault.holds("a", b"2"))


def empty_root(tool):
    """A root directory that contains only the program, a vault and its key, without /proc."""
    root = f"{HOME}/root"
    os.mkdir(root, 0o700)
    vault = Vault(tool, root)
    vault.run("init")
    vault.run("set", "a", given=b"1")
    subprocess.run(["cp", tool, f"{root}/secret"], check=True)
    subprocess.run(["cp", "-p", f"{HOME}/key", f"{root}/key"], check=True)

    def inside(*arguments, given=b""):
        return subprocess.run(
            ["/usr/sbin/chroot", root, "/secret", *arguments], env={"COFFER_VAULT": "/vault", "COFFER_KEY_FILE": "/key"},
            input=given, capture_output=True, timeout=60)

    result = inside("get", "a")
    check("get works in an empty root", result.stdout == b"1", result.stderr.decode())
    result = inside("set", "b", given=b"2")
    check("set works in an empty root", result.returncode == 0, result.stderr.decode())
    result = inside("list")
    check("list works in an empty root", result.stdout == b"a\nb\n", result.stderr.decode())
    result = inside("run", "--all", "--", "/secret", "--version")
    check("run works in an empty root", result.returncode == 0 and result.stdout.strip() != b"", result.stderr.decode())


def no_memory(tool):
    """`secret edit` without a file system in memory: /dev/shm is a directory of a disk."""
    vault = Vault(tool, directory("edit")).make()
    vault.run("set", "a", given=b"old")
    vault.environment["TMPDIR"] = directory("edit-tmp")
    vault.environment["EDITOR"] = f'echo "$1" > {HOME}/where; printf new >'
    with tempfile.TemporaryDirectory(dir=os.path.dirname(tool)) as disk:
        mount("--bind", disk, "/dev/shm")
        result = vault.run("edit", "a")
        check("edit without storage in memory exits with 69 and names the option",
              result.returncode == 69 and b"--insecure-storage" in result.stderr, result)
        check("no editor is started and no value is stored", not os.path.exists(f"{HOME}/where") and vault.holds("a", b"old"))
        result = vault.run("run", "--file", "A=a", "--", "touch", f"{HOME}/where")
        check("run --file without storage in memory exits with 69, names another way, and runs no command",
              result.returncode == 69 and b"--set" in result.stderr and not os.path.exists(f"{HOME}/where"), result)
        check("doctor reports that there is no storage in memory", b"no file system in memory" in vault.run("doctor").stdout)
        vault.environment["XDG_RUNTIME_DIR"] = disk
        check("a runtime directory on a disk is not used", vault.run("edit", "a").returncode == 69)
        result = vault.run("edit", "--insecure-storage", "a")
        check("--insecure-storage starts the editor", result.returncode == 0 and vault.holds("a", b"new"), result)
        place = open(f"{HOME}/where").read()
        check("the file is in the directory for temporary files", place.startswith(vault.environment["TMPDIR"] + "/"), place)
        check("no file is left on the disk", os.listdir(vault.environment["TMPDIR"]) == [] and os.listdir(disk) == [])
        vault.environment["XDG_RUNTIME_DIR"] = directory("edit-run")
        vault.run("edit", "--insecure-storage", "a")
        place = open(f"{HOME}/where").read()
        check("a runtime directory in memory is preferred", place.startswith(vault.environment["XDG_RUNTIME_DIR"] + "/"), place)
        subprocess.run(["umount", "/dev/shm"], check=True)


def unknown_user(tool):
    """A user without an entry in /etc/passwd and without HOME."""
    open(f"{HOME}/passwd", "w").close()
    mount("--bind", f"{HOME}/passwd", "/etc/passwd")
    result = subprocess.run([tool, "list"], env={"XDG_CONFIG_HOME": f"{HOME}/none"}, capture_output=True, timeout=60)
    check("without a home directory the tool exits with 78 and a message",
          result.returncode == 78 and b"HOME is not set" in result.stderr, f"{result.returncode} {result.stderr.decode()}")
    subprocess.run(["umount", "/etc/passwd"], check=True)


PARTS = (full_disk, read_only, single_file, value_files, overlay, hostile_directory, limits, memory_limit, times, empty_root, no_memory,
         unknown_user)


def main():
    tool = os.path.abspath(sys.argv[1])
    for part in PARTS:
        if sys.argv[2:] and part.__name__ not in sys.argv[2:]:
            continue
        print(f"-- {part.__name__.replace('_', ' ')}")
        part(tool)
    print(f"{len(FAILURES)} failed")
    sys.exit(1 if FAILURES else 0)


if sys.argv[1:] == ["--help"]:
    print(__doc__)
    sys.exit(0)
if len(sys.argv) < 2 or not os.path.isfile(sys.argv[1]) or set(sys.argv[2:]) - {part.__name__ for part in PARTS}:
    print(__doc__, file=sys.stderr)
    sys.exit(64)
if os.environ.get("COFFER_IN_NAMESPACE") != "1":
    # A private mount namespace: the mounts are invisible outside and end with the process.
    command = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    os.environ["COFFER_IN_NAMESPACE"] = "1"
    os.execvp(command[0], [*command, sys.executable, *sys.argv])
with tempfile.TemporaryDirectory() as HOME:
    try:
        # A tmpfs, because an overlay cannot be mounted on every file system.
        mount("--make-rprivate", "/")
        mount("-t", "tmpfs", "-o", "mode=700", "tmpfs", HOME)
        main()
    finally:
        os.chdir("/")
        subprocess.run(["umount", "--recursive", "--lazy", HOME], check=False)
