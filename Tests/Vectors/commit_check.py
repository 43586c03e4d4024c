"""Changes files in a private directory and reads them back. Part of `generate.py --check`."""

import copy
import os
import struct
import tempfile
from dataclasses import replace

import known_vaults as k
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_merging as m
import vault_pins as pins
import vault_reader as r
from vector_outcome import shortened
from vector_bases import (
    BASES,
    CI_KEY,
    IDENTITY,
    NOW,
    OTHER_KEY,
    PASSPHRASE,
    filled_slots,
    former,
    item,
    key_slot,
    noise,
    passphrase_slot,
    put,
    recipient_slot,
    remove,
    unknown_slot,
)
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
        for name in (
            "small",
            "values",
            "identifiers",
            "metadata",
            "tail-only",
            "emptied",
            "versions",
            "blocks",
            "recent",
        ):
            yield from commits(place(name), name)
        yield from after_crash(place("crash"))
        yield from limits(place)
        yield from sizes(place)
        yield from largest_root(place)
        yield from rewrites(place("rewrite"))
        yield from recent_changes(place)
        yield from kept_fields(place("conflict"))
        yield from unknown_fields(place("unknown fields"))
        yield from former_slots(place("former slots"))
        yield from purges(place("purge"))
        yield from leases(place)
        yield from lineages(place("lineage"), place("records/lineage"))
        yield from records(place)


def commits(path, name):
    """Commits each transaction of a description to a vault without a tail."""
    description = created(path, name, tail=[], uncopied=0) | {"tail": BASES[name][0]["tail"]}
    for number, transaction in enumerate(description["tail"], start=1):
        state = c.commit(path, KEY, transaction)
        vault = read(path)
        if vault.recovered or vault.state != state or vault.states[0] != vault.states[1]:
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
    slots = {"slots": [key_slot(label="l" * 64, key=bytes([n]) * 32) for n in range(241)]}
    if not refused(f.TAMPERED, lambda: c.rewrite(header, KEY, slots), header):
        yield "241 key slots are put in place"
    if not refused(
        f.LIMIT_REACHED, lambda: c.rewrite(header, KEY, {"slots": filled_slots(f.MAXIMUM_HEADER + 1)}), header
    ):
        yield "a header of more than 1 MiB is put in place"
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
    """The records of one name have no limit, and the tail has one."""
    records = [one for n in range(1500) for one in (item("a", str(n)), remove("a"))]
    path = place("records of one name")
    created(path, base={"items": records + [item("a", "last")]}, history={"versions": 1000, "days": 0})
    vault = read(path)
    if [len(entries) for entries in vault.entries.values()] != [3001] or len(vault.versions(NOW)) != 1000:
        yield "many records of one name are not read"
    for size in (f.MAXIMUM_VALUE, f.MAXIMUM_VALUE + 1):
        padded = f.pad(bytes(size))
        tamper = lambda part, value: padded if part == "frame 0 padded value" else value
        made = d.NewFile(copy.deepcopy(BASES["created"][0]) | {"tail": [[put("one", "1")]]}, tamper=tamper)
        try:
            if len(read_bytes(made.file).secrets()[0].value) != f.MAXIMUM_VALUE or size > f.MAXIMUM_VALUE:
                yield f"a value of {size} bytes is read"
        except f.Refused as refusal:
            if size == f.MAXIMUM_VALUE or refusal.outcome != f.TAMPERED:
                yield f"the largest value: {refusal.reason}"
    full = place("full tail")
    created(full, "longest-tail")
    for what, change in {"a put": put("b", "1"), "a remove": remove("a", "s")}.items():
        if not refused(f.LIMIT_REACHED, lambda: c.commit(full, KEY, [change]), full):
            yield f"{what} is committed to a full tail"
    c.rewrite(full, KEY, {"now": NOW})
    c.commit(full, KEY, [put("b", "1")])
    if len(read(full).secrets()) != 2:
        yield "a rewrite makes no room in the tail"


def with_root(longer):
    """A vault whose root is as long as a root can be, or longer by so many bytes."""
    items = [item("", "v") | {"account": f"{n:05}", "service": "s"} for n in range(17_600)]
    field = (1 << 20) - 72 - 4 - 56 * len(items) - 6 + longer
    more = {"root_fields": [[0x1000, "00" * field]], "base": {"items": items, "items_per_block": 1}}
    return copy.deepcopy(BASES["created"][0]) | more


