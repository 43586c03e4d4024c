"""Changes files in a private directory and reads them back. Part of `generate.py --check`."""

import copy
import os
import struct
import tempfile

import known_vaults as k
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_reader as r
from vector_outcome import shortened
from vector_bases import BASES, CI_KEY, NOW, OTHER_KEY, PASSPHRASE, item, key_slot, noise, put, remove, unknown_slot
from vector_expect import expected

KEY = r.Key(CI_KEY)
OTHER = r.Key(OTHER_KEY)
LAST = f.U64_LIMIT - 1


def read(path, credential=KEY):
    with open(path, "rb") as stream:
        return r.read_vault(stream.read(), credential)


def bytes_of(path):
    with open(path, "rb") as stream:
        return stream.read()


def created(path, name="created", /, **more):
    """A new vault at `path`, and its description."""
    description = copy.deepcopy(BASES[name][0]) | more
    c.write_new_file(path, d.NewFile(description).file)
    return description


def refused(outcome, action, path):
    """Whether the action is refused with this outcome and does not change the file."""
    before = bytes_of(path)
    try:
        action()
    except f.Refused as refusal:
        return refusal.outcome == outcome and bytes_of(path) == before
    return False


def failures():
    """Yields a line for each failure."""
    with tempfile.TemporaryDirectory() as folder:
        place = lambda name: os.path.join(folder, name)
        for name in ("small", "values", "identifiers", "metadata", "tail-only", "emptied", "versions"):
            yield from commits(place(name), name)
        yield from after_crash(place("crash"))
        yield from limits(place)
        yield from sizes(place)
        yield from rewrites(place("rewrite"))
        yield from purges(place("purge"))
        yield from lineages(place("lineage"), place("records/lineage"))
        yield from records(place)


def commits(path, name):
    """Commits each transaction of a description to a vault without a tail."""
    description = created(path, name, tail=[], uncopied=0) | {"tail": BASES[name][0]["tail"]}
    for number, transaction in enumerate(description["tail"], start=1):
        checkpoint = c.commit(path, KEY, transaction)
        vault = read(path)
        if vault.recovered or vault.checkpoint != checkpoint or vault.states[0] != vault.states[1]:
            yield f"commit {number} of {name} is not in both slots"
        if shortened(vault, NOW) != expected(description, number, NOW):
            yield f"commit {number} of {name} does not read back"
    if os.stat(path).st_mode & 0o777 != 0o600:
        yield f"{name} is not private"


def after_crash(path):
    """A commit to a file with a torn slot and bytes after the end replaces the slot and truncates the file."""
    made = d.NewFile(copy.deepcopy(BASES["uncopied"][0]))
    file = bytearray(made.file) + bytes(1000)
    file[made.parts["commit slot 1"][0]] ^= 1
    c.write_new_file(path, bytes(file))
    if not read(path).recovered:
        yield "a torn slot is not reported"
    c.commit(path, r.Passphrase(PASSPHRASE.encode()), [put("after", "the crash")], copy=False)
    vault = read(path)
    if vault.recovered or vault.current != 1 or vault.state.sequence != made.sequence:
        yield "a commit after a crash does not take the torn slot's place"
    if os.path.getsize(path) != vault.state.end:
        yield "a commit does not cut off what was after the end"
    if not any(entry.record.account == "after" for entry in vault.secrets()):
        yield "a commit after a crash does not read back"
    c.commit(path, KEY, [put("again", "1")], copy=False)
    if read(path).current != 0:
        yield "a commit over an uncopied one does not write the older slot"


