"""Changes to vaults on disk: creation, commits, and rewrites with or without a new master key."""

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import replace

import vault_described as d
import vault_format as f
import vault_history as h
import vault_merging as m
import vault_reader as r
import vault_records as p
import vault_writer as w
from vault_format import require


KEPT_PAIRS = 1024
ADVANCE = 1 << 20


def write_new_file(path, data):
    """Writes the vault to a temporary file and links it to `path`, which must not exist."""
    temporary = write_temporary(path, data, lock=False)
    try:
        os.link(temporary, path)
    finally:
        os.unlink(temporary)
    sync_directory(path)


def replace_file(path, data):
    """Writes the file under a temporary name, locks it and renames it over `path`."""
    os.rename(write_temporary(path, data, lock=True), path)
    sync_directory(path)


def write_temporary(path, data, lock):
    directory = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(directory, f".{os.path.basename(path)}.{os.urandom(16).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        if lock:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.fchmod(descriptor, 0o600)
        write_at(descriptor, 0, data)
        os.fsync(descriptor)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    return temporary


def sync_directory(path):
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY | os.O_DIRECTORY)
    os.fsync(folder)
    os.close(folder)


def write_at(descriptor, offset, data):
    while data:
        written = os.pwrite(descriptor, data, offset)
        offset, data = offset + written, data[written:]


