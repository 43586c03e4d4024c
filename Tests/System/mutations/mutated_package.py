"""A copy of the package that contains every mutation, each switched off, so that all are compiled once."""

import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

from swift_source import Impossible, functions, masked

# The mutation that is switched on is the target of this link. A link takes one system call and no descriptor to read.
SWITCH = Path("/run/mutation")
SWITCH_FILE = "ActiveMutation.swift"
SWITCH_SOURCE = """
internal import Glibc

/// The number of the mutation that is switched on, or 0.
let activeMutation: Int = {
  // A function that is asked first may be about to read the failure of a call.
  let code = errno
  defer { errno = code }
  var target = [CChar](repeating: 0, count: 16)
  return readlink("/run/mutation", &target, 15) > 0 ? Int(atoi(target)) : 0
}()
"""


class Sources:
    """The functions of the modules below `root`."""

    def __init__(self, root):
        self.root, self.texts, self.functions = root, {}, defaultdict(list)
        for path in sorted((root / "Sources").rglob("*.swift")):
            name = str(path.relative_to(root))
            self.texts[name] = path.read_text("utf-8")
            for function in functions(name, self.texts[name]):
                for key in {function.name, function.full_name}:
                    self.functions[key].append(function)

    def find(self, name):
        found = self.functions.get(name, [])
        if len(found) != 1:
            labels = ", ".join(sorted({f.full_name for f in found}))
            raise Impossible(f"there are {len(found)} functions {name}" + (f": {labels}" if found else ""))
        return found[0]

    def changed_body(self, mutation):
        """The function that a mutation changes, and its new body."""
        function = self.find(mutation.function)
        text = self.body(function)
        changed = mutation.change(text)
        if changed == text:
            raise Impossible("nothing is changed")
        return function, changed

    def body(self, function):
        text = self.texts[function.path][function.start:function.end]
        return _returning(text) if function.returns else text


def _returning(text):
    """A body whose value is its only expression, with the `return` that a second statement makes necessary."""
    mask = masked(text)
    lines = [line for line in mask.split("\n") if line.strip()]
    base = min(len(line) - len(line.lstrip()) for line in lines)
    starts = [line for line in lines if len(line) - len(line.lstrip()) == base and not re.match(r"\s*[)}\].:?]|\s*(else|catch)\b", line)]
    word = re.match(r"\s*(\w*)", starts[0]).group(1)
    if len(starts) != 1 or ";" in mask or word in ("return", "throw", "get", "guard", "do", "while", "for", "let", "var", "defer"):
        return text
    if word in ("switch", "if") and re.search(r"\breturn\b", mask):
        return text
    start = mask.index(starts[0].strip()[0])
    return text[:start] + "return " + text[start:]


def write(sources, mutations, package):
    """Writes the sources with the mutations to `package`. Returns the ranges of lines of each, by file."""
    by_file = defaultdict(list)
    for mutation in mutations:
        function, changed = sources.changed_body(mutation)
        by_file[function.path].append((function, mutation.number, changed))
    lines, modules = defaultdict(list), set()
    for path, text in sources.texts.items():
        original = text
        for function in sorted({id(f): f for f, _, _ in by_file[path]}.values(), key=lambda f: -f.start):
            branches = ""
            for other, number, changed in by_file[path]:
                if other is function:
                    end = "" if function.returns else "\nreturn"
                    branches += f"\nif activeMutation == {number} {{\n{changed}{end}\n}}\n"
            text = text[:function.start] + branches + sources.body(function) + text[function.end:]
        for match in re.finditer(r"\nif activeMutation == (\d+) \{\n", text):
            end = text.index("\n}\n", match.end())
            lines[path].append((text.count("\n", 0, match.end()), text.count("\n", 0, end) + 2, int(match.group(1))))
        if text != original:
            modules.add(Path(path).parts[1])
        _put(package / path, text)
    for module in modules:
        _put(package / "Sources" / module / SWITCH_FILE, SWITCH_SOURCE)
    return lines


def _put(path, text):
    """Leaves a file alone that is the same, so that little is compiled again."""
    if not path.is_file() or path.read_text("utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def copy(root, package, original):
    """Copies the package, without the files that git ignores, and its dependencies to `package`. The Swift files of
    Sources go to `original`, and `write` puts them into `package`."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split("\0")
    shutil.rmtree(original, ignore_errors=True)
    kept = {package / name for name in listed if name and (root / name).is_file()}
    for path in kept:
        name = path.relative_to(package)
        source = root / name
        if name.parts[0] == "Sources" and name.suffix == ".swift":
            (original / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, original / name)
            continue
        if not path.is_file() or path.read_bytes() != source.read_bytes():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, path)
        path.chmod(source.stat().st_mode & 0o777)
    for directory in "Sources", "Tests", "Fuzz":
        for path in (package / directory).rglob("*"):
            if path.is_file() and path not in kept and path.name != SWITCH_FILE:
                path.unlink()
    # Each build directory has its own copies, and there is no network to fetch them from.
    for build in package / ".build", package / ".build/static":
        build.mkdir(parents=True, exist_ok=True)
        for name in "checkouts", "repositories", "artifacts", "workspace-state.json":
            source, target = root / ".build" / name, build / name
            if source.is_dir() and not target.exists():
                shutil.copytree(source, target, symlinks=True)
            elif source.is_file() and not target.exists():
                shutil.copyfile(source, target)
