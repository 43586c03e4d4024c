"""What is searched: every way to open a vault, and every operation, of the tool and of the library.

A function is a scenario. Its docstring says what it uses.
"""

import json
import os
from pathlib import Path

from setting import Allowed, NotPossible

# Every place but guarded memory.
OUTSIDE = ("[heap]", "anonymous memory", "[stack]", "vector registers", "general registers")


def made(setting, count=1):
    """A vault with a key file and `count` secrets, which was not searched."""
    setting.environment["COFFER_KEY_FILE"] = str(setting.key_file())
    setting.prepare("init", "--key-file", str(setting.key_file()))
    for number in range(count):
        setting.prepare("set", f"name{number}", given=setting.value())
    return setting


def with_passphrase(setting):
    """A vault with a passphrase and a secret."""
    made(setting)
    passphrase = setting.passphrase()
    setting.prepare("key", "add", "--passphrase", given=passphrase)
    del setting.environment["COFFER_KEY_FILE"]
    (setting.directory / "c" / "coffer" / "config.toml").unlink()
    return passphrase


# Ways to open a vault


def key_file(setting):
    """COFFER_KEY_FILE"""
    made(setting).search("get", "name0")


def recorded_key_file(setting):
    """the key file of the configuration"""
    made(setting)
    del setting.environment["COFFER_KEY_FILE"]
    setting.search("get", "name0")


def systemd_credential(setting):
    """CREDENTIALS_DIRECTORY"""
    made(setting)
    setting.key_file().rename(setting.directory / "coffer.key")
    (setting.directory / "key.link").symlink_to("coffer.key")
    del setting.environment["COFFER_KEY_FILE"]
    setting.search("get", "name0", CREDENTIALS_DIRECTORY=str(setting.directory))


def key_variable(setting):
    """COFFER_KEY"""
    made(setting)
    del setting.environment["COFFER_KEY_FILE"]
    text = setting.key_file().read_text().strip()
    reason = "COFFER_KEY is in the environment, and in guarded memory, for the life of the process"
    allowed = Allowed(reason, ("text of key", "key"), ("environment", "guarded"))
    setting.search("get", "name0", COFFER_KEY=text, allowed=[allowed])


def passphrase_file(setting):
    """COFFER_PASSPHRASE_FILE"""
    file = setting.directory / "passphrase"
    file.write_bytes(with_passphrase(setting))
    setting.search("get", "name0", COFFER_PASSPHRASE_FILE=str(file))


def passphrase_descriptor(setting):
    """COFFER_PASSPHRASE_FD"""
    file = setting.directory / "passphrase"
    file.write_bytes(with_passphrase(setting))
    descriptor = os.open(file, os.O_RDONLY)
    reason = "COFFER_PASSPHRASE_FD can be read only once, so guarded memory keeps the passphrase"
    setting.search("get", "name0", descriptors=(descriptor,), COFFER_PASSPHRASE_FD=str(descriptor),
                   allowed=[Allowed(reason, ("passphrase",), ("guarded",))])
    os.close(descriptor)


def passphrase_command(setting):
    """COFFER_PASSPHRASE_COMMAND"""
    file = setting.directory / "passphrase"
    file.write_bytes(with_passphrase(setting))
    setting.search("get", "name0", COFFER_PASSPHRASE_COMMAND=f"cat {file}")


def passphrase_prompt(setting):
    """a prompt on a terminal"""
    passphrase = with_passphrase(setting)
    setting.search("get", "name0", typed=[passphrase])


def wrong_credentials(setting):
    """a wrong passphrase, a wrong key and a mistyped one"""
    with_passphrase(setting)
    setting.search("get", "name0", typed=[setting.passphrase() for _ in range(3)], status=77)
    other = setting.directory / "key-other"
    setting.environment["COFFER_KEY_FILE"] = str(other)
    setting.prepare("init", "--vault", str(setting.directory / "other.vault"), "--key-file", str(other))
    setting.search("get", "name0", status=77)
    text = setting.key_file().read_bytes()
    mistyped = setting.directory / "mistyped"
    mistyped.write_bytes(text[:-8] + bytes(b ^ 1 for b in text[-8:-1]) + b"\n")
    setting.search("get", "name0", COFFER_KEY_FILE=str(mistyped), status=78)