def limits(place):
    """At a limit, and without a right to write, nothing is changed."""
    one, two = [put("one", "1")], [put("one", "1"), put("two", "2")]
    path = place("read-only")
    created(path, read_only_compatible=4)
    if not refused(f.READ_ONLY, lambda: c.commit(path, KEY, one), path):
        yield "a vault with an unknown read-only-compatible bit is written"
    if not refused(f.READ_ONLY, lambda: c.rewrite(path, KEY, {}), path):
        yield "a vault with an unknown read-only-compatible bit is rewritten"
    last = place("last")
    created(last, base={"items": [], "sequence": LAST})
    for what, action in {
        "commit": lambda: c.commit(last, KEY, one),
        "rewrite": lambda: c.rewrite(last, KEY, {}),
        "rekey": lambda: c.rewrite(last, KEY, {"slots": [key_slot()]}),
    }.items():
        if not refused(f.LIMIT_REACHED, action, last):
            yield f"a {what} at the last sequence is not refused"
    before_last = place("before last")
    created(before_last, base={"items": [], "sequence": LAST - 1})
    if not refused(f.LIMIT_REACHED, lambda: c.commit(before_last, KEY, two), before_last):
        yield "two changes at the last sequence but one are not refused"
    c.commit(before_last, KEY, one)
    if read(before_last).state.sequence != LAST:
        yield "the last change is not made"
    header = place("header")
    created(header, "largest-header")
    c.rewrite(header, KEY, {})
    slots = {"slots": [key_slot(label="l" * 64, key=bytes([n]) * 32) for n in range(17)]}
    if not refused(f.TAMPERED, lambda: c.rewrite(header, KEY, slots), header):
        yield "seventeen key slots are put in place"
    # Nothing is derived for a slot whose bytes are given.
    costly = [passphrase_bytes(524_288), passphrase_bytes(1)]
    for count, outcome in ((1, None), (2, f.LIMIT_REACHED)):
        slots = {"slots": [key_slot()] + costly[:count]}
        if outcome and not refused(outcome, lambda: c.rewrite(header, KEY, slots), header):
            yield "passphrase slots above the limit of work are put in place"
        elif not outcome:
            c.rewrite(header, KEY, slots)


def passphrase_bytes(passes):
    """A passphrase slot of 8 KiB that no passphrase opens."""
    body = noise(16, f"slot of {passes}") + bytes(8) + b"\0" + struct.pack("<II", passes, 8) + bytes(16 + 32 + 72)
    return unknown_slot(f.PASSPHRASE_SLOT, 1, body)


def sizes(place):
    """The largest numbers of records that are read, and one more."""
    for count, good in ((1000, True), (1001, False)):
        records = [one for n in range(count) for one in (item("a", str(n)), remove("a"))]
        description = {"items": records + ([item("a", "last")] if good else []), "items_per_block": 500}
        path = place(f"records of one name: {count}")
        try:
            created(path, base=description, history={"versions": 1000, "days": 0}, unchecked=True)
            if len(read(path).entries.popitem()[1]) != 2 * count + 1 or not good:
                yield "too many records of one name are read"
        except f.Refused as refusal:
            if good or refusal.outcome != f.TAMPERED:
                yield f"the most records of one name: {refusal.reason}"
    for longer in (False, True):
        long = {f"{n:02}".ljust(128, "n"): "v" * 1024 for n in range(32)}
        one = put("a", "1", attributes=long)
        path = place(f"tail {longer}")
        made = d.NewFile(copy.deepcopy(BASES["created"][0]) | {"tail": [[one]]})
        frame = made.parts["frame 0"][1] - 72
        count = f.MAXIMUM_TAIL // frame + longer
        try:
            created(path, tail=[[one] * count], unchecked=True)
            if len(read(path).frames) != count or longer:
                yield "a tail that is too long is read"
        except f.Refused as refusal:
            if not longer or refusal.outcome != f.TAMPERED:
                yield f"the longest tail: {refusal.reason}"


def rewrites(path):
    """Rewrites keep what counts, copy sealed values under the same master key, and keep the lineage."""
    description = created(path, "versions", lineage=["11" * 32, "22" * 32])
    before = read(path)
    c.rewrite(path, KEY, {"now": NOW})
    vault = read(path)
    total = sum(map(len, description["tail"]))
    if shortened(vault, NOW) != expected(description, len(description["tail"]), NOW):
        yield "a rewrite changes what the vault holds"
    if vault.state.sequence != before.state.sequence + 1 or vault.frames or not total:
        yield "a rewrite does not count as one change"
    sealed = {entry.sealed_value for entries in before.entries.values() for entry in entries}
    if any(entry.sealed_value not in sealed for entries in vault.entries.values() for entry in entries):
        yield "a rewrite does not copy sealed values"
    if dict(before.root.fields)[2] != dict(vault.root.fields)[2]:
        yield "a rewrite does not copy the lineage"
    c.rewrite(path, KEY, {"now": NOW, "history": {"versions": 0, "days": 0}})
    vault = read(path)
    if vault.versions(NOW) or vault.removed(NOW) or any(len(entries) > 1 for entries in vault.entries.values()):
        yield "a rewrite without history keeps earlier versions"
    changes = [put("first", "1"), put("second", "2"), remove("first")]
    checkpoint = c.rewrite(path, KEY, {"now": NOW, "changes": changes})
    if not checkpoint.startswith(f"{vault.state.sequence + 4}-"):
        yield "a rewrite with three changes does not count four"


