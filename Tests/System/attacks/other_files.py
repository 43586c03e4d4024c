"""Another authentic file in the vault's place: an older copy, a fork, another vault, a checkout."""

import os
import shutil
import subprocess

from revoked_keys import guest_slot
from scene import (
    DENIED, EVIL, GENUINE, TOKEN, USAGE, advance, c, credential, f, opened, pins, put, rewritten, sequence_of,
)


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


def fork(scene):
    """A file at a later change, in which the change that was seen is another one."""
    scene.made()
    common = scene.copy("common")
    scene.owner.store(GENUINE)
    genuine, pin = scene.copy("genuine"), scene.owner.pin()
    seen = sequence_of(pin)
    stranger = scene.machine("stranger")

    def forked(changes):
        path = scene.directory / f"fork-{changes}"
        shutil.copyfile(common, path)
        path.chmod(0o600)
        c.commit(path, credential(scene.key), [put(EVIL)] * changes)
        return path

    def refused_everywhere(file, what):
        scene.authentic(file)
        scene.place(file)
        scene.refused(scene.owner, f"{what} is refused", pin=pin)
        stranger.forget()
        scene.refused(stranger, f"{what} is refused by verify --pin alone", commands=[], pin=pin)
        scene.place(genuine)
        scene.accepted(scene.owner, "the genuine file is accepted afterwards", silent=True)

    for changes in (1, 2, 3, 40):
        at = opened(common, scene.key).state.sequence + changes
        refused_everywhere(forked(changes), f"a fork at change {at} of one that was seen at {seen}")
    # The change that was seen is the root's.
    scene.owner.done("history-limit", "--versions", "3", "--purge")
    genuine, pin = scene.copy("genuine"), scene.owner.pin()
    root = scene.directory / "root"
    root.write_bytes(rewritten(opened(common, scene.key), sequence_of(pin), EVIL))
    refused_everywhere(root, "a fork with another root")
    c.commit(root, credential(scene.key), [put(EVIL)] * 3)
    refused_everywhere(root, "a fork with another root and a tail")
    stranger.forget()
    result = stranger.run("verify", "--pin", pin)
    scene.check("verify --pin accepts the genuine file", result.returncode == 0, result)
    scene.owner.store(GENUINE)
    result = stranger.run("verify", "--pin", pin)
    scene.check("and a later state of it", result.returncode == 0, result)
    # Only who has the key can make this.
    root.write_bytes(rewritten(opened(common, scene.key), sequence_of(pin) + 3, EVIL, forgets=True))
    scene.place(root)
    stranger.forget()
    scene.accepted(stranger.pinned(pin), "a file that says nothing of the pinned change is used", EVIL,
                   commands=[("get", TOKEN), ("list",)])
    scene.refused(stranger, "and not verified under the pin", words=(b"unverifiable",), commands=[(("verify", "--pin", pin), b"")])


def exchanged_vaults(scene):
    """Two vaults that one key file opens change places."""
    scene.made()
    other = scene.data / "y.vault"
    scene.owner.done("init", "--key-file", str(scene.key), vault=other)
    scene.owner.store(EVIL, vault=other)
    second, third = scene.directory / "second", scene.data / ".third"
    shutil.copyfile(other, second)
    scene.authentic(second)
    words = (b"secret trust", b"not the one that was seen")
    scene.vault.rename(third)
    other.rename(scene.vault)
    third.rename(other)
    scene.refused(scene.owner, "the first place refuses the second vault", words=words)
    scene.refused(scene.owner, "the second place refuses the first vault", words=words, vault=other)
    stranger = scene.machine("stranger")
    foreign = scene.directory / "foreign.vault"
    stranger.environment["COFFER_KEY_FILE"] = str(scene.directory / "foreign.key")
    stranger.done("init", "--key-file", str(scene.directory / "foreign.key"), vault=foreign)
    scene.vault.rename(third)
    shutil.copyfile(foreign, scene.vault)
    # Before a key is tried: the wrong key is not what matters.
    scene.refused(scene.owner, "the first place refuses a vault of another key as another vault", words=words)
    scene.vault.unlink()
    scene.vault.symlink_to("y.vault")
    scene.refused(scene.owner, "the first place refuses a link to the second place", vault=scene.vault, words=())
    scene.vault.unlink()
    third.rename(scene.vault)
    scene.owner.trust()
    scene.accepted(scene.owner, "after secret trust the first place accepts it", EVIL, silent=True)
    scene.refused(scene.owner, "the second place still refuses", words=words, vault=other)


