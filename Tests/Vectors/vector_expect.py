"""The contents of a vault, derived from its description alone: without the reader and the format."""

from dataclasses import dataclass, replace

import vault_format as f

DAY = 86_400_000


@dataclass(frozen=True)
class Event:
    """One change to a secret, as described."""

    sequence: int
    change: dict

    @property
    def put(self):
        return self.change.get("put")

    @property
    def one(self):
        return self.put or self.change["remove"]

    @property
    def time(self):
        return self.put.get("modified", self.put.get("created", 0)) if self.put else self.one.get("time", 0)


def by_name(description, transactions):
    """The events of each name, ascending by sequence."""
    base = description["base"]
    described = [one if "remove" in one else {"put": one} for one in base["items"]]
    found = [Event(number, one) for number, one in enumerate(described, start=1)]
    sequence = base.get("sequence", len(described) + 1)
    for transaction in description["tail"][:transactions]:
        for change in transaction:
            sequence += 1
            found.append(Event(sequence, change))
    events = {}
    for event in found:
        event = replace(event, sequence=event.one.get("sequence", event.sequence))
        names = event.one["service"].encode(), event.one["account"].encode()
        events.setdefault(names, []).append(event)
    return {names: sorted(one, key=lambda event: event.sequence) for names, one in sorted(events.items())}


def expected(description, transactions, now):
    """The contents after the first `transactions` transactions, in the form of vectors.json, without empty fields."""
    history = description.get("history", {"versions": 0, "days": 0})
    items, versions, removed = [], [], []
    for events in by_name(description, transactions).values():
        last = events[-1]
        counted = expected_versions(events, history, now)
        versions += counted
        if last.put:
            items.append(expected_item(last.put))
        elif counted:
            names = {name: last.one[name] for name in ("service", "account")}
            removed.append(names | {"sequence": last.sequence, "removed": last.time})
    found = {"versions": versions, "removed": removed, "lineage": len(description.get("lineage", []))}
    found["former_slots"] = [expected_former(one) for one in description.get("former_slots", [])]
    found["leases"] = description.get("leases")
    found["history"] = history if any(history.values()) else None
    return {"items": items} | {name: one for name, one in found.items() if one}


def expected_versions(events, history, now):
    """The earlier values that count, and those that lost to the present one in a merge, the newest first."""
    last, found, counting, count = events[-1], [], True, 0
    for event, after in reversed(list(zip(events, events[1:]))):
        if after.one.get("keeps_nothing"):
            break
        if not event.put:
            continue
        is_old = history["days"] and now - superseded(event, after) > history["days"] * DAY
        if last.put and last.sequence in (event.put.get("conflict"), event.put.get("twin")):
            found.append(expected_version(event, after))
        elif counting and not is_old and count < history["versions"]:
            found.append(expected_version(event, after))
            count += 1
        else:
            counting = False
    return found


def expected_item(described):
    fields = ("service", "account", "label", "created", "modified", "expires")
    item = {name: described.get(name) for name in fields} | {"attributes": described.get("attributes", {})}
    return item | short_value(described["value"])


def superseded(event, after):
    return max(event.time, after.time)


def expected_version(event, after):
    put = event.put
    version = {"service": put["service"], "account": put["account"], "sequence": event.sequence}
    return version | {"stored": put["modified"], "superseded": superseded(event, after)} | short_value(put["value"])


def expected_former(described):
    numbers = {name: described.get(name, 0) for name in ("is_trace", "created", "removed_time")}
    named = {name: described[name] for name in ("slot_id", "type", "recipient", "removed")}
    return named | {"label": described.get("label", "")} | numbers


def short_value(value):
    """A value in hexadecimal, or its length and its hash if it is longer than 128 bytes."""
    if len(value) <= 256:
        return {"value": value}
    data = bytes.fromhex(value)
    return {"value_length": len(data), "value_blake2b_256": f.blake2b(256, data).hex()}
