"""Mutations that leave out a statement: a call or an assignment."""

from structure import KEYWORDS, Structure
from swift_tokens import CLOSING, OPENING

# What a closure on one line calls for its effect.
EFFECTS = {"copyMemory", "copyBytes", "append", "free", "close", "send", "insert", "update", "initialize"}


class Statements(Structure):
    def _is_statement(self, index):
        token, parent = self.tokens[index], self.parents[index]
        if parent < 0 or self.tokens[parent] != "{" or index == 0:
            return False
        if not (token.kind == "word" and (token.text not in KEYWORDS or token == "throw") or token == "("):
            return False
        before = self.tokens[index - 1]
        header = self._header(parent)
        if token == "throw" and not (header and header[-1] == "catch") or self._is_type(parent):
            return False
        if header and header[-1] == "switch" and before != ":":
            return False
        if before == "in" and "for" in (t.text for t in self.tokens[parent:index] if t.line == before.line):
            return False
        on_new_line = self._end_line(index - 1) < token.line
        if not on_new_line:
            if before == ";":
                return True
            if index - 1 != parent and before != "in":
                return False
            return self._runs_for_effect(parent, index, header)
        if before.text in ("{", "}", ";", "in"):
            return before != "}" or token.text not in ("_",)
        if before == ":":
            return True
        if before.kind == "operator" and before.fixity in ("infix", "prefix") or before.text in (
                ",", ".", "(", "[", "return", "throw", "try", "else", "where", "is", "as", "="):
            return False
        return True

    def _runs_for_effect(self, brace, index, header):
        if header and header[-1] in ("defer", "do", "else", "catch", "if", "while", "for", "deinit"):
            return True
        if header and header[-1] == "func":
            return "->" not in header
        last = self.tokens[brace].partner
        return any(t.kind == "word" and t.text in EFFECTS for t in self.tokens[index:last])

    def _statement(self, index):
        end = index
        while True:
            token = self.tokens[end]
            if token.kind == "mark" and token.text in OPENING:
                end = token.partner
            after = self.tokens[end + 1]
            if after.text in (*CLOSING, ";"):
                break
            if after.line > self._end_line(end) and not (
                    after.fixity == "infix" or after.text in (".", "else", "catch")
                    or self.tokens[end].fixity == "infix" or self.tokens[end].text in (",", "=", "in")):
                break
            end += 1
        words, depth_zero, i = [], [], index
        while i <= end:
            depth_zero.append(self.tokens[i])
            i = self.tokens[i].partner + 1 if self.tokens[i].text in OPENING and self.tokens[i].kind == "mark" else i + 1
        assigns = any(t.kind == "operator" and t.text == "=" for t in depth_zero) and self.tokens[index] != "_"
        if not assigns and not any(t.text in ("(", "{") or t.text.endswith("=") for t in depth_zero):
            return
        if any(t.text in ("->", "in", "throws") for t in depth_zero):
            return
        # The only expression of a body is its value, unless the body has none.
        parent = self.parents[index]
        is_first = self.tokens[index - 1].text in ("{", "in")
        if is_first and self.tokens[end + 1] == "}" and not self._runs_for_effect(parent, index, self._header(parent)):
            return
        if assigns and self._is_in_initializer(index):
            return
        before = " ".join(self.source[self.tokens[index].start:self.tokens[end].end].split())
        site = self._add("call" if not assigns else "assignment", index, end, [(before, "")],
                         lambda n: (f"if mutantKeeps({n[0]}) {{ ", " }"), True)
        equals = next((i for i in range(index, end) if self.tokens[i] == "="), end)
        site.assigned = {t.text for t in self.tokens[index:equals] if t.kind == "word"}

    def _is_in_initializer(self, index):
        parent = self.parents[index]
        while parent >= 0:
            header = self._header(parent) if self.tokens[parent] == "{" else []
            if header and header[-1] == "init":
                return True
            if header and header[-1] in ("func", "var"):
                return False
            parent = self.parents[parent]
        return False
