#!/usr/bin/python3
"""A vault in repositories of real git: what each git command makes of two sides' changes.

usage: merges_with_git.py SECRET [CASE]...

SECRET is the built tool. Each case makes a repository, changes the vault on two branches, and compares the secrets
afterwards with the expected ones. The vault always opens in its place, and git's status is the expected one.

Exit status: 0 every case is as expected, 1 one is not, 64 wrong usage.
"""

import fcntl
import json
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import termios

CASES = {}
OLDER = "is older than, or another branch of"
TIMEOUT = 120  # in seconds; a command that takes longer hangs


def case(function):
    CASES[function.__name__.replace("_", " ")] = function
    return function


class Wrong(Exception):
    pass


class Member:
    """A home, a clone of the repository, and an identity or a key."""

    def __init__(self, lab, name, identity=False):
        self.home, self.work = os.path.join(lab.root, name), os.path.join(lab.root, name, "shop")
        os.makedirs(self.home)
        self.environment = {
            "PATH": f"{lab.root}/bin:/usr/bin:/bin", "HOME": self.home, "LC_ALL": "C.UTF-8", "GIT_EDITOR": "true",
            "COFFER_KEY_FILE": f"{self.home}/identity" if identity else f"{lab.root}/key", "COFFER_VAULT": "s.vault",
            "COFFER_NO_PROMPT": "1", "GIT_CONFIG_NOSYSTEM": "1",
        }
        self.vault, self.number = "s.vault", 0
        for setting, value in (("user.name", name), ("user.email", f"{name}@example.org"), ("init.defaultBranch", "main")):
            self.run("git", "config", "--global", setting, value, at=self.home)
        if identity:
            made = self.run("secret", "key", "new", "--x25519", "--output", f"{self.home}/identity", at=self.home)
            self.recipient = made.stdout.split()[-1]

    def run(self, *command, at=None, given="", status=0, **variables):
        done = subprocess.run(
            command, cwd=at or self.work, env=self.environment | variables, input=given, capture_output=True, text=True,
            timeout=TIMEOUT)
        if status is not None and done.returncode != status:
            raise Wrong(f"{' '.join(command)}: status {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def remove_key_of(self, other):
        slots = json.loads(self.secret("key", "list", "--json").stdout)
        self.secret("key", "remove", next(one["id"] for one in slots if other.recipient.startswith(one["recipient"][:20])))
        self.commit("without a member")

    def git(self, *arguments, **options):
        return self.run("git", *arguments, **options)

    def secret(self, *arguments, **options):
        return self.run("secret", *arguments, **options)

    def begin(self, *arguments):
        """A repository with a vault in its first commit."""
        self.git("init", "-q", self.work, at=self.home)
        self.secret("init", "--git", *(arguments or ("--key-file", self.environment["COFFER_KEY_FILE"])))
        self.commit("first")

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def set(self, **values):
        """A commit for each value."""
        for name, value in values.items():
            self.secret("set", name, given=value)
            self.commit(f"set {name} {value}")

    def remove(self, *names):
        for name in names:
            self.secret("remove", name)
            self.commit(f"remove {name}")

    def branch(self, name):
        self.git("checkout", "-qb", name)

    def elsewhere(self, changes):
        """Makes changes with the records of another machine, so that this one has not seen them."""
        self.environment["XDG_STATE_HOME"] = f"{self.home}/another machine"
        changes()
        del self.environment["XDG_STATE_HOME"]

    def pin(self, **variables):
        return json.loads(self.secret("verify", "--json", **variables).stdout)["pin"]

    def trust(self, policy):
        self.secret("trust", "--policy", policy, "--pin", self.pin())

    def serve(self, commit):
        """What somebody without a key can do: a commit with a file that was pushed."""
        with open(f"{self.work}/s.vault", "wb") as stream:
            subprocess.run(["git", "show", f"{commit}:s.vault"], cwd=self.work, env=self.environment, stdout=stream, check=True)
        self.commit(f"the file of {commit}")

    def values(self):
        done = self.secret("export", "--all-services", status=None)
        if done.returncode not in (0, 1):
            raise Wrong(f"the vault does not open: {done.stderr}")
        return {one["account"]: one["value"] for one in json.loads(done.stdout or '{"secrets": []}')["secrets"]}

    def expect(self, conflicts=(), **values):
        if self.values() != values:
            raise Wrong(f"the secrets are {self.values()}, not {values}")
        found = self.secret("list", "--conflicts").stdout.split()
        if found != list(conflicts):
            raise Wrong(f"in conflict are {found}, not {list(conflicts)}")
        self.secret("verify")

    def expect_merged(self):
        status = self.git("status", "--porcelain").stdout
        if status:
            raise Wrong(f"git's status is {status!r}")

    def expect_unmerged(self):
        if not self.git("ls-files", "--unmerged").stdout:
            raise Wrong("git does not list the vault as unmerged")


class Lab:
    def __init__(self, tool, root):
        self.root = root
        os.makedirs(f"{root}/bin")
        os.symlink(os.path.abspath(tool), f"{root}/bin/secret")

    def another(self, name):
        return Lab(os.readlink(f"{self.root}/bin/secret"), f"{self.root}/{name}")

    def member(self, name="ann", identity=False):
        return Member(self, name, identity)

    def pair(self):
        """Ann's repository with a vault, and Bob's clone through a bare one."""
        ann, bob = self.member("ann", True), self.member("bob", True)
        ann.begin("--recipient", ann.recipient, "--recipient", bob.recipient)
        ann.git("clone", "-q", "--bare", ann.work, f"{self.root}/bare", at=ann.home)
        ann.git("remote", "add", "origin", f"{self.root}/bare")
        ann.git("push", "-qu", "origin", "main")
        bob.git("clone", "-q", f"{self.root}/bare", bob.work, at=bob.home)
        bob.secret("trust", "--pin", json.loads(ann.secret("verify", "--json").stdout)["pin"])
        bob.secret("init", "--git")
        return ann, bob


def branches(lab, ours, theirs, **common):
    """A repository whose branches `main`, which is checked out, and `side` come from `common`."""
    ann = lab.member()
    ann.begin()
    ann.set(**common)
    ann.branch("side")
    theirs(ann)
    ann.git("checkout", "-q", "main")
    ours(ann)
    return ann


# What git merges


@case
def merge(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: (one.set(theirs="3"), one.remove("old")), old="1", a="1")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="1", ours="2", theirs="3")
    ann.expect_merged()
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="1", ours="2", theirs="3")


