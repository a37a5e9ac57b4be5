"""Shell syntax through tree-sitter-bash, which reads any text and marks what is wrong in it."""

from __future__ import annotations

from bisect import bisect_right
from typing import Optional

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from ._shell_syntax import (
    MAX_DEPTH,
    MAX_WORDS,
    AndOr,
    Arithmetic,
    Assignment,
    Block,
    Case,
    For,
    Function,
    Group,
    If,
    Not,
    Pipeline,
    Program,
    Redirect,
    Simple,
    Span,
    Statement,
    Trouble,
    While,
    assignment,
    simple,
)

_WORDS = frozenset(
    [
        "word",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "number",
        "concatenation",
        "expansion",
        "simple_expansion",
        "command_substitution",
        "arithmetic_expansion",
        "process_substitution",
        "brace_expression",
        "command_name",
        "variable_name",
        "extglob_pattern",
        "regex",
        "array",
        "subscript",
        "string_content",
        "special_variable_name",
        "test_operator",
        "heredoc_start",
        "file_descriptor",
    ]
)
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_MAX_TROUBLES = 20


def parse(text: str) -> Program:
    """The script's syntax; what could not be parsed is in ``troubles``."""
    data = text.encode("utf-8", "surrogatepass")
    tree = Parser(Language(tree_sitter_bash.language())).parse(data)
    reader = _Reader(text, data)
    body = reader.block(tree.root_node.children, 0)
    return Program(body, "tree-sitter", tuple(reader.troubles))