def kernel_keyring(setting):
    """secret unlock, and the kernel keyring"""
    made(setting)
    if setting.status("unlock") != 0:
        raise NotPossible("the kernel keyring is not allowed here")
    setting.search("unlock")
    setting.key_file().rename(setting.directory / "moved")
    (setting.directory / "key.link").symlink_to("moved")
    del setting.environment["COFFER_KEY_FILE"]
    (setting.directory / "c" / "coffer" / "config.toml").unlink()
    setting.search("get", "name0")
    setting.search("lock")


def recovery_key(setting):
    """key add --recovery, and key recover"""
    made(setting)
    printed = setting.search("key", "add", "--recovery")
    text = printed.decode().split("coffer-key-v1:")[1]
    code = "coffer-key-v1:" + "".join(text.split())[:48]
    (setting.directory / "key-recovery").write_text(code)
    del setting.environment["COFFER_KEY_FILE"]
    (setting.directory / "c" / "coffer" / "config.toml").unlink()
    setting.search("key", "recover", "--key-file", setting.key_file("key-new"), given=code.encode())


def identity(setting):
    """key new, and a vault for the recipient of an identity"""
    file = setting.key_file("key-identity")
    recipient = setting.search("key", "new", "--x25519", "--output", file).decode().strip()
    setting.environment["COFFER_KEY_FILE"] = str(file)
    setting.search("init", "--recipient", recipient)
    setting.search("set", "name0", given=setting.value())
    setting.search("get", "name0")
    setting.search("rekey")
    setting.search("get", "name0")


# Operations


def create_with_key(setting):
    """init with a key file"""
    setting.search("init", "--key-file", setting.key_file())


def create_with_passphrase(setting):
    """init with a passphrase on a terminal"""
    passphrase = setting.passphrase()
    setting.search("init", "--passphrase", typed=[passphrase, passphrase])


def store_and_read(setting):
    """set, get, info, list, find, history, restore, remove, verify"""
    made(setting)
    setting.search("set", "name1", given=setting.value())
    setting.search("set", "name1", given=setting.value())
    setting.search("set", "large", given=setting.value(20_000))
    setting.search("get", "large")
    typed = setting.value()
    setting.search("set", "typed", typed=[typed, typed])
    setting.search("info", "name1")
    setting.search("list")
    setting.search("find", "name")
    setting.search("history", "name1")
    versions = json.loads(setting.prepare("history", "name1", "--json"))
    setting.search("get", "--version", str(versions[-1]["version"]), "name1")
    setting.search("restore", "name1")
    setting.search("move", "name1", "name2")
    setting.search("remove", "name2")
    setting.search("verify")
    setting.search("get", "missing", status=1)
    setting.search("doctor")


def value_sizes(setting):
    """values of the lengths that are copied in different ways, from 8 bytes in one register on"""
    made(setting)
    for size in (8, 15, 17, 31, 40, 63, 129, 1000):
        setting.search("set", f"{size}", given=setting.value(size))
        setting.search("get", f"{size}")
    passphrase = setting.passphrase(12)
    setting.search("key", "add", "--passphrase", given=passphrase)
    setting.search("key", "change-passphrase", given=setting.passphrase(20))


def compaction(setting):
    """changes that write the file anew"""
    made(setting, 3)
    setting.search("set", "--no-history", "name0", given=setting.value())
    setting.search("remove", "--purge", "name1")
    setting.search("history-limit", "--versions", "0", "--purge")


def rekey(setting):
    """rekey with a key and a passphrase"""
    made(setting)
    setting.search("rekey")
    passphrase = setting.passphrase()
    setting.prepare("key", "add", "--passphrase", given=passphrase)
    setting.search("rekey", typed=[passphrase])


def rekey_elsewhere(setting):
    """the first look at a vault since a rekey that this user's record does not know"""
    made(setting)
    for _ in range(2):
        setting.prepare("rekey", XDG_STATE_HOME=str(setting.directory / "other"))
    setting.search("get", "name0")


