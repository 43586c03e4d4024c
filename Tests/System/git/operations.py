#!/usr/bin/python3
"""What each operation of git does with a vault: the table of Reference.md.

usage: operations.py SECRET [DIRECTORY]

SECRET is the built tool. DIRECTORY has another version of git, unpacked, as Scripts/setup nightly leaves it in
.build/next-git. Each operation runs in a repository of its own. The secrets that the vault has then, git's status and
what is said are compared with what stands here, and the names of the operations with the rows of the table.

Exit status: 0 all are as expected, 1 one is not, 64 wrong usage.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

from merges_with_git import Lab, Wrong

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../Documentation/Reference.md")
OPERATIONS, OLDER = {}, "is older than, or another branch of"


def operation(name, said=(), silent=False, status=0, **values):
    """The row `name`: what it brings, and parts of what is said. If it is `silent`, nothing is."""

    def add(function):
        OPERATIONS[name] = function, said, silent, status, values
        return function

    return add


class Repository:
    """Ann's repository: `main` has a and m, `side` has a, s1 and s2, a commit for each."""

    def __init__(self, lab):
        self.ann = ann = lab.member()
        ann.begin()
        ann.set(a="1")
        ann.branch("side")
        ann.set(s1="1", s2="1")
        ann.git("checkout", "-q", "main")
        ann.set(m="1")
        # What is said of checkouts is no part of what is looked at below.
        ann.secret("list")

    def clone(self):
        """Bob's clone, which is at the commit of a."""
        bob = self.ann.lab.member("bob")
        bob.git("clone", "-q", self.ann.work, bob.work, at=bob.home)
        bob.secret("init", "--git")
        bob.git("reset", "-q", "--hard", ":/set a")
        bob.secret("list")
        return bob


ALL = {"a": "1", "m": "1", "s1": "1", "s2": "1"}


@operation("merge", ["stored: “s1”, “s2”"], **ALL)
def merge(one):
    return one.ann.git("merge", "--no-edit", "side", status=None)


@operation("merge -X theirs", ["stored: “s1”, “s2”"], **ALL)
def merge_with_option(one):
    return one.ann.git("merge", "--no-edit", "-X", "theirs", "side", status=None)


@operation("merge -s ours", silent=True, a="1", m="1")
def merge_ours(one):
    return one.ann.git("merge", "--no-edit", "-s", "ours", "side", status=None)


@operation("merge --squash", ["stored: “s1”, “s2”"], **ALL)
def squash(one):
    return one.ann.git("merge", "--squash", "side", status=None)


@operation("merge, of a criss-cross history", ["stored: “n”"], n="1", x="1", **ALL)
def criss_cross(one):
    ann = one.ann
    ann.git("branch", "old")
    ann.git("merge", "-q", "--no-edit", "side")
    ann.git("checkout", "-q", "side")
    ann.git("merge", "-q", "--no-edit", "old")
    ann.set(n="1")
    ann.git("checkout", "-q", "main")
    ann.set(x="1")
    ann.secret("list")
    done = ann.git("merge", "--no-edit", "side", status=None)
    if done.stderr.count("stored: ") != 1:
        raise Wrong(f"the merge of the ancestors is told: {done.stderr}")
    return done


@operation("merge of three branches", status=2, a="1", m="1")
def octopus(one):
    one.ann.git("branch", "third", ":/set a")
    one.ann.git("checkout", "-q", "third")
    one.ann.set(t="1")
    one.ann.git("checkout", "-q", "main")
    one.ann.secret("list")
    done = one.ann.git("merge", "--no-edit", "side", "third", status=None)
    one.ann.git("reset", "-q", "--hard")
    return done


@operation("pull --no-rebase", ["stored: “m”"], a="1", b="1", m="1")
def pull(one):
    bob = one.clone()
    bob.set(b="1")
    one.ann = bob
    return bob.git("pull", "--no-rebase", "--no-edit", "origin", "main", status=None)


@operation("pull, as a fast-forward", silent=True, a="1", m="1")
def fast_forward(one):
    one.ann = bob = one.clone()
    return bob.git("pull", "--no-edit", "origin", "main", status=None)


