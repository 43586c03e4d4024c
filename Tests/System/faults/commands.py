"""The commands that change something, each with the files that it is expected to change."""

from dataclasses import dataclass, field

VALUE = "canary-5e1d7a90c2b84f36"
# Values with the searched text in them, which no file of a vault contains.
FIRST, SECOND, THIRD = VALUE + "-first", VALUE + "-second", VALUE + "-third"


@dataclass
class Command:
    """A command of the tool, run in the directory `work` of the scene."""

    name: str
    arguments: list
    given: str = ""
    # Shell commands that prepare the scene, after the vault with its secrets a, b and old.
    setting: list = field(default_factory=list)
    # A file with values in plain text that the command writes.
    output: str = ""
    # A key file that the command creates, for the vault at `vault`.
    new_key: str = ""
    vault: str = ""
    environment: dict = field(default_factory=dict)


COPY = 'cp "$XDG_DATA_HOME/coffer/default.vault" other && '

COMMANDS = [
    Command("init", ["init", "--vault", "V", "--key-file", "K"], new_key="K", vault="V"),
    Command("init-with-key", ["init", "--vault", "V", "--key-file", "../key"], vault="V"),
    Command("set", ["set", "new"], THIRD),
    Command("set-existing", ["set", "a"], THIRD),
    Command("set-no-history", ["set", "a", "--no-history"], THIRD),
    Command("generate", ["generate", "new"]),
    Command("remove", ["remove", "a"]),
    Command("remove-purge", ["remove", "--purge", "a"]),
    Command("move", ["move", "a", "c"]),
    Command("restore", ["restore", "old"]),
    Command("edit", ["edit", "a"], environment={"EDITOR": f"printf %s {THIRD} >"}),
    Command("import", ["import", "--overwrite", "-"], f"a={THIRD}\nn1={FIRST}\nn2={SECOND}\n"),
    Command("export", ["export", "-o", "out"], output="out"),
    Command("export-replacing", ["export", "-o", "out", "--force"], setting=["echo before > out"], output="out"),
    Command("inject", ["inject", "-i", "template", "-o", "out"], output="out"),
    Command("inject-replacing", ["inject", "-i", "template", "-o", "out"], setting=["echo before > out"], output="out"),
    Command("history-limit", ["history-limit", "--versions", "1", "--purge"]),
    Command("trust", ["trust", "--policy", "versioned"]),
    Command("merge-later", ["merge", "other", "--yes"], setting=[COPY + f"printf {THIRD} | secret set new --vault other"]),
    Command(
        "merge", ["merge", "other", "--pin", "PIN"],
        setting=[COPY + f"printf {THIRD} | secret set new --vault other && printf {THIRD} | secret set ours"]),
    Command(
        "git-merge-driver", ["git-merge-driver", "base", "../home/data/coffer/default.vault", "other", "s.vault"],
        setting=[COPY + f"cp other base && printf {THIRD} | secret set new --vault other && printf {THIRD} | secret set ours"]),
    Command("trust-advance", ["trust", "--advance", "--pin", "PIN"], setting=[COPY + "true"]),
    Command("key-add", ["key", "add", "--key-file", "K"], new_key="K"),
    Command("key-add-recovery", ["key", "add", "--recovery"]),
    Command(
        "key-add-recipient", ["key", "add", "--recipients-file", "../r"],
        setting=["secret key new --x25519 --output ../identity > ../r"]),
    Command(
        "key-remove", ["key", "remove", "SLOT"],
        setting=["secret key add --key-file K2 --label removable && rm K2"]),
    Command("rekey", ["rekey"]),
    Command(
        "change-passphrase", ["key", "change-passphrase"], "new passphrase",
        setting=["echo old passphrase | secret key add --passphrase"]),
    Command(
        "copy", ["copy", "--from", "vault", "--to", "vault:V"],
        setting=["secret init --vault V --key-file ../other && secret --vault V verify"], vault="V"),
]
