#!/usr/bin/env python3
"""A second implementation of the vault file, written from VaultFormat.md, for the tests.

    coffer_vault.py dump VAULT (--key-text-file F | --passphrase-file F)
    coffer_vault.py write SPEC.json VAULT
    coffer_vault.py append VAULT CHANGES.json (--key-text-file F | --passphrase-file F)
    coffer_vault.py key-text F

Each command prints one JSON object. README.md describes input and output. A file named `-` is the standard input.
Exit status: 0 done, 1 refused (`{"error": "<outcome>", "reason": "…"}`), 2 wrong usage.
"""

import argparse
import json
import struct
import sys

import vault_format as f
import vault_reader as r
import vault_writer as w


def read_file(path):
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as stream:
        return stream.read()


def credential_of(arguments):
    """Returns the key in a key file, or the passphrase in a passphrase file without one final LF."""
    if arguments.key_text_file:
        return r.Key(f.parse_key_text(read_file(arguments.key_text_file)))
    return r.Passphrase(read_file(arguments.passphrase_file).removesuffix(b"\n"))


def described(item, value):
    """An item in its JSON form. A missing field is null."""
    return {
        "service": item.service,
        "account": item.account,
        "label": item.label,
        "created": item.created,
        "modified": item.modified,
        "expires": item.expires,
        "attributes": dict(item.attributes),
        "value": value.hex(),
    }


def contents(vault):
    """The output of `dump`."""
    order = sorted(
        vault.secrets.values(), key=lambda one: (one.item.service.encode("utf-8"), one.item.account.encode("utf-8"))
    )
    return {
        "outcome": f.RECOVERED if vault.recovered else f.OK,
        "recovered": vault.recovered,
        "sequence": vault.state.sequence,
        "checkpoint": vault.checkpoint,
        "items": [described(one.item, one.value) for one in order],
    }


def dump(arguments):
    limits = r.Limits(memory_kib=arguments.memory_limit_kib, passes=arguments.passes_limit)
    return contents(r.read_vault(read_file(arguments.vault), credential_of(arguments), limits))


def write(arguments):
    made = w.NewFile(json.loads(read_file(arguments.description)))
    w.write_new_file(arguments.vault, made.file)
    state = max(made.states, key=lambda state: state.sequence)
    return {"sequence": state.sequence, "checkpoint": f"{state.sequence}-{state.tail_tag.hex()}"}


def append(arguments):
    description = json.loads(read_file(arguments.changes))
    random = w.seeded_random(description["seed"]) if "seed" in description else w.system_random
    checkpoint = w.commit(arguments.vault, credential_of(arguments), description["changes"], random)
    return {"sequence": int(checkpoint.partition("-")[0]), "checkpoint": checkpoint}


def key_text(arguments):
    return {"key": f.parse_key_text(read_file(arguments.file)).hex()}


def parsed(arguments):
    parser = argparse.ArgumentParser(description="Reads and writes Coffer's vault files, for the tests.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, summary, opens=False):
        one = commands.add_parser(name, help=summary)
        one.set_defaults(run=run)
        if opens:
            group = one.add_mutually_exclusive_group(required=True)
            group.add_argument("--key-text-file", metavar="F", help="a file with the key's text")
            group.add_argument("--passphrase-file", metavar="F", help="a file with the passphrase")
        return one

    one = command("dump", dump, "authenticate every byte of a vault and print what is in it", opens=True)
    one.add_argument("vault", metavar="VAULT")
    one.add_argument("--memory-limit-kib", type=int, default=1 << 20, metavar="N", help="for passphrase slots")
    one.add_argument("--passes-limit", type=int, default=16, metavar="N", help="for passphrase slots")
    one = command("write", write, "make a vault from a description")
    one.add_argument("description", metavar="SPEC.json")
    one.add_argument("vault", metavar="VAULT")
    one = command("append", append, "commit changes to a vault, in one transaction", opens=True)
    one.add_argument("vault", metavar="VAULT")
    one.add_argument("changes", metavar="CHANGES.json")
    one = command("key-text", key_text, "check a key file and print its key")
    one.add_argument("file", metavar="F")
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
