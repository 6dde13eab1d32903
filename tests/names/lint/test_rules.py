"""What each rule finds, and what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from folkmoot.names.generate import namespaces_md
from folkmoot.names.lint.sources import read_sources
from folkmoot.names.lint.spelling import is_plural, plural
from tests.names.lint.projects import SERVER, lint, names, rules, server, write

TWO = "@mcp.tool(name='shop:{}')\ndef a(): ...\n@mcp.tool(name='{}:list_tasks')\ndef b(): ...\n"


@pytest.mark.requirement("names.namespaced-in-ecosystem")
def test_a_missing_namespace_is_only_a_hint_for_a_standalone_server(tmp_path: Path) -> None:
    write(tmp_path, {"server.py": SERVER + "@mcp.tool\ndef create_task(): ...\n"})
    strict, alone = lint(tmp_path).findings, lint(tmp_path, standalone=True).findings
    assert [(each.rule, each.severity) for each in strict] == [
        ("missing-namespace", "error"), ("register-missing", "warning"),
    ]  # fmt: skip
    assert [(each.rule, each.severity) for each in alone] == [
        ("missing-namespace", "hint"), ("register-missing", "hint"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["buy", "shop_buy", "Buy", "shop:Buy", "shop/buy"])
def test_the_nearest_name_is_proposed(name: str, tmp_path: Path) -> None:
    server(tmp_path, f"@mcp.tool({name!r})\ndef f(): ...\n")
    for finding in lint(tmp_path, namespace="shop", ignore=("register-missing",)).findings:
        assert finding.message.endswith(" Did you mean 'shop:buy'?")


@pytest.mark.requirement("names.resources-are-uris")
@pytest.mark.parametrize("standalone", [False, True])
@pytest.mark.parametrize("name", ["/templates/daily-report", "daily-report", "templates/daily.md"])
def test_a_plain_string_is_a_fault_however_the_server_is_used(
    name: str, standalone: bool, tmp_path: Path
) -> None:
    text = f"@mcp.resource(uri={name!r})\ndef daily(): ...\n"
    assert server(tmp_path, text, standalone=standalone) == [("plain-resource", name)]
    assert lint(tmp_path, standalone=standalone).findings[0].severity == "error"


@pytest.mark.requirement("names.consistent-namespace")
def test_a_project_with_two_namespaces_is_told_so(tmp_path: Path) -> None:
    text = TWO.format("create_task", "acme")
    assert server(tmp_path, text) == [("mixed-namespaces", "acme:list_tasks")]
    assert server(tmp_path, text, namespace="acme") == [("foreign-namespace", "shop:create_task")]
    constant = f"NAMESPACE = 'acme'\n{text}"
    assert server(tmp_path, constant) == [("foreign-namespace", "shop:create_task")]


def test_the_register_says_the_namespace_where_nothing_else_does(tmp_path: Path) -> None:
    write(tmp_path, {"NAMESPACES.md": "**Namespace:** `acme`\n"})
    found = server(tmp_path, TWO.format("create_task", "acme"), ignore=("register-outdated",))
    assert found == [("foreign-namespace", "shop:create_task")]


def test_a_reserved_namespace_is_told_once(tmp_path: Path) -> None:
    text = "NAMESPACE = 'system'\n" + "".join(
        f"@mcp.tool(name=f'{{NAMESPACE}}:do_{n}')\ndef f{n}(): ...\n" for n in "abc"
    )
    assert server(tmp_path, text) == [("reserved-namespace", "system")]


@pytest.mark.requirement("names.generic-names")
@pytest.mark.parametrize("name", ["get", "create", "list", "update", "delete"])
def test_a_verb_without_its_noun_is_generic(name: str, tmp_path: Path) -> None:
    text = f"@mcp.tool(name='shop:{name}')\ndef f(): ...\n"
    assert server(tmp_path, text) == [("generic-name", f"shop:{name}")]
    assert lint(tmp_path).findings[0].severity == "warning"


@pytest.mark.parametrize("name", ["execute", "run", "search", "get_task", "create_user"])
def test_a_name_that_a_namespace_makes_clear_is_not_generic(name: str, tmp_path: Path) -> None:
    assert server(tmp_path, f"@mcp.tool(name='shop:{name}')\ndef f(): ...\n") == []


@pytest.mark.requirement("names.plural-types")
@pytest.mark.parametrize(
    ("word", "many"),
    [
        ("template", "templates"), ("category", "categories"), ("box", "boxes"), ("key", "keys"),
        ("analysis", "analyses"), ("status", "statuses"), ("address", "addresses"),
        ("person", "people"), ("user_profile", "user_profiles"), ("branch", "branches"),
    ],
)  # fmt: skip
def test_a_singular_type_is_told_its_plural(word: str, many: str) -> None:
    assert not is_plural(word)
    assert plural(word) == many
    assert is_plural(many)


@pytest.mark.parametrize("word", ["configs", "data", "metadata", "news", "menus", "user_data"])
def test_words_without_a_singular_are_fine(word: str) -> None:
    assert is_plural(word)


@pytest.mark.requirement("names.collisions")
def test_one_name_twice_in_one_server_is_a_collision(tmp_path: Path) -> None:
    one = "@mcp.tool(name='shop:buy')\ndef {}(): ...\n"
    text = one.format("a") + one.format("b") + one.format("c")
    assert server(tmp_path, text) == [("collision", "shop:buy"), ("collision", "shop:buy")]
    [first, _] = lint(tmp_path, select=("collision",)).findings
    assert first.message == (
        "Tool 'shop:buy' is registered twice; the first time in server.py, line 5."
    )
    # A prompt of that name is something else.
    mixed = one.format("a") + one.format("b").replace("tool", "prompt")
    assert server(tmp_path, mixed) == []


def test_functions_that_are_given_the_server_register_with_the_one_there_is(tmp_path: Path) -> None:
    part = (
        "from fastmcp import FastMCP\ndef add(mcp: FastMCP):\n    @mcp.tool\n    def buy(): ...\n"
    )
    write(tmp_path, {"a.py": part, "b.py": part, "c.py": ""})
    assert rules(lint(tmp_path, select=("collision",))) == [("collision", "buy")]
    write(tmp_path, {"b.py": SERVER + "@mcp.tool\ndef buy(): ...\n"})
    assert rules(lint(tmp_path, select=("collision",))) == [("collision", "buy")]
    # With a second server nobody knows which one the function is given.
    write(tmp_path, {"c.py": SERVER + "@mcp.tool\ndef sell(): ...\n"})
    assert rules(lint(tmp_path, select=("collision",))) == []


APART = {
    "two servers": "@mcp.tool\ndef buy(): ...\nmcp = FastMCP('b')\n@mcp.tool\ndef buy(): ...\n",
    "either": "if X:\n    @mcp.tool\n    def buy(): 1\nelse:\n    @mcp.tool\n    def buy(): 2\n",
    "otherwise": (
        "try:\n    import x\n    @mcp.tool\n    def buy(): ...\n"
        "except ImportError:\n    @mcp.tool\n    def buy(): ...\n"
    ),
    "by what it is": (
        "match X:\n    case 1:\n        @mcp.tool\n        def buy(): ...\n"
        "    case _:\n        @mcp.tool\n        def buy(): ...\n"
    ),
    "versions of one": (
        "@mcp.tool(version='1')\ndef buy(): ...\n@mcp.tool(version='2', name='buy')\ndef b(): ...\n"
    ),
}


@pytest.mark.parametrize("case", APART)
def test_names_that_never_meet_do_not_collide(case: str, tmp_path: Path) -> None:
    assert server(tmp_path, APART[case], select=("collision", "safe-collision")) == []
    assert len(names(tmp_path, SERVER + APART[case])) == 2


@pytest.mark.requirement("names.collisions")
def test_names_that_are_the_same_for_clients_collide(tmp_path: Path) -> None:
    text = TWO.format("createTask", "shop").replace("list_tasks", "create_task")
    assert server(tmp_path, text, select=("safe-collision",)) == [
        ("safe-collision", "shop:create_task")
    ]


@pytest.mark.parametrize(("length", "found"), [(64, []), (65, ["long-name"])])
def test_a_name_fits_into_64_characters(length: int, found: list[str], tmp_path: Path) -> None:
    name = "shop:" + "x" * (length - 5)
    text = f"@mcp.tool(name='{name}')\ndef f(): ...\n"
    assert [rule for rule, _ in server(tmp_path, text, ignore=IGNORED)] == found


IGNORED = ("register-missing", "long-client-name")


@pytest.mark.parametrize(
    ("prefix", "length", "found"),
    [
        ("mcp__{namespace}__", 53, []),
        ("mcp__{namespace}__", 54, ["long-client-name"]),
        ("", 64, []),
        ("a_server_", 55, []),
        ("a_server_", 56, ["long-client-name"]),
    ],
)
def test_a_clients_prefix_counts(
    prefix: str, length: int, found: list[str], tmp_path: Path
) -> None:
    write(tmp_path, {"pyproject.toml": f"[tool.folkmoot.names]\nclient-prefix = '{prefix}'\n"})
    text = f"@mcp.tool(name='shop:{'x' * (length - 5)}')\ndef f(): ...\n"
    assert [rule for rule, _ in server(tmp_path, text)] == found


V1 = "@mcp.tool(name='shop:sell{}')\n{}def a(): {}\n@mcp.tool(name='shop:sell_v{}')\ndef b(): ...\n"
DEPRECATED = {
    "by the marker": ("@deprecated(since='1.0', removed_in='1.2')\n", "..."),
    "by its docstring": ("", "'Legacy format (deprecated).'"),
    "by what it logs": ("", "logger.warning('sell is deprecated. Use sell_v2.')"),
}


@pytest.mark.requirement("names.versioned-names")
@pytest.mark.parametrize(("former", "number"), [("", 2), ("_v1", 2), ("_v2", 3), ("", 11)])
def test_what_has_a_successor_must_be_deprecated(former: str, number: int, tmp_path: Path) -> None:
    text = V1.format(former, "", "...", number)
    assert server(tmp_path, text) == [("undeprecated", f"shop:sell{former}")]


@pytest.mark.requirement("names.versioned-names")
@pytest.mark.parametrize("case", DEPRECATED)
def test_a_v2_beside_a_deprecated_v1_is_fine(case: str, tmp_path: Path) -> None:
    mark, body = DEPRECATED[case]
    text = V1.format("", mark, body, 2)
    assert server(tmp_path, text, ignore=("register-missing", "removal-missing")) == []


def test_a_v2_alone_is_fine_and_so_is_a_tool_about_deprecated_things(tmp_path: Path) -> None:
    text = "@mcp.tool(name='shop:sell_v2')\ndef a():\n    'List deprecated packages.'\n"
    assert server(tmp_path, text) == []


GOING = (
    "@mcp.tool(name='shop:sell')\n@deprecated(since='1.2.0', removed_in='1.4.0')\ndef a(): ...\n"
)


@pytest.mark.requirement("names.deprecation-n-plus-2")
@pytest.mark.parametrize(
    ("version", "found"),
    [("1.2.0", []), ("1.3.7", []), ("1.4.0", ["past-removal"]), ("2.0", ["past-removal"])],
)
def test_what_was_to_be_gone_is_a_fault_from_its_release_on(
    version: str, found: list[str], tmp_path: Path
) -> None:
    assert [rule for rule, _ in server(tmp_path, GOING, version=version)] == found


def test_without_a_version_nothing_is_past_its_removal(tmp_path: Path) -> None:
    assert server(tmp_path, GOING) == []


@pytest.mark.parametrize(
    "files",
    [
        {"pyproject.toml": "[project]\nname = 'my-shop'\nversion = '1.4.0'\n"},
        {
            "pyproject.toml": "[project]\nname = 'my-shop'\ndynamic = ['version']\n",
            "src/my_shop/__init__.py": "__version__ = '1.4.0'\n",
        },
        {"pyproject.toml": "[tool.folkmoot.names]\nversion = '1.4.0'\n"},
    ],
)
def test_the_release_of_a_project_is_found(files: dict[str, str], tmp_path: Path) -> None:
    write(tmp_path, files)
    assert server(tmp_path, GOING) == [("past-removal", "shop:sell")]


REGISTERED = "@mcp.tool(name='shop:sell')\ndef sell():\n    'Sell it.'\n"


@pytest.mark.requirement("names.namespaces-md")
def test_a_register_that_is_out_of_date_is_reported_and_a_current_one_is_not(
    tmp_path: Path,
) -> None:
    assert server(tmp_path, REGISTERED, ignore=()) == [("register-missing", "")]
    page = namespaces_md.render(read_sources([tmp_path]))
    write(tmp_path, {"NAMESPACES.md": page})
    assert server(tmp_path, REGISTERED, ignore=()) == []
    more = REGISTERED + REGISTERED.replace("sell", "give")
    assert server(tmp_path, more, ignore=()) == [("register-outdated", "")]
    [finding] = lint(tmp_path).findings
    assert (finding.severity, finding.message) == (
        "error", "NAMESPACES.md: The tool shop:give is missing.",
    )  # fmt: skip
    gone = REGISTERED.replace("sell", "give")
    write(tmp_path, {"server.py": SERVER + gone})
    assert len(lint(tmp_path).findings) == 2


def test_the_register_is_not_compared_with_a_single_file(tmp_path: Path) -> None:
    write(tmp_path, {"NAMESPACES.md": "", "server.py": SERVER + REGISTERED})
    assert rules(lint(tmp_path / "server.py")) == []
    assert rules(lint(tmp_path)) != []


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("# folkmoot: ignore", []),
        ("# folkmoot: ignore[generic-name]", []),
        ("# folkmoot: ignore[ generic-name , collision ]", []),
        ("# noqa", ["generic-name"]),
        ("# folkmoot: ignore[collision]", ["generic-name"]),
    ],
)
@pytest.mark.parametrize("line", [0, 1, 2, 3])
def test_a_comment_on_a_line_of_the_registration_hushes_a_rule(
    comment: str, left: list[str], line: int, tmp_path: Path
) -> None:
    lines = ["@mcp.tool(", "    name='shop:get',", ")", "def get(): ..."]
    lines[line] += f"  {comment}"
    found = server(tmp_path, "\n".join(lines) + "\n")
    assert [rule for rule, _ in found] == left


def test_a_comment_elsewhere_hushes_nothing(tmp_path: Path) -> None:
    before, after = "# folkmoot: ignore", "    x = 1  # folkmoot: ignore"
    text = f"{before}\n@mcp.tool(name='shop:get')\ndef get():\n{after}\n"
    assert server(tmp_path, text) == [("generic-name", "shop:get")]


def test_a_uri_has_bounds(tmp_path: Path) -> None:
    text = f"@mcp.resource('shop://docs/{'x' * 2048}')\ndef get(): ...\n"
    assert [rule for rule, _ in server(tmp_path, text)] == ["uri-length"]
