"""A private directory in which one command runs, and what is found in it afterwards."""

import json
import os
import re
import shutil
import subprocess

from commands import FIRST, SECOND

# In seconds. A command that takes longer hangs.
TIMEOUT = 60
# Hidden files that a killed command may leave, by Documentation/Reference.md: a copy of the vault or of a record under a
# temporary name, which is sealed, and the new contents of a file while they replace another one.
SEALED_REST = re.compile(r"(home/(data|state)/coffer/(known-vaults/)?\.[^/]+|work/\.V)\.[0-9a-f]{16}\.unfinished$")
PLAIN_REST = re.compile(r"\.[^/]+\.[0-9a-f]{16}\.unfinished$")
EDITING_REST = re.compile(r"run/secret-edit-[^/]+/")


class Scene:
    """The files of one user, always at the same path, because the records of known vaults name it."""

    def __init__(self, tool, root, command):
        self.tool, self.command = tool, command
        self.root, self.start = os.path.join(root, "scene"), os.path.join(root, "start")
        home = os.path.join(self.root, "home")
        self.work = os.path.join(self.root, "work")
        self.environment = {
            "PATH": f"{root}/bin:/usr/bin:/bin", "HOME": home, "XDG_DATA_HOME": f"{home}/data",
            "XDG_CONFIG_HOME": f"{home}/config", "XDG_STATE_HOME": f"{home}/state",
            "XDG_RUNTIME_DIR": f"{self.root}/run", "TMPDIR": f"{self.root}/tmp", "LC_ALL": "C.UTF-8",
            "COFFER_NO_PROMPT": "1",
        }
        os.makedirs(f"{root}/bin", exist_ok=True)
        if not os.path.lexists(f"{root}/bin/secret"):
            os.symlink(tool, f"{root}/bin/secret")
        shutil.rmtree(self.root, ignore_errors=True)
        for name in ("home", "work", "run", "tmp"):
            os.makedirs(os.path.join(self.root, name), mode=0o700)
        for line in [
            f"secret init --key-file ../key && printf {FIRST} | secret set a && printf {SECOND} | secret set b",
            f"printf {FIRST} | secret set old && printf {SECOND} | secret set old",
            "printf 'x secret://secret/a y secret://secret/b\\n' > template",
        ] + command.setting:
            self.shell(line)
        self.arguments = list(command.arguments)
        if "SLOT" in self.arguments:
            slots = json.loads(self.shell("secret key list --json"))
            slot = next(slot["id"] for slot in slots if slot.get("label") == "removable")
            self.arguments[self.arguments.index("SLOT")] = slot
        if "PIN" in self.arguments:
            pin = json.loads(self.shell("secret verify --vault other --json"))["pin"]
            self.arguments[self.arguments.index("PIN")] = pin
        shutil.rmtree(self.start, ignore_errors=True)
        shutil.copytree(self.root, self.start, symlinks=True)

    def reset(self):
        shutil.rmtree(self.root)
        shutil.copytree(self.start, self.root, symlinks=True)

    def shell(self, line):
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=self.work, env=self.environment, capture_output=True, timeout=TIMEOUT)
        if done.returncode != 0:
            raise SystemExit(f"the setting failed: {line}: {done.stderr.decode()}")
        return done.stdout.decode()

    def secret(self, *arguments, given="", environment={}):
        return subprocess.run(
            [self.tool, *arguments], cwd=self.work, env=self.environment | environment, input=given.encode(),
            capture_output=True, timeout=TIMEOUT)

    def run(self, *strace):
        """Runs the command under strace."""
        return subprocess.run(
            ["strace", "-o", f"{self.root}.trace", *strace, self.tool, *self.arguments], cwd=self.work,
            env=self.environment | self.command.environment, input=self.command.given.encode(), capture_output=True,
            timeout=TIMEOUT)

    @property
    def trace(self):
        with open(f"{self.root}.trace", errors="replace") as lines:
            return lines.read().splitlines()

    # What is there afterwards.

    def state(self, vault=None, key=None):
        """What a vault holds, as far as a command can change it; or a text with the error."""
        options = ["--vault", vault] if vault else []
        environment = {"COFFER_KEY_FILE": key} if key else {}
        answers = []
        for arguments in (["verify"], ["export", "--all-services"], ["key", "list", "--json"], ["history-limit", "--json"]):
            answer = self.secret(*options, *arguments, environment=environment)
            # There is nothing to export.
            if answer.returncode != 0 and (arguments[0], answer.returncode) != ("export", 1):
                return f"{arguments}: status {answer.returncode}: {answer.stderr.decode()}"
            answers.append(answer.stdout)
        values = {item["account"]: item["value"] for item in json.loads(answers[1] or '{"secrets": []}')["secrets"]}
        if self.command.name == "generate" and "new" in values:
            values["new"] = "generated"
        return {"values": values, "slots": len(json.loads(answers[2])), "history": json.loads(answers[3])}

    def files(self):
        found = {}
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.root)] = file.read()
        return found