def largest_root(place):
    """A root of exactly 1 MiB is read, and one of a byte more is not."""
    for longer in (0, 1):
        try:
            made = d.NewFile(with_root(longer))
            if made.steps[0].root_length != (1 << 20) + 40 + longer:
                yield f"the root has {made.steps[0].root_length} bytes"
            if len(read_bytes(made.file).secrets()) != 17_600 or longer:
                yield "a root of more than 1 MiB is read"
        except f.Refused as refusal:
            if not longer or refusal.outcome != f.TAMPERED:
                yield f"the largest root: {refusal.reason}"


def recent_changes(place):
    """Rewrites carry the recent changes, and drop the oldest above a number; records and pins follow them."""
    path, record_path = place("recent changes"), place("records/recent changes")
    created(path)
    seen, where = {}, k.absolute(path)

    def note():
        vault = read(path)
        seen[vault.state.sequence] = vault.state.tail_tag
        return vault

    vault = note()
    pinned = pins.pin_of(vault)
    k.remember(record_path, where, vault)
    floors = []
    for number in range(10):
        for commit in range(8):
            c.commit(path, KEY, [put("one", str(n)) for n in range(15)])
        vault = note()
        seen |= {frame.sequence: frame.tag for frame in vault.frames}
        if number == 4:
            k.remember(place("records/middle"), where, vault)
            middle = pins.pin_of(vault)
        c.rewrite(path, KEY, {"now": NOW})
        vault = note()
        floors.append(vault.root.floor)
        kept = {sequence: tag for sequence, tag in seen.items() if vault.root.floor <= sequence < vault.root.sequence}
        if dict(vault.recent) != kept or len(vault.recent) > c.KEPT_PAIRS:
            yield f"rewrite {number} has not the recent changes that it must have"
    if floors[7] != 1 or not 1 < floors[8] < floors[9] or len(vault.recent) != c.KEPT_PAIRS:
        yield f"the floors after rewrites are {floors}"
    if floors[9] != vault.root.sequence - c.KEPT_PAIRS or floors[9] >= middle.sequence:
        yield f"the floor is {floors[9]} under a root of {vault.root.sequence}"
    if pins.judge_pin(middle, vault) != pins.ACCEPTED or pins.judge_pin(pinned, vault) != pins.UNVERIFIABLE_PIN:
        yield "a pin is not judged by the recent changes"
    for name, what in ((place("records/middle"), "among the recent changes"), (record_path, "below the floor")):
        if k.judge(k.read_record(name, where)[1], vault) != k.ACCEPTED:
            yield f"a record {what} is not accepted"
    file = bytes_of(path)
    key, recent = vault.root.lookup_key, [*vault.recent, (vault.root.sequence, vault.state.root_tag)]
    c.rewrite(path, KEY, {"now": NOW, "slots": [key_slot()]})
    after = read(path)
    if after.root.lookup_key != key or list(after.recent) != recent[-c.KEPT_PAIRS :] or after.master == vault.master:
        yield "a rekey loses the lookup key or the recent changes"
    if set(after.entries) != set(vault.entries):
        yield "a rekey changes a lookup id"
    if k.judge(k.read_record(place("records/middle"), where)[1], after) != k.ACCEPTED:
        yield "a record of the former master key is not accepted"
    forked = place("fork")
    c.write_new_file(forked, file)
    c.commit(forked, KEY, [put("one", "fork")])
    fork = pins.pin_of(read(forked))
    c.write_new_file(place("other"), file)
    c.commit(place("other"), KEY, [put("one", "other")])
    c.rewrite(place("other"), KEY, {"now": NOW})
    try:
        pins.judge_pin(fork, read(place("other")))
        yield "another history in the recent changes is accepted"
    except f.Refused as refusal:
        if refusal.outcome != f.ROLLED_BACK:
            yield "another history in the recent changes is refused for another reason"
    yield from merged_pairs(after)
    yield from advanced(place, file)


def advanced(place, file):
    """A machine saw a change that is lost. It refuses what is left, and accepts it when it was advanced."""
    lost, back, record = place("lost"), place("back"), place("records/lost")
    where = k.absolute(lost)
    for path in (lost, back):
        c.write_new_file(path, file)
    c.commit(lost, KEY, [put("one", "lost")])
    k.remember(record, where, read(lost))
    seen = k.read_record(record, where)[1]
    try:
        k.judge(seen, read(back))
        yield "a vault that lost a change is accepted"
    except f.Refused:
        pass
    before = read(back)
    c.rewrite(back, KEY, {"now": NOW, "advance": True})
    after = read(back)
    if k.judge(seen, after) != k.ACCEPTED or values(before) != values(after):
        yield "an advanced vault is refused, or has other values"
    if after.root.sequence != before.state.sequence + 1 + c.ADVANCE or after.root.floor != after.root.sequence:
        yield f"an advanced vault has sequence {after.root.sequence} and floor {after.root.floor}"