@case
def merge_with_two_values(lab):
    ann = branches(lab, lambda one: one.set(a="2", b="2"), lambda one: one.set(a="3", c="3"), a="1")
    ann.git("merge", "-q", "--no-edit", "side", status=1)
    ann.expect_unmerged()
    ann.expect(["a"], a="2", b="2", c="3")
    ann.secret("restore", "a")
    ann.commit("merged")
    ann.expect(a="3", b="2", c="3")


@case
def rebase(lab):
    ann = branches(lab, lambda one: one.set(ours="2", again="2"), lambda one: one.set(theirs="3", more="3"), a="1")
    ann.git("rebase", "-q", "side")
    ann.expect(a="1", ours="2", again="2", theirs="3", more="3")
    ann.expect_merged()


@case
def rebase_that_drops_a_commit(lab):
    ann = branches(lab, lambda one: one.set(one="2", two="2", three="2"), lambda one: one.set(theirs="3"), a="1")
    ann.git("rebase", "-qi", "side", GIT_SEQUENCE_EDITOR="sed -i /two/d")
    ann.expect(a="1", one="2", three="2", theirs="3")
    ann.expect_merged()


@case
def cherry_pick_one_of_three(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(one="3", two="3", three="3"), a="1")
    ann.git("cherry-pick", "side~1")
    ann.expect(a="1", ours="2", two="3")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="1", ours="2", one="3", two="3", three="3")


@case
def revert_of_a_commit_that_is_not_the_newest(lab):
    ann = lab.member()
    ann.begin()
    ann.set(a="1", b="1")
    ann.set(a="2")
    ann.set(c="1")
    done = ann.git("revert", "--no-edit", ":/set a 2")
    if "an earlier value again: “a”" not in done.stderr:
        raise Wrong(f"the revert does not say what it does: {done.stderr}")
    ann.expect(a="1", b="1", c="1")
    ann.git("revert", "--no-edit", ":/set b")
    ann.expect(a="1", c="1")
    ann.git("revert", "--no-edit", ":/Revert .set b")
    ann.expect(a="1", b="1", c="1")
    ann.expect_merged()


@case
def merge_of_a_revert(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.git("revert", "--no-edit", ":/set b"), a="1", b="1", c="1")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="1", c="1", ours="2")
    ann.expect_merged()


@case
def stash(lab):
    ann = lab.member()
    ann.begin()
    ann.set(a="1")
    ann.secret("set", "stashed", given="2")
    ann.git("stash", "-q")
    ann.expect(a="1")
    ann.set(b="3")
    ann.git("stash", "pop")
    ann.expect(a="1", b="3", stashed="2")


@case
def squash_and_go_on(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(theirs="3", a="4"), a="1")
    ann.git("merge", "-q", "--squash", "side")
    ann.commit("squashed")
    ann.expect(a="4", ours="2", theirs="3")
    ann.git("checkout", "-q", "side")
    ann.set(later="5", a="6")
    ann.git("checkout", "-q", "main")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="6", ours="2", theirs="3", later="5")


@case
def a_branch_merged_twice(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(theirs="3"), a="1")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.remove("theirs")
    ann.git("checkout", "-q", "side")
    ann.set(more="4")
    ann.git("checkout", "-q", "main")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="1", ours="2", more="4")


@case
def criss_cross(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(theirs="3"), a="1")
    ann.git("branch", "old-main")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.git("checkout", "-q", "side")
    ann.git("merge", "-q", "--no-edit", "old-main")
    ann.set(b="4")
    ann.git("checkout", "-q", "main")
    ann.set(a="5")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="5", b="4", ours="2", theirs="3")
    ann.expect_merged()


def strict(lab):
    """A strict vault, and a branch that was rejected, which a host offers again."""
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(a="rejected"), a="1")
    ann.trust("strict")
    if "strict" not in ann.secret("doctor", status=None).stdout:
        raise Wrong("the vault is not strict")
    return ann


def answering(ann, answer, *command):
    """Runs the command with a terminal on which the question is answered. Returns its status and what was on it."""
    terminal, device = pty.openpty()
    environment = {name: value for name, value in ann.environment.items() if name != "COFFER_NO_PROMPT"}
    session = lambda: (os.setsid(), fcntl.ioctl(device, termios.TIOCSCTTY, 0))
    streams = {"stdin": device, "stdout": device, "stderr": device}
    process = subprocess.Popen(command, cwd=ann.work, env=environment, preexec_fn=session, **streams)
    os.close(device)
    text = b""
    try:
        while chunk := os.read(terminal, 4096):
            text += chunk
            if text.endswith(b"[y/N] "):
                os.write(terminal, answer)
    except OSError:
        pass  # the end
    os.close(terminal)
    return process.wait(timeout=TIMEOUT), text.decode()


