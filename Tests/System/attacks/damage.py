"""Damaged commit slots, and damaged records of what was seen."""

import os
import random

from scene import EVIL, FRESH, GENUINE, TOKEN, Watch, c, credential, f, k, opened, put, shown

# The regions of a commit slot, as offset and length: the nonce, each field of the state, and the tag.
SLOT_REGIONS = {
    "nonce": (0, 24), "sequence": (24, 8), "end": (32, 8), "tail tag": (40, 16), "base end": (56, 8),
    "root length": (64, 4), "reserved": (68, 4), "root tag": (72, 16), "reserved rest": (88, 3992), "tag": (4080, 16),
}
RECOVERED = b"commit slot"
FEW = [(("get", TOKEN), b""), (("set", "--verbatim", TOKEN), FRESH), (("verify",), b"")]


def flip(path, offset, bit):
    with open(path, "r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)[0]
        stream.seek(offset)
        stream.write(bytes([byte ^ 1 << bit]))


def one_flipped_bit(scene):
    """One bit of one commit slot is flipped, where nothing was seen before: the last change is still there."""
    choices = random.Random(10)
    scene.made()
    scene.owner.store(EVIL)
    scene.owner.store(GENUINE)
    genuine = scene.copy("genuine")
    start = len(opened(genuine, scene.key).header.raw)
    reader = scene.machine("ci")
    for slot in range(2):
        for region, (offset, length) in SLOT_REGIONS.items():
            wrong = []
            for at in sorted({0, length - 1, choices.randrange(length)}):
                bit = choices.randrange(8)
                scene.place(genuine)
                flip(scene.vault, start + slot * f.PAGE + offset + at, bit)
                for machine in (reader, scene.owner):
                    reader.forget()
                    results = [machine.run(*one) for one in (("get", TOKEN), ("list",), ("verify",))]
                    holds = results[0].stdout == GENUINE and b"recovered" in results[2].stdout
                    noted = all(RECOVERED in result.stderr for result in results[:2])
                    if not holds or not noted or any(result.returncode for result in results):
                        wrong.append(f"byte {at}, bit {bit}: " + "; ".join(map(shown, results)))
            what = f"a flipped bit in the {region} of slot {slot} loses nothing, and is said"
            scene.check(what, not wrong, wrong[:1])
    result = scene.owner.store(GENUINE)
    scene.check("a change says so too", RECOVERED in result.stderr, shown(result))
    scene.accepted(scene.owner, "and repairs the slot", silent=True)
    genuine = scene.copy("genuine")
    for first in SLOT_REGIONS:
        second = choices.choice(list(SLOT_REGIONS))
        scene.place(genuine)
        for slot, region in enumerate((first, second)):
            offset, length = SLOT_REGIONS[region]
            flip(scene.vault, start + slot * f.PAGE + offset + choices.randrange(length), choices.randrange(8))
        reader.forget()
        what = f"with both slots damaged, in {first} and {second}, the vault is refused as tampered"
        scene.refused(reader, what, words=(b"tampered",), commands=FEW)


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


def older_bytes_in_both_slots(scene):
    """Both commit slots are given the bytes that they had before the last change; the rest of the file is as it is."""
    scene.made()
    scene.owner.store(EVIL)
    start = len(opened(scene.vault, scene.key).header.raw)
    before = scene.vault.read_bytes()[start : start + 2 * f.PAGE]
    scene.owner.store(GENUINE)
    pin, genuine = scene.owner.pin(), scene.copy("genuine")
    watch = Watch(scene.owner)
    with open(scene.vault, "r+b") as stream:
        stream.seek(start)
        stream.write(before)
    scene.authentic(scene.vault)
    scene.check("a running watch refuses them", watch.refuses(), f"{watch.printed} {watch.said}")
    watch.stop()
    scene.refused(scene.owner, "every command refuses them", pin=pin)
    scene.overwrite(genuine)
    scene.accepted(scene.owner, "the genuine bytes are accepted", silent=True)


def damaged_record(scene):
    """The record of what was seen is damaged or exchanged: it is never passed over."""
    scene.made()
    scene.owner.store(GENUINE)
    record = scene.owner.record(os.fsencode(scene.vault))
    good = record.read_bytes()
    half = k.SLOT.size
    elsewhere = scene.directory / "elsewhere"

    def written(data):
        record.unlink(missing_ok=True)
        record.write_bytes(data)
        record.chmod(0o600)

    def resealed(change):
        """Both slots changed under a right hash, as somebody can who does not know the key."""
        slot = bytearray(good[:half])
        change(slot)
        slot[496:] = f.blake2b(128, bytes(slot[:496]))
        return bytes(slot) * 2 + good[2 * half :]

    def flipped(*offsets):
        data = bytearray(good)
        for offset in offsets:
            data[offset] ^= 1 << choices.randrange(8)
        return bytes(data)

    def set_byte(offset, byte):
        return lambda slot: slot.__setitem__(offset, byte)

    choices = random.Random(11)
    cases = {
        "81 bytes": good[:81], "no byte": b"", "one byte less": good[:-1], "one byte more": good + b"\0",
        "zeros": bytes(len(good)), "another path": flipped(len(good) - 1),
        "another policy": resealed(set_byte(8, 1)), "another sequence": resealed(set_byte(64, 0)),
        "another tail tag": resealed(set_byte(72, good[72] ^ 1)), "another MAC": resealed(set_byte(88, good[88] ^ 1)),
        "another commitment": resealed(set_byte(32, good[32] ^ 1)),
    }
    fields = {"magic": (0, 8), "policy": (8, 1), "vault id": (16, 16), "commitment": (32, 32), "sequence": (64, 8),
              "tail tag": (72, 16), "MAC": (88, 32), "reserved": (120, 376), "hash": (496, 16)}
    for name, (offset, length) in fields.items():
        at = offset + choices.randrange(length)
        cases[f"a flipped bit in the {name} of both slots"] = flipped(at, half + at)
    for what, data in cases.items():
        written(data)
        scene.refused(scene.owner, f"a record with {what} is refused", commands=FEW)
    for name, (offset, length) in fields.items():
        for slot in range(2):
            written(flipped(slot * half + offset + choices.randrange(length)))
            result = scene.owner.run("get", TOKEN)
            said = result.stdout == GENUINE and b"was damaged" in result.stderr and result.returncode == 0
            scene.check(f"a flipped bit in the {name} of slot {slot} of a record is said", said, shown(result))
            scene.accepted(scene.owner, "and repaired", silent=True)
    written(good)
    older = scene.copy("older")

    def cleared():
        for path in (record, elsewhere):
            if path.is_dir():
                path.rmdir()
            path.unlink(missing_ok=True)

    def a_link():
        elsewhere.write_bytes(good)
        elsewhere.chmod(0o600)
        record.symlink_to(elsewhere)

    def a_link_to_nothing():
        record.symlink_to(elsewhere)

    def an_exposed_file():
        written(good)
        record.chmod(0o644)

    def a_pipe():
        os.mkfifo(record, 0o600)

    for way in (a_link, a_link_to_nothing, an_exposed_file, a_pipe):
        name = way.__name__.replace("_", " ")
        cleared()
        way()
        scene.refused(scene.owner, f"{name} in the place of the record is refused")
        kept = elsewhere.exists() and elsewhere.read_bytes()
        result = scene.owner.trust()
        holds = result.returncode == 0 and (elsewhere.exists() and elsewhere.read_bytes()) == kept
        scene.check("secret trust makes the record anew and writes through no link", holds, shown(result))
        scene.accepted(scene.owner, "after which the vault works", silent=True)
        scene.owner.store(GENUINE)
        newest = scene.copy("newest")
        scene.place(older)
        scene.refused(scene.owner, "and an older copy is refused again")
        scene.place(newest)
    cleared()
    scene.owner.trust()
    os.link(record, elsewhere)
    kept = elsewhere.read_bytes()
    scene.owner.store(GENUINE)
    newest = scene.copy("newest")
    scene.check("the second name of a record keeps what it had", elsewhere.read_bytes() == kept, "it was changed")
    scene.place(older)
    scene.refused(scene.owner, "and an older copy is refused after that")
    scene.place(newest)
    cleared()
    record.mkdir()
    scene.refused(scene.owner, "a directory in the place of the record is refused")
    record.rmdir()
    scene.owner.trust()
    folder = record.parent
    folder.chmod(0o770)
    scene.refused(scene.owner, "a directory of records that others may write to is refused",
                  words=(b"XDG_STATE_HOME",))
    folder.chmod(0o700)
    scene.accepted(scene.owner, "and accepted when it is closed", silent=True)


ATTACKS = [one_flipped_bit, only_an_older_slot, older_bytes_in_both_slots, damaged_record]
