"""The JSON input of `write` and `append`, and vaults made from it."""

import struct
from dataclasses import replace

import vault_format as f
import vault_hybrid as hybrid
import vault_pins as pins
import vault_records as p
import vault_writer as w


def described_bytes(description, name):
    """Returns the bytes of the field `name`, in hexadecimal, or of the field `name`_text, in UTF-8."""
    if name + "_text" in description:
        return description[name + "_text"].encode("utf-8")
    return bytes.fromhex(description[name])


def described_change(change, sequence):
    """Returns the record of a change and its value. The lookup id and the tag are set when the value is sealed."""
    unknown = [(kind, bytes.fromhex(data)) for kind, data in one_of(change).get("fields", [])]
    if one_of(change).get("keeps_nothing"):
        unknown.append((p.KEEPS_NOTHING, b""))
    if "put" not in change:
        one = change["remove"]
        sequence, time = one.get("sequence", sequence), one.get("time", 0)
        fields = tuple(sorted(unknown))
        record = p.Record(p.REMOVE, b"", sequence, time, one["service"], one["account"], fields=fields)
        check_record(record, b"")
        return record, b""
    one, fields = change["put"], list(unknown)
    if one.get("label") is not None:
        fields.append((p.LABEL, one["label"].encode("utf-8")))
    if one.get("expires") is not None:
        fields.append((p.EXPIRY, struct.pack("<q", one["expires"])))
    if one.get("attributes"):
        attributes = sorted(one["attributes"].items(), key=lambda pair: pair[0].encode("utf-8"))
        fields.append((p.ATTRIBUTES, p.encode_attributes(attributes)))
    created = one.get("created", 0)
    if one.get("since") is not None:
        fields.append((p.SINCE, struct.pack("<q", one["since"])))
    for name, kind in (("conflict", p.CONFLICT), ("twin", p.TWIN)):
        if one.get(name) is not None:
            fields.append((kind, struct.pack("<Q", one[name])))
    record = p.Record(
        kind=p.PUT,
        lookup_id=b"",
        sequence=one.get("sequence", sequence),
        time=one.get("modified", created),
        service=one["service"],
        account=one["account"],
        created=created,
        value_length=p.SMALLEST_VALUE,
        value_tag=bytes(16),
        fields=tuple(sorted(fields)),
    )
    value = described_bytes(one, "value")
    check_record(record, value)
    return record, value


def one_of(change):
    return change["put"] if "put" in change else change["remove"]


def check_record(record, value):
    """Raises `ValueError` for a record that no reader accepts."""
    bounds = [("service", record.service, 1, 1024), ("account", record.account, 1, 1024)]
    if record.is_put and record.field(p.LABEL) is not None:
        bounds.append(("label", record.field(p.LABEL), 0, 1024))
    for what, text, least, most in bounds:
        size = len(text.encode("utf-8"))
        if not least <= size <= most or "\0" in text:
            raise ValueError(f"a {what} has {size} bytes or a NUL in it")
    if record.is_put:
        record.field(p.ATTRIBUTES)
    if len(value) > f.MAXIMUM_VALUE:
        raise ValueError("a value is longer than 16 MiB")


def described_slot(sealer, part, slot):
    """A key slot as described."""
    if slot["type"] == "raw":
        return bytes.fromhex(slot["bytes"])
    if slot["type"] == "recipient":
        recipient = bytes.fromhex(slot["recipient"])
        if "share" in slot:
            kind, secret, share = f.HYBRID_SLOT, bytes.fromhex(slot["secret"]), bytes.fromhex(slot["share"])
        elif len(recipient) > 32:
            kind, (secret, share) = f.HYBRID_SLOT, hybrid.encapsulate(recipient)
        else:
            kind, (secret, share) = f.X25519_SLOT, w.agreed(sealer, part, recipient)
        parameters = recipient + share
    else:
        salt = sealer.random(16, part + " salt")
        kind, parameters = f.KEY_SLOT, salt
        if slot["type"] == "key":
            secret = bytes.fromhex(slot["key"])
        else:
            passes, memory_kib = slot.get("passes", 3), slot.get("memory_kib", 65_536)
            kind, parameters = f.PASSPHRASE_SLOT, struct.pack("<II", passes, memory_kib) + salt
            secret = f.argon2id(described_bytes(slot, "passphrase"), salt, passes, memory_kib)
    return sealer.key_slot(part, kind, slot.get("created", 0), slot.get("label", ""), parameters, secret)


def described_slots(sealer, description):
    return [described_slot(sealer, f"key slot {index}", slot) for index, slot in enumerate(description)]


def described_history(description):
    origin = description.get("origin")
    birth = (origin["sequence"], bytes.fromhex(origin["tag"])) if origin else None
    return p.HistoryLimit(description["versions"], description["days"], description.get("sequence", 1), birth).encode()