@operation("pull --rebase", ["stored: “b”"], a="1", b="1", m="1")
def pull_rebase(one):
    one.ann = bob = one.clone()
    bob.set(b="1")
    return bob.git("pull", "--rebase", "origin", "main", status=None)


@operation("rebase", ["stored: “m”"], **ALL)
def rebase(one):
    return one.ann.git("rebase", "side", status=None)


@operation("rebase --apply", ["stored: “m”"], **ALL)
def rebase_apply(one):
    return one.ann.git("rebase", "--apply", "side", status=None)


@operation("rebase -i", ["stored: “s2”", "left out: “s1”"], a="1", m="1", s2="1")
def rebase_interactive(one):
    one.ann.git("checkout", "-q", "side")
    one.ann.secret("list")
    return one.ann.git("rebase", "-i", "main", status=None, GIT_SEQUENCE_EDITOR="sed -i 1d")


@operation("rebase --continue", ["stored: “y”", "left out: “dropped”"], a="side", m="1", y="1")
def rebase_continue(one):
    ann = one.ann
    ann.git("checkout", "-qb", "topic", ":/set a")
    ann.set(dropped="1", a="side", y="1")
    ann.git("checkout", "-q", "main")
    ann.set(a="main")
    ann.git("checkout", "-q", "topic")
    ann.git("rebase", "-i", "main", status=1, GIT_SEQUENCE_EDITOR="sed -i 1d")
    ann.secret("set", "a", given="side")
    ann.git("add", "s.vault")
    ann.secret("list")
    return ann.git("rebase", "--continue", status=None)


@operation("rebase onto a branch that lacks a change", ["left out: “s1”", "git rebase --abort"], status=1, a="1", m="1")
def rebase_onto(one):
    ann = one.ann
    ann.git("checkout", "-q", "side")
    ann.secret("list")
    done = ann.git("rebase", "--onto", "main", "side~1", status=None)
    ann.git("rebase", "--abort")
    ann.git("checkout", "-q", "main")
    return done


@operation("cherry-pick", ["stored: “s2”", "left out: “s1”"], a="1", m="1", s2="1")
def cherry_pick(one):
    return one.ann.git("cherry-pick", "side", status=None)


@operation("cherry-pick of all commits", ["stored: “s1”", "stored: “s2”"], **ALL)
def cherry_pick_all(one):
    return one.ann.git("cherry-pick", "main..side", status=None)


@operation("revert HEAD", [OLDER], a="1")
def revert_head(one):
    one.ann.git("revert", "--no-edit", "HEAD")
    return one.ann.secret("list")


@operation("revert of another commit", ["removed by the revert: “m”"], a="1", n="1")
def revert(one):
    one.ann.set(n="1")
    return one.ann.git("revert", "--no-edit", "HEAD~1", status=None)


@operation("stash pop, where the vault was not changed since", silent=True, a="1", m="1", u="1")
def stash(one):
    one.ann.secret("set", "u", given="1")
    one.ann.git("stash", "-q")
    one.ann.secret("list")
    return one.ann.git("stash", "pop", status=None)


@operation("stash pop", ["stored: “u”"], a="1", m="1", u="1")
def stash_elsewhere(one):
    one.ann.git("checkout", "-q", "side")
    one.ann.secret("set", "u", given="1")
    one.ann.git("stash", "-q")
    one.ann.git("checkout", "-q", "main")
    one.ann.secret("list")
    return one.ann.git("stash", "pop", status=None)


@operation("rebase --autostash", ["stored: “s1”, “s2”", "stored: “m”"], u="1", **ALL)
def autostash(one):
    one.ann.secret("set", "u", given="1")
    return one.ann.git("rebase", "-q", "--autostash", "side", status=None)


@operation("checkout -m", ["stored: “u”"], a="1", s1="1", s2="1", u="1")
def checkout_merge(one):
    one.ann.secret("set", "u", given="1")
    return one.ann.git("checkout", "-m", "side", status=None)


@operation("am -3", ["stored: “s2”", "left out: “s1”"], a="1", m="1", s2="1")
def am(one):
    one.ann.git("format-patch", "-q", "--binary", "--full-index", "-1", "-o", "../patches", "side")
    return one.ann.git("am", "-3", *glob.glob(f"{one.ann.home}/patches/*"), status=None)


