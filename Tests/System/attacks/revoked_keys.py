"""Somebody whose key was removed, or who has an old master key, makes the vault theirs again."""

import json

from scene import DENIED, EVIL, FRESH, GENUINE, REFUSED, Watch, advance, credential, f, opened, rewritten, sequence_of


def guest_slot(machine):
    slots = json.loads(machine.done("key", "list", "--json").stdout)
    return next(slot["id"] for slot in slots if slot["label"] == "guest")


def with_guest(scene):
    """A vault with a second key slot. Returns the guest's key."""
    scene.made()
    guest = scene.directory / "guest.key"
    scene.owner.done("key", "add", "--key-file", str(guest), "--label", "guest")
    return guest


def attempts(scene, forgery, genuine, pin, machines):
    """Puts the forgery in place in three ways. Every machine and a running process refuse it."""
    scene.authentic(forgery)
    for way in (scene.place, scene.overwrite):
        for name, machine in machines.items():
            scene.place(genuine)
            watch = Watch(machine)
            way(forgery)
            refused, detail = watch.refuses(), f"{watch.printed} {watch.said}"
            scene.check(f"{name}: a running watch refuses what {way.__name__} put there", refused, detail)
            scene.refused(machine, f"{name}: every command refuses it after {way.__name__}", pin=pin)
            way(genuine)
            machine.store(GENUINE)
            seen = watch.wait(lambda: watch.printed)
            watch.stop()
            printed = b"".join(watch.printed)
            alone = seen and EVIL not in printed and all(line.endswith(b"\ttoken\n") for line in watch.printed)
            scene.check(f"{name}: the watch goes on with the genuine file", alone, printed)
            genuine.write_bytes(scene.vault.read_bytes())
    encrypted = [entry.value for entry in opened(forgery, scene.key).secrets()]
    scene.check("nothing is encrypted to the attacker", FRESH not in encrypted)


def removed_key(scene):
    """A guest whose key slot was removed advances an old copy beyond the vault."""
    guest = with_guest(scene)
    second = scene.machine("second")
    old = scene.copy("old")
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    scene.owner.store(b"a later value")
    scene.owner.store(GENUINE)
    scene.accepted(second, "a second machine sees the vault without the key")
    pin = scene.owner.pin()
    genuine = scene.copy("genuine")
    advance(old, guest, sequence_of(pin) + 50)
    attempts(scene, old, genuine, pin, {"owner": scene.owner, "second machine": second})
    scene.place(genuine)
    scene.accepted(scene.owner, "the genuine vault is still accepted everywhere", silent=True)
    scene.accepted(second, "the genuine vault is still accepted by the second machine", silent=True)


def old_master_key(scene):
    """Somebody who got the master key before `rekey` goes on with the old file."""
    scene.made()
    witness = scene.machine("witness")
    scene.accepted(witness, "a machine sees the vault before the rekey")
    old = scene.copy("old")
    scene.owner.done("rekey")
    genuine = scene.copy("genuine")
    scene.accepted(witness, "a machine that saw the former master key accepts the new one", silent=True)
    pin = scene.owner.pin()
    # The owner's key stands for the master key that it opens.
    advance(old, scene.key, sequence_of(pin) + 50)
    attempts(scene, old, genuine, pin, {"owner": scene.owner, "witness": witness})


