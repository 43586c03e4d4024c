"""Another authentic file in the vault's place: an older copy, another vault, a checkout; and a file with a damaged slot."""

import os
import shutil
import subprocess

from revoked_keys import guest_slot
from scene import DENIED, EVERY_COMMAND, EVIL, GENUINE, TOKEN, c, credential, f, opened, pins, put, shown

RECOVERED = b"commit slot"


def older_copy(scene):
    """Keeps a copy with an older value, and advances the vault."""
    scene.made()
    scene.owner.store(EVIL)
    old = scene.copy("old")
    scene.owner.store(b"another value")
    scene.owner.store(GENUINE)
    scene.authentic(old)
    return old, scene.copy("genuine"), scene.owner.pin()


def rollback_by_link(scene):
    """An older copy takes the vault's place as the target of a link."""
    old, genuine, pin = older_copy(scene)
    hidden = scene.data / ".x.old"

    def remove():
        for path in (scene.vault, hidden):
            path.unlink(missing_ok=True)

    def by_symbolic_link():
        shutil.copyfile(old, hidden)
        hidden.chmod(0o600)
        scene.vault.symlink_to(".x.old")

    def by_hard_link():
        shutil.copyfile(old, hidden)
        hidden.chmod(0o600)
        os.link(hidden, scene.vault)

    def by_two_links():
        by_symbolic_link()
        middle = scene.directory / "middle"
        middle.symlink_to(hidden)
        scene.vault.unlink()
        scene.vault.symlink_to(middle)

    for way in (by_symbolic_link, by_hard_link, by_two_links):
        remove()
        way()
        scene.refused(scene.owner, f"{way.__name__} is refused", pin=pin)
    (scene.data / ".git").mkdir()
    (scene.data / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    scene.refused(scene.owner, "a .git beside the vault does not change the policy", pin=pin)
    remove()
    scene.place(genuine)
    target = scene.directory / "target"
    scene.vault.rename(target)
    scene.vault.symlink_to(target)
    scene.accepted(scene.owner, "a link to the genuine vault is accepted", silent=True)
    # From now on both the link and its target are places that were seen.
    shutil.copyfile(old, target)
    scene.refused(scene.owner, "an older copy behind the link is refused", pin=pin)
    scene.refused(scene.owner, "and so it is by its own name", pin=pin, vault=target)


def rollback_by_directory(scene):
    """The vault's directory is renamed, and a link leads to a directory with an older copy."""
    old, genuine, pin = older_copy(scene)
    other = scene.directory / "other"
    other.mkdir(mode=0o700)
    shutil.copyfile(old, other / scene.vault.name)
    (other / scene.vault.name).chmod(0o600)
    scene.data.rename(scene.directory / "data.moved")
    scene.data.symlink_to("other")
    scene.refused(scene.owner, "by its path it is refused", pin=pin)
    for name in (scene.vault.name, f"./{scene.vault.name}"):
        scene.refused(
            scene.owner, f"as {name} after cd it is refused", pin=pin, vault=name, cwd=scene.data)
    scene.data.unlink()
    (scene.directory / "data.moved").rename(scene.data)
    scene.accepted(scene.owner, "the genuine directory is accepted", silent=True)
    scene.accepted(
        scene.owner, "and so it is after cd", vault=scene.vault.name, cwd=scene.data, silent=True)
    # The directory with the older copy is used by a path where nothing was seen, and then by another one.
    commands = [command for command in EVERY_COMMAND if command[0] != ("verify",)]
    for name in ("other", "renamed"):
        if name != "other":
            other = other.rename(scene.directory / name)
        scene.refused(
            scene.owner, f"as {name}/{scene.vault.name} it is refused", commands=commands, pin=pin,
            vault=other / scene.vault.name)
    link = scene.directory / "link"
    link.symlink_to(other / scene.vault.name)
    scene.refused(scene.owner, "and so it is as a link", commands=commands, pin=pin, vault=link)


def what_a_pin_tells(scene):
    """A pin is no secret: what it tells somebody who has the file stands in the file, except for the number of changes."""
    scene.made()
    text, file = scene.owner.pin(), scene.vault.read_bytes()
    header = f.parse_header(file)
    pin = pins.Pin.parse(text)
    scene.check("vault and commitment are those of the header",
                (pin.vault_id, pin.commitment) == (header.vault_id, header.commitment), text)
    scene.check("the digest is nowhere in the file", pin.digest not in file, text)
    tags = [file[at : at + 16] for at in range(len(file) - 15)]
    unkeyed = (f.blake2b(128, tag) for tag in tags)
    scene.check("nor is it the hash of something there", pin.digest not in unkeyed, text)
    scene.check("two pins of one state are the same", scene.owner.pin() == text)
    scene.owner.store(GENUINE)
    later = pins.Pin.parse(scene.owner.pin())
    scene.check("the digests of two states differ", later.digest != pin.digest)
    identity = pins.Pin(header.vault_id, header.commitment).encode()
    scene.accepted(scene.machine("identity").pinned(identity), "whoever has the file can name it in an identity pin")
    forged = pins.Pin(header.vault_id, header.commitment, pin.sequence, bytes(15) + b"1").encode()
    scene.refused(
        scene.machine("forged").pinned(forged), "a digest that somebody without the key makes up is refused", words=(b"pin",))


def vault_for_a_recipient(scene):
    """Somebody who knows a recipient makes a vault for it, and the pin of that vault."""
    identity = scene.directory / "identity.txt"
    recipient = scene.owner.done("key", "new", "--x25519", "--output", str(identity)).stdout.decode().strip()
    owner = scene.machine("identity", identity)
    owner.done("init", "--recipient", recipient)
    owner.store(GENUINE)
    genuine, pin = scene.copy("genuine"), owner.pin()
    attacker = scene.machine("attacker")
    made = scene.directory / "made.vault"
    attacker.done("init", "--key-file", str(scene.key), "--recipient", recipient, vault=made)
    attacker.store(EVIL, vault=made)
    of_made = attacker.pin(vault=made)
    scene.accepted(owner, "the owner's vault is used where it was made", silent=True)
    victim = scene.machine("victim", identity)
    scene.refused(victim, "a vault that only an identity opened is refused", DENIED)
    scene.accepted(victim.pinned(pin), "and used under its pin")
    scene.place(made)
    words = (b"not the one that",)
    scene.refused(owner, "the vault that somebody else made is refused where the genuine one was seen", words=words)
    scene.refused(victim, "and under the genuine pin", words=words)
    stranger = scene.machine("stranger", identity)
    scene.refused(stranger, "and where nothing was seen before", DENIED)
    # A pin that lies beside the vault is replaced together with it.
    scene.accepted(stranger.pinned(of_made), "under the pin of the same person it is used", EVIL)
    scene.place(genuine)
    scene.refused(stranger, "a pin of the made vault refuses the genuine one", words=words)


def said_once(scene, machine, what, value):
    """The value is returned. The first command says that the file is not in the newest state, and the next ones do not."""
    result = machine.run("get", "token")
    is_said = b"is older than, or another branch of, what this machine has seen" in result.stderr
    scene.check(f"{what}, which is said", result.returncode == 0 and result.stdout == value and is_said, result)
    scene.accepted(machine, f"{what}, which is said once", value, silent=True)


def version_control(scene):
    """A vault in a git work tree: its own older states are accepted, and nothing else."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(scene.directory), "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.org"}

    def git(*arguments):
        old = os.umask(0o022)
        try:
            command = ["git", "-C", str(scene.data), *arguments]
            return subprocess.run(command, env=environment, check=True, capture_output=True).stdout
        finally:
            os.umask(old)

    def commit():
        git("add", "-A")
        git("commit", "-q", "-m", "change")
        return git("rev-parse", "HEAD").decode().strip()

    git("init", "-q")
    result = scene.owner.done("init", "--vault", str(scene.vault), "--key-file", str(scene.key))
    scene.check("init in a work tree says that older states are accepted", b"earlier states of it are accepted" in result.stderr, result)
    guest = scene.directory / "guest.key"
    scene.owner.done("key", "add", "--key-file", str(guest), "--label", "guest")
    scene.owner.store(EVIL)
    first = commit()
    scene.owner.store(GENUINE)
    second = commit()
    git("checkout", "-q", first)
    scene.check("git makes the file 0644", scene.vault.stat().st_mode & 0o777 == 0o644)
    said_once(scene, scene.owner, "an older commit of a versioned place is accepted", EVIL)
    strict = scene.machine("strict")
    git("checkout", "-q", second)
    scene.accepted(strict, "another machine chooses the versioned policy on first use", silent=True)
    strict.done("trust", "--policy", "strict")
    scene.accepted(strict, "a strict place in a work tree is read without a note", silent=True)
    git("checkout", "-q", first)
    scene.refused(strict, "a strict place refuses the older commit")
    git("checkout", "-q", second)
    strict.done("trust", "--policy", "versioned")
    git("checkout", "-q", first)
    said_once(scene, strict, "after secret trust --policy versioned it is accepted", EVIL)
    # A branch that another machine made is not an older state, and allowed too.
    c.commit(scene.vault, credential(scene.key), [put(b"a branch")])
    said_once(scene, scene.owner, "a branch is accepted", b"a branch")
    git("checkout", "-q", "-f", second)
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    scene.check("the vault is still readable after a rewrite", scene.vault.stat().st_mode & 0o777 == 0o644)
    third = commit()
    for revision in (first, second):
        git("checkout", "-q", revision)
        scene.refused(scene.owner, "a commit from before a key was removed is refused")
        git("checkout", "-q", third)
    scene.accepted(scene.owner, "the commit after it is accepted", silent=True)
    data = scene.directory / "other-data"
    data.mkdir(mode=0o700)
    scene.owner.done("init", "--key-file", str(scene.key), vault=data / "z.vault")
    scene.owner.store(EVIL, vault=data / "z.vault")
    scene.place(data / "z.vault")
    words = (b"secret trust", b"not the one that was seen")
    scene.refused(scene.owner, "another vault is refused at a versioned place", words=words)


def flip(path, offset, bit):
    with open(path, "r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 1 << bit]))


def only_an_older_slot(scene):
    """The only valid commit slot is that of the change before: it is returned, and every command says so."""
    scene.made()
    c.commit(scene.vault, credential(scene.key), [put(EVIL)], copy=False)
    vault = opened(scene.vault, scene.key)
    sequences = [state.sequence for state in vault.states]
    scene.check("the two slots hold two changes", abs(sequences[0] - sequences[1]) == 1, sequences)
    uncopied = scene.copy("uncopied")
    start = len(vault.header.raw) + vault.current * f.PAGE
    flip(scene.vault, start + 2000, 3)
    reader = scene.machine("ci")
    for arguments in (("get", TOKEN), ("list",), ("history", TOKEN), ("doctor",)):
        reader.forget()
        result = reader.run(*arguments)
        text = result.stdout + result.stderr
        said = result.returncode == 0 and RECOVERED in text and b"may be missing" in text
        scene.check(f"{arguments[0]} says that the last change may be missing", said, shown(result))
    result = reader.run("get", TOKEN)
    scene.check("get returns the value before", result.stdout == GENUINE, shown(result))
    result = reader.run("verify")
    said = result.returncode == 0 and b"recovered" in result.stdout and b"may be missing" in result.stdout
    scene.check("verify says that the vault is recovered", said, shown(result))
    # A machine that saw the lost change refuses.
    damaged = scene.copy("damaged")
    scene.place(uncopied)
    scene.accepted(scene.owner, "a slot that was not copied is no damage", EVIL, silent=True)
    scene.place(damaged)
    words = (b"secret trust", RECOVERED)
    scene.refused(scene.owner, "a machine that saw the change refuses, and speaks of the slot", words=words)
    reader.forget()
    result = reader.done("set", "--verbatim", "other", given=b"x")
    scene.check("set says so before it repairs the slot", RECOVERED in result.stderr, shown(result))
    scene.accepted(reader, "after it the vault is whole", silent=True)


ATTACKS = [
    rollback_by_link, rollback_by_directory, what_a_pin_tells, vault_for_a_recipient, version_control, only_an_older_slot,
]
