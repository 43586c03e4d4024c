"""What a removed member, a copy of a vault or a hostile repository can do beyond the file itself."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from revoked_keys import guest_slot, with_guest
from scene import (
    DENIED, EVERY_COMMAND, EVIL, FRESH, GENUINE, REFUSED, TOKEN, USAGE, Watch, advance, c, credential, k, opened, put,
    sequence_of, shown,
)

EXISTS, BUSY, UNWRITTEN = 73, 75, 74
NAMES_BOTH = b"another master key than the one that was seen"


def removal(scene):
    """A guest's key is removed and a value stored. Returns the guest's key and a copy from before it."""
    guest = with_guest(scene)
    old = scene.copy("old")
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    scene.owner.store(GENUINE)
    return guest, old


def put_at(old, path):
    path.parent.mkdir(mode=0o700, exist_ok=True)
    shutil.copyfile(old, path)
    path.chmod(0o600)
    return path


def refused_at(scene, machine, path, what, words=(NAMES_BOTH,), **options):
    """Every command refuses the vault at `path` and leaves it as it is."""
    before = path.read_bytes()
    wrong = []
    for command, given in EVERY_COMMAND:
        result = machine.run(*command, given=given, vault=path, **options)
        said = result.stdout + result.stderr
        if result.returncode != REFUSED or EVIL in said or not all(word in said for word in words):
            wrong.append(shown(result))
    scene.check(what, not wrong and path.read_bytes() == before, "; ".join(wrong))


def removed_key_elsewhere(scene):
    """A copy that a removed key opens is put at other paths: a directory, a clone, a work tree, a bind mount, a link."""
    guest, old = removal(scene)
    second = scene.machine("second")
    scene.accepted(second, "a second machine sees the vault without the key")
    pin = scene.owner.pin()
    advance(old, guest, sequence_of(pin) + 50)
    scene.authentic(old)
    paths = {"another directory": scene.directory / "two" / "x.vault", "beside the vault": scene.data / "y.vault"}
    for name in ("clone", "tree"):
        path = paths[f"a git {name}"] = scene.directory / name / "x.vault"
        path.parent.mkdir(mode=0o700)
        subprocess.run(["git", "init", "-q", str(path.parent)], check=True)
    for name, machine in {"owner": scene.owner, "second machine": second}.items():
        for what, path in paths.items():
            put_at(old, path)
            refused_at(scene, machine, path, f"{name}: {what}", words=(NAMES_BOTH, str(scene.vault).encode()))
    link = scene.directory / "link.vault"
    link.symlink_to(paths["another directory"])
    refused_at(scene, scene.owner, link, "a link to it")
    former = scene.machine("former").pin(vault=old)
    pinned = scene.machine("pinned")
    scene.accepted(pinned, "a machine with a pin sees the vault")
    refused_at(scene, pinned.pinned(former), paths["another directory"], "the pin of the former key waives nothing")
    result = scene.owner.run("copy", "--from", f"vault:{scene.vault}", "--to", f"vault:{paths['beside the vault']}")
    scene.check("copy into it is refused", result.returncode == REFUSED and NAMES_BOTH in result.stderr, shown(result))
    mounted = scene.directory / "mounted"
    mounted.mkdir(mode=0o700)
    command = f"mount --bind {paths['another directory'].parent} {mounted} && {scene.tool} get {TOKEN}"
    environment = scene.owner.environment | {"COFFER_VAULT": str(mounted / "x.vault")}
    result = subprocess.run(["unshare", "-m", "sh", "-c", command], env=environment, capture_output=True)
    if b"unshare" in result.stderr or b"mount:" in result.stderr:
        print("left out: a bind mount, because this user may not make one")
    else:
        scene.check("a bind mount of it", result.returncode == REFUSED and not result.stdout, shown(result))
    fresh = put_at(scene.vault, scene.directory / "fresh" / "x.vault")
    scene.accepted(scene.owner, "a copy under the present key is accepted elsewhere", vault=fresh)


def copies_that_a_person_accepts(scene):
    """A backup from before a rekey is read, put back, and trusted only at its place."""
    _, old = removal(scene)
    backup = put_at(old, scene.directory / "backup" / "x.vault")
    records = scene.owner.home / "state" / "coffer" / "known-vaults"
    names = sorted(path.name for path in records.iterdir())
    result = scene.owner.run("copy", "--from", f"vault:{backup}", "--to", f"vault:{scene.vault}", "--former-key", TOKEN)
    said = b"may have written" in result.stderr
    scene.check("copy --former-key reads it and says who may have written it", said and not result.stdout, shown(result))
    scene.check("and records nothing", sorted(path.name for path in records.iterdir()) == names)
    scene.check("and writes nothing", backup.read_bytes() == old.read_bytes())
    result = scene.owner.run("copy", "--from", f"vault:{backup}", "--to", f"vault:{scene.vault}", "--former-key")
    scene.check("it wants names", result.returncode == USAGE - 14, shown(result))
    refused_at(scene, scene.owner, backup, "the backup is refused otherwise")
    scene.owner.trust("--only-here", vault=backup)
    scene.accepted(scene.owner, "a backup that counts only here is read", vault=backup)
    scene.accepted(scene.owner, "and the vault as before", silent=True)
    third = put_at(old, scene.directory / "third" / "x.vault")
    refused_at(scene, scene.owner, third, "and a third place refuses the former key")
    scene.owner.trust(vault=third)
    scene.accepted(scene.owner, "a backup that is the vault from now on is read", vault=third)
    shutil.copyfile(old, scene.vault)
    refused_at(scene, scene.owner, scene.vault, "the first place refuses its own backup", words=(b"secret trust",))
    scene.owner.trust()
    scene.accepted(scene.owner, "and takes it after secret trust")


def successor_seen_first(scene):
    """A leaver makes a successor of the former key. A machine sees it before the owner's."""
    guest = with_guest(scene)
    machine = scene.machine("machine")
    scene.accepted(machine, "a machine sees the vault before the removal")
    leaver, forged = scene.machine("leaver", guest), scene.directory / "forged" / "x.vault"
    put_at(scene.vault, forged)
    slot = next(s["id"] for s in json.loads(leaver.done("key", "list", "--json", vault=forged).stdout) if not s["label"])
    leaver.done("key", "remove", slot, vault=forged)
    leaver.done("key", "add", "--key-file", str(scene.key), vault=forged)
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    scene.accepted(machine, "the machine cannot tell that it is the leaver's", vault=forged)
    refused_at(scene, machine, scene.vault, "and refuses the other one, naming both", (NAMES_BOTH, str(forged).encode()))
    refused_at(scene, scene.owner, forged, "the owner's machine refuses the leaver's")
    said = machine.run("get", TOKEN)
    scene.check("the message does not say which key is later", b"cannot be told" in said.stderr, shown(said))
    machine.trust()
    scene.accepted(machine, "after secret trust the machine takes the owner's", silent=True)
    refused_at(scene, machine, forged, "and refuses the leaver's")


