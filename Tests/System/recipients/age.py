#!/usr/bin/env python3
"""Vaults for recipients of age: identities of both programs, and the second implementation of the vault and of X-Wing.

usage: age.py SECRET [DYNAMIC]

SECRET is a tool with libsodium 1.0.22 or later, such as the static one. DYNAMIC is a tool that uses the system's libsodium
1.0.18, which has no hybrid recipients; with the newer library loaded before it, it has them. Needs what Scripts/setup
nightly has unpacked in .build/next: age, age-keygen, libsodium and the python there, which has the packages PyNaCl and
cryptography, and runs this script.

Exit status: 0 every check passed, 1 a check failed, 64 wrong usage.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "Tests" / "Vectors"))

import vault_changes as c  # noqa: E402
import vault_hybrid as hybrid  # noqa: E402
import vault_identities as identities  # noqa: E402
import vault_reader as r  # noqa: E402
import vector_hybrid_kem as kem  # noqa: E402
from vector_outcome import outcome_of  # noqa: E402
from vector_suite import edited  # noqa: E402

NEXT = ROOT / ".build" / "next"
AGE, AGE_KEYGEN = NEXT / "usr" / "bin" / "age", NEXT / "usr" / "bin" / "age-keygen"
FAILED = []


def check(what, holds, detail=""):
    print(f"{'ok' if holds else 'FAILED'}: {what}" + ("" if holds else f" ({detail})"), flush=True)
    FAILED.extend([] if holds else [what])


class Home:
    """A user on a machine that has seen no vault."""

    def __init__(self, tool, directory, **more):
        directory.mkdir(mode=0o700)
        self.tool = tool
        self.environment = {"HOME": str(directory), "PATH": os.environ["PATH"], "TMPDIR": str(directory)} | more

    def run(self, *arguments, given=b"", **more):
        environment = self.environment | {name: str(value) for name, value in more.items()}
        return subprocess.run([self.tool, *map(str, arguments)], env=environment, input=given, capture_output=True, timeout=60)

    def done(self, *arguments, **more):
        result = self.run(*arguments, **more)
        if result.returncode != 0:
            sys.exit(f"FAILED: {arguments}: {result}")
        return result.stdout


def output(*arguments, given=b""):
    return subprocess.run([str(one) for one in arguments], input=given, capture_output=True, check=True).stdout


def identity_of(file):
    text = next(line for line in file.read_text().splitlines() if line.startswith("AGE-"))
    return r.Identity(identities.parse_identity(text), text.startswith(identities.HYBRID_IDENTITY))


def try_kind(home, directory, kind, of_age, of_coffer):
    """Identities of age-keygen and of the tool, with age's program and with the second implementation."""
    files = {"age": directory / f"{kind}-age", "coffer": directory / f"{kind}-coffer"}
    output(AGE_KEYGEN, *of_age, "-o", files["age"])
    printed = home.done("key", "new", *of_coffer, "--output", files["coffer"]).decode().strip()
    recipients = {name: output(AGE_KEYGEN, "-y", file).decode().strip() for name, file in files.items()}
    check(f"{kind}: age-keygen reads our identity and has the same recipient", recipients["coffer"] == printed)
    sealed = output(AGE, "-r", printed, given=b"message")
    check(f"{kind}: our identity opens a file of age", output(AGE, "-d", "-i", files["coffer"], given=sealed) == b"message")

    vault = directory / f"{kind}.vault"
    home.done("--vault", vault, "init", "--recipient", recipients["age"], "--recipient", recipients["coffer"])
    home.done("--vault", vault, "set", "--verbatim", "name", given=b"value", COFFER_KEY_FILE=files["age"])
    for change in ("as it was made", "after a rekey by one of them"):
        for name, file in files.items():
            got = home.run("--vault", vault, "get", "name", COFFER_KEY_FILE=file)
            check(f"{kind}: the identity of {name} opens the vault, {change}", got.stdout == b"value", got)
            read = r.read_vault(vault.read_bytes(), identity_of(file))
            entries = [entry for found in read.entries.values() for entry in found]
            check(f"{kind}: the second implementation opens it too", [one.value for one in entries] == [b"value"], entries)
        home.done("--vault", vault, "rekey", COFFER_KEY_FILE=files["coffer"])
    return vault, files, recipients


