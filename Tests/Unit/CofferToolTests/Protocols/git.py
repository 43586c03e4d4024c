"""Real git, a real server that asks for a password, and `secret` as the credential helper.

Run in an empty directory with `secret` on PATH and HOME a private one.
"""

import os
import pathlib
import subprocess

from protected_server import ProtectedServer

PASSWORD = "hünter = 2"  # an equals sign, spaces, and a letter of two bytes
ENVIRONMENT = {
    **os.environ,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.com",
    "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.com",
}


def run(*words, input="", status=0, **environment):
    result = subprocess.run(
        words, input=input, capture_output=True, text=True, timeout=100,
        env={**ENVIRONMENT, **environment})
    assert result.returncode == status, f"{words} gave {result.returncode}: {result.stdout}{result.stderr}"
    return result.stdout


def clone(server, target, status=0, user="", **environment):
    run("git", "clone", "-q", f"http://{user}{server.host}/r.git", target, status=status, **environment)
    if status == 0:
        assert pathlib.Path(target, "file").read_text() == "contents\n"


def main(helper):
    run("git", "config", "--global", "credential.helper", helper)
    run("git", "init", "-q", "r")
    pathlib.Path("r/file").write_text("contents\n")
    run("git", "-C", "r", "add", "file")
    run("git", "-C", "r", "commit", "-q", "-m", "first")
    run("git", "clone", "-q", "--bare", "r", "web/r.git")
    run("git", "-C", "web/r.git", "update-server-info")

    # Answers git's prompts, and appends each prompt to the file `asked`.
    pathlib.Path("ask").write_text(
        f'#!/bin/sh\necho "$1" >> asked\ncase "$1" in Username*) echo ann;; *) echo "{PASSWORD}";; esac\n')
    os.chmod("ask", 0o700)
    ask = {"GIT_ASKPASS": os.path.abspath("ask")}

    with ProtectedServer("web", "ann", PASSWORD) as server:
        service = f"git:http://{server.host}"
        # Nothing is stored, and prompts are disabled.
        clone(server, "c0", status=128)
        # git prompts once, and never again.
        clone(server, "c1", **ask)
        assert len(pathlib.Path("asked").read_text().splitlines()) == 2
        assert run("secret", "list", "-s", service) == "ann\n"
        assert run("secret", "get", "-s", service, "ann") == PASSWORD
        clone(server, "c2")
        clone(server, "c3", user="ann@")
        assert len(pathlib.Path("asked").read_text().splitlines()) == 2
        # Another user's password is not used.
        clone(server, "c4", user="bob@", status=128)
        assert run("secret", "list", "-s", service) == "ann\n"

        # git erases a rejected password. Another password, stored since, would be kept.
        description = f"protocol=http\nhost={server.host}\nusername=ann\n"
        run("git", "credential", "reject", input=description + "password=another\n\n")
        assert run("secret", "list", "-s", service) == "ann\n"
        run("git", "credential", "reject", input=description + f"password={PASSWORD}\n\n")
        assert run("secret", "list", "-s", service) == ""
        clone(server, "c5", status=128)

        # The stored password is no longer valid: git tries it, erases it after the rejection, and fails without a prompt.
        run("secret", "set", "-s", service, "ann", input="old")
        refused = server.refused
        clone(server, "c6", status=128)
        assert server.refused > refused
        assert run("secret", "list", "-s", service) == ""

        # If the vault cannot be opened, nothing is erased, and git prompts.
        clone(server, "c7", **ask)
        clone(server, "c8", COFFER_KEY="coffer-key-v1:none", **ask)
        assert run("secret", "get", "-s", service, "ann") == PASSWORD
        clone(server, "c9")

        # With useHttpPath, each repository has its own password.
        run("git", "config", "--global", "credential.useHttpPath", "true")
        run("git", "credential", "reject", input=f"url=http://{server.host}\nusername=ann\n\n")
        clone(server, "c10", **ask)
        assert run("secret", "list", "-s", service + "/r.git") == "ann\n"
        clone(server, "c11")


if __name__ == "__main__":
    run("secret", "init")
    import sys
    main(sys.argv[1])
    print("done")
