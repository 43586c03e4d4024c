"""A copy of the package in which every mutation is present and switched off, and its build."""

import hashlib
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

from finder import Finder
from manifest import keep
from sites import write

ROOT = Path(__file__).resolve().parents[3]
SUPPORT = Path(__file__).resolve().parent / "support"
# In the order in which they depend on one another.
MODULES = ["CofferSystem", "CofferVaultFormat", "CofferVault"]
KEYRING = ["CofferKeyring"]
REACHED_SIZE = 16384

# Appended to the package's manifest. Everything that the kept test targets do not depend on is left out of the build.
MANIFEST = """
package.targets.append(.target(name: "CMutants"))
for target in package.targets where [%(modules)s].contains(target.name) { target.dependencies.append("CMutants") }
%(keep)s
package.products.removeAll { $0.name != "secret" || !kept.contains("CofferTool") }
if !kept.contains("CofferTool") { package.dependencies.removeAll() }
"""


class BuildFailure(Exception):
    pass


def short_hash(key):
    return hashlib.sha256(key.encode()).hexdigest()[:12]


def quoted(names):
    return ", ".join(f'"{name}"' for name in names)


class MutatedPackage:
    def __init__(self, scratch, test_targets, modules):
        self.scratch, self.test_targets, self.modules = scratch, test_targets, modules
        # Hashes of the keys of mutations that the compiler rejects, so that a first build does not have to find out.
        self.known_rejected = Path(__file__).resolve().parent / ("rejected-keyring.txt" if modules == KEYRING else "rejected.txt")
        self.directory = scratch / "package"
        self.log = scratch / "build.log"
        self.rejected = {}
        self.sites = {}
        self.mutations = []
        self._find()

    # The mutations

    def _find(self):
        for module in self.modules:
            for path in sorted((ROOT / "Sources" / module).rglob("*.swift")):
                name = str(path.relative_to(ROOT))
                self.sites[name] = Finder(name, path.read_text("utf-8")).find()
        seen, number = Counter(), 0
        for sites in self.sites.values():
            for site in sites:
                for mutation in site.mutations:
                    number += 1
                    mutation.number = number
                    key = f"{mutation.file} | {mutation.kind} | {mutation.before} -> {mutation.after} | {mutation.text}"
                    seen[key] += 1
                    mutation.key = key if seen[key] == 1 else f"{key} | {seen[key]}"
                    self.mutations.append(mutation)
        if number >= REACHED_SIZE:
            raise BuildFailure(f"there are {number} mutations, and room for {REACHED_SIZE}")

    def is_rejected(self, mutation):
        return mutation.key in self.rejected

    def compiled(self):
        return [m for m in self.mutations if m.key not in self.rejected]

    # The copy

    def copy(self):
        """Copies the working tree, and leaves files alone that are the same, so that little is compiled again."""
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                               stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
        kept = set()
        for name in filter(None, names):
            source = ROOT / name
            if not source.is_file():
                continue
            kept.add(name)
            if name not in self.sites and name != "Package.swift":
                self._put(name, source.read_bytes(), source.stat().st_mode)
        kept.add("Sources/CMutants/include/CMutants.h")
        self._put("Sources/CMutants/include/CMutants.h", (SUPPORT / "include/CMutants.h").read_bytes())
        kept.add("Sources/CMutants/mutants.c")
        self._put("Sources/CMutants/mutants.c", (SUPPORT / "mutants.c").read_bytes())
        manifest = (ROOT / "Package.swift").read_text("utf-8") + MANIFEST % {
            "modules": quoted(self.modules), "keep": keep(self.test_targets)}
        self._put("Package.swift", manifest.encode())
        for module in self.modules:
            kept.add(f"Sources/{module}/Mutants.swift")
            self._write_module(module)
        for path in list((self.directory / "Sources").rglob("*")) + list((self.directory / "Tests").rglob("*")):
            if path.is_file() and str(path.relative_to(self.directory)) not in kept:
                path.unlink()

    def _put(self, name, content, mode=0o644):
        path = self.directory / name
        if path.is_file() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode & 0o777)

    def _write_module(self, module):
        text = (SUPPORT / "Mutants.swift").read_text("utf-8")
        if module == "CofferVault":
            text += (SUPPORT / "MutantRandomness.swift").read_text("utf-8").replace("internal import CMutants", "")
        operator = 0
        for name, sites in self.sites.items():
            if not name.startswith(f"Sources/{module}/"):
                operator += len(sites)
                continue
            used = [site for site in sites if not any(self.is_rejected(m) for m in site.mutations)]
            source = (ROOT / name).read_text("utf-8")
            mutated, declarations = write(source, used, operator)
            operator += len(sites)
            self._put(name, mutated.encode())
            text += "\n".join(declarations) + "\n"
        self._put(f"Sources/{module}/Mutants.swift", text.encode())

    # The build

    def _swift_build(self, *arguments):
        # CI turns warnings into errors, and a mutation may cause a warning.
        environment = {name: value for name, value in os.environ.items() if name != "CI"}
        traits = [] if self.modules == KEYRING else ["--disable-default-traits"]
        done = subprocess.run(["swift", "build", *traits, *arguments], cwd=self.directory,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False)
        self.log.write_text(done.stdout, "utf-8")
        return done

    def sources_digest(self):
        """What decides which mutations a test reaches, apart from the tests."""
        digest = hashlib.sha256()
        for path in sorted((self.directory / "Sources").rglob("*")):
            if path.is_file():
                digest.update(path.read_bytes())
        return digest.hexdigest()

    def remember(self):
        """Writes which mutations the compiler rejects. A mutation that has not changed is rejected again."""
        self.known_rejected.write_text("".join(sorted(short_hash(m.key) + "\n" for m in self.mutations if self.is_rejected(m))))

    def load_rejected(self):
        """Reads what the compiler rejected before, and returns where it is kept."""
        memory = self.scratch / "rejected.json"
        if memory.is_file():
            self.rejected = json.loads(memory.read_text("utf-8"))
        known = set(self.known_rejected.read_text().split()) if self.known_rejected.is_file() else set()
        self.rejected |= {m.key: "" for m in self.mutations if short_hash(m.key) in known and not self.is_rejected(m)}
        return memory

    def build(self):
        """Builds the tests without the mutations that the compiler rejects."""
        memory = self.load_rejected()
        self.copy()
        for module in self.modules:
            for attempt in range(40):
                done = self._swift_build("--target", module)
                if done.returncode == 0:
                    break
                if not self._reject(done.stdout, attempt):
                    raise BuildFailure(f"the build of {module} fails; see {self.log}")
                memory.write_text(json.dumps(self.rejected, indent=0), "utf-8")
                self._write_module(module)
            else:
                raise BuildFailure(f"{module} does not compile without more mutations; see {self.log}")
        done = self._swift_build("--build-tests")
        if done.returncode != 0:
            raise BuildFailure(f"the build of the tests fails; see {self.log}")

    def _reject(self, output, attempt):
        """Rejects the mutations that the compiler's errors are about. Returns how many."""
        before = len(self.rejected)
        errors = set(re.findall(r"^(/\S+\.swift):(\d+):(\d+): error: (.*)$", output, re.M))
        for path, line, column, message in sorted(errors):
            name = str(Path(path).relative_to(self.directory))
            if name in self.sites:
                self._reject_one(name, int(line), int(column), message, attempt)
            elif name.endswith("Mutants.swift"):
                self._reject_declaration(path, int(line), message)
        return len(self.rejected) - before

    def _remove(self, sites, why):
        for site in sites:
            for mutation in site.mutations:
                self.rejected.setdefault(mutation.key, why)

    def _reject_declaration(self, path, line, message):
        numbers = {int(n) for n in re.findall(r"coffer_mutant\((\d+)\)", Path(path).read_text("utf-8").split("\n")[line - 1])}
        for sites in self.sites.values():
            self._remove([s for s in sites if numbers & {m.number for m in s.mutations}], message)

    def _reject_one(self, name, line, column, message, attempt):
        left = [s for s in self.sites[name] if not any(self.is_rejected(m) for m in s.mutations)]
        variable = re.search(r"'(?:self\.)?(\w+)' (?:\w+ by a closure )?.*before being initialized", message)
        if variable:
            found = [s for s in left if variable.group(1) in s.assigned and s.in_member[0] <= line <= s.in_member[1]]
            if found:
                return self._remove(found, message)
        # The code after a `throw` that is left out needs what it lacks.
        if variable or "missing return" in message or "must not fall through" in message or "self.init" in message:
            found = [s for s in left if s.in_member[0] <= line <= s.in_member[1] and s.mutations[0].kind == "call"
                     and s.mutations[0].before.startswith(("throw", "self.init"))]
            if found:
                return self._remove(found, message)
        here = [s for s in left if s.first_line <= line <= s.last_line]
        if here and attempt < 12:
            on_line = [s for s in here if s.first_line == line] or here
            # The nearest at or before the column, or else the nearest after it.
            best = min(on_line, key=lambda s: (s.column > column, abs(s.column - column)))
            return self._remove([best], message)
        if here:
            return self._remove(here, message)
        member = [s for s in left if s.in_member[0] <= line <= s.in_member[1]]
        for chosen in ([s for s in member if s.mutations[0].kind == "assignment"],
                       [s for s in member if s.mutations[0].kind == "call"], member, left):
            if chosen:
                return self._remove(chosen, message)
        return None
