#!/usr/bin/python3
"""Tests that no item of another program is lost or changed, by random operations of three programs on one keyring.

usage: random_sequences.py SECRET [--sequences NUMBER] [--operations NUMBER] [--seed NUMBER]

SECRET        the path of the tool
--sequences   how many sequences to run, 100 by default
--operations  how many operations each has, 30 by default
--seed        the seed of the first sequence, 1 by default; each following one has the next

Coffer, secret-tool and Python's keyring store, change and remove secrets with few names, which they tell apart by
attributes, labels and collections. Other programs' items are also made with `account` in place of `username`, without a
name, and twice. Before and after each operation of Coffer the whole keyring is read, and compared with what ownership.py
allows. Exit status: 0 if every operation did what it may, else 1.
"""

import argparse
import os
import random
import sys
import tempfile
import time

from ownership import Broken, Item, Model
from private_session import Session

SERVICES, NAMES = ("vpn", "mail"), ("ann", "bob")
PYTHON = "Python keyring library"


class Keyring:
    """All items of the private keyring, by secretstorage."""

    def __init__(self, session):
        # Only now: the libraries find the bus in the environment.
        os.environ.update(session.environment)
        import keyring.backends.SecretService
        import secretstorage

        self.library = secretstorage
        self.python = keyring.backends.SecretService.Keyring()
        self.connect()

    def connect(self):
        self.connection = self.library.dbus_init()

    def collections(self):
        return list(self.library.get_all_collections(self.connection))

    def items(self):
        found = {}
        for collection in self.collections():
            for item in collection.get_all_items():
                # gnome-keyring changes the schemas of items when it reads the file again.
                attributes = {pair for pair in item.get_attributes().items() if pair[0] != "xdg:schema"}
                found[item.item_path] = Item(
                    item.item_path, tuple(sorted(attributes)), item.get_label(), item.get_secret(), item.get_created(),
                    item.get_modified(),
                )  # fmt: skip
        return found

    def clear(self):
        for collection in self.collections():
            for item in collection.get_all_items():
                item.delete()


