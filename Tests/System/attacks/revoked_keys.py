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


ATTACKS = [removed_key, forged_lineage]