def forged_lineage(scene):
    """The holder of older master keys claims that theirs succeeds the present one."""
    guest = with_guest(scene)
    first = opened(scene.vault, guest)
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    second = opened(scene.vault, scene.key)
    scene.owner.done("rekey")
    scene.owner.store(GENUINE)
    pin = scene.owner.pin()
    genuine = scene.copy("genuine")
    later = sequence_of(pin) + 50
    keys = [f.subkey(vault.master, f.KNOWN_VAULTS) for vault in (second, first)]
    # Files that say nothing of the changes that were seen, so that only the lineage gives them away.
    forgeries = {
        "the oldest master key with itself as former one": rewritten(first, later, EVIL, keys[1:], forgets=True),
        "the oldest master key with all that the attacker knows": rewritten(first, later, EVIL, keys, forgets=True),
        "the last former master key with a lineage": rewritten(second, later, EVIL, keys, forgets=True),
        "64 former master keys": rewritten(second, later, EVIL, keys * 32, forgets=True),
    }
    for what, data in forgeries.items():
        forged = scene.directory / "forged"
        forged.write_bytes(data)
        scene.authentic(forged)
        scene.place(forged)
        scene.refused(scene.owner, f"{what} is refused", pin=pin)
    slots = {
        # The slot wraps the old master key, which the commitment excludes.
        "a new master key with the owner's old slot":
            (REFUSED, [{"type": "raw", "bytes": first.header.slots[0].raw.hex()}]),
        "a new master key with the attacker's slot":
            (DENIED, [{"type": "key", "key": credential(guest).secret.hex()}]),
    }
    for what, (status, described) in slots.items():
        forged.write_bytes(rewritten(second, later, EVIL, keys, described, forgets=True))
        scene.place(forged)
        scene.refused(scene.owner, f"{what} is refused", status, (), pin)
    scene.place(genuine)
    scene.accepted(scene.owner, "the genuine vault is accepted after all of them", silent=True)


def genuine_lineage_at_an_older_change(scene):
    """Somebody who has the owner's key rekeys an older copy: its root must be above the change that was seen."""
    scene.made()
    former = opened(scene.vault, scene.key)
    for _ in range(10):
        scene.owner.store(GENUINE)
    pin = scene.owner.pin()
    keys = [f.subkey(former.master, f.KNOWN_VAULTS)]
    slots = [{"type": "key", "key": credential(scene.key).secret.hex()}]
    older = scene.directory / "older"
    older.write_bytes(rewritten(former, sequence_of(pin), EVIL, slots=slots))
    lineage = opened(older, scene.key).root.lineage
    scene.check("the lineage of the forgery is genuine", list(lineage) == keys)
    genuine = scene.copy("genuine")
    scene.authentic(older)
    scene.place(older)
    scene.refused(scene.owner, "a rekeyed file from before the change that was seen is refused", pin=pin)
    scene.place(genuine)
    newer = scene.directory / "newer"
    newer.write_bytes(rewritten(former, sequence_of(pin) + 1, EVIL, slots=slots))
    scene.place(newer)
    scene.refused(scene.owner, "and one at a later change that does not have the change that was seen", pin=pin)
    newer.write_bytes(rewritten(former, sequence_of(pin) + 3, b"rekeyed", slots=slots, forgets=True))
    scene.place(newer)
    scene.accepted(scene.owner, "one that says nothing of that change is accepted", b"rekeyed", silent=True)
    scene.refused(scene.owner, "but not under the pin of that change", commands=[], pin=pin)


def leaver_and_pins(scene):
    """Somebody whose key was removed goes on with an older copy, against pins from before and after the removal."""
    guest = with_guest(scene)
    former = scene.owner.pin()
    left = scene.copy("left")
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    scene.owner.store(GENUINE)
    genuine, pin = scene.copy("genuine"), scene.owner.pin()
    advance(left, guest, sequence_of(pin) + 50)
    before, after = scene.machine("before").pinned(former), scene.machine("after").pinned(pin)
    words = (b"another master key than the one that the pin names",)
    scene.refused(before, "the pin from before the removal refuses the vault after it", words=words)
    scene.accepted(after, "the pin from after the removal accepts it")
    scene.place(left)
    scene.refused(after, "the pin from after the removal refuses what the leaver made", words=words)
    after.forget()
    scene.refused(after, "and so it does where nothing was seen before", words=words)
    # Whoever has the former key makes what the former pin names.
    scene.accepted(before, "the pin from before the removal takes what the leaver made", EVIL)
    both = scene.machine("both").pinned(former, pin)
    scene.accepted(both, "and so do both pins together", EVIL)
    scene.place(genuine)
    both.forget()
    scene.accepted(both, "which accept the genuine vault as well")


ATTACKS = [
    removed_key, old_master_key, forged_lineage, genuine_lineage_at_an_older_change, leaver_and_pins,
]
