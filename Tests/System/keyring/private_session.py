"""A private session bus with a private keyring or a scripted service, and the checks of the scripts beside this."""

import os
import subprocess
import sys
import time

FAILURES = []
FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "KeyringTests", "Fixtures")
PYTHON_KEYRING = ["/usr/bin/python3", f"{FIXTURES}/patient_keyring.py", "-b", "keyring.backends.SecretService.Keyring"]


def check(what, holds, detail=""):
    print(("ok: " if holds else "FAILED: ") + what + ("" if holds else f" ({detail})"))
    if not holds:
        FAILURES.append(what)


class Session:
    """A private session bus and a private keyring."""

    def __init__(self, directory):
        self.directory = directory
        for name in ("home", "run", "data"):
            os.makedirs(f"{directory}/{name}", mode=0o700, exist_ok=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": f"{directory}/home",
            "XDG_RUNTIME_DIR": f"{directory}/run",
            "XDG_DATA_HOME": f"{directory}/data",
            "COFFER_NO_PROMPT": "1",
        }
        # Without service directories the bus cannot start a service of the user.
        with open(f"{directory}/bus.conf", "w") as file:
            file.write(
                '<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" '
                '"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">'
                f"<busconfig><type>session</type><listen>unix:path={directory}/bus</listen>"
                '<policy context="default"><allow send_destination="*"/><allow eavesdrop="false"/>'
                '<allow own="*"/></policy></busconfig>'
            )
        self.bus = subprocess.Popen(["dbus-daemon", f"--config-file={directory}/bus.conf", "--nofork"])
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={directory}/bus"
        self.wait(lambda: os.path.exists(f"{directory}/bus"), "dbus-daemon")
        self.daemon = None

    def wait(self, condition, what):
        deadline = time.monotonic() + 20
        while not condition():
            if time.monotonic() > deadline:
                sys.exit(f"{what} did not start within 20 seconds")
            time.sleep(0.02)

    def start(self, password=None):
        arguments = ["gnome-keyring-daemon", "--foreground", "--components=secrets"]
        if password is not None:
            arguments.append("--unlock")
        self.daemon = subprocess.Popen(
            arguments,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.daemon.stdin.write((password or "").encode())
        self.daemon.stdin.close()
        self.wait(self.has_service, "gnome-keyring-daemon")

    def start_scripted(self, *mode):
        """Starts the scripted service of the Swift tests."""
        script = f"{FIXTURES}/scripted_service.py"
        log = f"{self.directory}/scripted.log"
        open(log, "w").close()
        self.daemon = subprocess.Popen(["/usr/bin/python3", script, log, *mode], env=self.environment)
        self.wait(self.has_service, "the scripted service")

    def start_scripted_keyring(self, *deviations):
        """Starts the scripted service of the Swift tests that keeps items."""
        script = f"{FIXTURES}/scripted_keyring.py"
        self.daemon = subprocess.Popen(["/usr/bin/python3", script, f"{self.directory}/items.json", *deviations],
                                       env=self.environment)  # fmt: skip
        self.wait(self.has_service, "the scripted keyring")

    def scripted_calls(self):
        """What the scripted service has logged."""
        with open(f"{self.directory}/scripted.log") as file:
            return file.read().splitlines()

    def has_service(self):
        return self.has_owner("org.freedesktop.secrets")

    def has_owner(self, name):
        owned = [
            "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/",
            "org.freedesktop.DBus.NameHasOwner", f"string:{name}",
        ]  # fmt: skip
        return b"true" in subprocess.run(owned, env=self.environment, capture_output=True).stdout

    def stop(self):
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait()
            self.daemon = None

    def end(self):
        self.stop()
        self.bus.kill()
        self.bus.wait()

    def run(self, *command, given=b"", environment=None):
        started = time.monotonic()
        result = subprocess.run(
            command, env=environment or self.environment, input=given, capture_output=True, timeout=60
        )
        result.seconds = time.monotonic() - started
        return result