def merged_pairs(vault):
    """Of two changes of one sequence a rewrite keeps both, or none."""
    tags = bytes(16), b"\1" * 16
    both = tuple((sequence, one) for sequence in range(100, 100 + 600) for one in tags)
    for count in (1022, 1023, 1024, 1025):
        root = replace(vault.root, sequence=1000, floor=50)
        pairs, floor = c.recent_changes(replace(vault, root=root, recent=both[-count:], frames=()))
        kept = {pair for pair in (*both[-count:], (1000, vault.state.root_tag)) if pair[0] >= floor}
        if set(pairs) != kept or len(pairs) > c.KEPT_PAIRS or sorted(pairs) != pairs or not floor <= pairs[0][0]:
            yield f"of {count} pairs of merges {len(pairs)} are kept above {floor}"
        if (floor == 50) != (count < c.KEPT_PAIRS):
            yield f"the floor above {count} pairs of merges is {floor}"


def kept_fields(path):
    """A rewrite keeps what lost to the present value, and forgets what a change forgot."""
    created(path, history={"versions": 1, "days": 0})
    c.commit(path, KEY, [put("one", "a"), put("one", "b"), put("one", "c"), put("two", "x")])
    c.rewrite(path, KEY, {"now": NOW, "changes": [put("two", "y", keeps_nothing=True)]})
    if values(read(path)) != {"one": ["b", "c"], "two": ["y"]}:
        yield f"a rewrite keeps {values(read(path))}"
    # What is not told otherwise goes on as the newest put is, also in one transaction, and until a removal.
    changes = [
        ("marked", [put("two", "1", keeps_nothing=True), put("two", "2"), put("two", "3")], []),
        ("after a mark", [put("two", "4")], []),
        ("told to keep", [put("two", "5", keeps_nothing=False), put("two", "6")], ["5"]),
        ("removed", [put("two", "7", keeps_nothing=True), remove("two"), put("two", "8"), put("two", "9")], ["8"]),
        ("as at first", [put("two", "y", keeps_nothing=True)], []),
    ]
    for write in (lambda some: c.commit(path, KEY, some), lambda some: c.rewrite(path, KEY, {"now": NOW, "changes": some})):
        for what, some, kept in changes:
            write(some)
            versions = [one.entry for one in read(path).versions(NOW)]
            found = [one.value.decode() for one in versions if one.record.account == "two"]
            if found != kept:
                yield f"a change that is {what} keeps {found}"
    # The put that loses is older than the one that it names: only a merge writes it, so it is put in place here.
    tail = [[put("one", "1", conflict=3), put("one", "2")]]
    path += " of a merge"
    created(path, tail=tail)
    for number in range(2):
        c.rewrite(path, KEY, {"now": NOW})
        if values(read(path)) != {"one": ["1", "2"]} or len(read(path).versions(NOW)) != 1:
            yield "a rewrite loses what lost to the present value"
    c.rewrite(path, KEY, {"now": NOW, "slots": [key_slot(), recipient_slot()]})
    vault = read(path, r.Identity(IDENTITY))
    if values(vault) != {"one": ["1", "2"]} or len(vault.versions(NOW)) != 1:
        yield "a rekey loses what lost to the present value"
    c.rewrite(path, r.Identity(IDENTITY), {"now": NOW, "purge": [{"service": "com.example.app", "account": "one"}]})
    if values(read(path)) != {"one": ["2"]}:
        yield "a purge keeps what lost to the present value"