def work_trees_that_were_each_rekeyed(scene):
    """Two branches were rekeyed apart. A machine that saw one refuses the other until a person decides."""
    scene.made()
    other = put_at(scene.vault, scene.directory / "other" / "x.vault")
    elsewhere = scene.machine("elsewhere")
    scene.owner.done("rekey")
    elsewhere.done("rekey", vault=other)
    refused_at(scene, scene.owner, other, "the other branch is refused")
    scene.owner.trust("--only-here", vault=other)
    scene.accepted(scene.owner, "and taken only there", vault=other)
    scene.accepted(scene.owner, "beside the first one", silent=True)
    cached = scene.machine("cached")
    shutil.copytree(scene.owner.home / "state" / "coffer", cached.home / "state" / "coffer")
    scene.accepted(cached, "a cached state directory accepts what it saw", silent=True)
    refused_at(scene, cached, put_at(other, scene.directory / "c" / "x.vault"), "and refuses a former branch elsewhere")


def trust_where_nobody_is_asked(scene):
    """`trust`, `allow` and `history-limit` without a terminal: none of them takes silence for consent."""
    scene.made()
    old = scene.copy("old")
    scene.owner.store(GENUINE)
    scene.place(old)
    for what, options, more in (
        ("a pipe", (), {}), ("--quiet", ("--quiet",), {}), ("COFFER_NO_PROMPT", (), {"COFFER_NO_PROMPT": "1"}),
    ):
        scene.owner.environment |= more
        result = scene.owner.run("trust", *options, given=b"y\n")
        scene.check(f"trust with {what} is refused", result.returncode == EXISTS and b"--pin" in result.stderr, shown(result))
        scene.refused(scene.owner, "and the vault as before")
    wrong = scene.machine("wrong").pin(vault=old)
    result = scene.owner.run("trust", "--pin", wrong[:-1])
    scene.check("a mistyped pin is refused", result.returncode == USAGE, shown(result))
    other = scene.directory / "other.vault"
    scene.owner.done("init", "--key-file", str(scene.key), vault=other)
    result = scene.owner.run("trust", "--pin", scene.owner.pin(vault=other))
    scene.check("the pin of another vault is refused", result.returncode == REFUSED, shown(result))
    # A pin that is for another place confirms nothing.
    scene.owner.environment["COFFER_PIN"] = f"{other}={scene.owner.pin(vault=other)}"
    result = scene.owner.run("trust")
    scene.check("a pin of another vault in COFFER_PIN confirms nothing", result.returncode == REFUSED, shown(result))
    scene.owner.environment["COFFER_PIN"] = f"{other}={wrong}"
    result = scene.owner.run("trust")
    scene.check("the pin for another place confirms nothing", result.returncode == EXISTS, shown(result))
    result = scene.owner.run("trust", "--pin", f"{other}={wrong}")
    scene.check("--pin for another place confirms nothing", result.returncode == REFUSED, shown(result))
    scene.owner.pinned(wrong).done("trust")
    del scene.owner.environment["COFFER_PIN"]
    scene.accepted(scene.owner, "the right pin in COFFER_PIN confirms it", silent=True)
    project = scene.directory / "project"
    project.mkdir(mode=0o700)
    (project / ".coffer.toml").write_text('service = "secret"\n[variables]\nA = "token"\n')
    environment = {name: value for name, value in scene.owner.environment.items() if name != "COFFER_NO_PROMPT"}
    for arguments in ((), ("--json",)):
        result = subprocess.run([scene.tool, "allow", *arguments], env=environment, cwd=project, capture_output=True, input=b"y\n")
        scene.check("allow from a pipe is refused", result.returncode == EXISTS, shown(result))
    digest = json.loads(result.stdout)["digest"]
    result = subprocess.run(
        [scene.tool, "allow"], env=environment | {"COFFER_ALLOW": digest}, cwd=project, capture_output=True)
    scene.check("and accepted with the digest", result.returncode == 0, shown(result))
    for value in (b"one", b"two"):
        scene.owner.store(value)
    result = scene.owner.run("history-limit", "--versions", "0", given=b"y\n")
    scene.check("history-limit is refused", result.returncode == EXISTS, shown(result))


