"""Commands that nobody has written, as Python source, from the rows that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docs.pages.client import TYPES, in_order, served, snake
from folkmoot.cli.program import WRITTEN
from folkmoot.operations import Absent
from folkmoot.operations.routes import NAMED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from folkmoot.operations.routes import Endpoint

PATH = "../src/folkmoot/cli/generated.py"
"""Where the source is, from the folder of the documentation."""
HEAD = '''\
"""Commands that are generated from rows of the table of operations.

Made by `make docs` from the table of operations: what is changed here is written over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from folkmoot.cli.commands import Output, account_command, plain_answer
from folkmoot.cli.options import argument, option

if TYPE_CHECKING:
    from folkmoot.cli.client import HubClient
'''


def page() -> str:
    """The whole module."""
    made = dict(wanted())
    names = ", ".join(f"{name!r}: {function(name)}" for name in made)
    table = f"COMMANDS: dict[str, Callable[..., None]] = {{{names}}}\n"
    return in_order("\n\n".join([HEAD, *map(command, made, made.values()), table]), PATH)


def wanted() -> Iterator[tuple[str, Endpoint]]:
    """The commands of one word that rows name and nobody has written."""
    for each in served():
        for name in () if isinstance(each.row.commands, Absent) else each.row.commands:
            if " " not in name and name not in WRITTEN:
                yield name, each


def function(name: str) -> str:
    """The name of a command's function."""
    return name.replace("-", "_")


def command(name: str, each: Endpoint) -> str:
    """One command: what must be given has no dashes."""
    named, required = NAMED.findall(each.path), each.row.schema["required"]
    given = [it for it in each.row.schema["properties"] if it not in each.route.fixed]
    first = [it for it in given if it in named or it in required]
    options = [it for it in given if it not in first]
    calls = ", ".join([*first, *(f"{it}={it}" for it in options)])
    lines = [
        "@account_command",
        f"def {function(name)}(hub: HubClient,",
        *(f"{it}: Annotated[{hint(each, it)}, {argument(each, it)}]," for it in first),
        *(["*,"] if options else []),
        *(
            f"{it}: Annotated[{hint(each, it)} | None, {option(each, it)}] = None,"
            for it in options
        ),
        ") -> Output:",
        f'    """{each.route.summary}."""',
        f"    return plain_answer(hub.{snake(each.id)}({calls}))",
    ]
    return "\n".join(lines) + "\n"


def hint(each: Endpoint, name: str) -> str:
    """The type of an argument; a list is given one by one."""
    kind = each.row.schema["properties"][name].get("type")
    return "list[str]" if kind == "array" else TYPES.get(kind, "str")


def argument(each: Endpoint, name: str) -> str:
    """How an argument is shown that must be given."""
    told = each.row.schema["properties"][name].get("description", "")
    return f"argument({name.upper()!r}, {told!r})"


def option(each: Endpoint, name: str) -> str:
    """How one is shown that need not be."""
    told = each.row.schema["properties"][name].get("description", "")
    return f"option('--{name.replace('_', '-')}', None, {told!r})"
