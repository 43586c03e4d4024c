"""Mutations of operators, each of which becomes an operator of its own."""

from statements import Statements

COMPARISONS = {"<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
               "===": ["!=="], "!==": ["==="]}
ARITHMETIC = {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&+": "&-", "&-": "&+"}
ASSIGNMENTS = {"+=": "-=", "-=": "+="}
LOGIC = {"&&": "||", "||": "&&"}
PRECEDENCES = [("Comparison", COMPARISONS), ("LogicalConjunction", ["&&"]), ("LogicalDisjunction", ["||"]),
               ("Assignment", ASSIGNMENTS), ("Addition", ["+", "-", "&+", "&-", "|", "^"]),
               ("Multiplication", ["*", "/", "%", "&"]), ("BitwiseShift", ["<<", ">>"]),
               ("RangeFormation", ["..<", "..."])]


class Operators(Statements):
    def _operator(self, index, token):
        text = token.text
        if self.tokens[index - 1] == "func":
            return
        if token.fixity == "prefix" and text == "!":
            self._add("condition", index, index, [("!", "")], None, False, lambda name, n: [
                f"prefix operator {name}",
                f"prefix func {name}(a: Bool) -> Bool {{ coffer_mutant({n[0]}) ? a : !a }}"])
            return
        if token.fixity == "prefix" and text == "..<":
            self._add("boundary", index, index, [("..<", "...")], None, False, lambda name, n: [
                f"prefix operator {name}",
                f"prefix func {name}<T: FixedWidthInteger>(b: T) -> PartialRangeUpTo<T> "
                f"{{ ..<(coffer_mutant({n[0]}) ? b + 1 : b) }}"])
            return
        spaced = self.source[token.start - 1].isspace()
        if text == "?" and spaced and token.fixity == "infix":
            self._ternary(index)
            return
        if token.fixity != "infix" or not (spaced or text in ("..<", "...")):
            return
        precedence = next((name for name, operators in PRECEDENCES if text in operators), None)
        if precedence is None:
            return

        def declare(head, signatures):
            def lines(name, n):
                found = [f"{head} operator {name}: {precedence}Precedence"]
                for parameters, result, body in signatures:
                    for i, number in enumerate(n):
                        body = body.replace(f"MUTANT{i}", f"coffer_mutant({number})")
                    found.append(f"func {name}{parameters} {result} {{ {body} }}")
                return found
            return lines

        def generic(constraint, result, body):
            return [(f"<T: {constraint}>(a: T, b: T)", f"-> {result}", body),
                    ("(a: Int, b: Int)", f"-> {result.replace('T', 'Int') if result != 'Bool' else result}", body)]

        if text == "&" and all(self.tokens[i].text[0].isupper() and "_" not in self.tokens[i].text for i in (index - 1, index + 1)):
            return  # a composition of protocols
        if text == ">" and self.tokens[index + 1].kind == "mark" and self.tokens[index + 1].text in "{),]":
            return
        if text in COMPARISONS:
            changed = COMPARISONS[text]
            body = "".join(f"MUTANT{i} ? a {other} b : " for i, other in enumerate(changed)) + f"a {text} b"
            if self.tokens[index + 1] == "nil":
                signatures = [("<T>(a: T?, b: _OptionalNilComparisonType)", "-> Bool", body)]
            elif text in ("===", "!=="):
                signatures = [("(a: AnyObject?, b: AnyObject?)", "-> Bool", body)]
            else:
                signatures = generic("Equatable" if text in ("==", "!=") else "Comparable", "Bool", body)
            self._add("comparison", index, index, [(text, other) for other in changed], None, False,
                      declare("infix", signatures))
        elif text in LOGIC:
            other = LOGIC[text]
            signatures = [("(a: Bool, b: @autoclosure () throws -> Bool)", "rethrows -> Bool",
                           f"try MUTANT0 ? a {other} b() : a {text} b()")]
            self._add("condition", index, index, [(text, other)], None, False, declare("infix", signatures))
        elif text in ARITHMETIC:
            other = ARITHMETIC[text]
            if text in ("<<", ">>"):
                signatures = [("<T: FixedWidthInteger, U: FixedWidthInteger>(a: T, b: U)", "-> T",
                               f"MUTANT0 ? a {other} b : a {text} b")]
            else:
                signatures = generic("FixedWidthInteger", "T", f"MUTANT0 ? a {other} b : a {text} b")
            self._add("arithmetic", index, index, [(text, other)], None, False, declare("infix", signatures))
        elif text in ASSIGNMENTS:
            other = ASSIGNMENTS[text]
            signatures = [("<T: FixedWidthInteger>(a: inout T, b: T)", "",
                           f"if MUTANT0 {{ a {other} b }} else {{ a {text} b }}")]
            self._add("arithmetic", index, index, [(text, other)], None, False, declare("infix", signatures))
        elif text in ("|", "&", "^"):
            left = self.tokens[index - 1].text if self.tokens[index - 1].kind == "word" else "left side"
            right = self.tokens[index + 1].text if self.tokens[index + 1].kind == "word" else "right side"
            # Without O_RDONLY, which is 0, the flags are the same.
            changes = [(f"{text} {right}", "")]
            is_first = not (index >= 2 and self.tokens[index - 2] == text)
            body = "MUTANT0 ? a : "
            if text == "|" and is_first and left != "O_RDONLY":
                changes.append((f"{left} {text}", ""))
                body += "MUTANT1 ? b : "
            self._add("flag", index, index, changes, None, False,
                      declare("infix", generic("BinaryInteger", "T", body + f"a {text} b")))
        elif text == "..<":
            self._add("boundary", index, index, [(text, "...")], None, False, declare("infix", [
                ("<T: FixedWidthInteger>(a: T, b: T)", "-> Range<T>", "a..<(MUTANT0 ? b + 1 : b)")]))
        else:
            self._add("boundary", index, index, [(text, "..<")], None, False, declare("infix", [
                ("<T: FixedWidthInteger>(a: T, b: T)", "-> ClosedRange<T>", "a...(MUTANT0 ? b - 1 : b)")]))