@case
def a_strict_vault_without_a_terminal(lab):
    ann = strict(lab)
    done = ann.git("merge", "--no-edit", "side", status=1)
    if "stored: “a”" not in done.stderr or "secret merge - --vault s.vault --pin PIN" not in done.stderr:
        raise Wrong(f"the driver does not say what comes and what to do: {done.stderr}")
    ann.expect_unmerged()
    ann.expect(a="1", ours="2")
    pin = done.stderr.partition("The pin of the other side is ")[2].split()[0].rstrip(".")
    ann.run("sh", "-c", f"git show :3:s.vault | secret merge - --pin {pin} && git add s.vault")
    ann.expect(a="rejected", ours="2")


@case
def a_merge_that_is_taken_back_before_anybody_reads_it(lab):
    """A host appends a commit with an older file, which a fast-forward brings."""
    for policy in ("versioned", "strict"):
        for command in ("merge --no-edit side", "cherry-pick side", "rebase side"):
            one = lab.another(f"{policy}-{command.partition(' ')[0]}")
            ann = strict(one)
            if policy != "strict":
                ann.trust(policy)
            shutil.copy(f"{ann.work}/s.vault", f"{one.root}/old")
            status, text = answering(ann, b"y\n", "git", *command.split())
            if status != 0 or "stored: “a”" not in text:
                raise Wrong(f"{policy}, {command}: status {status}: {text}")
            if command.startswith("rebase") and "this machine has seen here last." not in text:
                raise Wrong(f"git does not say what is below: {text}")
            shutil.copy(f"{one.root}/old", f"{ann.work}/s.vault")
            ann.commit("an older file")
            # The completion shows no message, so the next command does.
            if ("ours" in ann.secret("complete", "bash", "--", "secret get o", "o", "9").stdout) != (policy != "strict"):
                raise Wrong("the completion has other names")
            done = ann.secret("get", "a", status=65 if policy == "strict" else 0)
            if policy != "strict" and (OLDER not in done.stderr or done.stdout != "1"):
                raise Wrong(f"{command}: nothing says that the file is older: {done.stdout}{done.stderr}")


@case
def a_branch_below_ours(lab):
    """A strict vault is not put on what a person has not seen, and each pick of a rebase is asked for."""
    ann = strict(lab)
    status, text = answering(ann, b"n\n", "git", "rebase", "side")
    below, _, onto = text.partition("The other side:")
    if status != 1 or "stored: “a”" not in below or "stored: “ours”" not in onto or "Merge it?" not in onto:
        raise Wrong(f"status {status}: {text}")
    ann.git("rebase", "--abort")
    ann.expect(a="1", ours="2")
    ann.git("checkout", "-q", "side")
    status, text = answering(ann, b"n\n", "git", "merge", "--no-edit", "main")
    if status != 1 or "stored: “a”" not in text.partition("The other side:")[0]:
        raise Wrong(f"status {status}: {text}")


def rejected(lab, name, policy="versioned"):
    """A vault, and a branch with more changes than the vault has, which was rejected. The host can serve its file."""
    one = lab.another(name)
    ann = branches(one, lambda one: one.set(own="2"), lambda one: one.set(a="rejected", b="1", c="2", d="3"), a="1")
    ann.trust(policy)
    return ann


def expect_said(what, done, status=0):
    if done.returncode != status or OLDER not in done.stdout + done.stderr:
        raise Wrong(f"{what}: status {done.returncode}, and nothing says that the file is older: {done.stdout}{done.stderr}")


@case
def the_first_command_that_meets_a_rejected_branch(lab):
    for number, command in enumerate((
        "get a", "verify", "verify --json", "doctor", "trust --policy versioned", "rekey", "watch", "list", "history a",
        "set e", "run --all -- true", "export --all-services", "merge s.vault",
    )):  # fmt: skip
        ann = rejected(lab, number)
        ann.serve("side")
        ann.run("sh", "-c", "secret get a 2>/dev/null")  # Nobody hears this.
        words = ["timeout", "2"] * (command == "watch") + ["secret", *command.split()]
        expect_said(command, ann.run(*words, status=None, given="x"), 124 if command == "watch" else 0)


@case
def a_rejected_branch_that_was_looked_at(lab):
    for number, look in enumerate((
        "git checkout -q side && secret get a && git checkout -q main && secret get a",
        "git worktree add -q ../other side && cd ../other && secret get a",
        "git show side:s.vault > ../copy && secret verify --vault ../copy",
    )):  # fmt: skip
        ann = rejected(lab, number)
        done = ann.run("sh", "-c", look)
        if done.stderr.count(OLDER) != 1 + look.count("checkout -q main"):
            raise Wrong(f"{look}: {done.stderr}")
        ann.serve("side")
        expect_said(look, ann.secret("get", "a"))


@case
def a_rejected_branch_that_was_advanced(lab):
    for policy in ("versioned", "strict"):
        ann = rejected(lab, policy, policy)
        ann.git("checkout", "-q", "side")
        mallory = {"XDG_STATE_HOME": f"{ann.home}/another machine"}
        ann.secret("trust", "--advance", "--pin", ann.pin(**mallory), **mallory)
        ann.commit("advanced")
        ann.git("checkout", "-q", "main")
        ann.serve("side")
        expect_said(policy, ann.secret("get", "a"))


@case
def a_rebase_in_another_work_tree(lab):
    ann = rejected(lab, "work tree", "strict")
    ann.git("worktree", "add", "-q", "../other", "-b", "x")
    for command in ("rebase side", "cherry-pick main"):
        if command.startswith("cherry"):
            ann.git("checkout", "-q", "--detach", "side", at=f"{ann.home}/other")
        done = ann.git(*command.split(), at=f"{ann.home}/other")
        if "“a”" not in done.stderr.partition("The other side:")[0]:
            raise Wrong(f"{command} does not name what is below: {done.stderr}")