class _Reader:
    def __init__(self, text: str, data: bytes) -> None:
        self._text = text
        self._data = data
        self._wide: list[int] = []
        if len(text) != len(data):
            # Byte offsets of the bytes that continue a character.
            self._wide = [i for i, byte in enumerate(data) if byte & 0xC0 == 0x80]
        self.troubles: list[Trouble] = []

    # --- places ---------------------------------------------------------------------

    def _offset(self, byte: int) -> int:
        return byte - bisect_right(self._wide, byte - 1) if self._wide else byte

    def _span(self, node: Node) -> Span:
        return Span(self._offset(node.start_byte), self._offset(node.end_byte))

    def _source(self, node: Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _trouble(self, node: Node, message: str) -> None:
        if len(self.troubles) < _MAX_TROUBLES:
            self.troubles.append(Trouble(self._offset(node.start_byte), message))

    # --- statements -----------------------------------------------------------------

    def block(self, nodes: list[Node], depth: int) -> Block:
        items: list[Statement] = []
        for node in nodes:
            if node.type == "&" and items:
                items[-1] = Group(items[-1], isolated=True)
                continue
            made = self.statement(node, depth)
            if made is not None:
                items.append(made)
        return Block(tuple(items))

    def statement(self, node: Node, depth: int) -> Optional[Statement]:
        if depth > MAX_DEPTH:
            self._trouble(node, "statements are nested too deeply")
            return None
        method = getattr(self, f"_{node.type}", None)
        if method is not None:
            made: Optional[Statement] = method(node, depth + 1)
            return made
        if node.type in _WORDS:
            # A stray word, most often beside an error.
            return self._simple([node])
        return None

    def _program(self, node: Node, depth: int) -> Statement:
        return self.block(node.children, depth)

    def _ERROR(self, node: Node, depth: int) -> Statement:  # noqa: N802 - the node's name
        """Words on one line of an unparsable region are kept as a command."""
        text = self._source(node).strip()
        if text.strip("\\"):  # a backslash that ends the file joins nothing, and harms nothing
            shown = text.splitlines()[0][:60]
            self._trouble(node, f"cannot be parsed as shell: {shown}")
        items: list[Statement] = []
        line: list[Node] = []
        for child in node.children:
            is_word = child.type in _WORDS or child.type == "variable_assignment"
            if line and (not is_word or self._breaks(line[-1], child)):
                items.append(self._simple(line))
                line = []
            if is_word:
                line.append(child)
            else:
                made = self.statement(child, depth)
                if made is not None:
                    items.append(made)
        if line:
            items.append(self._simple(line))
        return Block(tuple(items))

    def _breaks(self, before: Node, after: Node) -> bool:
        """Whether a line ends between two nodes."""
        gap = self._data[before.end_byte : after.start_byte]
        return b"\n" in gap.replace(b"\\\n", b"")

    def _simple(self, nodes: list[Node]) -> Statement:
        words: list[Span] = []
        assignments: list[Assignment] = []
        declared: list[Assignment] = []
        redirects: list[Redirect] = []
        for node in self._leading_assignments(nodes[:MAX_WORDS], assignments):
            if node.type in _REDIRECTS:
                redirect, further = self._redirect(node)
                redirects.append(redirect)
                words.extend(further)
            elif node.type == "variable_assignment":
                made = self._assignment(node)
                if made is None:
                    words.append(self._span(node))
                else:
                    (declared if words else assignments).append(made)
            elif node.type == "ERROR":
                self._error_in_command(node, words)
            elif node.type in _WORDS or node.is_named:
                if node.type != "comment":
                    self._add_word(words, self._span(node))
            elif node.type not in ("(", ")", ";", "\n"):
                self._add_word(words, self._span(node))
        start = self._offset(nodes[0].start_byte)
        return simple(self._text, start, words, assignments, redirects, declared)

    def _leading_assignments(self, nodes: list[Node], made: list[Assignment]) -> list[Node]:
        """Put assignments before the first word in ``made``; the nodes that are left.

        The grammar cuts ``A=x/$B/$C`` in two: what touches a value is the rest of it.
        """
        at = 0
        while at < len(nodes) and nodes[at].type == "variable_assignment":
            end = at + 1
            while (
                end < len(nodes)
                and nodes[end].type in _WORDS
                and nodes[end - 1].end_byte == nodes[end].start_byte
            ):
                end += 1
            found = self._assignment(nodes[at])
            if end > at + 1:
                span = Span(self._span(nodes[at]).start, self._span(nodes[end - 1]).end)
                found = assignment(self._text, span.start, span.end)
            if found is None:
                break
            made.append(found)
            at = end
        return nodes[at:]

    def _add_word(self, words: list[Span], span: Span) -> None:
        """Append a word, joined to the one it touches."""
        if span.start == span.end:
            return
        if words and words[-1].end == span.start:
            words[-1] = Span(words[-1].start, span.end)
        else:
            words.append(span)

    def _error_in_command(self, node: Node, words: list[Span]) -> None:
        shown = (self._source(node).strip().splitlines() or [""])[0][:60]
        if shown.strip("\\"):
            self._trouble(node, f"cannot be parsed as shell: {shown}")
        leaves = [child for child in node.children if child.type in _WORDS] or [node]
        for leaf in leaves:
            self._add_word(words, self._span(leaf))

    def _assignment(self, node: Node) -> Optional[Assignment]:
        span = self._span(node)
        elements: Optional[tuple[Span, ...]] = None
        value = node.child_by_field_name("value")
        if value is not None and value.type == "array":
            found: list[Span] = []
            for child in value.children:
                if child.type not in ("(", ")", "comment"):
                    self._add_word(found, self._span(child))
            elements = tuple(found)
        return assignment(self._text, span.start, span.end, elements)

    def _redirect(self, node: Node) -> tuple[Redirect, list[Span]]:
        """The redirection, and words that the grammar took for further targets."""
        operator = descriptor = ""
        targets: list[Span] = []
        body: Optional[Span] = None
        literal = False
        for child in node.children:
            if child.type == "file_descriptor":
                descriptor = self._source(child)
                continue
            if child.type == "heredoc_start":
                targets.append(self._span(child))
                literal = any(mark in self._source(child) for mark in "'\"\\")
            elif child.type == "heredoc_body":
                body = self._with_indentation(child)
            elif child.type == "heredoc_end":
                # The parser's body may leave out leading or trailing parts.
                start = body.start if body else self._offset(child.start_byte)
                body = Span(start, self._offset(child.start_byte))
            elif child.is_named and child.type in _WORDS:
                targets.append(self._span(child))
            elif not operator and not child.is_named:
                operator = child.type
        if descriptor not in ("", "0" if operator[:1] == "<" else "1"):
            operator = descriptor + operator
        target = targets[0] if targets else None
        return Redirect(operator, target, body, literal), targets[1:]

    def _with_indentation(self, body: Node) -> Span:
        """The text of a here-document, with the blanks before its first line."""
        span = self._span(body)
        before = self._data[: body.start_byte]
        blanks = len(before) - len(before.rstrip(b" \t"))
        is_line = before[: len(before) - blanks].endswith(b"\n")
        return Span(span.start - blanks, span.end) if is_line else span

    def _variable_assignment(self, node: Node, depth: int) -> Statement:
        return self._simple([node])

    def _variable_assignments(self, node: Node, depth: int) -> Statement:
        return self._simple(node.children)

    def _command(self, node: Node, depth: int) -> Statement:
        """A command; the grammar takes assignments on the lines above it for its own."""
        items: list[Statement] = []
        line: list[Node] = []
        for child in node.children:
            if line and line[-1].type == "variable_assignment" and self._breaks(line[-1], child):
                items.append(self._simple(line))
                line = []
            line.append(child)
        last = self._simple(line)
        return Block((*items, last)) if items else last

    def _declaration_command(self, node: Node, depth: int) -> Statement:
        return self._simple(node.children)

    _unset_command = _declaration_command

    def _test_command(self, node: Node, depth: int) -> Optional[Statement]:
        if node.children and node.children[0].type == "((":
            return Arithmetic(self._span(node))
        words: list[Span] = []
        stack = list(reversed(node.children))
        while stack:
            child = stack.pop()
            if child.child_count and child.type not in _WORDS:
                stack.extend(reversed(child.children))
            else:
                self._add_word(words, self._span(child))
        return simple(self._text, self._offset(node.start_byte), words)

    def _redirected_statement(self, node: Node, depth: int) -> Optional[Statement]:
        redirects: list[Redirect] = []
        further: list[Span] = []
        after: list[Statement] = []
        body: Optional[Statement] = None
        operator = "|"
        for child in node.children:
            if child.type not in _REDIRECTS:
                body = self.statement(child, depth) if body is None else body
                continue
            redirect, words = self._redirect(child)
            redirects.append(redirect)
            further.extend(words)
            # ``cat <<EOF | tee x``: the rest of the line stands inside the redirection.
            for inner in child.children:
                if inner.type in ("&&", "||"):
                    operator = inner.type
                elif inner.type in _REDIRECTS:
                    redirects.append(self._redirect(inner)[0])
                elif inner.type not in _WORDS:
                    made = self.statement(inner, depth)
                    if made is not None:
                        after.append(made)
        made_body = self._with_redirects(node, body, redirects, further)
        if not after:
            return made_body
        if operator == "|":
            return Pipeline((made_body, *after))
        return AndOr(made_body, operator, Block(tuple(after)))

    def _with_redirects(
        self,
        node: Node,
        body: Optional[Statement],
        redirects: list[Redirect],
        further: list[Span],
    ) -> Statement:
        if body is None:
            start = self._offset(node.start_byte)
            return simple(self._text, start, further, (), redirects)
        if isinstance(body, Simple):
            return Simple(
                body.start,
                body.words + tuple(further),
                body.assignments,
                body.declared,
                body.redirects + tuple(redirects),
            )
        if isinstance(body, Pipeline) and body.stages:
            # The redirection belongs to the last stage.
            last = self._with_redirects(node, body.stages[-1], redirects, further)
            return Pipeline((*body.stages[:-1], last))
        if isinstance(body, AndOr):
            right = self._with_redirects(node, body.right, redirects, further)
            return AndOr(body.left, body.operator, right)
        return Group(body, tuple(redirects))

    def _list(self, node: Node, depth: int) -> Optional[Statement]:
        # Chains lean to the left and may be long: walk them without recursion.
        chain: list[tuple[str, Node]] = []
        current: Optional[Node] = node
        while current is not None and current.type == "list" and current.child_count >= 3:
            chain.append((current.children[1].type, current.children[-1]))
            current = current.children[0]
        left = self.statement(current, depth) if current is not None else None
        for operator, right in reversed(chain):
            made = self.statement(right, depth)
            if left is None:
                left = made
            elif made is not None:
                joined = operator in ("&&", "||")
                left = AndOr(left, operator, made) if joined else Block((left, made))
        return left

    def _pipeline(self, node: Node, depth: int) -> Statement:
        made = (self.statement(child, depth) for child in node.children if child.is_named)
        return Pipeline(tuple(stage for stage in made if stage is not None))

    def _negated_command(self, node: Node, depth: int) -> Statement:
        return Not(self.block([child for child in node.children if child.type != "!"], depth))

    def _subshell(self, node: Node, depth: int) -> Statement:
        return Group(self.block(node.children, depth), isolated=True)

    def _compound_statement(self, node: Node, depth: int) -> Statement:
        if node.children and node.children[0].type == "((":
            return Arithmetic(self._span(node))
        return self.block(node.children, depth)

    def _do_group(self, node: Node, depth: int) -> Statement:
        return self.block(node.children, depth)

    def _if_statement(self, node: Node, depth: int) -> Statement:
        branches: list[tuple[Statement, Statement]] = []
        otherwise: Optional[Statement] = None
        own: list[Node] = []
        for child in node.children:
            if child.type == "elif_clause":
                branches.append(self._branch(child.children, depth))
            elif child.type == "else_clause":
                otherwise = self.block(child.children, depth)
            else:
                own.append(child)
        return If((self._branch(own, depth), *branches), otherwise)

    def _branch(self, nodes: list[Node], depth: int) -> tuple[Statement, Statement]:
        at = next((i for i, node in enumerate(nodes) if node.type == "then"), len(nodes))
        return self.block(nodes[:at], depth), self.block(nodes[at:], depth)

    def _for_statement(self, node: Node, depth: int) -> Statement:
        items: Optional[list[Span]] = None
        body: list[Node] = []
        seen_in = False
        for child in node.children[2:]:
            if child.type == "in":
                seen_in, items = True, []
            elif child.type == "do_group":
                body.append(child)
            elif seen_in and items is not None and child.type != ";":
                self._add_word(items, self._span(child))
        variable = node.child_by_field_name("variable")
        name = self._source(variable) if variable is not None else ""
        start = self._offset((variable or node).start_byte)
        found = None if items is None else tuple(items)
        return For(name, start, found, self.block(body, depth))

    def _c_style_for_statement(self, node: Node, depth: int) -> Statement:
        first = node.child_by_field_name("initializer")
        name, start = "", self._offset(node.start_byte)
        if first is not None and first.type == "variable_assignment":
            made = self._assignment(first)
            name, start = (made.name, made.start) if made else ("", start)
        body = [child for child in node.children if child.type in _BODIES]
        return For(name, start, (), self.block(body, depth))

    def _while_statement(self, node: Node, depth: int) -> Statement:
        body = [child for child in node.children if child.type == "do_group"]
        others = ("do_group", "while", "until")
        condition = [child for child in node.children if child.type not in others]
        negated = any(child.type == "until" for child in node.children)
        return While(self.block(condition, depth), self.block(body, depth), negated)

    def _case_statement(self, node: Node, depth: int) -> Statement:
        bodies: list[Statement] = []
        patterns: list[tuple[str, ...]] = []
        subject = node.child_by_field_name("value")
        for item in node.children:
            if item.type != "case_item":
                continue
            at = next((i for i, n in enumerate(item.children) if n.type == ")"), 0)
            parts = (self._source(child) for child in item.children[:at])
            patterns.append(tuple(part for part in parts if part not in ("(", "|")))
            bodies.append(self.block(item.children[at + 1 :], depth))
        exhaustive = any("*" in alternatives for alternatives in patterns)
        span = self._span(subject) if subject is not None else None
        return Case(tuple(bodies), exhaustive, span, tuple(patterns))

    def _function_definition(self, node: Node, depth: int) -> Statement:
        name = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        made = self.statement(body, depth) if body is not None else None
        return Function(self._source(name) if name is not None else "", made or Block())


_BODIES = ("do_group", "compound_statement")
