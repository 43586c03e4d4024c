"""The contents of a vault, derived from its description alone: without the reader and the format."""

import vault_format as f

DAY = 86_400_000


def by_name(description, transactions):
    """The events of each name, ascending by sequence: (sequence, the put item or None, time)."""
    events, base = {}, description["base"]
    described = [one if "remove" in one else {"put": one} for one in base["items"]]
    changes = [(number, change) for number, change in enumerate(described, start=1)]
    sequence = base.get("sequence", len(described) + 1)
    for transaction in description["tail"][:transactions]:
        for change in transaction:
            sequence += 1
            changes.append((sequence, change))
    for number, change in changes:
        one = change.get("put") or change["remove"]
        names = one["service"].encode(), one["account"].encode()
        time = one.get("modified", one.get("created", 0)) if "put" in change else one.get("time", 0)
        events.setdefault(names, []).append((one.get("sequence", number), change.get("put"), time))
    return {names: sorted(found, key=lambda event: event[0]) for names, found in sorted(events.items())}


def expected(description, transactions, now):
    """The contents after the first `transactions` transactions, in the form of vectors.json, without empty fields."""
    history = description.get("history", {"versions": 0, "days": 0})
    items, versions, removed = [], [], []
    for events in by_name(description, transactions).values():
        value, earlier, removal = None, [], None
        for sequence, put, time in events:
            if value:
                earlier.append((*value, time))
                removal = None if put else (sequence, time)
            value = (sequence, put) if put else None
        counted = []
        for sequence, put, superseded in reversed(earlier):
            is_old = history["days"] and now - superseded > history["days"] * DAY
            if is_old or len(counted) == history["versions"]:
                break
            counted.append(expected_version(sequence, put, superseded))
        versions += counted
        if value:
            items.append(expected_item(value[1]))
        elif counted:
            names = {name: counted[0][name] for name in ("service", "account")}
            removed.append(names | {"sequence": removal[0], "removed": removal[1]})
    found = {"versions": versions, "removed": removed, "lineage": len(description.get("lineage", []))}
    found["history"] = history if any(history.values()) else None
    return {"items": items} | {name: one for name, one in found.items() if one}


def expected_item(described):
    fields = ("service", "account", "label", "created", "modified", "expires")
    item = {name: described.get(name) for name in fields} | {"attributes": described.get("attributes", {})}
    return item | short_value(described["value"])


def expected_version(sequence, put, superseded):
    version = {"service": put["service"], "account": put["account"], "sequence": sequence, "stored": put["modified"]}
    return version | {"superseded": superseded} | short_value(put["value"])


def short_value(value):
    """A value in hexadecimal, or its length and its hash if it is longer than 128 bytes."""
    if len(value) <= 256:
        return {"value": value}
    data = bytes.fromhex(value)
    return {"value_length": len(data), "value_blake2b_256": f.blake2b(256, data).hex()}
