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


def attempts(scene, forgery, genuine, checkpoint, machines):
    """Puts the forgery in place in three ways. Every machine and a running process refuse it."""
    scene.authentic(forgery)
    for way in (scene.place, scene.overwrite):
        for name, machine in machines.items():
            scene.place(genuine)
            watch = Watch(machine)
            way(forgery)
            refused, detail = watch.refuses(), f"{watch.printed} {watch.said}"
            scene.check(f"{name}: a running watch refuses what {way.__name__} put there", refused, detail)
            scene.refused(machine, f"{name}: every command refuses it after {way.__name__}", checkpoint=checkpoint)
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
    checkpoint = scene.owner.checkpoint()
    genuine = scene.copy("genuine")
    advance(old, guest, sequence_of(checkpoint) + 50)
    attempts(scene, old, genuine, checkpoint, {"owner": scene.owner, "second machine": second})
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
    checkpoint = scene.owner.checkpoint()
    # The owner's key stands for the master key that it opens.
    advance(old, scene.key, sequence_of(checkpoint) + 50)
    attempts(scene, old, genuine, checkpoint, {"owner": scene.owner, "witness": witness})


def forged_lineage(scene):
    """The holder of older master keys claims that theirs succeeds the present one."""
    guest = with_guest(scene)
    first = opened(scene.vault, guest)
    scene.owner.done("key", "remove", guest_slot(scene.owner))
    second = opened(scene.vault, scene.key)
    scene.owner.done("rekey")
    scene.owner.store(GENUINE)
    checkpoint = scene.owner.checkpoint()
    genuine = scene.copy("genuine")
    later = sequence_of(checkpoint) + 50
    keys = [f.subkey(vault.master, f.KNOWN_VAULTS) for vault in (second, first)]
    forgeries = {
        "the oldest master key with itself as former one": rewritten(first, later, EVIL, keys[1:]),
        "the oldest master key with all that the attacker knows": rewritten(first, later, EVIL, keys),
        "the last former master key with a lineage": rewritten(second, later, EVIL, keys),
        "64 former master keys": rewritten(second, later, EVIL, keys * 32),
    }
    for what, data in forgeries.items():
        forged = scene.directory / "forged"
        forged.write_bytes(data)
        scene.authentic(forged)
        scene.place(forged)
        scene.refused(scene.owner, f"{what} is refused", checkpoint=checkpoint)
    slots = {
        # The slot wraps the old master key, which the commitment excludes.
        "a new master key with the owner's old slot":
            (REFUSED, [{"type": "raw", "bytes": first.header.slots[0].raw.hex()}]),
        "a new master key with the attacker's slot":
            (DENIED, [{"type": "key", "key": credential(guest).secret.hex()}]),
    }
    for what, (status, described) in slots.items():
        forged.write_bytes(rewritten(second, later, EVIL, keys, described))
        scene.place(forged)
        scene.refused(scene.owner, f"{what} is refused", status, (), checkpoint)
    scene.place(genuine)
    scene.accepted(scene.owner, "the genuine vault is accepted after all of them", silent=True)


def genuine_lineage_at_an_older_change(scene):
    """Somebody who has the owner's key rekeys an older copy: its root must be above the change that was seen."""
    scene.made()
    former = opened(scene.vault, scene.key)
    for _ in range(10):
        scene.owner.store(GENUINE)
    checkpoint = scene.owner.checkpoint()
    keys = [f.subkey(former.master, f.KNOWN_VAULTS)]
    slots = [{"type": "key", "key": credential(scene.key).secret.hex()}]
    older = scene.directory / "older"
    older.write_bytes(rewritten(former, sequence_of(checkpoint), EVIL, slots=slots))
    lineage = opened(older, scene.key).root.lineage
    scene.check("the lineage of the forgery is genuine", list(lineage) == keys)
    genuine = scene.copy("genuine")
    scene.authentic(older)
    scene.place(older)
    scene.refused(scene.owner, "a rekeyed file from before the change that was seen is refused", checkpoint=checkpoint)
    scene.place(genuine)
    newer = scene.directory / "newer"
    newer.write_bytes(rewritten(former, sequence_of(checkpoint) + 1, b"rekeyed", slots=slots))
    scene.place(newer)
    scene.accepted(scene.owner, "the same at a later change is accepted", b"rekeyed", silent=True)


ATTACKS = [removed_key, old_master_key, forged_lineage, genuine_lineage_at_an_older_change]