def unknown_fields(path):
    """What becomes of unknown fields, by the bits of their types."""
    fields = [[0x1001, "01"], [0x2002, "02"], [0x4003, "03"], [0x6004, "04"]]
    created(path, tail=[[put("one", "1", fields=fields)]], root_fields=fields)
    types = lambda entry: [kind for kind, _ in entry.record.fields]
    for write, kept in (
        (lambda: c.commit(path, KEY, [put("one", "2")]), [0x2002, 0x6004]),
        (lambda: c.rewrite(path, KEY, {"now": NOW, "changes": [put("one", "3")]}), [0x2002]),
        (lambda: c.commit(path, KEY, [put("one", "4", fields=fields)]), [0x1001, 0x2002, 0x4003, 0x6004]),
        (lambda: c.rewrite(path, KEY, {"now": NOW}), [0x1001, 0x2002]),
        (lambda: c.commit(path, KEY, [remove("one"), put("one", "5")]), []),
    ):
        write()
        if types(read(path).secrets()[0]) != kept:
            yield f"a secret has the fields {types(read(path).secrets()[0])}, not {kept}"
    if [kind for kind, _ in read(path).root.fields] != [0x1001, 0x2002]:
        yield f"a rewritten root has the fields {read(path).root.fields}"


def former_slots(path):
    """A removed key slot is listed, as a trace until the master key changes."""
    description = created(path, "former-slots", slots=[key_slot(), passphrase_slot(), recipient_slot()])
    before = read(path)
    listed = before.root.former
    c.rewrite(path, KEY, {"now": NOW})
    if read(path).root.former != listed:
        yield "a rewrite does not copy the former key slots"
    gone = before.header.slots[1]
    c.rewrite(path, KEY, {"now": NOW, "remove_slots": [gone.id.hex()]})
    last = read(path).root.former[-1]
    sequence = read(path).root.sequence
    if (last.slot_id, last.type, last.is_trace, last.recipient) != (gone.id, 1, 1, bytes(32)):
        yield f"a removed passphrase is listed as {last}"
    if (last.created, last.sequence, last.time, last.label) != (gone.created, sequence, NOW, gone.label):
        yield f"a removed passphrase is listed as {last}"
    traces = [former("", 1, f.PASSPHRASE_SLOT, is_trace=1) for _ in range(256)]
    full = path + " full"
    c.write_new_file(full, d.NewFile(description | {"former_slots": traces}).file)
    if not refused(f.LIMIT_REACHED, lambda: c.rewrite(full, KEY, {"now": NOW, "remove_slots": [gone.id.hex()]}), full):
        yield "a trace is forgotten"
    c.rewrite(full, KEY, {"now": NOW, "slots": [key_slot()]})
    found = read(full).root.former
    names = [slot.recipient[:32].ljust(32, b"\0") for slot in before.header.slots]
    if [one.recipient for one in found[-3:]] != names or len(found) != 256 or any(one.is_trace for one in found):
        yield "a rekey does not list the slots that it removes"


def values(vault):
    """All values of each account, the present one last."""
    found = {}
    for entries in vault.entries.values():
        for entry in entries:
            found.setdefault(entry.record.account, []).append(entry.value.decode())
    return found


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
    if before.root.lookup_key != vault.root.lookup_key:
        yield "a rewrite does not copy the lookup key"
    c.rewrite(path, KEY, {"now": NOW, "history": {"versions": 0, "days": 0}})
    vault = read(path)
    if vault.versions(NOW) or vault.removed(NOW) or any(len(entries) > 1 for entries in vault.entries.values()):
        yield "a rewrite without history keeps earlier versions"
    changes = [put("first", "1"), put("second", "2"), remove("first")]
    state = c.rewrite(path, KEY, {"now": NOW, "changes": changes})
    if state.sequence != vault.state.sequence + 4:
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


def leases(place):
    """Commits leave the leases as they are. Rewrites, rekeys and merges keep those of ours."""
    path, other = place("leases"), place("other leases")
    described = lambda number: [{"lookup_id": f"{number:032x}", "taking": "11" * 16, "end": number}]
    created(path, "small", leases={"counter": 5, "held": described(1)})
    created(other, "small", leases={"counter": 9, "held": described(2)})
    page = read(path).leases
    for counter, action in (
        (5, lambda: c.commit(path, KEY, [put("one", "1")])),
        (6, lambda: c.rewrite(path, KEY, {"now": NOW})),
        (7, lambda: m.merge(path, other, KEY, now=NOW)),
        (8, lambda: c.rewrite(path, KEY, {"now": NOW, "slots": [key_slot()]})),
    ):
        action()
        if read(path).leases != replace(page, counter=counter):
            yield f"the leases are wrong at counter {counter}"
    created(place("last lease"), leases={"counter": LAST, "held": []})
    if not refused(f.LIMIT_REACHED, lambda: c.rewrite(place("last lease"), KEY, {"now": NOW}), place("last lease")):
        yield "a rewrite passes the last counter of leases"


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