@case
def autostash(lab):
    """git starts the driver without standard error."""
    for number, command in enumerate((
        "merge -q --ff-only --autostash served",
        "merge -q --no-edit --autostash served",
        "pull -q --no-rebase --no-edit --autostash . served",
    )):  # fmt: skip
        ann = rejected(lab, number)
        ann.git("checkout", "-qb", "served")
        ann.serve("side" if number else "HEAD~1")
        ann.git("checkout", "-q", "main")
        if number:
            ann.run("sh", "-c", "echo 1 > file")
            ann.commit("a change of another file")
        ann.secret("set", "unsaved", given="1")
        ann.git(*command.split())
        expect_said(command, ann.secret("list"))


@case
def a_sparse_checkout_without_the_vault(lab):
    """A directory that was renamed has no attributes of its own, so those at the top count."""
    for policy in ("versioned", "strict"):
        ann = lab.another(policy).member()
        ann.environment["COFFER_VAULT"] = "sec/s.vault"
        ann.git("init", "-q", ann.work, at=ann.home)
        ann.run("sh", "-ec", "mkdir sec src; echo 1 > src/f; echo '*.vault -text diff=coffer merge=coffer' > .gitattributes")
        ann.secret("init", "--git", "--key-file", ann.environment["COFFER_KEY_FILE"])
        ann.commit("first")
        ann.set(a="1", b="1")
        ann.branch("side")
        ann.elsewhere(lambda: (ann.set(a="rejected"), ann.remove("b")))
        ann.git("checkout", "-q", "main")
        ann.set(own="2")
        ann.trust(policy)
        ann.git("sparse-checkout", "set", "src")
        done = ann.git("rebase", "side", status=None)
        below = done.stderr.partition("The other side:")[0]
        if "stored: “a”" not in below or "removed: “b”" not in below:
            raise Wrong(f"git does not say what is below: {done.stderr}")
        if policy == "strict" and (done.returncode != 1 or "The vault is strict" not in done.stderr):
            raise Wrong(f"nobody is asked: {done.stderr}")


@case
def a_strict_vault_that_git_takes_for_a_renamed_one(lab):
    """A host swaps two names, so that git merges the vault at a path of which this machine has no record."""
    ann = lab.another("renamed").member()
    ann.begin()
    ann.set(a="1")
    ann.secret("set", "large", given="x" * 60_000)
    ann.commit("large")
    ann.branch("side")
    ann.elsewhere(lambda: ann.set(a="rejected"))
    ann.git("checkout", "-q", "main")
    ann.trust("strict")
    ann.run("sh", "-ec", """
        git checkout -q --detach
        echo '*.vault -text diff=coffer merge=coffer' > .gitattributes
        git add -A && git commit -qm attributes
        git mv s.vault old.vault && git commit -qm away && git tag away
        git mv old.vault s.vault && git commit -qm back && git branch served
        git checkout -q --detach away
        git cat-file blob side:s.vault > old.vault
        git cat-file blob away:old.vault > s.vault
        git add -A && git commit -qm swapped && git branch swapped
        git checkout -q main
        """)
    ann.git("merge", "-q", "--ff-only", "served")
    ann.secret("list")
    ann.set(own="2")
    done = ann.git("merge", "--no-edit", "swapped", status=None)  # Not each version of git fails.
    if "stored: “a”" not in done.stderr or "The vault is strict" not in done.stderr:
        raise Wrong(f"nobody is asked: {done.stderr}")
    if (value := ann.secret("get", "a").stdout) != "1":
        raise Wrong(f"without an answer, the value is {value}")


@case
def a_rebase_that_drops_what_a_merge_brought(lab):
    ann = rejected(lab, "purge")
    ann.git("checkout", "-qb", "upstream", "main~1")
    ann.set(n="1")
    ann.git("checkout", "-q", "main")
    ann.git("merge", "-q", "--no-edit", "upstream")
    ann.expect(a="1", own="2", n="1")
    ann.git("checkout", "-q", "upstream")
    other = {"XDG_STATE_HOME": f"{ann.home}/another machine"}
    ann.secret("remove", "--purge", "n", **other)
    ann.commit("purge")
    ann.git("checkout", "-q", "main")
    ann.git("rebase", "-q", "upstream")
    expect_said("rebase", ann.secret("list"))


@case
def work_on_a_branch_that_is_taken_back(lab):
    """The branch lacks what main has. A commit brings the file of main, without the work."""
    ann = rejected(lab, "branch")
    ann.git("checkout", "-q", "-b", "feature", "main~1")
    expect_said("checkout", ann.secret("list"))
    ann.set(work="1")
    if ann.secret("list").stderr:
        raise Wrong("a command says something of the person's own change")
    ann.serve("main")
    expect_said("the file of main", ann.secret("list"))


@case
def honest_changes_after_a_dropped_one(lab):
    ann = rejected(lab, "dropped")
    ann.git("checkout", "-qb", "served")
    for value in "45":
        ann.secret("set", "more", given=value, XDG_STATE_HOME=f"{ann.home}/another machine")
        ann.commit(f"more {value}")
    ann.git("checkout", "-q", "main")
    ann.secret("set", "unsaved", given="1")
    ann.git("checkout", "--", "s.vault")
    expect_said("checkout", ann.secret("list"))
    ann.git("merge", "-q", "--ff-only", "served~1")
    expect_said("a branch that lacks the dropped change", ann.secret("list"))
    ann.secret("trust", "--pin", ann.pin())
    ann.git("merge", "-q", "--ff-only", "served")
    said = ann.secret("list").stderr
    if said:
        raise Wrong(f"a later file is said to be older: {said}")


