"""Real pip, an index that requires a password, and `secret` under the name `keyring`.

Run in an empty directory with `secret` as `keyring` on PATH and HOME a private one.
"""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

from protected_server import ProtectedServer

PASSWORD = "p ass:word"  # ASCII only, because pip sends other characters as Latin-1


def run(*words, input="", status=0, **environment):
    result = subprocess.run(
        words, input=input, capture_output=True, text=True, timeout=100, env={**os.environ, **environment})
    assert result.returncode == status, f"{words} gave {result.returncode}: {result.stdout}{result.stderr}"
    return result.stdout


def pip():
    """The command that runs pip with a program named keyring, without importing Python's package keyring."""
    wheels = sorted(map(str, pathlib.Path("/usr/share/python-wheels").glob("pip-*.whl")))
    assert wheels, "pip is needed, from the package python3-pip-whl"
    # -S: without the packages of the system, which may include keyring.
    command = [sys.executable, "-S", wheels[-1] + "/pip"]
    major, minor = map(int, re.match(r"pip (\d+)\.(\d+)", run(*command, "--version")).groups())
    return command, ["--keyring-provider", "subprocess"] if (major, minor) >= (23, 1) else []


def make_wheel(directory):
    name = "tiny_coffer_test-1.0-py3-none-any.whl"
    info = "tiny_coffer_test-1.0.dist-info"
    with zipfile.ZipFile(directory / name, "w") as wheel:
        wheel.writestr("tiny_coffer_test.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-coffer-test\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    (directory / "index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>')
    return name


def main():
    package = pathlib.Path("web/simple/tiny-coffer-test")
    package.mkdir(parents=True)
    wheel = make_wheel(package)
    command, provider = pip()
    with ProtectedServer("web", "ann", PASSWORD) as server:
        index = f"http://ann@{server.host}/simple/"

        def download(target, status=0):
            return run(
                *command, "--isolated", "--disable-pip-version-check", "--no-cache-dir", *provider, "download",
                "--no-deps", "--index-url", index, "-d", target, "tiny-coffer-test==1.0", status=status,
                PIP_NO_INPUT="" if not provider else "1")

        download("d0", status=1)
        # pip stores a password for the URL without the username.
        run("keyring", "set", f"http://{server.host}/simple/", "ann", input=PASSWORD + "\n")
        download("d1")
        assert os.listdir("d1") == [wheel]
        assert server.admitted > 0
        # pip then looks for a password for the host alone.
        run("keyring", "del", f"http://{server.host}/simple/", "ann")
        download("d2", status=1)
        run("secret", "set", "-s", server.host, "ann", input=PASSWORD)
        download("d3")
        assert os.listdir("d3") == [wheel]


if __name__ == "__main__":
    run("secret", "init")
    main()
    print("done")
