"""The client's methods and the structs they return, as Python source, from the routes."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, get_type_hints

from folkmoot.client.http import QUERIED
from folkmoot.operations.components import WRITTEN, name_of, structs_in
from folkmoot.operations.declare import FOR_PAGES
from folkmoot.operations.routes import COMPONENTS, ENDPOINTS, NAMED
from folkmoot.operations.schema import nulls_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from msgspec import Struct

    from folkmoot.operations.routes import Endpoint
    from folkmoot.operations.schema import Schema

PATH = "../src/folkmoot/client/methods.py"
"""Where the source is, from the folder of the documentation."""
DOCS = Path(__file__).parent.parent

HEAD = '''\
"""What a hub can be asked, a method for each route, and what it answers.

Made by `make docs` from the table of operations: what is changed here is written over.
"""

from __future__ import annotations

from typing import IO, Any, Literal
from urllib.parse import quote

import msgspec
from msgspec import UNSET, Struct, UnsetType

from folkmoot.client.http import Http
'''
TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
BY_HAND = {"Message": "dict[str, Any]", "Document": "dict[str, Any]", "Capability": "Any"}
"""Objects of which the client has no struct."""
RENAMED = {"from": "sender"}
"""Members that are no names in Python."""


def page() -> str:
    """The whole module."""
    source = "\n\n".join([HEAD, *structs(), *methods()])
    return in_order(source, PATH)


def in_order(source: str, path: str) -> str:
    """The source as everything here is written."""
    return ruff(ruff(source, path, "check", "--fix-only", "--quiet"), path, "format")


def ruff(source: str, path: str, *command: str) -> str:
    """The source, put in order."""
    program = Path(sys.executable).with_name("ruff")
    done = subprocess.run(  # noqa: S603
        [program, *command, "--stdin-filename", DOCS / path, "-"],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def served() -> list[Endpoint]:
    """The routes that have a method: an answer that goes on has none, nor what is for pages."""
    rows = ((each, each.row) for each in ENDPOINTS)
    return [each for each, row in rows if row.events is None and row.commands != FOR_PAGES]


def structs() -> Iterator[str]:
    """What the hub answers, each after what is in it."""
    written: set[str] = set(BY_HAND)
    for each in served():
        if each.reply:
            yield from struct(each.reply, written)


def struct(name: str, written: set[str]) -> Iterator[str]:
    """One answer, and before it what is in it."""
    if name in written:
        return
    written.add(name)
    schema = COMPONENTS[name]
    for inner in re.findall(r"#/components/schemas/(\w+)", repr(schema)):
        yield from struct(inner, written)
    members = [member(schema, key) for key in sorted(schema["properties"], key=optional(schema))]
    head = f"class {name}(Struct, frozen=True, omit_defaults=True):\n"
    yield head + indented(f'"""{meanings()[name]}"""') + "\n" + "".join(members)


@cache
def meanings() -> dict[str, str]:
    """What each answer is, in the first sentence of its struct."""
    found: dict[str, str] = {}

    def note(gives: type[Struct]) -> None:
        found[name_of(gives)] = (gives.__doc__ or "").partition("\n")[0]
        for hint in get_type_hints(gives).values():
            for inner in structs_in(hint):
                note(inner)

    for each in ENDPOINTS:
        note(each.row.gives)
    return found


def optional(schema: Schema) -> Any:
    """Whether a member may be missing: those that are always there come first."""
    return lambda name: name not in schema["required"]


def member(schema: Schema, name: str) -> str:
    """A member of an answer."""
    said, has = schema["properties"][name], name in schema["required"]
    # A later hub may say more words than this client knows.
    said = {word: it for word, it in said.items() if word != "enum"}
    hint, field = kind(said), RENAMED.get(name, name)
    default = ""
    if field != name:
        default = f" = msgspec.field(name={name!r}{'' if has else ', default=None'})"
    elif not has:
        default = " = None"
    if not has and "None" not in hint:
        hint += " | None"
    told = said.get("description", "")
    return f"    {field}: {hint}{default}\n" + (indented(f'"""{told}"""') if told else "")


def kind(schema: Schema) -> str:
    """The type of a value."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return BY_HAND.get(name, "dict[str, Any]" if name in WRITTEN else name)
    if "anyOf" in schema:
        return " | ".join(kind(each) for each in schema["anyOf"])
    if "type" not in schema:
        return "Any"
    if isinstance(schema["type"], list):
        plain = {**schema, "type": schema["type"][0]}
        if "enum" in plain:
            plain["enum"] = [word for word in plain["enum"] if word is not None]
        return f"{kind(plain)} | None"
    if schema["type"] == "null":
        return "None"
    if "enum" in schema:
        return f"Literal[{', '.join(map(repr, schema['enum']))}]"
    if schema["type"] == "array":
        return f"list[{kind(schema['items'])}]"
    if schema["type"] == "object":
        inner = schema.get("additionalProperties")
        return f"dict[str, {kind(inner) if isinstance(inner, dict) else 'Any'}]"
    return TYPES[schema["type"]]