@contextmanager
def locked(path, timeout=30, flags=0):
    """Yields a descriptor of the file at `path` with an exclusive lock. Waits at most `timeout` seconds for the lock."""
    descriptor = lock(path, time.monotonic() + timeout, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def lock(path, deadline, flags):
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise TimeoutError(f"{path} stayed locked") from None
            time.sleep(0.02)
            continue
        ours, named = os.fstat(descriptor), os.stat(path)
        if (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino):
            return descriptor
        os.close(descriptor)


def read_whole(descriptor):
    with os.fdopen(os.dup(descriptor), "rb") as stream:
        return stream.read()


def opened_for_writing(descriptor, credential):
    """The file's bytes and the vault that they are."""
    file = read_whole(descriptor)
    vault = r.read_vault(file, credential)
    bits = vault.header.read_only_compatible
    require(bits == 0, f"the read-only-compatible bits are {bits:#x}", outcome=f.READ_ONLY)
    return file, vault


def check_room(sequence, end=0):
    require(max(sequence, end) < f.U64_LIMIT, "the vault is at the limit of its numbers", outcome=f.LIMIT_REACHED)


def commit(path, credential, changes, random=w.system_random, copy=True):
    """Makes all changes or none. Returns the new state.

    Without `copy`, the file is left as a power loss after the second barrier leaves it.
    """
    with locked(path) as descriptor:
        file, vault = opened_for_writing(descriptor, credential)
        if not changes:
            return vault.state
        frames, after = encoded_changes(vault, changes, random)
        check_room(after.sequence, after.end)
        image = bytearray(file[: vault.state.end] + frames)
        first = 1 - vault.current  # the invalid slot if one is, and slot 1 if both hold the same state
        slots = {index: slot(vault, index, after, random) for index in (first, 1 - first)}
        for index, (place, data) in slots.items():
            image[place : place + f.PAGE] = data
            check_image(bytes(image), vault.header, vault.master, after)
        os.ftruncate(descriptor, vault.state.end)
        write_at(descriptor, vault.state.end, frames)
        sync_directory(path)  # the program that put the file here may not have made its name durable
        os.fdatasync(descriptor)  # first barrier: the frames, and the copy that the commit before left
        write_at(descriptor, *slots[first])
        os.fdatasync(descriptor)  # second barrier: the change must not be acknowledged earlier
        if copy:
            write_at(descriptor, *slots[1 - first])
        return after


def slot(vault, index, state, random):
    """The place of a commit slot, and its bytes for `state`."""
    header = vault.header
    sealer = w.Sealer(vault.master, header.vault_id, header.file_id, vault.root.lookup_key, random)
    part = f"commit slot {index} of sequence {state.sequence}"
    return len(header.raw) + index * f.PAGE, sealer.commit_slot(part, index, header.mac, state)


def check_image(image, header, master, state):
    """Nothing is written before this implementation's own reader has accepted it."""
    if r.read_with_master(image, header, master).state != state:
        raise AssertionError("the file does not read back as the state that was written")


def lookup_id_of(change, vault):
    one = d.one_of(change)
    return p.lookup_id(vault.root.lookup_key, one["service"], one["account"])


def told(change, entries):
    """The change with what it takes over from the newest entry of its name, if that is a put, unless it says otherwise."""
    kind, one = next(iter(change.items()))
    newest = entries[-1].record if entries else None
    if newest is None or not newest.is_put:
        return change
    more = {"keeps_nothing": h.keeps_no_history(newest)}
    if kind == "put":
        more["fields"] = [(number, data.hex()) for number, data in p.fields_kept(newest)]
    return {kind: {**more, **one}}


def moved(vault, old, new, time, now=None):
    """The changes at `time` that give a secret another name. Both names are a service and an account.

    The new name gets all versions with their times. If it has versions of its own, it gets only the present value, with
    the time of the change. `now` is what the ages of versions are judged by.
    """
    limit, now = vault.root.history, time if now is None else now
    entries = {name: vault.entries.get(p.lookup_id(vault.root.lookup_key, *name), []) for name in (old, new)}
    newest = h.live(entries[old])
    require(newest, "there is no such secret")
    if h.kept(entries[new], limit, now):
        existing = h.live(entries[new])
        created = existing.record.created if existing else newest.record.created
        changes = [renamed(newest, new, time, created)]
    else:
        earlier = [one for one in h.kept(entries[old], limit, now)[:-1] if one.record.is_put]
        changes = [renamed(one, new, keeps_nothing=bool(one.record.field(p.KEEPS_NOTHING))) for one in earlier]
        changes.append(renamed(newest, new, keeps_nothing=h.keeps_no_history(newest.record)))
    service, account = old
    return [*changes, {"remove": {"service": service, "account": account, "time": time}}]


def renamed(entry, name, time=None, created=None, **more):
    """The put of the entry's value under another name, with its own times unless others are given."""
    record, (service, account) = entry.record, name
    time = record.time if time is None else time
    since = record.field(p.SINCE, record.time)
    one = {
        "service": service,
        "account": account,
        "value": entry.value.hex(),
        "created": record.created if created is None else created,
        "modified": time,
        "label": record.field(p.LABEL),
        "expires": record.field(p.EXPIRY),
        "attributes": dict(record.field(p.ATTRIBUTES, ())),
        "since": None if since == time else since,
        "fields": [(kind, data.hex()) for kind, data in p.fields_moved(record)],
    }
    return {"put": one | more}


def encoded_changes(vault, changes, random):
    """The frames of one transaction, and the state after it."""
    header, state = vault.header, vault.state
    sealer = w.Sealer(vault.master, header.vault_id, header.file_id, vault.root.lookup_key, random)
    frames, sequence, previous = b"", state.sequence, state.tail_tag
    size = sum(frame.metadata_length for frame in vault.frames)
    newest = dict(vault.entries)
    for change in changes:
        sequence += 1
        part = f"frame of sequence {sequence}"
        lookup_id = lookup_id_of(change, vault)
        record, value = d.described_change(told(change, newest.get(lookup_id)), sequence)
        newest[lookup_id] = [r.Entry(record, value)]
        record, sealed = sealer.sealed(part, record, value)
        frame, previous = sealer.frame(part, state.end + len(frames), record, sealed, previous)
        frames += frame
        size += len(frame) - len(sealed)
    require(size <= f.MAXIMUM_TAIL, "the tail would be too long: rewrite the vault", outcome=f.LIMIT_REACHED)
    return frames, replace(state, sequence=sequence, end=state.end + len(frames), tail_tag=previous)


def check_cost(slots, limits=r.Limits()):
    """A passphrase must be tried on every slot."""
    within = all(slot.memory_kib <= limits.memory_kib for slot in slots)
    work = sum(slot.memory_kib * slot.passes for slot in slots)
    require(within and work <= limits.work_kib, "the passphrase slots would cost too much", outcome=f.LIMIT_REACHED)


def rewrite(path, credential, description, random=w.system_random):
    """Writes the vault anew. Returns its state.

    The description may have `changes`, a `history` limit, `purge` (names), `now`, `remove_slots` (their ids), `add_slots`,
    and, for a new master key, `slots`, in place of the present ones, or `credentials`, which open those that stay.
    """
    with locked(path) as descriptor:
        _, vault = opened_for_writing(descriptor, credential)
        data, state = rewritten(vault, description, random)
        replace_file(path, data)
        return state


def rewritten(vault, description, random):
    """The bytes of the new file and its state."""
    sequence = vault.state.sequence
    entries = {key: list(found) for key, found in vault.entries.items()}
    for change in description.get("changes", []):
        sequence += 1
        lookup_id = lookup_id_of(change, vault)
        found = entries.setdefault(lookup_id, [])
        record, value = d.described_change(told(change, found), sequence)
        found.append(r.Entry(replace(record, lookup_id=lookup_id), value))
    sequence, recent = sequence + 1, recent_changes(vault)
    if description.get("advance"):
        sequence += ADVANCE
        recent = [], sequence
    return new_file(vault, entries, sequence, recent, judged(description, vault), random)


def judged(description, *vaults):
    """The description with the time by which the age of versions is judged, whatever the clock of this machine says."""
    now = description.get("now", int(time.time() * 1000))
    records = [[one.record for found in vault.entries.values() for one in found] for vault in vaults]
    last = [max(found, key=lambda record: record.sequence).time for found in records if found]
    return {**description, "time": now, "now": min([now, *last])}


def new_file(vault, entries, sequence, recent, description, random, other=None):
    """The bytes of a file that follows the vault, and `other` if it is given, with the entries that are kept of these, and
    its state."""
    header = vault.header
    check_room(sequence)
    is_rekey = "slots" in description or "credentials" in description
    master = random(32, "new master key") if is_rekey else vault.master
    sealer = w.Sealer(master, header.vault_id, random(16, "new file id"), vault.root.lookup_key, random)
    removed = description.get("remove_slots", [])
    if "credentials" in description:
        slots = list(rewrapped(vault, description["credentials"], removed, sealer))
    elif is_rekey:
        slots = d.described_slots(sealer, description["slots"])
    elif other:
        slots = m.merged_slots(vault, other)
    else:
        slots = [one.raw for one in header.slots if not one.known or one.id.hex() not in removed]
        slots += d.described_slots(sealer, description.get("add_slots", []))
    fields = root_fields(vault, description, sealer, is_rekey, sequence)
    fields = former_slots(vault, other, dict(fields), slots, sequence, description["time"], is_rekey)
    items = []
    # A merge has the limit of both files; another rewrite brings nothing back that the former one has dropped.
    limits = [fields] if other else [vault.root.fields, fields]
    for entry in kept_entries(entries, description, limits):
        fields_of = p.rewritten_fields(entry.record.fields, "put" if entry.record.is_put else "remove")
        entry = replace(entry, record=replace(entry.record, fields=fields_of))
        part = f"item {entry.record.sequence} of {entry.record.lookup_id.hex()}"
        if entry.sealed_value and not is_rekey:
            items.append((entry.record, entry.sealed_value))
        else:
            items.append(sealer.sealed(part, entry.record, entry.value))
    items.sort(key=lambda pair: pair[0].position)
    new_header = sealer.header(slots, header.read_only_compatible, header.compatible)
    require(len(new_header) <= f.MAXIMUM_HEADER, "the header would be too long", outcome=f.LIMIT_REACHED)
    if is_rekey or other:
        check_cost(f.parse_header(new_header).slots)
    writer = w.FileWriter(sealer, new_header, slots)
    state = writer.write_base(items, sequence, fields, *recent)
    longest = f.MAXIMUM_ROOT + f.SEAL_OVERHEAD
    require(state.root_length <= longest, "the root would be too long", outcome=f.LIMIT_REACHED)
    writer.write_slots([state, state])
    leases = vault.leases.moved()
    check_room(leases.counter)
    writer.write_leases(leases)
    data = bytes(writer.file)
    check_image(data, f.parse_header(data), master, state)
    return data, state


def rewrapped(vault, credentials, removed, sealer):
    """The key slots with the master key of `sealer`: those of recipients, and those that a credential opens."""
    for index, slot in enumerate(vault.header.slots):
        if not slot.known or slot.id.hex() in removed:
            continue
        part, head = f"key slot {index}", slot.header
        if slot.recipient:
            secret, share = w.agreed(sealer, part, slot.recipient)
            head = head[: -len(slot.share)] + share
        else:
            secret = secret_of(slot, credentials, vault.header.vault_id)
        if secret:
            yield sealer.wrapped(part, head, secret)


def secret_of(slot, credentials, vault_id):
    """The slot secret of a key or passphrase slot, or None if no credential opens it."""
    kinds = {f.PASSPHRASE_SLOT: r.Passphrase, f.KEY_SLOT: r.Key}
    for one in credentials:
        if isinstance(one, kinds[slot.type]):
            secret = one.secret
            if slot.type == f.PASSPHRASE_SLOT:
                secret = f.argon2id(secret, slot.salt, slot.passes, slot.memory_kib)
            if f.equal(f.slot_keys(secret, vault_id, slot.header)[1], slot.commitment):
                return secret
    return None


def changes_of(vault):
    """The changes that the file shows: pairs of sequence and tag, ascending."""
    pairs = [*vault.recent, (vault.root.sequence, vault.state.root_tag)]
    return pairs + [(frame.sequence, frame.tag) for frame in vault.frames]


def recent_changes(vault):
    """What the next root says of the changes before it: pairs, and the sequence from which on they are complete."""
    return latest(changes_of(vault), vault.root.floor)


def latest(pairs, floor, count=KEPT_PAIRS):
    pairs = [pair for pair in pairs if pair[0] >= floor]
    if len(pairs) <= count:
        return pairs, floor
    kept = pairs[-count:]
    # A sequence of which a pair was dropped is below the floor: a merge has two of one sequence.
    floor = pairs[-count - 1][0] + 1
    return [pair for pair in kept if pair[0] >= floor], floor


def root_fields(vault, description, sealer, is_rekey, sequence):
    """The fields of the new root. Unknown ones that may be, and under the same master key the lineage, are copied."""
    fields = dict(p.rewritten_fields(vault.root.fields, "root"))
    if "history" in description:
        fields[p.HISTORY] = d.described_history({"sequence": sequence, **description["history"]})
    if "taken" in description:
        taken = sorted(description["taken"])[-p.MAXIMUM_PAIRS :]
        fields.pop(p.TAKEN, None)
        fields |= {p.TAKEN: b"".join(p.PAIR.pack(*one) for one in taken)} if taken else {}
    if is_rekey:
        former = (f.subkey(vault.master, f.KNOWN_VAULTS), *vault.root.lineage)
        fields[p.LINEAGE] = sealer.lineage(former[: p.MAXIMUM_LINEAGE])
    return sorted(fields.items())


def former_slots(vault, other, fields, slots, sequence, time, is_rekey):
    """The fields of the new root, with the key slots that were removed and are removed now."""
    former = [replace(one, is_trace=0) if is_rekey else one for one in vault.root.former]
    if other:
        former = sorted({*former, *other.root.former}, key=lambda one: (one.sequence, one.encode()))
    parsed = [f.parse_key_slot(f.Cursor(slot, "a new key slot")) for slot in slots]
    gone = {slot.id for slot in parsed if slot.known} | ({one.slot_id for one in former} if other else set())
    for slot in [*vault.header.slots, *(other.header.slots if other else ())]:
        if slot.known and slot.id not in gone:
            names = slot.id, slot.type, 0 if is_rekey else 1, slot.recipient[:32].ljust(32, b"\0")
            former.append(p.FormerSlot(*names, slot.created, sequence, time, slot.label))
    while len(former) > p.MAXIMUM_FORMER:
        dropped = next((one for one in former if not one.is_trace), None)
        require(dropped, "a change of the master key is needed first", outcome=f.LIMIT_REACHED)
        former.remove(dropped)
    if former:
        fields[p.FORMER_SLOTS] = b"".join(one.encode() for one in former)
    return sorted(fields.items())


def kept_entries(entries, description, limits):
    """The entries that count under the history limit of each of these lists of fields."""
    purged = {(one["service"], one["account"]) for one in description.get("purge", [])}
    for found in entries.values():
        record = found[0].record
        if (record.service, record.account) in purged:
            found = [one for one in found[-1:] if one.record.is_put]
        else:
            for fields in limits:
                found = h.kept(found, limit_in(fields), description["now"])
        yield from found


def limit_in(fields):
    """The history limit in the fields of a root."""
    history = dict(fields).get(p.HISTORY)
    return p.HistoryLimit.parse(history, f.U64_LIMIT) if history else p.HistoryLimit()
