#!/usr/bin/env python3
"""A second implementation of the vault file, written from VaultFormat.md, for the tests.

    coffer_vault.py dump VAULT KEY
    coffer_vault.py write SPEC.json VAULT
    coffer_vault.py append VAULT CHANGES.json KEY
    coffer_vault.py rewrite VAULT CHANGES.json KEY
    coffer_vault.py rekey VAULT CHANGES.json KEY
    coffer_vault.py places VAULT
    coffer_vault.py judge VAULT RECORD KEY
    coffer_vault.py remember VAULT RECORD KEY
    coffer_vault.py key-text F

KEY is `--key-text-file F` or `--passphrase-file F`. Each command prints one JSON object. README.md describes input
and output. A file named `-` is the standard input. Exit status: 0 done, 1 refused
(`{"error": "<outcome>", "reason": "…"}`), 2 wrong usage.
"""

import argparse
import json
import os
import struct
import sys
import time

import known_vaults as k
import vault_changes as c
import vault_described as d
import vault_format as f
import vault_identities as i
import vault_pins as pins
import vault_reader as r
import vault_records as p
import vault_writer as w


def read_file(path):
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as stream:
        return stream.read()


def read_json(path):
    return json.loads(read_file(path))


def credential_of(arguments):
    """Returns the key in a key file, or the passphrase in a passphrase file without one final LF."""
    if arguments.key_text_file:
        text = read_file(arguments.key_text_file)
        if text.startswith(b"AGE-SECRET-KEY-1"):
            return r.Identity(i.parse_identity(text.decode().strip()))
        return r.Key(f.parse_key_text(text))
    return r.Passphrase(read_file(arguments.passphrase_file).removesuffix(b"\n"))


def random_of(description):
    return w.seeded_random(description["seed"]) if "seed" in description else w.system_random


# What is printed of a vault


def described(entry):
    """A secret in its JSON form. A missing field is null."""
    record = entry.record
    return {
        "service": record.service,
        "account": record.account,
        "label": record.field(p.LABEL),
        "created": record.created,
        "modified": record.time,
        "expires": record.field(p.EXPIRY),
        "attributes": dict(record.field(p.ATTRIBUTES, ())),
        "value": entry.value.hex(),
    }


def described_version(version):
    record = version.entry.record
    return {
        "service": record.service,
        "account": record.account,
        "sequence": record.sequence,
        "stored": record.time,
        "superseded": version.superseded,
        "value": version.entry.value.hex(),
    }


def described_removal(entry):
    record = entry.record
    return {
        "service": record.service,
        "account": record.account,
        "sequence": record.sequence,
        "removed": record.time,
    }


def described_former(slot):
    return {
        "slot_id": slot.slot_id.hex(),
        "type": slot.type,
        "is_trace": slot.is_trace,
        "recipient": slot.recipient.hex(),
        "created": slot.created,
        "removed": slot.sequence,
        "removed_time": slot.time,
        "label": slot.label,
    }


def described_leases(leases):
    """The leases in their JSON form, or null if the page is zeros."""
    held = [{"lookup_id": one.hex(), "taking": taking.hex(), "end": end} for one, taking, end in leases.leases]
    return {"counter": leases.counter, "held": held} if leases.counter else None


def contents(vault, now):
    """The secrets, versions and removals of a vault in their JSON form."""
    history = vault.root.history
    return {
        "outcome": f.RECOVERED if vault.recovered else f.OK,
        "sequence": vault.state.sequence,
        "pin": pins.pin_of(vault).encode(),
        "history": {"versions": history.versions, "days": history.days},
        "lineage": len(vault.root.lineage),
        "recent": len(vault.recent),
        "floor": vault.root.floor,
        "former_slots": [described_former(slot) for slot in vault.root.former],
        "leases": described_leases(vault.leases),
        "items": [described(entry) for entry in vault.secrets()],
        "versions": [described_version(version) for version in vault.versions(now)],
        "removed": [described_removal(entry) for entry in vault.removed(now)],
    }


def layout(vault):
    """Where the parts are, for programs that damage a file."""
    state, header = vault.state, vault.header
    return {
        "vault_id": header.vault_id.hex(),
        "file_id": header.file_id.hex(),
        "master_key_commitment": header.commitment.hex(),
        "key_slots": [slot.raw.hex() for slot in header.slots],
        "commit_slots": [len(header.raw) + index * f.PAGE for index in range(2)],
        "current_slot": vault.current,
        "slot_sequences": [state.sequence if state else None for state in vault.states],
        "root": {"offset": state.root_offset, "sequence": vault.root.sequence, "tag": state.root_tag.hex()},
        "frames": [
            {"offset": one.offset, "length": one.length, "sequence": one.sequence, "tag": one.tag.hex()}
            for one in vault.frames
        ],
        "end": state.end,
    }


# Commands


def dump(arguments):
    limits = r.Limits(memory_kib=arguments.memory_limit_kib, work_kib=arguments.work_limit_kib)
    vault = r.read_vault(read_file(arguments.vault), credential_of(arguments), limits)
    now = int(time.time() * 1000) if arguments.now is None else arguments.now
    printed = contents(vault, now) | {"layout": layout(vault)}
    if arguments.keys:
        subkeys = [f.subkey(vault.master, number).hex() for number in range(1, 9)]
        lineage = [key.hex() for key in vault.root.lineage]
        printed["keys"] = {"master_key": vault.master.hex(), "subkeys": subkeys, "lineage": lineage}
        printed["keys"]["lookup_key"] = vault.root.lookup_key.hex()
    return printed