@case
def a_vault_with_several_names(lab):
    """The record of one name is old. The file is compared with those of all names."""
    for number, (other, link) in enumerate((("../shop/sub/../s.vault", "mkdir sub"), ("../link/s.vault", "ln -s shop ../link"))):
        ann = rejected(lab, number)
        ann.run("sh", "-c", f"{link}; secret list --vault {other}")
        ann.set(own="3")
        ann.serve("main~1")
        expect_said(other, ann.secret("list", "--vault", other))


@case
def earlier_versions_that_the_other_side_erased(lab):
    for number, erase in enumerate((
        "secret history-limit --versions 0 --purge && secret history-limit --versions 10",
        "printf 1 | secret set --no-history a",
        "secret remove --purge a && printf 1 | secret set a",
    )):  # fmt: skip
        ann = lab.another(number).member()
        ann.begin()
        ann.set(a="0")
        ann.set(a="1")
        ann.branch("side")
        ann.run("sh", "-c", erase)
        ann.commit("erased")
        ann.git("checkout", "-q", "main")
        ann.set(own="1")
        done = ann.git("merge", "--no-edit", "side")
        if "earlier versions erased on the other side, and so here: “a”" not in done.stderr or "OLD=$(mktemp)" not in done.stderr:
            raise Wrong(f"{erase}: {done.stderr}")


@case
def commands_for_another_directory(lab):
    """What the driver prints works where git was started."""
    ann = branches(lab, lambda one: one.set(own="1"), lambda one: (one.secret("remove", "--purge", "a"), one.commit("erased")), a="1")
    os.makedirs(f"{ann.work}/sub")
    done = ann.git("merge", "--no-edit", "side", at=f"{ann.work}/sub")
    lines = done.stderr.splitlines()
    at = next(number for number, line in enumerate(lines) if "OLD=$(mktemp)" in line)
    script = lines[at][lines[at].index("OLD=") :] + "\n" + lines[at + 1].strip()
    ann.run("sh", "-ec", script, at=f"{ann.work}/sub")
    ann.expect(a="1", own="1")


@case
def a_merge_that_nobody_keeps(lab):
    ann = rejected(lab, "merge-tree")
    done = ann.git("merge-tree", "--write-tree", "main", "side")
    if "stored: “a”" not in done.stderr or ann.secret("get", "own").stderr:
        raise Wrong(f"a merge that nobody keeps is recorded: {done.stderr}")


@case
def attributes_that_a_commit_brings(lab):
    """Whoever pushes may choose them: they silence nothing, and no question is left out."""
    line = "/s.vault -text diff=coffer merge=coffer conflict-marker-size=9\n"
    ann = strict(lab)
    with open(f"{ann.work}/.gitattributes", "w", encoding="utf-8") as stream:
        stream.write(line)
    ann.commit("attributes")
    done = ann.git("merge", "--no-edit", "side", status=1)
    if "stored: “a”" not in done.stderr:
        raise Wrong(f"the driver does not say what comes: {done.stderr}")
    ann.expect(a="1", ours="2")


@case
def a_strict_vault_with_a_terminal(lab):
    ann = strict(lab)
    for answer, status, values in ((b"n\n", 1, {"a": "1"}), (b"y\n", 0, {"a": "rejected"})):
        found, text = answering(ann, answer, "git", "merge", "--no-edit", "side")
        if found != status or "stored: “a”" not in text or text.count("Merge it?") != 1 or text.count("stored: “a”") != 1:
            raise Wrong(f"status {found}: {text}")
        ann.expect(ours="2", **values)
        if status:
            ann.git("merge", "--abort")


@case
def git_starts_by_an_alias(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(one="3", two="3"), a="1")
    ann.git("config", "alias.take", "cherry-pick")
    done = ann.git("take", "side")
    if "left out: “one”" not in done.stderr:
        raise Wrong(f"the pick is not taken for one: {done.stderr}")
    ann.expect(a="1", ours="2", two="3")


@case
def copies_that_parted_too_long_ago(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(theirs="3"), a="1")
    pin = json.loads(ann.secret("verify", "--json").stdout)["pin"]
    ann.secret("trust", "--advance", "--pin", pin)
    ann.commit("advanced")
    done = ann.git("merge", "--no-edit", "side", status=1)
    command = next((line for line in done.stderr.splitlines() if "secret copy" in line), "")
    if "secret://secret/theirs" not in command or "secret merge -" in done.stderr:
        raise Wrong(f"the driver does not say how to go on: {done.stderr}")
    ann.run("sh", "-c", command)
    ann.expect(a="1", ours="2", theirs="3")


@case
def octopus(lab):
    ann = branches(lab, lambda one: None, lambda one: one.set(theirs="3"), a="1")
    ann.branch("third")
    ann.set(third="4")
    ann.git("checkout", "-q", "main")
    ann.set(ours="2")
    done = ann.git("merge", "-q", "--no-edit", "side", "third", status=None)
    if done.returncode:  # git's octopus takes no driver's merge of one file: then one branch after the other
        ann.git("reset", "-q", "--merge")
        ann.git("merge", "-q", "--no-edit", "side")
        ann.git("merge", "-q", "--no-edit", "third")
    ann.expect(a="1", ours="2", theirs="3", third="4")


def turns(ann, *steps):
    """Each step is of a branch: values to set, or the branches that it merges."""
    for branch, step in steps:
        ann.git("checkout", "-q", branch)
        if isinstance(step, dict):
            ann.set(**step)
        elif step:
            ann.git("merge", "-q", "--no-edit", step)