def pins_of_several_vaults(scene):
    """The pins of two vaults, or of two states, and the files exchanged or put back."""
    scene.made()
    staging = scene.data / "staging.vault"
    scene.owner.done("init", "--key-file", str(scene.key), vault=staging)
    scene.owner.store(EVIL, vault=staging)
    old, former, genuine_staging = scene.copy("old"), scene.owner.pin(), staging.read_bytes()
    scene.owner.store(GENUINE)
    pins, present = (scene.owner.pin(), scene.owner.pin(vault=staging)), scene.copy("present")
    bound = (f"{scene.vault}={pins[0]}", f"{staging}={pins[1]}")
    mixed = (b"Write the path of the vault", f"{scene.vault}={pins[0]}".encode())
    for given in (pins, pins[::-1], (bound[0], pins[1])):
        runner = scene.machine(f"ci{len(list(scene.directory.iterdir()))}").pinned(*given)
        scene.refused(runner, "pins of two vaults that are not for places are refused", USAGE, mixed)
    runner = scene.machine("runner").pinned(*bound)
    scene.accepted(runner, "pins for their places accept both")
    scene.accepted(runner, "the other one as well", EVIL, vault=staging)
    for path, data in ((scene.vault, genuine_staging), (staging, present.read_bytes())):
        path.write_bytes(data)
    for path in (scene.vault, staging):
        fresh = scene.machine(f"fresh-{path.name}").pinned(*bound)
        scene.refused(fresh, f"exchanged: {path.name}", words=(b"not the one that the pin names",), vault=path)
    scene.place(old)
    for given in ((former, pins[0]), (pins[0], former), (f"x.vault={former}", pins[0])):
        fresh = scene.machine(f"two{len(list(scene.directory.iterdir()))}").pinned(*given)
        scene.refused(fresh, "an old and a new pin refuse the old state", words=(b"older than the pin",), cwd=scene.data)
    link = scene.directory / "a b.vault"
    link.symlink_to(present)
    spaced = scene.machine("spaced").pinned(f"{str(link).replace(' ', '%20')}={pins[0]}")
    scene.accepted(spaced, "a place with a space", vault=link)