def write(arguments):
    description = read_json(arguments.description)
    made = d.NewFile(description)
    if not description.get("unchecked"):
        r.read_with_master(made.file, f.parse_header(made.file), made.master)
    c.write_new_file(arguments.vault, made.file)
    return acknowledged(made.steps[-1])


def append(arguments):
    description = read_json(arguments.changes)
    copy = description.get("copy", True)
    changes, random = description["changes"], random_of(description)
    state = c.commit(arguments.vault, credential_of(arguments), changes, random, copy)
    return acknowledged(state)


def rewrite(arguments):
    description = read_json(arguments.changes)
    if ("slots" in description) != arguments.is_rekey:
        raise ValueError("`slots` belong to a rekey, and to nothing else")
    return acknowledged(c.rewrite(arguments.vault, credential_of(arguments), description, random_of(description)))


def acknowledged(state):
    return {"sequence": state.sequence, "tail_tag": state.tail_tag.hex()}


def places(arguments):
    found = [{"path": os.fsdecode(place), "record": k.record_name(place)} for place in k.places(arguments.vault)]
    return {"directory": k.directory(), "places": found}


def opened_at_place(arguments):
    """The place, the record there and the vault. The vault id is judged before a key is tried."""
    place = k.absolute(arguments.path or arguments.vault)
    _, record = k.read_record(arguments.record, place)
    file = read_file(arguments.vault)
    header = f.parse_header(file)
    k.judge_identity(record, header.vault_id)
    for pin in getattr(arguments, "pin", ()):
        pins.judge_pin_identity(pins.Pin.parse(pin), header)
    return place, record, r.read_vault(file, credential_of(arguments))


def judge(arguments):
    _, record, vault = opened_at_place(arguments)
    judgement = k.judge(record, vault)
    half = bool(record) and record.is_half_damaged
    judged = [pins.judge_pin(pins.Pin.parse(pin), vault) for pin in arguments.pin]
    return {"judgement": judgement, "half_damaged": half, "pins": judged, "pin": pins.pin_of(vault).encode()}


def remember(arguments):
    if arguments.accept:
        vault = r.read_vault(read_file(arguments.vault), credential_of(arguments))
        place = k.absolute(arguments.path or arguments.vault)
    else:
        place, record, vault = opened_at_place(arguments)
        k.judge(record, vault)
    descriptor = os.open(arguments.vault, os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(descriptor)
    os.close(descriptor)
    c.sync_directory(arguments.vault)
    policy = k.POLICIES[arguments.accept] if arguments.accept else None
    return {"written": k.remember(arguments.record, place, vault, policy), "sequence": vault.state.sequence}


def key_text(arguments):
    return {"key": f.parse_key_text(read_file(arguments.file)).hex()}


def parsed(arguments):
    parser = argparse.ArgumentParser(description="Reads and writes Coffer's vault files, for the tests.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, summary, *operands, opens=True, **defaults):
        one = commands.add_parser(name, help=summary)
        one.set_defaults(run=run, **defaults)
        for operand in operands:
            one.add_argument(operand, metavar=operand.upper())
        if opens:
            group = one.add_mutually_exclusive_group(required=True)
            group.add_argument("--key-text-file", metavar="F", help="a file with the key's text")
            group.add_argument("--passphrase-file", metavar="F", help="a file with the passphrase")
        return one

    one = command("dump", dump, "authenticate every byte of a vault and print what it holds", "vault")
    one.add_argument("--now", type=int, metavar="MS", help="the time against which versions age")
    one.add_argument("--keys", action="store_true", help="print the master key, the subkeys and the lineage too")
    one.add_argument("--memory-limit-kib", type=int, default=1 << 20, metavar="N", help="for passphrase slots")
    one.add_argument("--work-limit-kib", type=int, default=1 << 22, metavar="N", help="for passphrase slots")
    command("write", write, "make a vault from a description", "description", "vault", opens=False)
    command("append", append, "commit changes to a vault, in one transaction", "vault", "changes")
    command("rewrite", rewrite, "write a vault anew under its master key", "vault", "changes", is_rekey=False)
    command("rekey", rewrite, "write a vault anew under a new master key", "vault", "changes", is_rekey=True)
    command("places", places, "print the places of a vault and the names of their records", "vault", opens=False)
    one = command("judge", judge, "judge a vault against the record of its place", "vault", "record")
    one.add_argument("--path", metavar="P", help="the place; VAULT if it is missing")
    one.add_argument("--pin", action="append", default=[], metavar="PIN", help="judge against this pin too")
    one = command("remember", remember, "make or raise the record of a place", "vault", "record")
    one.add_argument("--path", metavar="P", help="the place; VAULT if it is missing")
    one.add_argument("--accept", choices=list(k.POLICIES), help="make the record anew with this policy")
    command("key-text", key_text, "check a key file and print its key", "file", opens=False)
    return parser.parse_args(arguments)


def main(arguments):
    arguments = parsed(arguments)
    try:
        result, status = arguments.run(arguments), 0
    except f.Refused as refused:
        result, status = {"error": refused.outcome, "reason": refused.reason}, 1
    except OSError as error:
        result, status = {"error": "io", "reason": str(error)}, 1
    except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
        result, status = {"error": "invalid-description", "reason": f"{type(error).__name__}: {error}"}, 1
    print(json.dumps(result, indent=1))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