@case
def three_branches_that_merge_each_other(lab):
    ann = lab.member()
    ann.begin()
    ann.git("branch", "bob")
    ann.secret("set", "--no-history", "x", given="1")
    ann.commit("x")
    ann.git("branch", "carl")
    turns(ann, ("bob", {"a": "2"}), ("main", "bob"), ("bob", {"c": "3"}), ("bob", "main"), ("carl", {"d": "4"}), ("carl", "bob"))
    ann.expect(a="2", c="3", d="4", x="1")


@case
def a_value_that_every_branch_removed(lab):
    ann = lab.member()
    ann.begin()
    ann.git("branch", "bob")
    ann.set(x="1")
    ann.remove("x")
    turns(ann, ("bob", {"x": "2"}), ("main", "bob"))
    ann.expect(x="2")
    ann.git("branch", "carl")
    ann.git("checkout", "-q", "bob")
    ann.remove("x")
    turns(ann, ("bob", "main"))
    ann.expect()
    turns(ann, ("carl", {"other": "3"}), ("carl", "bob"))
    ann.expect(other="3")


@case
def merge_with_another_index_and_spaces(lab):
    ann = lab.member()
    ann.environment["COFFER_VAULT"] = "a dir/s .vault"
    ann.git("init", "-q", ann.work, at=ann.home)
    os.mkdir(f"{ann.work}/a dir")
    ann.secret("init", "--git", "--key-file", f"{lab.root}/key")
    ann.commit("first")
    ann.set(a="1")
    ann.branch("side")
    ann.set(theirs="3")
    ann.git("checkout", "-q", "main")
    ann.set(ours="2")
    shutil.copy(f"{ann.work}/.git/index", f"{lab.root}/index")
    ann.git("merge", "-q", "--no-edit", "side", GIT_INDEX_FILE=f"{lab.root}/index")
    ann.expect(a="1", ours="2", theirs="3")


@case
def both_sides_add_the_vault(lab):
    ann = lab.member()
    ann.git("init", "-q", ann.work, at=ann.home)
    ann.git("commit", "-q", "--allow-empty", "-m", "first")
    ann.secret("init", "--git", "--key-file", f"{lab.root}/key")
    shutil.copy(f"{ann.work}/s.vault", f"{lab.root}/copy")
    ann.branch("side")
    ann.set(theirs="3")
    ann.git("checkout", "-q", "main")
    shutil.copy(f"{lab.root}/copy", f"{ann.work}/s.vault")
    ann.secret("init", "--git")
    ann.set(ours="2")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(ours="2", theirs="3")


@case
def difference(lab):
    ann = lab.member()
    ann.begin()
    ann.set(a="first-value")
    ann.set(a="second-value")
    shown = ann.git("diff", "HEAD~1").stdout
    changed = [line for line in shown.splitlines() if line.startswith(("-secret", "+secret"))]
    if len(changed) != 2 or "value" in shown or changed[0][1:] == changed[1][1:]:
        raise Wrong(f"git diff shows {shown}")
    shown = ann.git("log", "-p", COFFER_KEY_FILE="", XDG_CONFIG_HOME=lab.root).stdout
    if "cannot be opened here" not in shown or "secret\ta" in shown:
        raise Wrong(f"git log without a key shows {shown}")


# What is refused, or asked


@case
def an_older_file_on_our_commit(lab):
    ann = lab.member()
    ann.begin()
    ann.set(rotated="old", removed="1")
    shutil.copy(f"{ann.work}/s.vault", f"{lab.root}/old")
    ann.set(rotated="new", added="2")
    ann.remove("removed")
    ann.branch("side")
    shutil.copy(f"{lab.root}/old", f"{ann.work}/s.vault")
    ann.commit("a revert of everything since")
    ann.git("checkout", "-q", "main")
    ann.set(ours="3")
    done = ann.git("merge", "--no-edit", "side")
    if "The other side is older" not in done.stderr:
        raise Wrong(f"the driver does not say that the other side is older: {done.stderr}")
    ann.expect(rotated="new", added="2", ours="3")
    ann.git("reset", "-q", "--hard", "HEAD~1")
    ann.git("cherry-pick", "side", status=1)
    ann.expect_unmerged()
    ann.expect(rotated="new", added="2", ours="3")


@case
def a_merge_that_dropped_the_other_side(lab):
    """Whoever serves the branches makes a commit of the other side an ancestor of ours, without what it changed."""
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: (one.set(rotated="new", added="3"), one.remove("gone")),
                   rotated="old", gone="1")  # fmt: skip
    ann.git("merge", "-q", "--no-edit", "-s", "ours", "side")
    ann.expect(rotated="old", gone="1", ours="2")
    ann.git("checkout", "-q", "side")
    ann.set(more="4")
    ann.git("checkout", "-q", "main")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(rotated="new", added="3", ours="2", more="4")


@case
def rebase_onto_an_older_file(lab):
    ann = lab.member()
    ann.begin()
    ann.set(rotated="old")
    shutil.copy(f"{ann.work}/s.vault", f"{lab.root}/old")
    ann.set(rotated="new", added="2")
    ann.branch("side")
    shutil.copy(f"{lab.root}/old", f"{ann.work}/s.vault")
    ann.commit("a revert of everything since")
    ann.git("checkout", "-q", "main")
    ann.set(ours="3")
    done = ann.git("rebase", "side", status=1)
    for name in ("rotated", "added"):
        if f"“{name}”" not in done.stderr.partition("left out: ")[2]:
            raise Wrong(f"git does not say that {name} is left out: {done.stderr}")
    if "The branch below yours lacks what is named" not in done.stderr or "Everything else is merged" in done.stderr:
        raise Wrong(f"the advice is not to go on: {done.stderr}")
    ann.git("rebase", "--abort")
    ann.expect(rotated="new", added="2", ours="3")


