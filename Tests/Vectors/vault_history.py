"""Which records of one secret are its value, its earlier versions and its removal.

Each function takes the entries of one secret, ascending by sequence. An entry has a `record`.
"""

from dataclasses import dataclass

import vault_records as p

DAY = 86_400_000


@dataclass(frozen=True)
class Version:
    """An earlier value, and when it was superseded."""

    entry: object
    superseded: int


def live(entries):
    """The entry of the present value, or None."""
    return entries[-1] if entries and entries[-1].record.is_put else None


def remembered(entries):
    """The entries from the last change on that keeps nothing before it."""
    marked = [at for at, one in enumerate(entries) if one.record.field(p.KEEPS_NOTHING)]
    return entries[marked[-1] :] if marked else entries


def is_in_conflict(entry, newest):
    """Whether the entry lost to the newest one in a merge, and nothing was stored since."""
    return newest.record.is_put and entry.record.field(p.CONFLICT) == newest.record.sequence


def stands_beside(entry, newest):
    """The same, or the entry has the newest one's value."""
    is_twin = newest.record.is_put and entry.record.field(p.TWIN) == newest.record.sequence
    return is_twin or is_in_conflict(entry, newest)


def keeps_no_history(record):
    """Whether the next change of the secret keeps nothing, if it is told nothing."""
    return bool(record.field(p.KEEPS_NOTHING) or record.field(p.KEPT_NOTHING))


def versions(entries, limit, now):
    """The earlier versions that count, the newest first."""
    found, within, entries = [], True, remembered(entries)
    counted = 0
    for entry, after in reversed(list(zip(entries, entries[1:]))):
        if not entry.record.is_put:
            continue
        superseded = max(entry.record.time, after.record.time)
        if stands_beside(entry, entries[-1]):
            found.append(Version(entry, superseded))
            continue
        too_old = limit.days > 0 and now - superseded > limit.days * DAY
        within = within and counted < limit.versions and not too_old
        if within:
            found.append(Version(entry, superseded))
            counted += 1
    return found


def removal(entries, limit, now):
    """The entry of the remove of a removed secret, if the version before it counts."""
    if not entries or live(entries):
        return None
    counted = versions(entries, limit, now)
    return entries[-1] if counted else None


def kept(entries, limit, now):
    """What a rewrite keeps: the present value, the versions that count, and the removes directly after these."""
    counted = {id(version.entry) for version in versions(entries, limit, now)}
    keeps = []
    for index, entry in enumerate(entries):
        if entry.record.is_put:
            keep = id(entry) in counted or index == len(entries) - 1
        else:
            keep = id(entries[index - 1]) in counted
        keeps += [entry] if keep else []
    return keeps
