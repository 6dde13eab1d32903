"""Where Python sources write a name: literals that are exactly it, helpers' calls, docstrings."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.rename.renaming import Renaming
from folkmoot.names.generate.rename.rewriting import replaced

PREFIX = re.compile(r"(?P<prefix>[A-Za-z]*)(?P<quote>\"\"\"|'''|\"|')")
PLAIN = re.compile(r"""[uUrR]?(["'])((?:(?!\1)[^\\\r\n])*)\1""")
URI_PARTS = ("resource_type", "resource_id")
MAKERS = {
    "make_tool_name": ("tool",),
    "make_resource_uri": URI_PARTS,
    "make_resource_template": URI_PARTS,
}
"""The helpers of the conventions, with the arguments that a name is made of."""
SPACES = frozenset({"namespace", "expected_namespace"})
TAKERS = {
    "Namespace": (0, 1),
    "make_tool_name": (0, 2),
    "make_resource_uri": (0, 3),
    "make_resource_template": (0, 3),
    "validate_tool_name": (1, 2),
    "validate_resource_uri": (1, 2),
    "validate_resource_template": (1, 2),
}
"""Which argument is a namespace, by what is called, and how many there must be for that."""
NAMED = re.compile(r":(?://)?[a-z{*]")


class Change(NamedTuple):
    """Other text for a part of a source, by characters."""

    start: int
    end: int
    text: str


class Source:
    """The text of one file, and where its lines begin."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.starts = [0]
        for line in io.StringIO(text, newline=""):
            self.starts.append(self.starts[-1] + len(line))

    def at(self, line: int, column: int) -> int:
        """A place as `tokenize` tells it."""
        return self.starts[line - 1] + column

    def byte_at(self, line: int, column: int) -> int:
        """A place as `ast` tells it, which counts the bytes of a line."""
        start = self.starts[line - 1]
        return start + len(self.text[start : start + column].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node begins and ends."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.byte_at(node.lineno, node.col_offset), self.byte_at(end_line, end_column)

    def tree(self) -> ast.Module:
        """The syntax tree. Raises `ProjectUnusable` for what is no Python."""
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise self.unreadable(error) from None

    def tokens(self) -> Iterator[tokenize.TokenInfo]:
        """The tokens. Raises `ProjectUnusable` for what is no Python."""
        try:
            yield from tokenize.generate_tokens(io.StringIO(self.text, newline="").readline)
        except (tokenize.TokenError, SyntaxError) as error:
            raise self.unreadable(error) from None

    def unreadable(self, error: Exception) -> ProjectUnusable:
        """That the file is no Python."""
        told = str(error.args[0] if error.args else error)
        return ProjectUnusable(f"{self.where} is not Python that can be read: {told}.")


def changes_in(source: Source, renaming: Renaming) -> list[Change]:
    """Every change that a source needs."""
    inner = namespace_changes if renaming.what == "namespace" else helper_changes
    return [*literal_changes(source, renaming), *inner(source, renaming)]


def literal_changes(source: Source, renaming: Renaming) -> Iterator[Change]:
    """Literals that are exactly an old name, and docstrings that have it in them."""
    for token in source.tokens():
        kind = tokenize.tok_name[token.type]
        if kind not in {"STRING", "FSTRING_START"}:
            continue
        start, end = source.at(*token.start), source.at(*token.end)
        raw = source.text[start:end]
        prefix = PREFIX.match(raw)
        if prefix is None or "b" in prefix["prefix"].lower():
            continue
        inside = start + prefix.end()
        if renaming.what == "namespace" and begins_name(source.text, inside, renaming.old):
            yield Change(inside, inside + len(renaming.old), renaming.new)
        elif plain := PLAIN.fullmatch(raw):
            wanted = renaming.spellings.get(plain[2])
            if wanted is not None:
                yield Change(start + plain.start(2), start + plain.end(2), wanted)
        elif len(prefix["quote"]) == 3 and "f" not in prefix["prefix"].lower():
            changed = replaced(raw, renaming.rules)
            if changed != raw:
                yield Change(start, end, changed)


def begins_name(text: str, at: int, namespace: str) -> bool:
    """Whether a name in a namespace begins here, or the beginning of a formatted one."""
    return text.startswith(namespace, at) and bool(NAMED.match(text, at + len(namespace)))


def helper_changes(source: Source, renaming: Renaming) -> Iterator[Change]:
    """Calls such as `make_tool_name("create_task")` with the own part of the old name."""
    old, new = (own.removeprefix("//").partition("?")[0] for own in renaming.own)
    parts = 1 if renaming.what in {"tool", "prompt"} else 2
    wanted = tuple(zip(old.split("/", parts - 1), new.split("/", parts - 1), strict=True))
    for node in ast.walk(source.tree()):
        if not isinstance(node, ast.Call) or len(MAKERS.get(called(node), ())) != parts:
            continue
        named = {it.arg: it.value for it in node.keywords}
        # The library's helpers take the namespace first, those of a project do not.
        given = [*node.args, *(named[name] for name in MAKERS[called(node)] if name in named)]
        for first in (0, 1):
            pairs = list(zip(given[first : first + parts], wanted, strict=False))
            if len(pairs) == parts and all(is_text(it, pair[0]) for it, pair in pairs):
                for it, pair in pairs:
                    yield from quoted(source, it, *pair)


def namespace_changes(source: Source, renaming: Renaming) -> Iterator[Change]:
    """Arguments that are the namespace itself: `expected_namespace="notes"`."""
    for node in ast.walk(source.tree()):
        if isinstance(node, ast.Call):
            given = [it.value for it in node.keywords if it.arg in SPACES]
            at, least = TAKERS.get(called(node), (0, len(node.args) + 1))
            # What a project's own helper takes third is a query, and its first no namespace.
            last = node.args[least - 1 : least]
            if last and (least < 3 or is_text(last[0], getattr(last[0], "value", None))):
                given += node.args[at : at + 1]
            for it in given:
                if is_text(it, renaming.old):
                    yield from quoted(source, it, renaming.old, renaming.new)


def called(node: ast.Call) -> str:
    """The last part of what is called."""
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_text(node: ast.expr, text: str | None) -> bool:
    """Whether a node is a literal of this text."""
    return isinstance(node, ast.Constant) and isinstance(text, str) and node.value == text


def quoted(source: Source, node: ast.expr, old: str, new: str) -> Iterator[Change]:
    """The change of a literal's text between its quotes."""
    start, end = source.span(node)
    plain = PLAIN.fullmatch(source.text[start:end])
    if plain is not None and old != new:
        yield Change(start + plain.start(2), start + plain.end(2), new)


def applied(text: str, changes: Iterable[Change]) -> str:
    """The text with the changes; the same change twice is one."""
    pieces, at = [], 0
    for start, end, new in sorted(set(changes)):
        if start < at:
            raise ProjectUnusable("Two changes would be made at one place; nothing was changed.")
        pieces += [text[at:start], new]
        at = end
    return "".join([*pieces, text[at:]])
