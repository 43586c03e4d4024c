"""Finds every mutation of a Swift file."""

import re

from operator_changes import Operators
from sites import Mutation, Site
from structure import KEYWORDS
from swift_tokens import CLOSING, OPENING

# Calls whose texts are sentences for a person.
MESSAGES = {"SecretError", "tampered", "failure", "fatalError", "unusable", "system", "unverifiable", "unusableRecords",
            "io", "perform", "undecided", "precondition", "notAVault", "rolledBack", "StorageLocation", "ByteReader"}
LITERALS = {"nil", "true", "false"}
FLAG = re.compile(r"[A-Z][A-Z0-9]*_[A-Z0-9_]+")


class Finder(Operators):
    def __init__(self, file, source):
        super().__init__(file, source)
        self.sites = []

    # Sites

    def _add(self, kind, first, last, changes, edit, wraps, declaration=None):
        """`first` and `last` are the indices of tokens. `changes` are pairs of what was and what is instead."""
        start, end = self.tokens[first], self.tokens[last]
        text = " ".join(self.lines[start.line - 1].split())
        mutations = [Mutation(kind, self.file, start.line, before, after, text) for before, after in changes]
        site = Site(start.start, end.end, start.line, self._end_line(last), mutations, edit, wraps, declaration)
        site.in_member = self._member(start.line)
        self.sites.append(site)
        return site

    def find(self):
        for index, token in enumerate(self.tokens):
            line = self.lines[token.line - 1].lstrip()
            if line.startswith(("@", "#", "import", "internal import", "package import", "public import")):
                continue
            if token.kind == "operator":
                self._operator(index, token)
            elif token.kind == "number":
                self._number(index, token)
            elif token.kind == "text":
                self._text(index, token)
            elif token.kind == "word":
                self._word(index, token)
            if self._is_statement(index):
                self._statement(index)
        self.sites.sort(key=lambda site: (site.start, -site.end))
        return self.sites

    def _number(self, index, token):
        if self.tokens[index - 1] == "." or ("." in token.text and "x" not in token.text):
            return
        changes = [(token.text, f"{token.text} + 1")]
        if token.text.strip("0_"):
            changes.append((token.text, f"{token.text} - 1"))
        self._add("constant", index, index, changes, lambda n: (
            f"mutantInteger({n[0]}, {n[1] if len(n) > 1 else -1}, ", ")"), True)

    def _text(self, index, token):
        if "\\(" in token.text or token.text.count(" ") > 1 or token.text.startswith(('"""', "#")):
            return
        parent = self.parents[index]
        while parent >= 0:
            if self.tokens[parent] == "(" and self.tokens[parent - 1].text in MESSAGES:
                return
            parent = self.parents[parent]
        if self.tokens[index - 1] == ":" and self.tokens[index - 2].text in ("advice", "part"):
            return
        self._add("text", index, index, [(token.text, '"…"')], lambda n: (f"mutantText({n[0]}, ", ")"), True)

    def _word(self, index, token):
        text, after, before = token.text, self.tokens[index + 1], self.tokens[index - 1]
        if before == "." and text not in ("randomness", "random"):
            return
        if text in ("if", "guard", "while"):
            self._conditions(index)
        elif text == "where" and self._is_condition(index):
            self._condition(index + 1, self._end_of_conditions(index, "{:"))
        elif text in ("true", "false"):
            if before == "while":
                return
            other = "false" if text == "true" else "true"
            self._add("truth", index, index, [(text, other)], lambda n: (f"mutantTruth({n[0]}, ", ")"), True)
        elif text in ("min", "max") and after == "(":
            name = text.capitalize()
            self._add("arithmetic", index, index, [(text, "max" if text == "min" else "min")],
                      lambda n: f"mutant{name}({n[0]}, ", False).end = after.end
        elif FLAG.fullmatch(text) and before.text in ("(", ",") and after.text in (")", ","):
            self._add("flag", index, index, [(text, "0")], lambda n: (f"mutantFlag({n[0]}, ", ")"), True)
        elif text == "randomness" and after.text in (".", ",", ")"):
            first = self._expression_start(index)
            self._add("randomness", first, index, [(self.source[self.tokens[first].start:token.end], "constant")],
                      lambda n: (f"mutantRandomness({n[0]}, ", ")"), True)
        elif text == "SystemRandomness" and after == "(":
            self._add("randomness", index, after.partner, [("SystemRandomness()", "constant")],
                      lambda n: (f"mutantRandomness({n[0]}, ", ")"), True)
        elif text == "random" and before == "." and after == "(":
            self._add("randomness", self._expression_start(index), after.partner, [("random", "constant")],
                      lambda n: (f"mutantConstant({n[0]}, ", ")"), True)

    # Conditions

    def _is_condition(self, where):
        """Whether a `where` belongs to a `for`, a `case` or a `catch`, and not to a declaration."""
        for index in range(where - 1, -1, -1):
            token = self.tokens[index]
            if token.text in ("for", "case", "catch", "default"):
                return True
            if token.text in ("{", "}", "func", "extension", "init", "struct", "protocol"):
                return False
        return False

    def _end_of_conditions(self, index, ends):
        """The index of the first token after `index` at its depth that is one of `ends`."""
        index += 1
        while self.tokens[index].text not in ends:
            token = self.tokens[index]
            index = token.partner + 1 if token.kind == "mark" and token.text in OPENING else index + 1
            if index >= len(self.tokens) or self.tokens[index].text in CLOSING:
                return -1
        return index

    def _conditions(self, index):
        keyword = self.tokens[index].text
        if keyword == "while" and self.tokens[index - 1] == "}" and self.tokens[index - 1].line == self.tokens[index].line:
            return
        if self.tokens[index + 1].text in (":", "true"):
            return
        end = self._end_of_conditions(index, ["else"] if keyword == "guard" else ["{"])
        if end < 0:
            return
        if keyword != "guard":
            self._add("condition", index + 1, index + 1, [(f"{keyword} …", f"{keyword} false")],
                      lambda n: (f"mutantKeeps({n[0]}), ", ""), True).end = self.tokens[index + 1].start
        if keyword == "while":
            return
        start = index + 1
        while start < end:
            comma = self._end_of_conditions(start - 1, [",", self.tokens[end].text])
            comma = comma if 0 <= comma < end else end
            self._condition(start, comma)
            start = comma + 1

    def _condition(self, start, end):
        if end <= start or self.tokens[start].text in ("let", "var", "case", "#", "_"):
            return
        before = " ".join(self.source[self.tokens[start].start:self.tokens[end - 1].end].split())
        self._add("condition", start, end - 1, [(before, "true")], lambda n: (f"mutantCondition({n[0]}, -1, ", ")"), True)

    def _ternary(self, index):
        start = index
        while True:
            before = self.tokens[start - 1]
            if before.kind == "mark" and before.text in CLOSING:
                start = before.partner
                continue
            if before.text in (*OPENING, ",", ":", "=", "->", ";", "try") or before.text in KEYWORDS - LITERALS:
                break
            if before.kind == "operator" and before.text in ("?", "??", "=") and before.fixity == "infix":
                if before.text != "??":
                    break
            here = self.tokens[start]
            if start < index and before.line < here.line and not (
                    here.text == "." or here.fixity == "infix" or before.fixity == "infix"):
                break
            start -= 1
        condition = " ".join(self.source[self.tokens[start].start:self.tokens[index - 1].end].split())
        self._add("condition", start, index - 1, [(condition, "true"), (condition, "false")],
                  lambda n: (f"mutantCondition({n[0]}, {n[1]}, ", ")"), True)

    # Statements
