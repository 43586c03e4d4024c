#!/usr/bin/python3
"""Tests the tool in a Flatpak, with a scripted Secret portal.

usage: tool_in_flatpak.py SECRET

SECRET    the path of the tool

The Flatpak is a mount namespace with a file /.flatpak-info. Needs root or user namespaces. Exit status: 0 if every check
passed, else 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile

from private_session import FAILURES, FIXTURES, Session, check

# Everything as outside, and one more file.
SANDBOX = r"""
set -e
root=$1
shift
mount -t tmpfs none "$root"
for entry in /*; do
  if [ -L "$entry" ]; then
    cp -P "$entry" "$root$entry"
  elif [ -d "$entry" ]; then
    mkdir "$root$entry"
    mount --rbind "$entry" "$root$entry"
  fi
done
printf '[Application]\nname=org.example.App\n' > "$root/.flatpak-info"
exec chroot "$root" "$@"
"""


class Flatpak:
    def __init__(self, tool, session):
        self.tool, self.session, self.portal = tool, session, None
        self.environment = {key: value for key, value in session.environment.items() if key != "COFFER_NO_PROMPT"}
        self.root = f"{session.directory}/root"
        os.mkdir(self.root)
        self.vault = f"{session.directory}/data/coffer/default.vault"

    def outside(self, *arguments, given=b"", **more):
        return self.session.run(self.tool, *arguments, given=given, environment={**self.environment, **more})

    def inside(self, *arguments, given=b"", **more):
        user = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = ["unshare", *user, "--mount", "sh", "-c", SANDBOX, "sh", self.root, self.tool, *arguments]
        return self.session.run(*command, given=given, environment={**self.environment, **more})

    def start_portal(self, mode, secret):
        self.stop_portal()
        script = f"{FIXTURES}/scripted_portal.py"
        command = ["/usr/bin/python3", script, f"{self.session.directory}/portal.log", secret * 64, mode]
        self.portal = subprocess.Popen(command, env=self.environment)
        name = "org.freedesktop.portal.Desktop"
        self.session.wait(lambda: self.session.has_owner(name), "the scripted portal")

    def stop_portal(self):
        if self.portal:
            self.portal.kill()
            self.portal.wait()
            self.portal = None


def refusals(flatpak):
    for situation, run in (("outside of a Flatpak", flatpak.outside), ("without a portal", flatpak.inside)):
        result = run("init", "--portal")
        says = b"not in a Flatpak with the Secret portal" in result.stderr
        check(f"init --portal {situation} exits with 69", (result.returncode, says, result.stdout) == (69, True, b""), result)
    flatpak.start_portal("answer", "5a")
    result = flatpak.outside("init", "--portal")
    check("outside of a Flatpak the portal is not asked", result.returncode == 69, result)
    for options in (["--json"], ["--passphrase"], ["--key-file", "k"], ["--backend", "keyring"]):
        result = flatpak.inside("init", "--portal", *options)
        check(f"init --portal {' '.join(options)} is wrong usage", result.returncode == 64, result)
    result = flatpak.inside("init", "--portal", COFFER_NO_PROMPT="1")
    check("init --portal with COFFER_NO_PROMPT exits with 77", result.returncode == 77, result)
    result = flatpak.inside("get", "a")
    advises = (result.returncode, b"secret init --portal" in result.stderr) == (78, True)
    check("without a vault the advice is init --portal", advises, result)
    flatpak.start_portal("refuse", "5a")
    result = flatpak.inside("init", "--portal")
    check("a dismissed prompt exits with 77", result.returncode == 77, result)
    check("no refusal has made a vault", not os.path.exists(flatpak.vault))


def vault(flatpak):
    flatpak.start_portal("answer", "5a")
    result = flatpak.inside("init", "--portal")
    check("init --portal succeeds", result.returncode == 0, result)
    key = result.stdout
    check("it prints a recovery key", key.startswith(b"coffer-key-v1:\n") and len(key.split()) == 9, result)
    check("and not among the messages", not any(part in result.stderr for part in key.split()), result)
    check("a second one is refused", flatpak.inside("init", "--portal").returncode == 73)
    check("set needs no key", flatpak.inside("set", "a", given=b"value").returncode == 0)
    check("get needs no key", flatpak.inside("get", "a").stdout == b"value")
    check("doctor finds nothing wrong", flatpak.inside("doctor").returncode == 0, flatpak.inside("doctor"))
    check("outside of the Flatpak the vault is locked", flatpak.outside("get", "a").returncode == 77)

    flatpak.start_portal("answer", "77")
    result = flatpak.inside("get", "a")
    check("after the keyring was reset the vault is locked", result.returncode == 77, result)
    result = flatpak.inside("key", "recover", "--portal", given=b"coffer-key-v1:" + b"A" * 48)
    check("a wrong recovery key is refused", result.returncode not in (0, 1), result)
    result = flatpak.inside("key", "recover", "--portal", "--key-file", "k", given=key)
    check("key recover --portal --key-file is wrong usage", result.returncode == 64, result)
    result = flatpak.inside("key", "recover", "--portal", given=key)
    check("key recover --portal succeeds", result.returncode == 0, result)
    check("the portal opens the vault again", flatpak.inside("get", "a").stdout == b"value")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if sys.argv[1:] in (["-h"], ["--help"]) else 64)
    for program in ("dbus-daemon", "unshare", "chroot"):
        if not shutil.which(program):
            sys.exit(f"{program} is missing: run Scripts/setup tests")
    with tempfile.TemporaryDirectory() as directory:
        session = Session(directory)
        flatpak = Flatpak(os.path.abspath(sys.argv[1]), session)
        try:
            refusals(flatpak)
            vault(flatpak)
        finally:
            flatpak.stop_portal()
            session.end()
    print(f"{len(FAILURES)} checks failed")
    sys.exit(1 if FAILURES else 0)


main()