def described_former_slots(description):
    slots = []
    for one in description:
        named = bytes.fromhex(one["slot_id"]), one["type"], one.get("is_trace", 0), bytes.fromhex(one["recipient"])
        numbers = one.get("created", 0), one["removed"], one.get("removed_time", 0)
        slots.append(p.FormerSlot(*named, *numbers, one.get("label", "")))
    return b"".join(slot.encode() for slot in slots)


def described_leases(description):
    if not description:
        return f.Leases()
    ids = [(bytes.fromhex(one["lookup_id"]), bytes.fromhex(one["taking"]), one["end"]) for one in description["held"]]
    return f.Leases(description["counter"], tuple(ids))


class NewFile(w.FileWriter):
    """The vault that a description asks for. `states` are those of the commit slots, `steps` one for each commit."""

    def __init__(self, description, random=None, tamper=w.untouched):
        self.description = description
        random = random or w.seeded_random(description["seed"])
        identity = {name: self.identity(random, name, size) for name, size in self.IDENTITIES.items()}
        self.master, self.vault_id, self.file_id, self.lookup_key = identity.values()
        sealer = w.Sealer(*identity.values(), random, tamper)
        slots = described_slots(sealer, description["slots"])
        bits = {name: description.get(name, 0) for name in ("read_only_compatible", "compatible")}
        super().__init__(sealer, sealer.header(slots, **bits), slots)
        self.steps = [self.write_described_base()]
        for transaction in description.get("tail", []):
            self.steps.append(self.write_transaction(transaction, self.steps[-1]))
        self.states = self.slot_states(description.get("uncopied", 0))
        self.write_slots(self.states)
        self.write_leases(described_leases(description.get("leases")))
        self.file = bytes(self.file)

    def pin(self, state):
        """The pin of a state, made from what the file was made of."""
        commitment = f.master_commitment(self.master, self.vault_id)
        message = b"coffer-pin" + self.vault_id + commitment + struct.pack("<Q", state.sequence) + state.tail_tag
        digest = f.blake2b(128, message, f.subkey(self.master, f.KNOWN_VAULTS))
        return pins.Pin(self.vault_id, commitment, state.sequence, digest).encode()

    IDENTITIES = {"master key": 32, "vault id": 16, "file id": 16, "lookup key": 32}

    def identity(self, random, name, length):
        """Returns the described identity, so that two files can belong to one vault, or a random one."""
        field = name.replace(" ", "_")
        return bytes.fromhex(self.description[field]) if field in self.description else random(length, name)

    def slot_states(self, uncopied):
        """The states of both slots, if the last `uncopied` commits did not copy theirs to the other slot."""
        states = [self.steps[0]] * 2
        for number, state in enumerate(self.steps[1:], start=1):
            states[self.written_slot(states)] = state
            if number < len(self.steps) - uncopied:
                states = [state] * 2
        return states

    @staticmethod
    def written_slot(states):
        """The slot that a commit writes first: slot 1 if both hold the same state, else the older one."""
        return 1 if states[0].sequence >= states[1].sequence else 0

    def write_described_base(self):
        base = self.description.get("base", {})
        described = base.get("items", [])
        self.sequence = base.get("sequence", len(described) + 1)
        items = []
        for index, one in enumerate(described):
            record, value = described_change(one if "remove" in one else {"put": one}, index + 1)
            items.append(self.sealer.sealed(f"base item {index}", record, value))
        items.sort(key=lambda pair: (pair[0].lookup_id, pair[0].sequence))
        items = self.tamper("base items", items)
        recent = [(sequence, bytes.fromhex(tag)) for sequence, tag in base.get("recent", [])]
        floor = base.get("floor", recent[0][0] if recent else None)
        return self.write_base(items, self.sequence, self.root_fields(), recent, floor, base.get("items_per_block"))

    def root_fields(self):
        description = self.description
        fields = [(kind, bytes.fromhex(data)) for kind, data in description.get("root_fields", [])]
        if "history" in description:
            fields.append((p.HISTORY, described_history(description["history"])))
        if "former_slots" in description:
            fields.append((p.FORMER_SLOTS, described_former_slots(description["former_slots"])))
        if "lineage" in description:
            fields.append((p.LINEAGE, self.sealer.lineage([bytes.fromhex(key) for key in description["lineage"]])))
        return sorted(fields)

    def write_transaction(self, changes, state):
        for change in changes:
            number = sum(1 for part in self.parts if part.startswith("frame "))
            part, offset = f"frame {number}", len(self.file)
            self.sequence += 1
            record, value = described_change(change, self.sequence)
            record, sealed = self.sealer.sealed(part, record, value)
            previous = self.tamper(part + " previous tag", state.tail_tag)
            frame, frame_tag = self.sealer.frame(part, offset, record, sealed, previous)
            self.append(part, frame)
            state = replace(state, sequence=self.sequence, end=len(self.file), tail_tag=frame_tag)
        return state