@operation("apply -3", ["stored: “s2”", "left out: “s1”"], a="1", m="1", s2="1")
def apply(one):
    patch = one.ann.git("diff", "--binary", "--full-index", "--no-textconv", "side~1", "side").stdout
    return one.ann.git("apply", "-3", status=None, given=patch)


@operation("checkout of an earlier commit", [OLDER], a="1")
def checkout(one):
    one.ann.git("checkout", "-q", "HEAD~1")
    return one.ann.secret("list")


@operation("reset --hard", [OLDER], a="1")
def reset(one):
    one.ann.git("reset", "-q", "--hard", "HEAD~1")
    return one.ann.secret("list")


@operation("restore --source", [OLDER], a="1")
def restore(one):
    one.ann.git("restore", "--source", "HEAD~1", "s.vault")
    return one.ann.secret("list")


@operation("pull of a branch whose file was put back", [OLDER], a="1")
def pull_of_older(one):
    bob = one.clone()
    bob.git("pull", "-q", "--no-edit", "origin", "main")
    bob.secret("list")
    one.ann.git("checkout", "-q", ":/set a", "--", "s.vault")
    one.ann.git("commit", "-qm", "fix typo")
    one.ann = bob
    bob.git("pull", "-q", "--no-edit", "origin", "main")
    return bob.secret("list")


@operation("diff", ["+secret\tm"], a="1", m="1")
def diff(one):
    return one.ann.git("diff", "HEAD~1", status=None)


@operation("log --remerge-diff", silent=True, **ALL)
def remerge(one):
    one.ann.git("merge", "-q", "--no-edit", "side")
    return one.ann.git("log", "-1", "--remerge-diff", status=None)


@operation("merge-tree", ["stored: “s1”, “s2”"], a="1", m="1")
def merge_tree(one):
    return one.ann.git("merge-tree", "--write-tree", "main", "side", status=None)


def run(tool, name, other):
    function, said, silent, status, values = OPERATIONS[name]
    root = tempfile.mkdtemp(prefix="coffer-git-")
    try:
        lab = Lab(tool, root)
        if other:
            os.symlink(os.path.abspath(f"{other}/usr/bin/git"), f"{root}/bin/git")
        make = lab.member
        lab.member = lambda *given: with_lab(make(*given), lab, other)
        one = Repository(lab)
        done = function(one)
        text = done.stdout + done.stderr
        if done.returncode != status:
            raise Wrong(f"status {done.returncode}: {text}")
        if missing := [part for part in said if part not in text]:
            raise Wrong(f"not said: {missing}, but: {text}")
        if silent and "secret: " in text:
            raise Wrong(f"said: {text}")
        found = one.ann.values()
        if found != values:
            raise Wrong(f"the secrets are {found}, not {values}: {text}")
    finally:
        shutil.rmtree(root)


def with_lab(member, lab, other):
    member.lab = lab
    if other:
        member.environment |= {"GIT_EXEC_PATH": os.path.abspath(f"{other}/usr/lib/git-core"), "GIT_TEMPLATE_DIR": ""}
    return member


def rows():
    """The names in the table of Reference.md."""
    with open(PAGE, encoding="utf-8") as stream:
        section = stream.read().split("### A vault in a repository of git")[1].split("\n### ")[0]
    table = section.split("| git | ")[1]
    return [line.split("|")[1].strip().replace("`", "") for line in table.splitlines()[2:] if line.startswith("|")]


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.stderr.write(__doc__)
        return 64
    wrong = 0
    tool, other = arguments[0], (*arguments, None)[1]
    if sorted(rows()) != sorted(OPERATIONS):
        print("the table of Reference.md has other rows:", sorted({*rows()} ^ {*OPERATIONS}))
        wrong += 1
    for name in OPERATIONS:
        try:
            run(tool, name, other)
            print("ok:", name)
        except (Wrong, subprocess.SubprocessError) as error:
            print(f"WRONG: {name}: {error}")
            wrong += 1
    print(f"{len(OPERATIONS)} operations: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
