"""One registration as a declared name, or a note that its name cannot be known."""

from __future__ import annotations

import ast
import re
from typing import Final

from msgspec import Struct, structs

from folkmoot.names.lint.model import (
    Declared,
    DeclaredDeprecation,
    Edit,
    LintNote,
    NameSource,
    SourcePlace,
    TextSpan,
)
from folkmoot.names.lint.modules import Function, Module, Site
from folkmoot.names.lint.project import LINE
from folkmoot.names.lint.servers import RegistrationStyle
from folkmoot.names.lint.values import Values, deprecation_of, says_deprecated

DEFINITION: Final = re.compile(r"(?:async[ \t]+)?def[ \t]+")


class WrittenName(Struct, frozen=True):
    """A name, its place in the source, and how it is written there."""

    text: str
    span: TextSpan
    written: NameSource


class RegisteredFunction(Struct, frozen=True):
    """The function behind a registration, as far as it is known."""

    name: str = ""
    description: str = ""
    deprecation: DeclaredDeprecation | None = None


class Declarations:
    """Makes the declarations of one module."""

    def __init__(self, module: Module, values: Values) -> None:
        self.file = module.file
        self.values = values

    def note(self, message: str, node: ast.expr) -> LintNote:
        """A note about an expression."""
        return LintNote(message, self.file.place(self.file.span(node)))

    def decorated(
        self,
        site: Site,
        style: RegistrationStyle,
        decorator: ast.expr,
        call: ast.Call | None,
        function: Function,
        *,
        server: str,
        branches: tuple[tuple[int, int], ...],
    ) -> Declared | LintNote | None:
        """What a decorator on a function registers."""
        given = self._given(style, call, style.position)
        if given is not None:
            named = self._named(site, style, given)
        elif hides(call):
            named = self._unknown(style, decorator)
        elif style.kind in {"tool", "prompt"}:
            named = self._by_function(function, decorator, call)
        else:
            return None
        if isinstance(named, LintNote):
            return named
        lines = (decorator.lineno, function.lineno)
        behind = self._function(site, function)
        return self._declared(site, style, named, call, behind, lines, server, branches)

    def called(
        self,
        site: Site,
        style: RegistrationStyle,
        call: ast.Call,
        function: ast.expr | None,
        *,
        server: str,
        branches: tuple[tuple[int, int], ...],
    ) -> Declared | LintNote | None:
        """The name a call registers; `function` is the function it is given."""
        position = style.position
        if function is not None and position == 0:
            position = None
        given = self._given(style, call, position)
        behind = self._behind(site, function)
        if given is not None:
            named = self._named(site, style, given)
        elif behind is not None and behind.name and not hides(call) and function is not None:
            span = self.file.span(function)
            named = WrittenName(behind.name, span, NameSource(how="function"))
        elif style.kind in {"tool", "prompt"} or hides(call):
            named = self._unknown(style, call)
        else:
            return None
        if isinstance(named, LintNote):
            return named
        lines = (call.lineno, call.end_lineno or call.lineno)
        return self._declared(
            site, style, named, call, behind or RegisteredFunction(), lines, server, branches
        )

    def _given(
        self, style: RegistrationStyle, call: ast.Call | None, position: int | None
    ) -> ast.expr | None:
        """The argument that holds the name, if one does."""
        if call is None:
            return None
        found = next((each.value for each in call.keywords if each.arg in style.names), None)
        if found is None and position is not None and position < len(call.args):
            found = call.args[position]
        if isinstance(found, ast.Starred) or (
            isinstance(found, ast.Constant) and found.value is None
        ):
            return None
        return found

    def _named(
        self, site: Site, style: RegistrationStyle, node: ast.expr
    ) -> WrittenName | LintNote:
        value = self.values.value(site, node)
        if value is None:
            return self._unknown(style, node)
        return WrittenName(value.text, self.file.span(node), value.written)

    def _unknown(self, style: RegistrationStyle, node: ast.expr) -> LintNote:
        what = "URI" if style.kind in {"resource", "template"} else "name"
        kind = "resource" if style.kind == "template" else style.kind
        return self.note(f"The {what} of this {kind} is only known at run time.", node)

    def _by_function(
        self, function: Function, decorator: ast.expr, call: ast.Call | None
    ) -> WrittenName:
        """A name that is the function's, with what gives the tool another one."""
        start = self.file.offset(function.lineno, function.col_offset)
        found = DEFINITION.match(self.file.text, start)
        at = found.end() if found else start
        span = TextSpan(at, at + len(function.name))
        there = self.file.slice(span) == function.name
        if call is None:
            end = self.file.span(decorator).end
            insert = Edit(self.file.path, TextSpan(end, end), "(name={})")
        elif call.keywords or call.args:
            nodes: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
            first = min(self.file.offset(each.lineno, each.col_offset) for each in nodes)
            insert = Edit(self.file.path, TextSpan(first, first), f"name={{}},{self._gap(first)}")
        else:
            end = self.file.span(call).end - 1
            insert = Edit(self.file.path, TextSpan(end, end), "name={}")
        written = NameSource(
            how="function",
            span=span if there else None,
            text=function.name,
            quoted=False,
            insert=insert,
        )
        return WrittenName(function.name, span, written)

    def _gap(self, at: int) -> str:
        """What comes before an argument: a space, or the line it begins with its indent."""
        line, _ = self.file.position(at)
        start = self.file.starts[line - 1]
        indent = self.file.text[start:at]
        if line == 1 or indent.strip():
            return " "
        end = LINE.search(self.file.text, self.file.starts[line - 2])
        return (end[0] if end else "\n") + indent

    def _behind(self, site: Site, node: ast.expr | None) -> RegisteredFunction | None:
        """What is known of a function that is given to a call; None if nothing is."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return None
        found = self.values.follow(site, node)
        if found is not None and isinstance(found[1], Function):
            return self._function(found[0], found[1])
        if isinstance(node, ast.Attribute):
            return RegisteredFunction(node.attr)
        dotted = site.dotted(node)
        return None if dotted is None else RegisteredFunction(dotted.rpartition(".")[2])

    def _function(self, site: Site, function: Function) -> RegisteredFunction:
        return RegisteredFunction(
            function.name,
            first_line(ast.get_docstring(function) or ""),
            deprecation_of(self.values, site, function),
        )

    def _declared(
        self,
        site: Site,
        style: RegistrationStyle,
        named: WrittenName,
        call: ast.Call | None,
        behind: RegisteredFunction,
        lines: tuple[int, int],
        server: str,
        branches: tuple[tuple[int, int], ...],
    ) -> Declared:
        keywords = {each.arg: each.value for each in call.keywords if each.arg} if call else {}
        texts = {name: self.values.text(site, node) or "" for name, node in keywords.items()}
        description = texts.get("description") or behind.description
        deprecation = behind.deprecation
        if deprecation is None and (
            says_deprecated(texts.get("description", "")) or tagged(keywords.get("tags"))
        ):
            deprecation = DeclaredDeprecation(place=self.file.place(named.span))
        templated = style.kind == "resource" and "{" in named.text
        written = structs.replace(named.written, path=named.written.path or self.file.path)
        return Declared(
            kind="template" if templated else style.kind,
            name=named.text,
            place=self._place(named),
            written=written,
            function=behind.name,
            description=first_line(description),
            mime_type=texts.get("mime_type") or texts.get("mimeType") or "",
            deprecation=deprecation,
            version=texts.get("version", ""),
            server=server,
            branches=branches,
            lines=lines,
        )

    def _place(self, named: WrittenName) -> SourcePlace:
        return self.file.place(named.span)


def hides(call: ast.Call | None) -> bool:
    """Whether a call has arguments that the source does not show: `*args`, `**options`."""
    if call is None:
        return False
    return any(each.arg is None for each in call.keywords) or any(
        isinstance(each, ast.Starred) for each in call.args
    )


def first_line(text: str) -> str:
    """The first line of a description that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def tagged(node: ast.expr | None) -> bool:
    """Whether `deprecated` is among a registration's tags."""
    if not isinstance(node, ast.Set | ast.List | ast.Tuple):
        return False
    return any(isinstance(each, ast.Constant) and each.value == "deprecated" for each in node.elts)