def record_held_or_unwritable(scene):
    """Somebody holds the lock of a record, or no record can be written, while a key is removed."""
    guest = with_guest(scene)
    slot, before = guest_slot(scene.owner), scene.vault.read_bytes()
    vault_id = opened(scene.vault, scene.key).header.vault_id
    subjects = {"the place": os.fsencode(scene.vault), "the vault": k.vault_subject(vault_id)}
    for what, subject in subjects.items():
        with open(scene.owner.record(subject), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            result = scene.owner.run("key", "remove", slot, "--quiet")
            holds = result.returncode == BUSY and b"Nothing was changed" in result.stderr
            scene.check(f"the record of {what} is held: nothing is acknowledged", holds, shown(result))
            scene.check("and nothing changed", scene.vault.read_bytes() == before)
    result = scene.owner.run("key", "remove", slot, "--quiet", "--json")
    report = json.loads(result.stdout or b"{}")
    scene.check("without the lock it is recorded", result.returncode == 0 and report.get("recorded") is True, shown(result))
    homeless = scene.machine("homeless")
    homeless.environment["XDG_STATE_HOME"] = "/proc/none"
    homeless.environment["HOME"] = "/proc/none"
    result = homeless.run("rekey", "--quiet", "--json")
    report = json.loads(result.stdout or b"{}")
    said = b"could not be recorded" in result.stderr and report.get("recorded") is False
    scene.check("without a place for records it goes on and says so", result.returncode == 0 and said, shown(result))
    scene.accepted(scene.owner, "the owner follows", GENUINE, silent=True)
    assert guest.exists()


def failure_after_the_change(scene):
    """The output fails after a key was removed: the message says that it was."""
    with_guest(scene)
    for command in (("key", "remove", guest_slot(scene.owner)), ("rekey",)):
        before = opened(scene.vault, scene.key).header.commitment
        with open("/dev/full", "wb") as full:
            result = subprocess.run(
                [scene.tool, *command], env=scene.owner.environment | {"COFFER_VAULT": str(scene.vault)}, stdout=full,
                stderr=subprocess.PIPE)
        scene.check(f"{command}: the key was changed", opened(scene.vault, scene.key).header.commitment != before)
        words = (b"The vault has a new master key", b"the change stays", b"secret verify")
        said = result.returncode == UNWRITTEN and all(word in result.stderr for word in words)
        scene.check(f"{command}: the message says so", said, shown(result))


def copy_with_the_same_id(scene):
    """A copied vault is recovered, exchanged and listed."""
    scene.made()
    del scene.owner.environment["COFFER_KEY_FILE"]
    recovery = scene.owner.done("key", "add", "--recovery").stdout
    copied = put_at(scene.vault, scene.directory / "copies" / "staging.vault")
    for command in (("list",), ("doctor",)):
        result = scene.owner.run(*command, vault=copied)
        words = (b"is a copy of", str(scene.vault).encode(), b"secret copy --from")
        said = result.stdout + result.stderr
        scene.check(f"{command[0]} of a copy says so", all(word in said for word in words), shown(result))
        result = scene.owner.run(*command)
        scene.check(f"{command[0]} of the vault does not", b"is a copy of" not in result.stdout + result.stderr)
    new = scene.directory / "new.key"
    result = scene.owner.run("key", "recover", "--key-file", str(new), given=recovery, vault=copied)
    said = result.returncode == 0 and b"COFFER_KEY_FILE" in result.stderr
    scene.check("key recover of a copy says how to open it", said, shown(result))
    scene.accepted(scene.owner, "and leaves the vault its key file", silent=True)


def exchanged_recipient(scene):
    """The header's slot for Bob is exchanged for one of the attacker: the list is not verified, and shows it."""
    scene.made()
    keys = {}
    for name in ("bob", "mallory"):
        made = scene.owner.done("key", "new", "--x25519", "--output", str(scene.directory / name))
        keys[name] = made.stdout.strip()
    scene.owner.done("key", "add", "--recipient", keys["bob"].decode(), "--label", "bob")
    data = scene.vault.read_bytes()
    listed = scene.owner.done("key", "list")
    scene.check("the list has the recipient", keys["bob"][:28] in listed.stdout and b"not verified" not in listed.stderr, shown(listed))
    public = {name: opened_recipient(text) for name, text in keys.items()}
    scene.vault.write_bytes(data.replace(public["bob"], public["mallory"]))
    keyless = scene.machine("keyless")
    del keyless.environment["COFFER_KEY_FILE"]
    result = keyless.run("key", "list")
    holds = result.returncode == 0 and b"not verified" in result.stderr and keys["mallory"][:28] in result.stdout
    scene.check("without a key the list says that it is not verified", holds, shown(result))
    slots = json.loads(keyless.run("key", "list", "--json").stdout)
    whole = [slot.get("recipient") for slot in slots if slot.get("recipient")]
    scene.check("--json has whole recipients and says so", whole == [keys["mallory"].decode()] and
                not any(slot["verified"] for slot in slots), slots)
    result = scene.owner.run("key", "list")
    scene.check("with the key it is refused", result.returncode == REFUSED, shown(result))


def opened_recipient(text):
    import vault_identities

    return vault_identities.parse_recipient(text.decode())


def hidden_recipients(scene):
    """A comment in a file of recipients hides another one behind a character that some programs take for a line's end."""
    scene.made()
    texts = []
    for name in ("bob", "mallory"):
        made = scene.owner.done("key", "new", "--x25519", "--output", str(scene.directory / name))
        texts.append(made.stdout.strip().decode())
    file = scene.directory / "recipients"
    for end in ("\v", "\f", "\r", "\x1c", "\u0085", "\u2028", "\u2029", "\0", "\x1b"):
        file.write_bytes(f"{texts[0]}\n# a comment{end}{texts[1]}\n".encode())
        before = scene.vault.read_bytes()
        result = scene.owner.run("key", "add", "--recipients-file", str(file))
        refused = result.returncode == USAGE and b"control character" in result.stderr
        scene.check(f"U+{ord(end):04X} is refused", refused and scene.vault.read_bytes() == before, shown(result))
    file.write_bytes(f"# both\r\n{texts[0]}\r\n\r\n{texts[0]}\n".encode())
    scene.owner.done("key", "add", "--recipients-file", str(file))
    slots = [slot for slot in json.loads(scene.owner.done("key", "list", "--json").stdout) if slot.get("recipient")]
    scene.check("lines of CR LF are read, and one recipient gets one slot", len(slots) == 1, slots)
    result = scene.owner.run("key", "add", "--recipient", texts[0])
    scene.check("a second slot of one recipient is refused", result.returncode == EXISTS, shown(result))


def hostile_repository(scene):
    """A repository whose settings start a program when git reads a missing object, a monitor, a hook or a filter."""
    scene.made()
    marker, tree = scene.directory / "started", scene.directory / "tree"
    program = scene.directory / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> {marker}\nexit 1\n")
    program.chmod(0o755)
    git = lambda *arguments: subprocess.run(["git", "-C", str(tree), *arguments], check=True, capture_output=True)
    tree.mkdir(mode=0o700)
    git("init", "-q")
    (tree / ".gitignore").write_text("*.key\n")
    (tree / ".gitattributes").write_text("* filter=evil diff=evil\n")
    git("add", ".gitignore", ".gitattributes")
    blob = subprocess.run(
        ["git", "-C", str(tree), "rev-parse", ":.gitignore"], check=True, capture_output=True, text=True).stdout.strip()
    git("update-index", "--skip-worktree", ".gitignore")
    (tree / ".gitignore").unlink()
    (tree / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    run = str(program)
    for name, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.url": "ssh://h/r",
        "remote.origin.promisor": "true", "core.sshCommand": run, "core.fsmonitor": run, "core.pager": run,
        "core.editor": run, "core.askPass": run, "credential.helper": run, "filter.evil.clean": run,
        "filter.evil.smudge": run, "filter.evil.process": run, "diff.evil.textconv": run, "diff.external": run,
        "alias.check-ignore": f"!{run}", "alias.ls-files": f"!{run}", "core.gitProxy": run, "gpg.program": run,
    }.items():
        git("config", name, value)
    for hook in ("post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman"):
        shutil.copy(program, tree / ".git" / "hooks" / hook)
    subprocess.run(["git", "-C", str(tree), "check-ignore", "-q", "--", "a.key"], capture_output=True)
    scene.check("git by itself starts the program", marker.exists())
    marker.unlink(missing_ok=True)
    inside = tree / "v.vault"
    for what, command in {
        "key new": ("key", "new", "--output", str(tree / "identity")),
        "init --key-file": ("init", "--vault", str(inside), "--key-file", str(tree / "b.key")),
        "key add --key-file": ("key", "add", "--key-file", str(tree / "c.key")),
        "doctor": ("doctor",), "set": ("set", "--verbatim", TOKEN), "get": ("get", TOKEN),
    }.items():
        scene.owner.run(*command, given=b"x", cwd=tree)
        scene.check(f"{what} starts nothing", not marker.exists(), marker.exists() and marker.read_text())
        marker.unlink(missing_ok=True)


def kept_key_of_an_identity(scene):
    """After `unlock`, the kept master key opens a copy at a new place: it needs a pin, as the identity does."""
    scene.made()
    identity = scene.directory / "identity"
    recipient = scene.owner.done("key", "new", "--x25519", "--output", str(identity)).stdout.strip().decode()
    scene.owner.done("key", "add", "--recipient", recipient)
    member = scene.machine("member", identity)
    member.trust()
    result = member.run("unlock", "--for", "30s")
    if b"kernel's keyring is not allowed" in result.stderr:
        print("left out: unlock, because the kernel's keyring may not be used here")
        return
    copied = put_at(scene.vault, scene.directory / "new" / "x.vault")
    for name, value in (("COFFER_KEY_FILE", str(identity)), ("COFFER_KEY_FILE", None)):
        if value is None:
            del member.environment[name]
        before = copied.read_bytes()
        for command, given in (("get", TOKEN), b""), (("set", "--verbatim", TOKEN), FRESH):
            result = member.run(*command, given=given, vault=copied)
            holds = result.returncode == DENIED and not result.stdout and copied.read_bytes() == before
            scene.check(f"{command[0]} at a new place is refused", holds, shown(result))
    scene.accepted(member, "and the place that was trusted is not")
    member.run("lock")


def keys_in_messages(scene):
    """A key is given in the place of a path, a name or an option: no message repeats it."""
    scene.made()
    secret = scene.key.read_text().strip()
    identity = re.search(r"AGE-SECRET-KEY\S+", scene.owner.done("key", "new").stdout.decode())[0]
    for text in (secret, secret.upper(), identity, identity.lower()):
        for command in (
            ("--vault", text, "get", "x"), ("--backend", text, "get", "x"), ("--backend", f"vault:{text}", "get", "x"),
            ("key", "add", "--recipients-file", text), ("key", "add", "--recipient", text), ("trust", "--policy", text),
            ("key", "remove", text), ("key", "change-passphrase", text), ("trust", "--pin", text), ("init", "--vault", text),
            ("verify", "--pin", text), ("copy", "--from", text, "--to", "vault"), ("key", "add", "--key-file", text),
            ("list", "--unchanged-since", text), ("--collection", text, "list"), (text,), ("import", text),
        ):
            result = scene.owner.run(*command, cwd=scene.directory)
            body = text.split(":")[-1].split("KEY-")[-1].split("key-")[-1][8:].encode()
            said = (result.stdout + result.stderr).lower()
            scene.check(f"{' '.join(command).replace(text, 'KEY')}", result.returncode != 0 and body.lower() not in said,
                        shown(result))
        for variable in ("COFFER_VAULT", "COFFER_BACKEND", "COFFER_PIN"):
            environment = scene.owner.environment | {variable: text}
            for arguments in (("get", "x"), ("doctor",)):
                result = subprocess.run([scene.tool, *arguments], env=environment, capture_output=True, cwd=scene.directory)
                said = (result.stdout + result.stderr).lower()
                scene.check(f"{variable}, {arguments[0]}", body.lower() not in said, shown(result))


def many_records(scene):
    """A thousand records of other vaults: a read opens no more files than with one."""
    scene.made()

    def opened_files():
        trace = scene.directory / "trace"
        environment = scene.owner.environment | {"COFFER_VAULT": str(scene.vault)}
        subprocess.run(
            ["strace", "-f", "-o", str(trace), "-e", "trace=openat,openat2,open,getdents64", scene.tool, "get", TOKEN],
            env=environment, check=True, capture_output=True)
        return len(trace.read_text().splitlines())

    one = opened_files()
    folder = scene.owner.record(b"").parent
    record = scene.owner.record(os.fsencode(scene.vault)).read_bytes()
    for number in range(1000):
        path = folder / f"{number:032x}"
        path.write_bytes(record)
        path.chmod(0o600)
    many = opened_files()
    scene.check("a read opens as many files with a thousand records", many == one, f"{one} and {many}")


ATTACKS = [
    removed_key_elsewhere, copies_that_a_person_accepts, successor_seen_first, work_trees_that_were_each_rekeyed,
    trust_where_nobody_is_asked, pins_of_several_vaults, record_held_or_unwritable, failure_after_the_change,
    copy_with_the_same_id, exchanged_recipient, hidden_recipients, hostile_repository, kept_key_of_an_identity,
    keys_in_messages, many_records,
]