def exchanged_vaults_under_a_pin(scene):
    """Two vaults under one key, where nothing was seen before: the other one, at a later change, is judged by a pin."""
    scene.made()
    pin, genuine = scene.owner.pin(), scene.copy("genuine")
    other = scene.directory / "y.vault"
    scene.owner.done("init", "--key-file", str(scene.key), vault=other)
    scene.owner.store(EVIL, vault=other)
    advance(other, scene.key, sequence_of(pin) + 50)
    of_other = scene.owner.pin(vault=other)
    scene.authentic(other)
    machine = scene.machine("ci").pinned(pin)
    scene.place(other)
    words = (b"not the one that the pin names",)
    scene.refused(machine, "the pin refuses the other vault", words=words)
    machine.environment.pop("COFFER_PIN")
    scene.refused(machine, "and so does verify --pin", commands=[], pin=pin)
    words_of_both = (b"Write the path of its vault before each pin",)
    scene.refused(machine.pinned(pin, of_other), "the pins of both are for no place", USAGE, words_of_both)
    machine.pinned(f"{scene.vault}={pin}", f"{other}={of_other}")
    scene.refused(machine, "for their places, they refuse the other vault", words=words)
    scene.place(genuine)
    scene.accepted(machine, "and accept the first one")
    scene.refused(machine.pinned(of_other), "the pin of the other vault refuses the first", words=words)
    for text in ("", pin[:-1], pin.replace("v1", "v2"), pin[:-1] + ("A" if pin[-1] != "A" else "B")):
        # Before anything is asked or read: a job whose pin is missing does not go on without one.
        scene.refused(machine.pinned(text), f"the vault is not used under {text[:20]!r}…", USAGE, (b"pin",))


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
    scene.check("init in a work tree says that older states are accepted", b"older states" in result.stderr, result)
    guest = scene.directory / "guest.key"
    scene.owner.done("key", "add", "--key-file", str(guest), "--label", "guest")
    scene.owner.store(EVIL)
    first = commit()
    scene.owner.store(GENUINE)
    second = commit()
    git("checkout", "-q", first)
    scene.check("git makes the file 0644", scene.vault.stat().st_mode & 0o777 == 0o644)
    scene.accepted(scene.owner, "an older commit of a versioned place is accepted without a note", EVIL, silent=True)
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
    scene.accepted(strict, "after secret trust --policy versioned it is accepted", EVIL, silent=True)
    # A branch that another machine made is not an older state, and allowed too.
    c.commit(scene.vault, credential(scene.key), [put(b"a branch")])
    scene.accepted(scene.owner, "a branch is accepted", b"a branch", silent=True)
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


def open_to_others(scene):
    """A file that others may read is read; one that others may have written is not."""
    scene.made()
    reads = [(("get", TOKEN), b""), (("verify",), b"")]
    writes = [(("set", "--verbatim", TOKEN), b"x"), (("remove", TOKEN), b""), (("rekey",), b"")]
    for mode in (0o644, 0o640, 0o604):
        scene.vault.chmod(mode)
        note = (b"Other users can read", b"chmod 600")
        scene.accepted(scene.owner, f"a vault of mode {mode:o} is read with a note", words=note)
        scene.refused(scene.owner, "and is not written", DENIED, (b"chmod 600",), commands=writes)
    for mode in (0o620, 0o602, 0o666, 0o664):
        scene.vault.chmod(mode)
        scene.refused(
            scene.owner, f"a vault of mode {mode:o} is refused", DENIED, (b"chmod go-w",), commands=reads + writes)
    scene.vault.chmod(0o600)
    scene.accepted(scene.owner, "after chmod 600 it is read without a note", silent=True)
    scene.owner.store(GENUINE)
    if os.geteuid() == 0:
        os.chown(scene.vault, 65534, 65534)
        scene.refused(
            scene.owner, "a vault of another user is refused", DENIED, (b"another user",), commands=reads + writes)


ATTACKS = [
    rollback_by_link, rollback_by_directory, fork, exchanged_vaults, exchanged_vaults_under_a_pin, what_a_pin_tells,
    vault_for_a_recipient, version_control, open_to_others,
]
