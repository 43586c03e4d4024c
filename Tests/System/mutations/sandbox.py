"""Where mutated code is built and runs: as an unprivileged user, in namespaces of its own.

Mutated code can do anything that its user can: change the modes of devices, remove files, write to a socket. Here it has
a private /tmp, /run, /dev and home directory. Everything else is read-only, and there is no network.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

# The user in the sandbox, who owns no file outside of it.
NOBODY = 65534
DEVICES = "null zero full random urandom tty".split()
# The variables that are kept. No others get in: those of the desktop lead to its services.
KEPT = ("PATH", "LANG", "TERM")


def enter(scratch, program, arguments):
    """Runs `program` with Python in a sandbox that has `scratch` as /tmp. Returns its exit status."""
    namespaces = ["--mount", "--net", "--pid", "--ipc", "--uts", "--fork", "--mount-proc", "--kill-child"]
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", scratch], check=True)
    else:
        namespaces.append("--map-root-user")
    environment = {name: value for name, value in os.environ.items() if name in KEPT}
    # The sandbox ends with this process, also if that is killed.
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, sys.executable, os.path.abspath(__file__), str(scratch), program, *arguments]
    return subprocess.run(command, env=environment | {"HOME": "/tmp/home", "COFFER_SANDBOX_USER": str(os.geteuid())},
                          check=False).returncode


def _mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


def _make_devices(directory):
    directory.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", "mode=755", "devices", directory)
    for name in DEVICES:
        (directory / name).touch()
        _mount("--bind", f"/dev/{name}", directory / name)
        _mount("-o", "remount,bind,ro", directory / name)
    for name, target in {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}.items():
        (directory / name).symlink_to(target)
    for name in "pts", "shm":
        (directory / name).mkdir()
    _mount("-t", "devpts", "-o", "newinstance,ptmxmode=666,mode=620", "terminals", directory / "pts")
    _mount("-t", "tmpfs", "-o", "mode=1777", "memory", directory / "shm")
    _mount("--rbind", directory, "/dev")


def _make_read_only():
    writable = ("/tmp", "/dev", "/run", "/proc")
    for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
        fields = line.split(" ")
        target = re.sub(r"\\(\d{3})", lambda match: chr(int(match.group(1), 8)), fields[4])
        if target in writable or target.startswith(tuple(name + "/" for name in writable)):
            continue
        # Flags that are left out would be taken away, which a user namespace does not permit.
        flags = [flag for flag in fields[5].split(",") if flag != "rw" and flag != "ro"]
        subprocess.run(["mount", "-o", ",".join(["remount", "bind", "ro", *flags]), target], check=False,
                       stderr=subprocess.DEVNULL)


def _prepare(scratch):
    """Runs as root of the new namespaces."""
    # The program and its modules, from a directory that may be hidden by the private /tmp.
    shutil.copytree(Path(__file__).resolve().parent, scratch / "mutations", dirs_exist_ok=True)
    (scratch / "home").mkdir(exist_ok=True)
    for path in scratch / "home", scratch / "mutations":
        os.chown(path, *((NOBODY, NOBODY) if os.environ["COFFER_SANDBOX_USER"] == "0" else (0, 0)))
    _mount("--make-rprivate", "/")
    _make_devices(scratch / "dev")
    _mount("--bind", scratch, "/tmp")
    _mount("-t", "tmpfs", "-o", "mode=1777", "run", "/run")
    _make_read_only()


def refuse_outside():
    """Ends the program unless it runs in the sandbox: mutated code never runs anywhere else."""
    reasons = []
    if os.geteuid() == 0:
        reasons.append("the user is root")
    try:
        os.chmod("/dev/null", 0o666)
        reasons.append("the devices of the machine can be changed")
    except OSError:
        pass
    for directory in "/", "/usr", "/etc", "/var/tmp":
        if os.access(directory, os.W_OK):
            reasons.append(f"{directory} is writable")
    networks = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text("utf-8").splitlines()[2:]]
    if networks != ["lo"]:
        reasons.append("there is a network")
    mounts = [line.split(" ")[4] for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines()]
    if os.environ.get("HOME") != "/tmp/home" or "/tmp" not in mounts or "/dev" not in mounts:
        reasons.append("the home directory and the devices are not private")
    if reasons:
        sys.exit(f"Mutated code is not run here: {'; '.join(reasons)}.")


def main():
    scratch, program, *arguments = sys.argv[1:]
    _prepare(Path(scratch))
    # A change of the user takes the signal of --kill-child away.
    user = ["setpriv", "--pdeathsig", "KILL", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs", "--inh-caps=-all"]
    if os.environ.pop("COFFER_SANDBOX_USER") != "0":
        # The caller is root in the outer namespace and nobody in this one, so nobody owns the caller's files here.
        user = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    os.chdir("/tmp")
    os.execvp(user[0], [*user, sys.executable, f"/tmp/mutations/{program}", *arguments])


if __name__ == "__main__":
    main()