@case
def reverts_that_do_not_undo_everything(lab):
    ann = lab.member()
    ann.begin()
    ann.set(a="1", erased="1")
    ann.set(a="2")
    ann.set(a="3")
    ann.secret("remove", "--purge", "erased")
    ann.commit("erased")
    ann.secret("key", "add", "--recovery")
    ann.commit("added")
    ann.set(z="1")
    ann.git("revert", "--no-edit", ":/erased")
    ann.expect(a="3", erased="1", z="1")
    ann.git("reset", "-q", "--hard", "HEAD~1")
    for commit in ("set a 2", "added"):
        done = ann.git("revert", "--no-edit", f":/{commit}", status=1)
        if "not undone: key slots" not in done.stderr:
            raise Wrong(f"git does not say what the revert of {commit} leaves: {done.stderr}")
        ann.git("revert", "--abort")
        ann.expect(a="3", z="1")


@case
def a_vault_that_is_named_like_an_option(lab):
    ann = lab.member()
    ann.environment["COFFER_VAULT"] = "--help"
    ann.git("init", "-q", ann.work, at=ann.home)
    ann.secret("init", "--git", "--key-file", f"{lab.root}/key")
    ann.commit("first")
    ann.branch("side")
    ann.set(theirs="3")
    ann.git("checkout", "-q", "main")
    ann.set(ours="2")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(ours="2", theirs="3")
    ann.git("diff", "HEAD~1")


@case
def a_driver_without_a_key(lab):
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(theirs="3"), a="1")
    done = ann.git("merge", "-q", "--no-edit", "side", status=1, COFFER_KEY_FILE="", XDG_CONFIG_HOME=lab.root)
    if "git show :3:s.vault | secret merge -" not in done.stderr:
        raise Wrong(f"the message does not say what to do: {done.stderr}")
    ann.expect_unmerged()
    ann.expect(a="1", ours="2")
    other = ann.git("rev-parse", ":3:s.vault").stdout.strip()
    if other != ann.git("rev-parse", "side:s.vault").stdout.strip():
        raise Wrong("the other side is not in git")
    line = "git show :3:s.vault > ../3; secret merge ../3 --pin $(secret verify --vault ../3 --json | sed -n 's/.*\"pin\" : \"\\(.*\\)\",/\\1/p')"
    ann.run("sh", "-c", line)
    ann.commit("merged")
    ann.expect(a="1", ours="2", theirs="3")


def failing(lab, driver, statuses):
    """A merge whose driver fails."""
    ann = branches(lab, lambda one: one.set(ours="2"), lambda one: one.set(theirs="3"), a="1")
    ann.git("config", "merge.coffer.driver", driver)
    done = ann.git("merge", "-q", "--no-edit", "side", status=None)
    if done.returncode not in statuses:
        raise Wrong(f"git merge: status {done.returncode}: {done.stderr}")
    ann.expect(a="1", ours="2")
    ann.git("config", "merge.coffer.driver", "secret git-merge-driver -- %O %A %B %P")
    ann.git("merge", "--abort", status=None)
    ann.git("merge", "-q", "--no-edit", "side")
    ann.expect(a="1", ours="2", theirs="3")


@case
def a_driver_on_a_full_disk(lab):
    failing(lab, "trap '' XFSZ; ulimit -f 1; exec secret git-merge-driver -- %O %A %B %P", (1,))


@case
def a_driver_that_is_killed(lab):
    failing(lab, "strace -o /dev/null -e inject=fsync:signal=KILL secret git-merge-driver -- %O %A %B %P", (1, 2, 128))


@case
def two_people(lab):
    ann, bob = lab.pair()
    ann.set(a="1")
    ann.git("push", "-q")
    bob.git("pull", "-q")
    bob.expect(a="1")
    ann.set(ours="2")
    bob.set(theirs="3")
    ann.git("push", "-q")
    bob.git("pull", "-q", "--no-rebase", "--no-edit")
    bob.expect(a="1", ours="2", theirs="3")
    bob.git("push", "-q")
    ann.set(late="4")
    ann.git("pull", "-q", "--rebase")
    ann.expect(a="1", ours="2", theirs="3", late="4")
    ann.git("push", "-q")


@case
def a_side_that_removed_a_member(lab):
    ann, bob = lab.pair()
    ann.set(a="1")
    ann.git("push", "-q")
    bob.git("pull", "-q")
    slots = json.loads(ann.secret("key", "list", "--json").stdout)
    carl = lab.member("carl", True)
    ann.secret("key", "add", "--recipient", carl.recipient, "--label", "carl")
    ann.commit("carl")
    ann.git("push", "-q")
    bob.git("pull", "-q")
    slot = next(one["id"] for one in json.loads(ann.secret("key", "list", "--json").stdout) if one["label"] == "carl")
    ann.secret("key", "remove", slot)
    ann.commit("without carl")
    ann.git("push", "-q")
    bob.set(theirs="3")
    done = bob.git("pull", "--no-rebase", "--no-edit", status=1)
    if "git checkout --theirs" not in done.stderr or "--former-key" not in done.stderr:
        raise Wrong(f"the message has no commands: {done.stderr}")
    bob.expect_unmerged()
    bob.expect(a="1", theirs="3")
    bob.git("checkout", "--theirs", "--", "s.vault")
    bob.run("sh", "-c", "git show :2:s.vault > ../OTHER; secret copy --from vault:../OTHER --to vault:s.vault --former-key theirs")
    bob.git("add", "--", "s.vault")
    bob.commit("merged")
    bob.expect(a="1", theirs="3")
    if len(json.loads(bob.secret("key", "list", "--json").stdout)) != len(slots):
        raise Wrong("the removed member is there")