def purges(path):
    """A purge leaves nothing of a name but its value, and other names as they were."""
    created(path, "small")
    before = read(path)
    names = [{"service": "com.example.app", "account": account} for account in ("smtp", "old")]
    c.rewrite(path, KEY, {"now": NOW, "purge": names})
    vault = read(path)
    left = {entry.record.account for entries in vault.entries.values() for entry in entries}
    if "old" in left or "smtp" not in left or vault.versions(NOW):
        yield "a purge keeps a version or a removal"
    if len(vault.secrets()) != len(before.secrets()):
        yield "a purge removes a value"


def lineages(path, record_path):
    """Rekeying adds to the lineage, at most 64, and records follow through it."""
    created(path, "small", tail=[])
    place = k.absolute(path)
    k.remember(record_path, place, read(path))
    former, old_file = [], None
    for number in range(66):
        vault = read(path)
        former.insert(0, f.subkey(vault.master, f.KNOWN_VAULTS))
        c.rewrite(path, KEY, {"now": NOW, "slots": [key_slot()]})
        vault = read(path)
        if vault.root.lineage != tuple(former[:64]):
            yield f"the lineage is wrong after {number + 1} rekeys"
        if number == 1:
            old_file = bytes_of(path)
        if number < 64:
            k.judge(k.read_record(record_path, place)[1], vault)
    if len(vault.secrets()) != 4 or vault.header.vault_id != read_bytes(old_file).header.vault_id:
        yield "rekeying loses something"
    try:
        k.judge(k.read_record(record_path, place)[1], vault)
        yield "a record from before 65 rekeys is accepted"
    except f.Refused as refusal:
        if refusal.outcome != f.ANOTHER_KEY:
            yield "a record from before 65 rekeys is refused for another reason"
    k.remember(record_path, place, vault, k.STRICT)
    try:
        k.judge(k.read_record(record_path, place)[1], read_bytes(old_file))
        yield "an older master key is accepted"
    except f.Refused as refusal:
        if refusal.outcome != f.ANOTHER_KEY:
            yield "an older master key is refused for another reason"


def read_bytes(file, credential=KEY):
    return r.read_vault(file, credential)


def records(place):
    """Records on disk: raised in place, exchanged, refused when they are not private."""
    path, record_path = place("known"), place("records/known")
    created(path)
    k.remember(record_path, k.absolute(path), read(path))
    written = []
    for number in range(70):
        c.commit(path, KEY, [put("one", str(number))])
        written.append(k.remember(record_path, k.absolute(path), read(path)))
    # The slot written first stays the active one until it is 64 ahead.
    if written != ["B"] * 64 + ["A"] * 6:
        yield f"slots are written in the order {''.join(map(str, written))}"
    if k.remember(record_path, k.absolute(path), read(path)) is not None:
        yield "a record is written although nothing has changed"
    os.link(record_path, record_path + "2")
    with open(record_path, "rb") as file:
        before = file.read()
    c.commit(path, KEY, [put("one", "last")])
    if k.remember(record_path, k.absolute(path), read(path)) != "anew":
        yield "a record with a second link is overwritten"
    with open(record_path + "2", "rb") as file:
        if file.read() != before:
            yield "the second link of a record is changed"
    for what, spoil in {
        "that others may read": lambda: os.chmod(record_path, 0o644),
        "that is a link": lambda: (
            os.chmod(record_path, 0o600),
            os.rename(record_path, record_path + "3"),
            os.symlink("known3", record_path),
        ),
    }.items():
        spoil()
        try:
            k.read_record(record_path, k.absolute(path))
            yield f"a record {what} is taken"
        except f.Refused as refusal:
            if refusal.outcome != f.UNVERIFIABLE_RECORD:
                yield f"a record {what} is refused for another reason"
    os.mkdir(place("sub"))
    os.symlink("known", place("link"))
    named = os.fsencode(place("sub") + "/../link")
    here = os.path.realpath(os.path.dirname(named))
    if k.places(named) != [k.absolute(named), here + b"/link", here + b"/known"]:
        yield "the places of a vault are not what they must be"
    os.symlink("nowhere", place("dangling"))
    try:
        k.read_record(place("dangling/sub/known"), k.absolute(path))
        yield "a link that leads nowhere is taken for no directory of records"
    except f.Refused as refusal:
        if refusal.outcome != f.UNVERIFIABLE_RECORD:
            yield "a link that leads nowhere is refused for another reason"
    if k.absolute("//a//./b/../c") != b"/a/b/../c" or k.absolute("x") != os.getcwdb().rstrip(b"/") + b"/x":
        yield "a place is not made absolute as it must be"
