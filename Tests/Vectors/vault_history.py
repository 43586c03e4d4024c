"""Which records of one secret are its value, its earlier versions and its removal.

Each function takes the entries of one secret, ascending by sequence. An entry has a `record`.
"""

from dataclasses import dataclass

DAY = 86_400_000


@dataclass(frozen=True)
class Version:
    """An earlier value, and the time of the record after it."""

    entry: object
    superseded: int


def live(entries):
    """The entry of the present value, or None."""
    return entries[-1] if entries and entries[-1].record.is_put else None


def versions(entries, limit, now):
    """The earlier versions that count, the newest first."""
    found = []
    for entry, after in reversed(list(zip(entries, entries[1:]))):
        if not entry.record.is_put:
            continue
        too_old = limit.days > 0 and now - after.record.time > limit.days * DAY
        if len(found) == limit.versions or too_old:
            break
        found.append(Version(entry, after.record.time))
    return found


def removal(entries, limit, now):
    """The entry of the remove that directly follows the last put of a removed secret, if an earlier version counts."""
    counted = versions(entries, limit, now)
    if live(entries) or not counted:
        return None
    return entries[entries.index(counted[0].entry) + 1]


def kept(entries, limit, now):
    """What a rewrite keeps: the present value, the versions that count, and the removes directly after these."""
    counted = {id(version.entry) for version in versions(entries, limit, now)}
    keeps = []
    for index, entry in enumerate(entries):
        if entry.record.is_put:
            keep = id(entry) in counted or index == len(entries) - 1
        else:
            keep = index > 0 and id(entries[index - 1]) in counted
        keeps += [entry] if keep else []
    return keeps