def try_other_writer(home, directory, vault, files):
    """The second implementation wraps a new master key for a hybrid recipient."""
    identity = identity_of(files["coffer"])
    recipient = hybrid.recipient(identity.secret).hex()
    c.rewrite(str(vault), identity, {"slots": [{"type": "recipient", "recipient": recipient, "label": "other"}]})
    stranger = Home(home.tool, directory / "stranger")
    refused = stranger.run("--vault", vault, "get", "name", COFFER_KEY_FILE=files["coffer"])
    check("a vault that only an identity opened is not read", refused.returncode == 77 and not refused.stdout, refused)
    pin = home.done("--vault", vault, "verify", "--json", COFFER_KEY_FILE=files["coffer"])
    pin = json.loads(pin)["pin"]
    stranger.done("--vault", vault, "trust", "--pin", pin, COFFER_KEY_FILE=files["coffer"])
    got = stranger.run("--vault", vault, "get", "name", COFFER_KEY_FILE=files["coffer"])
    check("what the second implementation wrapped for a hybrid recipient opens", got.stdout == b"value", got)
    got = stranger.run("--vault", vault, "get", "name", COFFER_KEY_FILE=files["age"])
    check("the recipient that it left out does not", got.returncode == 77 and not got.stdout, got)


def try_damage(home, directory, vault, files):
    """Each byte of a share decides."""
    data = bytearray(vault.read_bytes())
    for what, at in {"first": 64 + 29 + len("other") + 1216, "last": 64 + 29 + len("other") + 1216 + 1119}.items():
        changed = directory / f"damaged-{what}"
        altered = bytes(data[:at]) + bytes([data[at] ^ 1]) + bytes(data[at + 1 :])
        changed.write_bytes(altered)
        changed.chmod(0o600)
        got = home.run("--vault", changed, "get", "name", COFFER_KEY_FILE=files["coffer"])
        check(f"a share whose {what} byte is changed is damage", got.returncode == 65 and not got.stdout, got)


def try_vectors():
    """The second implementation reads the vectors of hybrid recipients, with another library than the one that made them."""
    check("the recipient of the vectors is that of their identity", hybrid.recipient(kem.IDENTITY) == kem.RECIPIENT)
    check("the share of the vectors has their secret", hybrid.decapsulate(kem.IDENTITY, kem.SHARE) == kem.SECRET)
    for vector in json.loads((ROOT / "Tests" / "Vectors" / "hybrid.json").read_text("ascii")):
        file = edited((ROOT / "Tests" / "Vectors" / vector["vault"]).read_bytes(), vector)
        found, reason = outcome_of(file, vector)
        check(f"{vector['name']}: {vector['comment']}", found == vector["expect"], reason)


def try_old_library(dynamic, directory, vault, key, recipients):
    """A program without X-Wing reads the layout, and never drops a member in silence."""
    home = Home(dynamic, directory / "old", COFFER_KEY_FILE=str(key), COFFER_VAULT=str(vault))
    listed = json.loads(home.done("key", "list", "--json"))
    check("an old library lists a hybrid slot", [slot.get("recipient") for slot in listed][-1] == recipients["age"], listed)
    before = vault.read_bytes()
    for arguments in (["rekey"], ["key", "add", "--recipient", recipients["coffer"]]):
        refused = home.run(*arguments)
        unchanged = refused.returncode == 69 and b"1.0.22" in refused.stderr and vault.read_bytes() == before
        check(f"with an old library, `{' '.join(arguments[:2])}` names the one that it needs", unchanged, refused)
    home.done("set", "--verbatim", "name", given=b"new")
    check("a hybrid slot stays when secrets change", len(json.loads(home.done("key", "list", "--json"))) == len(listed))
    library = glob.glob(str(NEXT / "usr/lib/*/libsodium.so.26"))[0]
    loaded = home.run("rekey", LD_PRELOAD=library)
    check("with the new library loaded, the same program makes a new master key", loaded.returncode == 0, loaded)
    removed = home.run("key", "remove", listed[-1]["id"])
    check("an old library removes a hybrid slot", removed.returncode == 0, removed)


def main():
    if sys.argv[1:] == ["--help"]:
        sys.exit(print(__doc__))
    if len(sys.argv) not in (2, 3) or not all(os.path.isfile(one) for one in sys.argv[1:]):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    os.umask(0o077)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(os.path.realpath(name))
        home = Home(os.path.abspath(sys.argv[1]), directory / "home")
        try_kind(home, directory, "X25519", [], ["--x25519"])
        vault, files, recipients = try_kind(home, directory, "hybrid", ["-pq"], [])
        try_other_writer(home, directory, vault, files)
        try_damage(home, directory, vault, files)
        try_vectors()
        if len(sys.argv) == 3:
            key, shared = directory / "key", directory / "shared.vault"
            home.done("--vault", shared, "init", "--key-file", key)
            home.done("--vault", shared, "set", "--verbatim", "name", given=b"value", COFFER_KEY_FILE=key)
            home.done("--vault", shared, "key", "add", "--recipient", recipients["age"], COFFER_KEY_FILE=key)
            try_old_library(os.path.abspath(sys.argv[2]), directory, shared, key, recipients)
    print(f"{len(FAILED)} checks failed")
    sys.exit(1 if FAILED else 0)


main()
