#!/usr/bin/python3
"""The vectors of Tests/Vectors/hybrid.json, read by a tool that has X-Wing.

usage: hybrid_vectors.py SECRET

SECRET is a tool with libsodium 1.0.22 or later, such as the static one. The unit tests read all other vectors, with the
system's libsodium.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

VECTORS = Path(__file__).resolve().parents[2] / "Vectors"
STATUS = {"ok": 0, "tampered": 65, "wrong-key": 77}


def damaged(vector):
    """The bytes of a vector's file."""
    file = (VECTORS / vector["vault"]).read_bytes()
    for edit in reversed(vector.get("edits", [])):
        file = file[: edit["offset"]] + bytes.fromhex(edit["insert"]) + file[edit["offset"] + edit["delete"] :]
    return file


def outcome(secret, vector, folder):
    """What is wrong, or None."""
    vault, key = folder / "vault", folder / "key"
    vault.write_bytes(damaged(vector))
    key.write_text(vector["credential"].get("key_text") or vector["credential"]["identity"])
    vault.chmod(0o600)
    key.chmod(0o600)
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "COFFER_KEY_FILE": str(key)}
    # Anybody can make a vault for a recipient: the pin vouches for this one.
    if "pin" in vector["expect"]:
        environment["COFFER_PIN"] = vector["expect"]["pin"]

    def run(*arguments):
        command = [secret, "--vault", str(vault), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, timeout=60)

    wanted = STATUS[vector["expect"]["outcome"]]
    verified = run("verify")
    if verified.returncode != wanted:
        return f"verify: {verified.returncode}, not {wanted}: {verified.stderr.decode()}"
    for item in vector["expect"].get("items", []):
        found = run("--service", item["service"], "get", item["account"])
        if found.stdout.hex() != item["value"]:
            return f"get {item['account']}: {found}"
    return None


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 64
    vectors = json.loads((VECTORS / "hybrid.json").read_text("ascii"))
    wrong = []
    for vector in vectors:
        with tempfile.TemporaryDirectory() as folder:
            found = outcome(os.path.abspath(arguments[0]), vector, Path(folder))
        if found:
            wrong.append(f"FAILED: {vector['name']} ({vector['comment']}): {found}")
    print("\n".join([*wrong, f"{len(vectors)} vectors, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