def key_slots(setting):
    """key add, list, change-passphrase, remove"""
    made(setting)
    first, second = setting.passphrase(), setting.passphrase()
    setting.search("key", "add", "--passphrase", typed=[first, first])
    setting.search("key", "add", "--key-file", setting.key_file("key-second"))
    setting.search("key", "list")
    setting.search("key", "change-passphrase", given=second)
    slots = json.loads(setting.prepare("key", "list", "--json"))
    setting.search("key", "remove", slots[-1]["id"], typed=[second])


def generation(setting):
    """generate"""
    made(setting)
    setting.search("generate", "random")
    setting.search("generate", "words", "--words", "12")
    setting.search("generate", "set", "--alphabet", "hex", "--length", "40")
    setting.search("generate", "random", "--force", "--print")


def templates_and_programs(setting):
    """inject, run, run --file, export, import"""
    made(setting)
    setting.search("inject", given=b"x = {{ secret://secret/name0 }}\n")
    passed = Allowed("the environment of the command that run starts", ("value",), OUTSIDE)
    # The process becomes the command, so its memory goes at once.
    setting.search("run", "--set", "A=name0", "--", "/bin/true", allowed=[passed], ends_empty=False)
    setting.search("run", "--file", "A=name0", "--", "/bin/true", ends_empty=False)
    setting.search("run", "--restart", "--set", "A=name0", "--", "/bin/true", allowed=[passed], ends_empty=False)
    written = Allowed("JSON, while values are encoded or decoded", ("value",), OUTSIDE)
    exported = setting.search("export", "--format", "json", allowed=[written])
    setting.search("import", "--overwrite", "-", given=exported, allowed=[written])


def editing_and_redaction(setting):
    """edit, run --redact"""
    made(setting)
    script = setting.directory / "editor"
    script.write_bytes(b"#!/bin/sh\nprintf %s " + setting.value() + b' > "$1"\n')
    script.chmod(0o700)
    setting.search("edit", "name0", EDITOR=str(script))
    shown = Allowed("the output of a command under run --redact", ("value",), OUTSIDE)
    setting.search("run", "--redact", "--set", "A=name0", "--", "/bin/sh", "-c", "echo $A", allowed=[shown],
                   ends_empty=False)


def credential_helpers(setting):
    """git-credential and docker-credential"""
    made(setting)
    setting.search("git-credential", "store", given=b"protocol=https\nhost=h\nusername=u\npassword=" + setting.value() + b"\n\n")
    setting.search("git-credential", "get", given=b"protocol=https\nhost=h\n\n")
    login = json.dumps({"ServerURL": "https://h", "Username": "u", "Secret": setting.value().decode()})
    written = Allowed("JSON, while values are encoded or decoded", ("value",), OUTSIDE)
    setting.search("docker-credential", "store", given=login.encode(), allowed=[written])
    setting.search("docker-credential", "get", given=b"https://h", allowed=[written])


# The library


def library(scenario, has_leak=False):
    def search(setting):
        made(setting)
        canary = setting.value()
        reading, writing = os.pipe()
        os.write(writing, canary * 100)
        os.close(writing)
        os.dup2(reading, 3)
        probe = str(Path(setting.tool).parent / "CofferProbe")
        setting.prepare("set", "-s", "probe", "name", given=setting.value())
        setting.search("memory", scenario, setting.vault, program=probe, descriptors=(3,), has_leak=has_leak)
        os.close(3)
        if reading != 3:
            os.close(reading)

    search.__doc__ = f"the scenario {scenario} of CofferProbe" + (", which must be found" if has_leak else "")
    return search


TOOL = (
    key_file, recorded_key_file, systemd_credential, key_variable, passphrase_file, passphrase_descriptor,
    passphrase_command, passphrase_prompt, wrong_credentials, kernel_keyring, recovery_key, identity,
    create_with_key, create_with_passphrase, store_and_read, value_sizes, compaction, rekey, rekey_elsewhere, key_slots, generation,
    templates_and_programs, editing_and_redaction, credential_helpers,
)


def named(tool):
    found = {one.__name__.replace("_", "-"): one for one in TOOL}
    if (Path(tool).parent / "CofferProbe").exists():
        found |= {f"library-{name}": library(name) for name in ("values", "unlocking", "slots")}
        found["library-leak"] = library("leak-array", has_leak=True)
    return found
