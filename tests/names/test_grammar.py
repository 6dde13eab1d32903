"""What is a name and what is not: the specification's examples, and where its samples err."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.names import (
    InvalidName,
    validate_namespace,
    validate_resource_template,
    validate_resource_uri,
    validate_tool_name,
)
from tests.names.support import cases, refusal

# The sample expressions of the specification, as it has them; they are used with `match`.
SAMPLES = {
    "namespace": re.compile(r"^[a-z][a-z0-9]{2,19}$"),
    "tool": re.compile(r"^[a-z][a-z0-9_]+:[a-z][a-z0-9_]+$"),
    "uri": re.compile(r"^[a-z][a-z0-9]+://[a-z0-9_/\-\.]+(\?.*)?$"),
}
VALIDATORS = {
    "namespace": validate_namespace,
    "tool": validate_tool_name,
    "uri": validate_resource_uri,
}


def rule_of(what: str, name: str) -> str | None:
    """The rule that a name breaks."""
    try:
        VALIDATORS[what](name)
    except InvalidName as refused:
        return refused.rule
    return None


NAMESPACES = {
    None: ["abc", "a1b", "a" * 20, "coda"],
    "namespace-length": ["ab", "", "a" * 21],
    "namespace-start": ["1abc"],
    "namespace-characters": ["my_project", "_abc", "Abc", "abc\n", "abc ", "abé", "ab\u0661"],
}


@pytest.mark.requirement("names.namespace")
@pytest.mark.parametrize(("rule", "namespace"), cases(NAMESPACES))
def test_a_namespace_is_a_letter_and_two_to_nineteen_letters_and_digits(namespace, rule):
    assert rule_of("namespace", namespace) == rule


TOOLS = {
    None: ["ab", "a_", "create_task_v2", "a" * 128],
    "tool-length": ["", "a", "a" * 129],
    "tool-start": ["2fa", "_private"],
    "tool-characters": ["createTask", "create-task", "create:task", "create_task\n"],
}


@pytest.mark.requirement("names.tool")
@pytest.mark.parametrize(("rule", "tool"), cases(TOOLS))
def test_a_tool_is_a_letter_and_then_letters_digits_and_underscores(tool, rule):
    assert rule_of("tool", f"myproject:{tool}") == rule


# Those of the specification, by the rule that they break, and what follows from them.
EXAMPLES = {
    "tool": {
        None: [
            "projecta:generate_content", "myproject:create_task", "acmetools:list_docs",
            "workflow:execute",
        ],
        "namespace-characters": ["MyProject:CreateTask", "my-project:create-task"],
        "tool-characters": ["myproject:create-task"],
        "namespace-length": ["mp:tool"],
        "missing-namespace": ["create_task", ":create_task"],
    },
    "uri": {
        None: [
            "myproject://templates/daily-report.md", "myproject://configs/settings.json",
            "projecta://capabilities/server", "datatools://docs/abc123/tables/grid-1?limit=100",
            "myproject://artifacts/2024-01/report-v2.pdf",
        ],
        "uri-separator": [
            "myproject/templates/daily-report.md", "myproject:templates/daily-report.md",
        ],
        "namespace-characters": [
            "MyProject://Templates/DailyReport.md", "my-project://templates/daily report",
        ],
        "type-characters": ["myproject://Templates/daily-report.md"],
        "id-characters": [
            "myproject://templates/DailyReport.md", "myproject://templates/daily report",
        ],
        "missing-namespace": [
            "templates/daily-report.md", "/templates/daily-report", "://templates/daily-report",
        ],
    },
}  # fmt: skip


@pytest.mark.requirement("names.tool-valid-examples", "names.tool-invalid-examples")
@pytest.mark.requirement("names.uri-valid-examples", "names.uri-invalid-examples")
@pytest.mark.parametrize("what", EXAMPLES)
def test_the_specifications_examples_are_accepted_or_refused_for_its_reasons(what):
    for rule, name in cases(EXAMPLES[what]):
        assert rule_of(what, name) == rule, name


RESTS = {
    None: ["docs/a", "my_docs/a.b-c_d", "docs/a/b/c", "docs/...", "docs/.hidden"],
    "type-length": ["d/a", "/a"],
    "type-start": ["1docs/a", "_docs/a"],
    "type-characters": ["my-docs/a"],
    "id-empty": ["docs", "docs/", "docs/a/", "docs//a"],
    "id-dots": ["docs/.", "docs/..", "docs/a/../b", "docs/a/./b"],
    "id-characters": ["docs/a#b", "docs/%2e%2e", "docs/{id}", "docs/a\n"],
    "uri-length": ["docs/" + "a" * 2048],
}


@pytest.mark.requirement("names.uri", "names.uri-segments")
@pytest.mark.parametrize(("rule", "rest"), cases(RESTS))
def test_a_uri_is_a_type_and_an_id_of_one_or_more_segments(rest, rule):
    assert rule_of("uri", f"myproject://{rest}") == rule


QUERIES = {
    None: ["a=b", "a=", "X-y.z_1=%C3%A9%20%26", "since=2026-01-02T03:04:05&path=docs/a,b"],
    "query-pair": ["", "a", "=b", "a=b&", "a=b&&c=d"],
    "query-key": ["a b=c", "é=c", "a%20b=c"],
    "query-repeated": ["a=b&a=c"],
    "query-value": ["a=b c", "a=b+c", "a=b=c", "a=b#c", "a=é", "a=%4", "a=%zz", "a=%FF", "a=b\n"],
}


@pytest.mark.requirement("names.uri-query")
@pytest.mark.parametrize(("rule", "query"), cases(QUERIES))
def test_a_query_is_pairs_whose_values_are_percent_encoded(query, rule):
    assert rule_of("uri", f"myproject://docs/a?{query}") == rule


EVERY = [
    *(("namespace", rule, name) for rule, name in cases(NAMESPACES)),
    *(("tool", rule, f"{name}:create_task") for rule, name in cases(NAMESPACES)),
    *(("tool", rule, f"myproject:{name}") for rule, name in cases(TOOLS)),
    *(("uri", rule, f"{name}://docs/a") for rule, name in cases(NAMESPACES)),
    *(("uri", rule, f"myproject://{rest}") for rule, rest in cases(RESTS)),
    *(("uri", rule, f"myproject://docs/a?{query}") for rule, query in cases(QUERIES)),
]


@pytest.mark.requirement("names.grammar-wins")
def test_the_grammar_refuses_what_the_sample_expressions_accept():
    accepted: dict[str, set[str]] = {what: set() for what in SAMPLES}
    for what, rule, name in EVERY:
        if rule is not None and SAMPLES[what].match(name):
            assert rule_of(what, name) == rule
            accepted[what].add(rule)
    # They end in `$`, which lets a newline come after it.
    assert accepted["namespace"] == {"namespace-characters"}
    # The one of tools takes a namespace for another tool.
    characters = {"namespace-characters", "tool-characters"}
    assert accepted["tool"] == characters | {"namespace-length", "tool-length"}
    # The one of URIs knows neither lengths nor types nor segments nor queries.
    ids, types = {"id-characters", "id-dots", "id-empty"}, {"type-length", "type-start"}
    queries = {"query-pair", "query-key", "query-repeated", "query-value"}
    others = {"namespace-length", "type-characters", "uri-length"}
    assert accepted["uri"] == ids | types | queries | others


@pytest.mark.requirement("names.grammar-wins")
@given(st.text(st.sampled_from("aZ09_-.:/?=&%\n é"), max_size=30), st.sampled_from(["", "abc"]))
def test_the_grammar_accepts_nothing_that_the_sample_expressions_refuse(text, namespace):
    for what, join in (("namespace", ""), ("tool", ":"), ("uri", "://")):
        name = f"{namespace}{join}{text}" if namespace else text
        if not SAMPLES[what].match(name):
            assert rule_of(what, name) is not None


PATHS = (
    "{id}", "{doc_id}/tables/{table}", "report-{day}.md", "{path*}", "{+path}", "plain",
    "{id}{?limit,format}", "{id}?limit={limit}", "{id}?limit={limit}{&format}",
)  # fmt: skip
TEMPLATES = {
    None: ["myproject://docs{/path*}", *(f"myproject://docs/{path}" for path in PATHS)],
    "id-characters": ["myproject://docs/{id", "myproject://docs/{}"],
    "id-dots": ["myproject://docs/{id}/.."],
    "id-empty": ["myproject://docs{?limit}"],
    "type-characters": ["myproject://docs{id}", "myproject://{type}/{id}"],
    "namespace-characters": ["{namespace}://docs/{id}"],
    "missing-namespace": ["docs/{id}"],
    "uri-length": ["myproject://docs/{id}" + "a" * 2048],
}


@pytest.mark.requirement("names.uri")
@pytest.mark.parametrize(("rule", "template"), cases(TEMPLATES))
def test_a_template_is_a_uri_with_expressions_in_its_id_and_its_query(template, rule):
    if rule is None:
        validate_resource_template(template, expected_namespace="myproject")
    else:
        found = refusal(validate_resource_template, template)
        assert (found.rule, found.nearest) == (rule, None)
