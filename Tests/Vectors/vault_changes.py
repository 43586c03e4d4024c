"""Changes to vaults on disk: creation, commits, and rewrites with or without a new master key."""

import fcntl
import os
import time
from contextlib import contextmanager
from dataclasses import replace

import vault_described as d
import vault_format as f
import vault_history as h
import vault_reader as r
import vault_records as p
import vault_writer as w
from vault_format import require


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
    require(bits == 0, f"the read-only-compatible bits are {bits:#x}", f.READ_ONLY)
    return file, vault


def check_room(sequence, end=0):
    require(max(sequence, end) < f.U64_LIMIT, "the vault is at the limit of its numbers", f.LIMIT_REACHED)


def commit(path, credential, changes, random=w.system_random, copy=True):
    """Makes all changes or none. Returns the new checkpoint.

    Without `copy`, the file is left as a power loss after the second barrier leaves it.
    """
    with locked(path) as descriptor:
        file, vault = opened_for_writing(descriptor, credential)
        if not changes:
            return vault.checkpoint
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
        os.fdatasync(descriptor)  # first barrier: the frames, and the copy that the commit before left
        write_at(descriptor, *slots[first])
        os.fdatasync(descriptor)  # second barrier: the change must not be acknowledged earlier
        if copy:
            write_at(descriptor, *slots[1 - first])
        return after.checkpoint


def slot(vault, index, state, random):
    """The place of a commit slot, and its bytes for `state`."""
    header = vault.header
    sealer = w.Sealer(vault.master, header.vault_id, header.file_id, random)
    part = f"commit slot {index} of sequence {state.sequence}"
    return len(header.raw) + index * f.PAGE, sealer.commit_slot(part, index, header.raw, state)


def check_image(image, header, master, state):
    """Nothing is written before this implementation's own reader has accepted it."""
    if r.read_with_master(image, header, master).state != state:
        raise AssertionError("the file does not read back as the state that was written")


def encoded_changes(vault, changes, random):
    """The frames of one transaction, and the state after it."""
    header, state = vault.header, vault.state
    sealer = w.Sealer(vault.master, header.vault_id, header.file_id, random)
    newest = {key: entries[-1].record.is_put for key, entries in vault.entries.items()}
    frames, sequence, previous, dead = b"", state.sequence, state.tail_tag, state.dead_bytes
    for change in changes:
        sequence += 1
        part = f"frame of sequence {sequence}"
        record, value = d.described_change(change, sequence)
        record, sealed = sealer.sealed(part, record, value)
        frame, previous = sealer.frame(part, state.end + len(frames), record, sealed, previous)
        frames += frame
        dead += 0 if record.is_put and not newest.get(record.lookup_id) else len(frame)
        newest[record.lookup_id] = record.is_put
    end, secrets = state.end + len(frames), sum(newest.values())
    dead = min(dead, f.U64_LIMIT - 1)
    after = replace(state, sequence=sequence, end=end, tail_tag=previous, secrets=secrets, dead_bytes=dead)
    return frames, after


def check_cost(slots, limits=r.Limits()):
    """A passphrase must be tried on every slot."""
    within = all(slot.memory_kib <= limits.memory_kib for slot in slots)
    work = sum(slot.memory_kib * slot.passes for slot in slots)
    require(within and work <= limits.work_kib, "the passphrase slots would cost too much", f.LIMIT_REACHED)


def rewrite(path, credential, description, random=w.system_random):
    """Writes the vault anew. Returns its checkpoint.

    The description may have `changes`, a `history` limit, `purge` (names), `now`, and, for a new master key,
    `slots`, of which nothing is kept.
    """
    with locked(path) as descriptor:
        _, vault = opened_for_writing(descriptor, credential)
        data, state = rewritten(vault, description, random)
        replace_file(path, data)
        return state.checkpoint


def rewritten(vault, description, random):
    """The bytes of the new file and its state."""
    header, sequence = vault.header, vault.state.sequence
    is_rekey = "slots" in description
    master = random(32, "new master key") if is_rekey else vault.master
    sealer = w.Sealer(master, header.vault_id, random(16, "new file id"), random)
    if is_rekey:
        slots = d.described_slots(sealer, description["slots"])
    else:
        slots = [one.raw for one in header.slots]
    fields = root_fields(vault, description, sealer, is_rekey)
    entries = {key: list(found) for key, found in vault.entries.items()}
    lookup = f.subkey(vault.master, f.LOOKUP_IDS)
    for change in description.get("changes", []):
        sequence += 1
        record, value = d.described_change(change, sequence)
        record = replace(record, lookup_id=p.lookup_id(lookup, record.service, record.account))
        entries.setdefault(record.lookup_id, []).append(r.Entry(record, value))
    sequence += 1
    check_room(sequence)
    items = []
    for entry in kept_entries(vault, entries, description, fields):
        part = f"item {entry.record.sequence} of {entry.record.lookup_id.hex()}"
        if entry.sealed_value and not is_rekey:
            items.append((entry.record, entry.sealed_value))
        else:
            items.append(sealer.sealed(part, entry.record, entry.value))
    items.sort(key=lambda pair: (pair[0].lookup_id, pair[0].sequence))
    new_header = sealer.header(slots, header.minor, header.read_only_compatible, header.compatible)
    require(len(new_header) <= f.MAXIMUM_HEADER, "the header would be too long", f.LIMIT_REACHED)
    if is_rekey:
        check_cost(f.parse_header(new_header).slots)
    writer = w.FileWriter(sealer, new_header, slots)
    state = writer.write_base(items, sequence, fields)
    require(state.root_length <= f.MAXIMUM_ROOT, "the root would be too long", f.LIMIT_REACHED)
    writer.write_slots([state, state])
    data = bytes(writer.file)
    check_image(data, f.parse_header(data), master, state)
    return data, state


def root_fields(vault, description, sealer, is_rekey):
    """The fields of the new root. Unknown ones, and under the same master key the lineage, are copied."""
    fields = dict(vault.root.fields)
    if "history" in description:
        fields[p.HISTORY] = d.described_history(description["history"])
    if is_rekey:
        former = (f.subkey(vault.master, f.KNOWN_VAULTS), *vault.root.lineage)
        fields[p.LINEAGE] = sealer.lineage(former[: p.MAXIMUM_LINEAGE])
    return sorted(fields.items())


def kept_entries(vault, entries, description, fields):
    history = dict(fields).get(p.HISTORY)
    limit = p.HistoryLimit.parse(history) if history else p.HistoryLimit()
    now = description.get("now", int(time.time() * 1000))
    purged = {(one["service"], one["account"]) for one in description.get("purge", [])}
    for found in entries.values():
        record = found[0].record
        nothing = (record.service, record.account) in purged
        yield from h.kept(found, p.HistoryLimit() if nothing else limit, now)
