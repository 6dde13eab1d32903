"""What each rule finds, and what it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from folkmoot.names import namespaces_md
from folkmoot.names.lint import RULES, judge
from folkmoot.names.listing import Config, read_lists
from folkmoot.names.project import Project

INFO = {"name": "shop", "version": "1.4.0"}
KEYS = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}


def project(config: Config | None = None, **lists: list[Any]) -> Project:
    """What a server lists; an entry may be a name alone, or a name and its description."""

    def definition(member: str, entry: Any) -> dict[str, Any]:
        if isinstance(entry, dict):
            return entry
        name, description = (entry, "") if isinstance(entry, str) else entry
        return {KEYS[member]: name, "description": description}

    made = {key: [definition(key, each) for each in entries] for key, entries in lists.items()}
    return read_lists(made, INFO, config)


def found(*tools: Any, config: Config | None = None, **options: Any) -> list[tuple[str, str]]:
    """The findings about some tools, as rule and name."""
    return rules(project(config, tools=list(tools)), **options)


def rules(listed: Project, **options: Any) -> list[tuple[str, str]]:
    """The findings as rule and name."""
    return [(each.rule, each.name) for each in judge(listed, **options)]


# One of every fault, and what follows the conventions.
PLANTED: dict[str, dict[Any, set[str]]] = {
    "tools": {
        "create_order": {"missing-namespace"},
        "store:list_orders": {"foreign-namespace"},
        "system:reboot": {"foreign-namespace", "reserved-namespace"},
        "my-shop:buy": {"namespace-characters"},
        "3shop:buy_it": {"namespace-start"},
        "sh:buy_all": {"namespace-length"},
        "shop:cancel-order": {"tool-characters"},
        "shop:2pay": {"tool-start"},
        "shop:x": {"tool-length"},
        "shop:get": {"generic-name"},
        "shop:a_name_that_is_so_long_that_no_model_api_takes_it_whatever_one_does": {"long-name"},
        "shop:a_name_that_is_long_with_what_a_client_puts_before_it": {"long-client-name"},
        "shop:read_page": set(),
        "shop:readPage": {"tool-characters", "safe-collision"},
        "shop:sell": {"undeprecated"},
        "shop:sell_v2": set(),
        ("shop:gone", "Deprecated since 1.2.0, removed in 1.4.0."): {"past-removal"},
        ("shop:going", "Deprecated: use something else."): {"removal-missing"},
        ("shop:backwards", "Deprecated since 1.6, removed in v1.5: use it."): {"removal-order"},
        ("shop:list_pages", "List deprecated pages, removed in 1.0."): set(),
    },
    "resources": {
        "/templates/x": {"plain-resource"},
        "shop/templates/x": {"uri-separator"},
        f"shop://docs/{'x' * 2048}": {"uri-length"},
        "shop://Templates/x": {"type-characters"},
        "shop://2d/x": {"type-start"},
        "shop://t/x": {"type-length"},
        "shop://templates": {"id-empty"},
        "shop://templates/Daily Report": {"id-characters"},
        "shop://templates/../x": {"id-dots"},
        "shop://templates/a?raw": {"query-pair"},
        "shop://templates/b?max size=1": {"query-key"},
        "shop://templates/c?a=1&a=2": {"query-repeated"},
        "shop://templates/d?a=b c": {"query-value"},
        "shop://docs/1/tables/grid-1?limit=100": set(),
        "ui://shop/orders.html": set(),
    },
    "resourceTemplates": {
        "shop://template/{name}": {"singular-type"},
        "shop://orders/{id}": set(),
    },
    "prompts": {"plan_day": {"missing-namespace"}, "shop:plan_week": set()},
}
# Rules that cannot be broken beside the others; they have tests of their own.
ELSEWHERE = {
    "collision", "mixed-namespaces", "version-syntax", "register-missing", "register-outdated",
}  # fmt: skip


@pytest.mark.requirement("names.namespaced-in-ecosystem", "names.resources-are-uris")
@pytest.mark.requirement("names.versioned-names", "names.consistent-namespace")
@pytest.mark.requirement("names.generic-names", "names.plural-types")
@pytest.mark.requirement("names.collisions", "names.deprecation-n-plus-2")
def test_the_planted_faults_are_found_and_nothing_else():
    listed = project(Config(namespace="shop"), **{k: list(each) for k, each in PLANTED.items()})
    planted = {
        (rule, entry if isinstance(entry, str) else entry[0])
        for entries in PLANTED.values()
        for entry, broken in entries.items()
        for rule in broken
    }
    findings = judge(listed)
    assert sorted((each.rule, each.name) for each in findings) == sorted(planted)
    assert {rule for rule, _ in planted} | ELSEWHERE == set(RULES)
    for each in findings:
        assert each.severity == RULES[each.rule].severity
        assert each.message.endswith((".", "?"))


@pytest.mark.requirement("names.namespaced-in-ecosystem")
def test_a_missing_namespace_is_only_a_hint_for_a_standalone_server():
    listed = project(tools=["create_task"])
    assert [each.severity for each in judge(listed)] == ["error"]
    assert [each.severity for each in judge(listed, standalone=True)] == ["hint"]


@pytest.mark.parametrize("name", ["buy", "Buy", "shop:Buy", "shop/buy"])
def test_the_nearest_name_is_proposed(name):
    findings = judge(project(Config(namespace="shop"), tools=[name]))
    assert findings
    for finding in findings:
        assert finding.message.endswith(" Did you mean 'shop:buy'?")


MESSAGES = {
    ("tools", "shop:newTask"): (
        "Tool 'shop:newTask': A tool's name has lower-case letters, digits and underscores only "
        "(character 9 is 'T'). Did you mean 'shop:new_task'?"
    ),
    ("prompts", "shop:x"): (
        "Prompt 'shop:x': A prompt's name has 2 to 128 characters. Did you mean 'shop:tool_x'?"
    ),
    ("resources", "shop://docs"): (
        "Resource 'shop://docs': A resource URI has an id after its type, and no part of it is "
        "empty."
    ),
    ("resources", "/docs/a"): (
        "Resource '/docs/a' is a plain string, not a URI such as 'namespace://type/id'."
    ),
    ("tools", "newTask"): (
        "Tool 'newTask': A tool's name has lower-case letters, digits and underscores only "
        "(character 4 is 'T'). Did you mean 'new_task'?"
    ),
    ("tools", ":newTask"): "Tool ':newTask' has no namespace.",
}


@pytest.mark.parametrize(("member", "name"), MESSAGES)
def test_a_finding_says_which_rule_is_broken_and_where(member, name):
    listed = project(**{member: [name]})
    told = [each.message for each in judge(listed, ignore=("missing-namespace",))]
    whole = [each.message for each in judge(listed, select=("missing-namespace",))]
    assert (told or whole) == [MESSAGES[member, name]]


@pytest.mark.requirement("names.resources-are-uris")
@pytest.mark.parametrize("name", ["/templates/daily-report", "daily-report", "templates/daily.md"])
def test_a_plain_string_is_a_fault_however_the_server_is_used(name):
    for standalone in (False, True):
        [finding] = judge(project(resources=[name]), standalone=standalone)
        assert (finding.rule, finding.severity) == ("plain-resource", "error")


@pytest.mark.requirement("names.consistent-namespace")
def test_a_project_with_two_namespaces_is_told_so():
    names = ("shop:create_task", "acme:list_tasks")
    assert found(*names) == [("mixed-namespaces", "acme:list_tasks")]
    config = Config(namespace="acme")
    assert found(*names, config=config) == [("foreign-namespace", "shop:create_task")]


def test_a_reserved_namespace_is_told_once():
    assert found("system:do_a", "system:do_b") == [("reserved-namespace", "system:do_a")]


@pytest.mark.requirement("names.generic-names")
def test_a_verb_without_its_noun_is_generic_unless_the_namespace_makes_it_clear():
    for name in ("get", "create", "list", "update", "delete"):
        assert found(f"shop:{name}") == [("generic-name", f"shop:{name}")]
    for name in ("execute", "run", "search", "get_task", "create_user"):
        assert found(f"shop:{name}") == []


@pytest.mark.requirement("names.plural-types")
@pytest.mark.parametrize(
    ("word", "many"),
    [
        ("template", "templates"), ("category", "categories"), ("box", "boxes"), ("key", "keys"),
        ("analysis", "analyses"), ("status", "statuses"), ("address", "addresses"),
        ("person", "people"), ("user_profile", "user_profiles"), ("branch", "branches"),
    ],
)  # fmt: skip
def test_a_singular_type_is_told_its_plural(word, many):
    [finding] = judge(project(resources=[f"shop://{word}/a"]))
    assert finding.message.endswith(f"The type '{word}' is singular; call it '{many}'.")
    for fine in (many, "configs", "data", "metadata", "news", "menus", "user_data"):
        assert judge(project(resources=[f"shop://{fine}/a"])) == []


@pytest.mark.requirement("names.collisions")
def test_one_name_twice_is_a_collision_and_a_prompt_of_that_name_is_something_else():
    twice = ("collision", "shop:buy")
    assert found("shop:buy", "shop:buy", "shop:buy") == [twice, twice]
    assert rules(project(tools=["shop:buy"], prompts=["shop:buy"])) == []
    many = [{"name": "shop:same"}] * 5_000
    assert len(judge(project(tools=many), select=("collision",))) == 4_999


@pytest.mark.requirement("names.collisions")
def test_names_that_are_the_same_for_clients_collide():
    names = ("shop:createTask", "shop:create_task", "shop:create_task")
    assert found(*names, ignore=("tool-characters",)) == [
        ("collision", "shop:create_task"),
        ("safe-collision", "shop:create_task"),
        ("safe-collision", "shop:create_task"),
    ]


@pytest.mark.parametrize(
    ("prefix", "length", "broken"),
    [
        ("mcp__{namespace}__", 53, []),
        ("mcp__{namespace}__", 54, ["long-client-name"]),
        ("", 64, []),
        ("", 65, ["long-name"]),
        ("a_server_", 55, []),
        ("a_server_", 56, ["long-client-name"]),
    ],
)
def test_a_name_fits_into_64_characters_with_a_clients_prefix(prefix, length, broken):
    name = f"shop:{'x' * (length - 5)}"
    assert [rule for rule, _ in found(name, config=Config(client_prefix=prefix))][:1] == broken


@pytest.mark.requirement("names.versioned-names")
@pytest.mark.parametrize(("former", "number"), [("", 2), ("_v1", 2), ("_v2", 3), ("", 11)])
def test_what_has_a_successor_must_be_deprecated(former, number):
    names = (f"shop:sell{former}", f"shop:sell_v{number}")
    assert found(*names) == [("undeprecated", f"shop:sell{former}")]


@pytest.mark.requirement("names.versioned-names")
@pytest.mark.parametrize(
    "description",
    ["Legacy format (deprecated).", "DEPRECATED, use sell_v2", "This tool is deprecated."],
)
def test_a_v2_beside_a_deprecated_v1_is_fine(description):
    assert found(("shop:sell", description), "shop:sell_v2", ignore=("removal-missing",)) == []


def test_a_v2_alone_is_fine_and_so_is_a_tool_about_deprecated_things():
    assert found(("shop:sell_v2", "List deprecated packages.")) == []


GOING = ("shop:sell", "Deprecated since 1.2.0, removed in 1.4.0: use shop:sell_v2.")


@pytest.mark.requirement("names.deprecation-n-plus-2")
@pytest.mark.parametrize(
    ("version", "broken"),
    [("1.2.0", []), ("1.3.7", []), ("1.4.0", ["past-removal"]), ("2.0", ["past-removal"])],
)
def test_what_was_to_be_gone_is_a_fault_from_its_release_on(version, broken):
    assert [rule for rule, _ in found(GOING, config=Config(version=version))] == broken


def test_the_release_is_the_servers_own_unless_the_project_says_another():
    assert found(GOING) == [("past-removal", "shop:sell")]
    assert judge(read_lists({"tools": [{"name": GOING[0], "description": GOING[1]}]}, {})) == []


@pytest.mark.requirement("names.namespaces-md")
def test_a_register_that_is_out_of_date_is_reported_and_a_current_one_is_not():
    listed = project(tools=[("shop:sell", "Sell it.")])
    page = namespaces_md.render(listed)
    assert rules(listed) == []
    listed.compared = True
    assert rules(listed) == [("register-missing", "")]
    listed.register = page
    assert rules(listed) == []
    more = project(tools=[("shop:sell", "Sell it."), "shop:give"])
    more.compared, more.register = True, page
    [finding] = judge(more)
    assert (finding.rule, finding.severity, finding.message) == (
        "register-outdated", "error", "NAMESPACES.md: The tool shop:give is missing.",
    )  # fmt: skip
    many = project(tools=[f"shop:give_{n}" for n in range(9)])
    many.compared, many.register = True, page
    *_, last = judge(many)
    assert last.message == "NAMESPACES.md: 5 more; 'folkmoot names doc' rewrites it."


@pytest.mark.requirement("names.lint-safe-spelling")
@pytest.mark.parametrize(
    ("title", "names", "missing"),
    [
        ("mcp-server-git", ("git_log", "git_diff"), []),
        # One of them says what the namespace is.
        ("Versions", ("git_log", "git:diff"), []),
        ("mcp-server-git", ("git_log", "diff"), ["git_log", "diff"]),
        ("clock", ("get_time", "get_date"), ["get_time", "get_date"]),
        ("mcp-server-git", ("git_log",), ["git_log"]),
    ],
)
def test_the_safe_spelling_of_a_namespaced_name_has_a_namespace(title, names, missing):
    listed = read_lists({"tools": [{"name": name} for name in names]}, {"name": title})
    assert [name for _, name in rules(listed, select=("missing-namespace",))] == missing


@pytest.mark.requirement("names.lint-safe-spelling")
def test_a_spelling_for_model_apis_counts_as_the_name_it_stands_for():
    assert found({"name": "shop_buy", "_meta": {"folkmoot/name": "shop:buy"}}) == []
    assert found("shop_buy", config=Config(namespace="shop")) == []
    assert found("shop_", config=Config(namespace="shop"), select=("missing-namespace",)) == []
    assert found("shop_buy") == [("missing-namespace", "shop_buy")]


def test_a_server_that_lists_nonsense_is_judged_all_the_same():
    nonsense = [{"name": "\x1b[2J" + "x" * 5000, "description": 7, "_meta": 3}, {"name": ":"}, {}]
    findings = judge(project(tools=nonsense, prompts=nonsense))
    assert findings
    assert all(len(each.message) < 400 and "\x1b" not in each.message for each in findings)