class Sequence:
    def __init__(self, tool, session, keyring, seed, log):
        self.tool, self.session, self.keyring, self.log = tool, session, keyring, log
        self.random = random.Random(seed)
        self.model = Model(keyring.items())
        self.count = 0

    def step(self):
        # Coffer's operations are the ones that are judged.
        operation = self.random.choices((self.coffer, self.others), (3, 2))[0]
        operation()

    def value(self):
        self.count += 1
        ending = self.random.choice(("", "", "", "\\n", "\nline", " ", "é"))
        return f"value {self.count}{ending}"

    def name(self):
        return self.random.choice(SERVICES), self.random.choice(NAMES)

    # Other programs

    def attributes(self):
        service, name = self.name()
        key = self.random.choices(("username", "account"), (4, 1))[0]
        result = {"service": service, key: name}
        more = {
            "target": ("default", "work", "home"), "application": ("mutt", PYTHON), "account": NAMES,
            "xdg:schema": ("org.example.Other",), "purpose": ("backup",),
        }  # fmt: skip
        for attribute, values in more.items():
            if self.random.random() < 0.2:
                result.setdefault(attribute, self.random.choice(values))
        if self.random.random() < 0.07:
            del result[self.random.choice(("service", key))]
        return result

    def others(self):
        operations = (self.secret_tool_store, self.secret_tool_clear, self.python_set, self.python_delete, self.create,
                      self.relabel, self.restart, self.wait)  # fmt: skip
        self.random.choices(operations, (6, 1, 4, 1, 4, 1, 0.3, 1))[0]()
        self.model.adopt(self.keyring.items())

    def secret_tool_store(self):
        attributes = self.attributes()
        schema = attributes.pop("xdg:schema", None)
        pairs = [text for pair in attributes.items() for text in pair] or ["service", "none"]
        place = ["--collection=session"] if self.random.random() < 0.1 else []
        label = self.random.choice(("one", "two"))
        self.log(f"secret-tool store --label={label} {place} {attributes} {schema or ''}")
        self.session.run("secret-tool", "store", f"--label={label}", *place, *pairs, given=self.value().encode())

    def secret_tool_clear(self):
        attributes = self.attributes()
        attributes.pop("xdg:schema", None)
        self.log(f"secret-tool clear {attributes}")
        self.session.run("secret-tool", "clear", *[text for pair in attributes.items() for text in pair])

    def python_set(self):
        name, value = self.name(), self.value()
        self.log(f"keyring.set_password {name}")
        self.keyring.python.set_password(*name, value)

    def python_delete(self):
        name = self.name()
        self.log(f"keyring.delete_password {name}")
        try:
            self.keyring.python.delete_password(*name)
        except Exception as error:
            if type(error).__name__ != "PasswordDeleteError":
                raise

    def create(self):
        attributes, label = self.attributes(), self.random.choice(("one", "two"))
        collection = self.random.choices(self.keyring.collections())[0]
        self.log(f"secretstorage create_item {label} {attributes} in {collection.collection_path}")
        collection.create_item(label, attributes, self.value().encode(), replace=False)

    def relabel(self):
        found = [item for collection in self.keyring.collections() for item in collection.get_all_items()]
        if found:
            item = self.random.choice(sorted(found, key=lambda item: item.item_path))
            self.log(f"secretstorage set_label {item.item_path}")
            item.set_label(self.random.choice(("one", "two")))

    def restart(self):
        self.log("the daemon is killed and started")
        self.session.stop()
        self.session.start("password")
        self.keyring.connect()

    def wait(self):
        self.log("the next second begins")  # the keyring's times are in whole seconds
        time.sleep(1.02 - time.time() % 1)

    # Coffer

    def coffer(self):
        operations = (self.set, self.get, self.read_all, self.remove, self.move, self.copy)
        self.random.choices(operations, (8, 3, 2, 2, 3, 0.5))[0]()

    def run(self, service, *arguments, given=b""):
        self.log(f"secret -s {service} {' '.join(arguments)}")
        result = self.session.run(self.tool, "--backend", "keyring", "-s", service, *arguments, given=given)
        if result.returncode not in (0, 1, 64, 73):
            raise Broken(f"exit status {result.returncode}: {result.stderr.decode()}")
        return result

    def set(self):
        service, name = self.name()
        options, value = [], self.value()
        if self.random.random() < 0.3:
            options += ["--label", self.random.choice(("one", "two", "ours"))]
        if self.random.random() < 0.2:
            attribute = self.random.choice(("target=work", "note=n", "application=mutt", "account=ann"))
            options += ["--attribute", attribute]
        result = self.run(service, "set", "--verbatim", *options, name, given=value.encode())
        self.model.check_set((service, name), value, options, result.returncode, self.keyring.items())
        result = self.session.run(self.tool, "--backend", "keyring", "-s", service, "get", name)
        if result.stdout != value.encode():
            raise Broken(f"get after set printed {result.stdout}, not {value.encode()}")

    def get(self):
        service, name = self.name()
        result = self.run(service, "get", name)
        self.model.check_get((service, name), result.returncode, result.stdout)
        self.model.check_unchanged(self.keyring.items())

    def read_all(self):
        service, _ = self.name()
        lines = self.run(service, "list").stdout.decode().splitlines()
        self.model.check_list(service, lines)
        self.run(service, "find", "a")
        self.model.check_export(self.run(service, "export", "--all-services"))
        self.model.check_unchanged(self.keyring.items())

    def remove(self):
        service, name = self.name()
        all_ = self.random.random() < 0.5
        result = self.run(service, "remove", *(["--all"] if all_ else []), name)
        self.model.check_remove((service, name), all_, result.returncode, self.keyring.items())

    def move(self):
        (service, name), (to_service, to_name) = self.name(), self.name()
        all_, force = self.random.random() < 0.4, self.random.random() < 0.5
        options = (["--all"] if all_ else []) + (["--force"] if force else [])
        result = self.run(service, "move", *options, "--to-service", to_service, name, to_name)
        self.model.check_move((service, name), (to_service, to_name), all_, force, result.returncode,
                              self.keyring.items())  # fmt: skip

    def copy(self):
        self.log("secret copy")
        result = self.session.run(self.tool, "copy", "--from", "keyring", "--to", f"vault:{self.session.directory}/vault",
                                  "--overwrite")  # fmt: skip
        self.model.check_copy(result)
        self.model.check_unchanged(self.keyring.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("secret")
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--operations", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tool = os.path.abspath(options.secret)
    broken, operations = 0, 0
    with tempfile.TemporaryDirectory() as directory:
        session = Session(directory)
        try:
            session.start("password")
            keyring = Keyring(session)
            session.run(tool, "init", "--vault", f"{directory}/vault")
            for seed in range(options.seed, options.seed + options.sequences):
                keyring.clear()
                lines = []
                sequence = Sequence(tool, session, keyring, seed, lines.append)
                try:
                    for _ in range(options.operations):
                        sequence.step()
                        operations += 1
                except Broken as error:
                    broken += 1
                    print(f"FAILED: sequence {seed}, operation {len(lines)}: {error}")
                    print("".join(f"   {line}\n" for line in lines))
        finally:
            session.end()
    print(f"{options.sequences} sequences, {operations} operations, {broken} sequences broke a rule")
    sys.exit(1 if broken else 0)


main()
