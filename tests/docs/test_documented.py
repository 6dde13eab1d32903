"""Nothing a user can meet is left undocumented."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from typer.main import get_command

from docs.pages.kinds import PLACES
from docs.pages.messages import ID_LENGTH, LIST_LENGTH, MEMBERS
from docs.pages.metrics import families, name
from folkmoot.cli.output import ExitCode
from folkmoot.cli.program import app
from folkmoot.core import errors as e
from folkmoot.core import kindcheck
from folkmoot.core.closecodes import CloseCode
from folkmoot.core.kinds import KNOWN_KINDS, parse
from folkmoot.core.mcpx import decode_mcpx
from folkmoot.core.session import SessionState
from folkmoot.core.transport import TransportType
from folkmoot.operations import CATALOGUE
from folkmoot.settings import ASK_FIELDS, BACKEND_FIELDS, FIELDS, OPEN_TABLES, OTHER_VARIABLES
from folkmoot.web.pages import PLACES as SERVED
from tests.docs.pages import DOCS, ROOT, pages


def said_in(page: str) -> set[str]:
    """Everything a page writes as code."""
    return set(pages()[f"docs/{page}"].code)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("reference/kinds.md", {known.kind for known in KNOWN_KINDS}),
        ("reference/settings.md", {field.variable for field in FIELDS.values()}),
        ("reference/settings.md", {*OTHER_VARIABLES, *(f.name for f in FIELDS.values())}),
        ("reference/errors.md", set(e.ERRORS)),
        ("operations/observability.md", {name(family) for family in families()}),
        ("reference/tools.md", {tool.name for tool in CATALOGUE.tools}),
        ("reference/tools.md", {n for tool in CATALOGUE.tools for n in tool.schema["properties"]}),
        ("reference/envelope.md", {state.value for state in SessionState}),
        ("reference/envelope.md", {transport.value for transport in TransportType}),
    ],
)
def test_everything_is_named_on_its_page(page, names):
    assert names
    assert names <= said_in(page)


@pytest.mark.parametrize(("page", "codes"), [("commands", ExitCode), ("errors", CloseCode)])
def test_every_exit_and_close_code_is_documented(page, codes):
    text = pages()[f"docs/reference/{page}.md"].text
    assert all(f"\n| {code.value} | " in text for code in codes)


def test_every_table_whose_keys_are_chosen_and_all_a_backend_may_hold_is_documented():
    said = said_in("reference/settings.md")
    assert {*BACKEND_FIELDS, *ASK_FIELDS} <= said
    assert {"[backends.NAME]", "[groups]", "[grants]", "[asks.NAME]"} <= said
    assert {"backends", "groups", "grants", "asks"} == set(OPEN_TABLES)
    assert all(any(word.startswith(f"{{ {name} =") for word in said) for name in ("env", "file"))


def test_every_command_and_option_is_documented():
    said = said_in("reference/commands.md")

    def check(command: Any, path: str) -> None:
        assert path in said
        for param in command.params:
            if param.param_type_name == "option" and not param.hidden:
                assert any(word.split()[0] == param.opts[0] for word in said), param.opts
        for inner_name, inner in getattr(command, "commands", {}).items():
            if not inner.hidden:
                check(inner, f"{path} {inner_name}")

    check(get_command(app), "folkmoot")


def test_every_address_the_hub_serves_is_documented_for_operators():
    assert {"/", *(path for path, _ in SERVED)} <= set(pages()["docs/operations/running.md"].code)


def test_every_make_target_is_in_contributing():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) - {"help"}
    assert {f"make {target}" for target in targets} <= set(pages()["CONTRIBUTING.md"].code)


def test_every_decision_is_listed_under_its_number_and_title():
    index = pages()["docs/decisions/README.md"]
    files = sorted(path.name for path in (DOCS / "decisions").glob("[0-9]*.md"))
    assert index.links == files
    for file in files:
        title = pages()[f"docs/decisions/{file}"].text.splitlines()[0].removeprefix("# ")
        assert title.startswith(f"{int(file[:4])}. ")
        assert f"- [{title}]({file})\n" in index.text


@pytest.mark.parametrize(
    ("method", "place"),
    [(method, place) for method, places in PLACES.items() for place in places.split(" or ")],
)
def test_the_context_of_a_method_stands_where_the_page_says(method, place):
    payload: Any = "here"
    for member in reversed(place.split(".")):
        payload = {member: payload}
    kind = parse(f"mcp.request.{method}")
    assert str(kindcheck.effective(kind, payload)) == f"{kind}:here"
    with pytest.raises(e.KindError):
        kindcheck.effective(kind, {"params": {}})


ACCEPTED: dict[str, list[Any]] = {
    "identifier": ["a", "a" * ID_LENGTH, None],
    "printable": ["a", "a" * ID_LENGTH, None],
    "identifiers": [["a"] * LIST_LENGTH, [], None],
    "identifiers or one": [["a"] * LIST_LENGTH, [], None, "a"],
    "object": [{}, None],
    "gateway": [7, "a", None],
}
REFUSED: dict[str, list[Any]] = {
    "identifier": ["", "a" * (ID_LENGTH + 1), 7],
    "printable": ["", "a" * (ID_LENGTH + 1), 7, "a\n"],
    "identifiers": [["a"] * (LIST_LENGTH + 1), [""], "a"],
    "identifiers or one": [["a"] * (LIST_LENGTH + 1), [""], ""],
    "object": [[], "a"],
    "gateway": [],
}


@pytest.mark.parametrize(
    ("member", "shape"), [(m, shape) for m, (shape, _) in MEMBERS.items() if shape != "required"]
)
def test_the_members_of_a_rooms_message_are_what_the_page_says(member, shape):
    def read(value: Any) -> None:
        sent = {"protocol": "mcpx/v1", "kind": "chat.message", member: value}
        decode_mcpx(json.dumps(sent).encode())

    for value in ACCEPTED[shape]:
        read(value)
    for value in REFUSED[shape]:
        with pytest.raises(e.MessageError):
            read(value)