@case
def a_side_that_removed_our_key(lab):
    ann, bob = lab.pair()
    ann.set(a="1")
    ann.git("push", "-q")
    bob.git("pull", "-q")
    ann.remove_key_of(bob)
    ann.git("push", "-q")
    bob.set(theirs="3")
    done = bob.git("pull", "--no-rebase", "--no-edit", status=1)
    if "Your key does not open the other side" not in done.stderr or "git checkout --theirs" not in done.stderr:
        raise Wrong(f"the message does not say which side: {done.stderr}")
    bob.expect_unmerged()
    bob.expect(a="1", theirs="3")


@case
def fast_forward_to_a_vault_of_somebody_who_left(lab):
    ann, bob = lab.pair()
    ann.set(a="1")
    ann.git("push", "-q")
    bob.git("pull", "-q")
    ann.remove_key_of(bob)
    # Bob writes his vault, which he can still open, behind the commit that removed him.
    bob.secret("set", "a", given="evil")
    ann.branch("bobs")
    shutil.copy(f"{bob.work}/s.vault", f"{ann.work}/s.vault")
    ann.commit("looks harmless")
    ann.git("checkout", "-q", "main")
    ann.git("merge", "-q", "--ff-only", "bobs")
    if ann.secret("get", "a", status=None).returncode != 65:
        raise Wrong("the vault of a removed member is accepted")
    ann.git("reset", "-q", "--hard", "HEAD~1")
    ann.expect(a="1")


@case
def a_forced_push(lab):
    ann, bob = lab.pair()
    ann.set(a="1", b="1")
    ann.git("push", "-q")
    bob.git("pull", "-q")
    bob.set(theirs="3")
    ann.git("reset", "-q", "--hard", "HEAD~1")
    ann.set(c="1")
    ann.git("push", "-qf")
    bob.git("pull", "-q", "--no-rebase", "--no-edit", status=None)
    bob.expect(a="1", b="1", c="1", theirs="3")


# The recipe, literally


def blocks(title):
    """The commands below a title of the recipe for teams, one text for each block."""
    recipe = os.path.join(os.path.dirname(__file__), "../../../Documentation/Recipes/team.md")
    with open(recipe, encoding="utf-8") as file:
        section = file.read().split(f"\n## {title}\n")[1].split("\n## ")[0]
    return [block.split("```")[0] for block in section.split("```sh\n")[1:]]


@case
def the_recipe_for_two_people(lab):
    ann, bob = lab.member("ann", True), lab.member("bob", True)
    for one in (ann, bob):
        del one.environment["COFFER_VAULT"]

    def follow(one, block, given="", status=0, **names):
        for name, value in names.items():
            block = block.replace(name, value)
        return one.run("sh", "-ec", block, given=given, status=status)

    ann.git("init", "-q", ann.work, at=ann.home)
    follow(ann, blocks("Make the vault")[0], "1", ANN=ann.recipient, BOB=bob.recipient)
    pin = json.loads(ann.secret("verify", "--json").stdout)["pin"]
    ann.git("clone", "-q", "--bare", ann.work, f"{lab.root}/bare", at=ann.home)
    ann.git("remote", "add", "origin", f"{lab.root}/bare")
    ann.git("fetch", "-q")
    ann.git("branch", "-qu", "origin/main")
    bob.git("clone", "-q", f"{lab.root}/bare", bob.work, at=bob.home)
    bob.secret("trust", "--pin", pin)
    once, change, choose, undo, other_key = blocks("Two people, one vault")
    follow(ann, once)
    follow(bob, once)
    follow(ann, change, "ann's", **{"api-key": "anns-key"})
    follow(bob, change, "bob's")
    bob.expect(**{"db-url": "1", "anns-key": "ann's", "api-key": "bob's"})

    ann.git("pull", "-q", "--no-rebase")
    for one, value in ((ann, "2"), (bob, "3")):
        one.set(**{"db-url": value})
    ann.git("push", "-q")
    bob.git("pull", "-q", "--no-rebase", "--no-edit", status=1)
    bob.expect(["db-url"], **{"db-url": "3", "anns-key": "ann's", "api-key": "bob's"})
    follow(bob, choose)
    bob.expect(**{"db-url": "2", "anns-key": "ann's", "api-key": "bob's"})
    follow(bob, undo)
    bob.expect(**{"db-url": "3", "anns-key": "ann's", "api-key": "bob's"})
    bob.git("push", "-q")

    ann.git("pull", "-q", "--no-rebase")
    ann.secret("rekey")
    ann.commit("another master key")
    ann.git("push", "-q")
    bob.set(**{"db-url": "4"})
    bob.git("pull", "-q", "--no-rebase", "--no-edit", status=1)
    follow(bob, other_key)
    bob.expect(**{"db-url": "4", "anns-key": "ann's", "api-key": "bob's"})
    bob.git("push", "-q")


def main(arguments):
    if not arguments or not os.access(arguments[0], os.X_OK) or not set(arguments[1:]) <= set(CASES):
        print(__doc__ + "\nCases:\n  " + "\n  ".join(CASES), file=sys.stderr)
        return 64
    wrong = 0
    for name in arguments[1:] or CASES:
        with tempfile.TemporaryDirectory(prefix="coffer-git-") as root:
            try:
                CASES[name](Lab(arguments[0], root))
                print(f"ok: {name}", flush=True)
            except Wrong as error:
                wrong += 1
                print(f"FAILED: {name}: {error}", flush=True)
    print(f"{len(arguments[1:] or CASES)} cases: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