def indented(text: str, by: int = 4) -> str:
    """A docstring of one or more lines."""
    space = " " * by
    return "\n".join(wrap(text, 98, initial_indent=space, subsequent_indent=space)) + "\n"


def methods() -> Iterator[str]:
    """The class with a method for each route."""
    yield (
        "class Hub(Http):\n"
        '    """A hub, asked over HTTP: a method for each route.\n\n'
        "    Methods wait for their answer; in asyncio, call them with `asyncio.to_thread`.\n"
        '    """\n'
    )
    for each in served():
        yield method(each)


def snake(name: str) -> str:
    """A name of the OpenAPI document as Python writes it."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def method(each: Endpoint) -> str:
    row, route = each.row, each.route
    named = NAMED.findall(each.path)
    arguments = [name for name in row.schema["properties"] if name not in route.fixed]
    needed = [name for name in arguments if name in row.schema["required"] or name in named]
    others = [name for name in arguments if name not in needed]
    nulls = nulls_of(row.takes)

    def hint(name: str) -> str:
        schema = row.schema["properties"][name]
        return "dict[str, Any]" if name == route.body else kind(schema)

    given = ["self", *(f"{name}: {hint(name)}" for name in needed)]
    if route.media:
        given.append("file: IO[bytes]")
    if others:
        given.append("*")
    for name in others:
        if nulls.get(name):
            given.append(f"{name}: {hint(name)} | UnsetType | None = UNSET")
        else:
            given.append(f"{name}: {hint(name)} | None = None")
    answer = kind({"$ref": f"/{each.reply}"}) if each.reply else "None"
    in_query = [it.name for it in each.query]
    in_body = [
        name for name in arguments if name not in (*named, *in_query, *route.headers.values())
    ]
    parts = [repr(each.method), f'"{each.path}"', answer]
    asked = in_query if each.method in QUERIED else in_body
    if route.media or route.headers or route.body or {*arguments} - {*named, *asked}:
        parts[1] = f'{"f" if named else ""}"{in_place(each)}"'
        if in_query:
            parts.append(f"query={members(in_query)}")
        if route.body:
            parts.append(f"body={route.body}")
        elif in_body:
            parts.append(f"body={members(in_body)}")
    elif arguments:
        parts.append("locals()")
    if kept := [name for name in in_body if nulls.get(name)]:
        parts.append(f"nulls={(*kept,)!r}")
    if row.waits in arguments:
        parts.append(f"wait={row.waits} or 0")
    if route.media:
        parts.append("into=file")
    if route.headers:
        pairs = ", ".join(f"{header!r}: {name}" for header, name in route.headers.items())
        parts.append(f"headers={{{pairs}}}")
    answering = "return " if each.reply else ""
    lines = [
        f"    def {snake(each.id)}({', '.join(given)}) -> {answer}:",
        docstring(each),
        f"        {answering}self.ask({', '.join(parts)})",
    ]
    return "\n".join(lines)


def in_place(each: Endpoint) -> str:
    """The path with its arguments put in."""
    whole = {it.name for it in each.path_parameters if it.schema["type"] == "integer"}
    return re.sub(
        r"\{(\w+)\}",
        lambda found: found[0] if found[1] in whole else f"{{quote({found[1]}, safe='')}}",
        each.path,
    )


def docstring(each: Endpoint) -> str:
    """What a method does."""
    first = f'        """{each.route.summary}.'
    if not each.route.description:
        return f'{first}"""'
    rest = indented(each.route.description, 8)
    return f'{first}\n\n{rest}        """'


def members(names: list[str]) -> str:
    """Arguments as an object."""
    return "{" + ", ".join(f'"{name}": {name}' for name in names) + "}"
