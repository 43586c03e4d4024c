"""The structure of a Swift file, as far as the mutations need it: what a brace belongs to, and where a member ends."""

from swift_tokens import CLOSING, OPENING, tokens

# What begins no expression that stands alone.
KEYWORDS = set("""let var func return if guard while for repeat switch case default break continue do catch else defer
import struct enum class extension protocol init deinit subscript typealias associatedtype operator infix prefix postfix
static private fileprivate package public internal final override mutating nonmutating convenience required indirect lazy
weak unowned nonisolated borrowing consuming fallthrough where in as is true false nil get set throws rethrows""".split())
TYPES = {"struct", "enum", "class", "extension", "protocol", "actor"}


class Structure:
    def __init__(self, file, source):
        self.file, self.source, self.tokens = file, source, tokens(source)
        self.lines = source.split("\n")
        self.parents = self._parents()
        self.members = self._members()

    def _parents(self):
        """For each token, the index of the innermost mark that is open before it, or −1."""
        parents, open_marks = [], [-1]
        for index, token in enumerate(self.tokens):
            if token.kind == "mark" and token.text in CLOSING:
                open_marks.pop()
            parents.append(open_marks[-1])
            if token.kind == "mark" and token.text in OPENING:
                open_marks.append(index)
        return parents

    def _header(self, brace):
        """The tokens before an opening brace that belong to it, nearest first."""
        found, index = [], brace - 1
        while index >= 0 and self.tokens[index].text not in ("{", "}", ";", "(", "["):
            before, here = self.tokens[index], self.tokens[index + 1]
            if self._end_line(index) < here.line and not (
                    before.text in (",", ":", "=") or before.fixity == "infix" or here.fixity == "infix"
                    or here.text in (".", "{", "where", "else", "throws")):
                break
            if self.tokens[index].kind == "mark" and self.tokens[index].text in CLOSING:
                index = self.tokens[index].partner
            found.append(self.tokens[index].text)
            if self.tokens[index].text in KEYWORDS - {"in", "is", "as", "throws", "where", "let", "nil", "true", "false",
                                                      "borrowing", "consuming", "set", "get"} | TYPES:
                break
            index -= 1
        return found

    def _is_type(self, brace):
        header = self._header(brace)
        return bool(header) and header[-1] in TYPES

    def _members(self):
        """The lines of every member of a type, and of every function."""
        found = []
        for index, token in enumerate(self.tokens):
            if token.text == "{" and (self.parents[index] < 0 or self._is_type(self.parents[index])):
                if not self._is_type(index):
                    found.append((token.line, self.tokens[token.partner].line))
        return found

    def _member(self, line):
        return next((m for m in self.members if m[0] <= line <= m[1]), (line, line))

    def _end_line(self, index):
        token = self.tokens[index]
        return token.line + token.text.count("\n")

    def _expression_start(self, index):
        """The start of the chain of members that ends with the word at `index`: `a.b` for `b`."""
        while index >= 2 and self.tokens[index - 1] == "." and self.tokens[index - 2].kind == "word":
            index -= 2
        return index
