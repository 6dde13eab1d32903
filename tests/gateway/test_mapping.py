"""Names and URIs of backends as they are here, and back."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.gateway.mapping import (
    canonical_name,
    canonical_pattern,
    canonical_uri,
    exposed_names,
    exposed_uri,
    own_uri,
    shown_uri,
)
from folkmoot.names import (
    validate_resource_template,
    validate_resource_uri,
    validate_tool_name,
)
from tests.gateway.support import tool

NAMESPACES = st.from_regex(r"[a-z][a-z0-9]{2,19}", fullmatch=True)
SCHEMES = st.sampled_from(["docs", "DOCS", "file", "https", "urn", "demo", "a", "git+ssh", "-", ""])
URIS = st.one_of(
    st.text(max_size=40),
    st.builds("{}:{}".format, SCHEMES, st.text("/:-abdocs?{}.", max_size=20)),
    st.builds("docs://{}{}".format, SCHEMES, st.text("/:-abdocs?{}.", max_size=20)),
)

OURS = {
    "docs://templates/daily-report.md": "docs://templates/daily-report.md",
    "docs://docs/a/tables/b?limit=1": "docs://docs/a/tables/b?limit=1",
    "docs:///root": "docs:///root",
    "docs://{type}/{id}": "docs://{type}/{id}",
}
THEIRS = {
    "file:///home/a.txt": "docs://file///home/a.txt",
    "https://example.com/a?b=c#d": "docs://https//example.com/a?b=c#d",
    "HTTPS://Example.com": "docs://HTTPS//Example.com",
    "demo://resource/{id}": "docs://demo//resource/{id}",
    "urn:isbn:1": "docs://urn/:isbn:1",
    "C:\\notes.txt": "docs://C/:\\notes.txt",
    "notes/a.txt": "docs://-/notes/a.txt",
    "/notes/a.txt": "docs://-//notes/a.txt",
    "{scheme}://x": "docs://-/{scheme}://x",
}
LOOKING_LIKE_THEIRS = {
    "docs://file///home/a.txt": "docs://docs//file///home/a.txt",
    "docs://urn/:isbn:1": "docs://docs//urn/:isbn:1",
    "docs://-/notes": "docs://docs//-/notes",
    "docs://docs//file///a": "docs://docs//docs//file///a",
    "docs://file/-/home/a.txt": "docs://docs//file/-/home/a.txt",
    "docs:a": "docs://docs/:a",
}
SHOWN = {
    "docs://templates/daily-report.md": "docs://templates/daily-report.md",
    "docs://{type}/{id}": "docs://{type}/{id}",
    "demo://resource/static/document/architecture.md": (
        "docs://demo/-/resource/static/document/architecture.md"
    ),
    "file:///home/a.txt": "docs://file/-/-/home/a.txt",
    "file:///home/": "docs://file/-/-/home/-",
    "file:///README.md": "docs://file/-/-/--r--e--a--d--m--e.md",
    "file:///a-b/a--b/-/../.x": "docs://file/-/-/a-b/a--02d-b/--02d/--02e--02e/.x",
    "file:///my%20notes": "docs://file/-/-/my--02520notes",
    "file:///caf\u00e9": "docs://file/-/-/caf--0c3--0a9",
    "https://example.com/a?b=c": "docs://https/-/example.com/a?b=c",
    "https://example.com/a?b": "docs://https/-/example.com/a--03fb",
    "https://example.com/a?b=c#d": "docs://https/-/example.com/a--03fb--03dc--023d",
    "demo://": "docs://demo/-/-",
    "urn:isbn:1": "docs://uri/-/urn--03aisbn--03a1",
    "uri://x": "docs://uri/-/uri--03a/-/x",
    "notes/a.txt": "docs://uri/-/notes/a.txt",
    "docs://docs//file///a": "docs://docs/-/docs/-/file/-/-/a",
    "docs://file/-/home/a.txt": "docs://docs/-/file/--02d/home/a.txt",
}
SHOWN_TEMPLATES = {
    "demo://resource/{id}": "docs://demo/-/resource/{id}",
    "file:///{+path}": "docs://file/-/-/{+path}",
    "file:///Notes{/path}{?q}": "docs://file/-/-/--notes{/path}{?q}",
    "https://example.com/{id}?limit={n}": "docs://https/-/example.com/{id}?limit={n}",
    "{scheme}://x": "docs://uri/-/{scheme}--03a/-/x",
}
ALL = {**OURS, **THEIRS, **LOOKING_LIKE_THEIRS}


@pytest.mark.requirement("gateway.foreign-uris")
@pytest.mark.parametrize(("own", "here"), ALL.items())
def test_a_uri_is_within_its_namespace_and_can_be_undone(own, here):
    assert exposed_uri("docs", own) == here
    assert own_uri("docs", here) == own


@pytest.mark.requirement("gateway.shown-uris")
@pytest.mark.parametrize(("own", "shown"), (SHOWN | SHOWN_TEMPLATES).items())
def test_clients_are_shown_what_obeys_the_grammar_and_stands_for_one_uri_or_template(own, shown):
    template = own in SHOWN_TEMPLATES
    assert shown_uri("docs", own, template=template) == shown
    assert canonical_uri(shown, {"docs"}) == exposed_uri("docs", own)
    if template or "{" not in shown:
        (validate_resource_template if template else validate_resource_uri)(shown, "docs")


@pytest.mark.requirement("gateway.shown-uris")
@given(URIS)
@example("demo://a-É")
@example("file:///a---B")
@example("file:///--r")
@example("demo://x?a=b&a=c")
@example("docs://file/-/x")
def test_whatever_a_uri_is_it_is_shown_by_the_grammar_and_found_again(own):
    shown = shown_uri("docs", own)
    if own.startswith("ui://"):
        return
    assert canonical_uri(shown, {"docs"}) == exposed_uri("docs", own)
    if shown != own:
        validate_resource_uri(shown, "docs")


@pytest.mark.requirement("gateway.grants-as-shown")
@pytest.mark.parametrize(
    ("shown", "canonical"),
    [
        ("every://demo/-/resource/*", "every://demo//resource/*"),
        ("every://demo/-/*", "every://demo//*"),
        ("every://file/-/-/srv/--r--e--a--d*", "every://file///srv/READ*"),
        ("every://uri/-/urn--03aisbn--03a*", "every://urn/:isbn:*"),
        ("ui://every/view*", "every://ui//view*"),
        ("every://demo//resource/*", "every://demo//resource/*"),
        ("every://notes/*", "every://notes/*"),
        ("every://*", "every://*"),
        ("ui://other/view*", "ui://other/view*"),
    ],
)
def test_a_pattern_over_uris_may_be_written_as_clients_are_shown_them(shown, canonical):
    base = "!mcp.request.resources/*"
    assert canonical_pattern(f"{base}:{shown}", {"every"}) == f"{base}:{canonical}"


@pytest.mark.requirement("gateway.grants-as-shown")
@pytest.mark.parametrize("unclear", ["every://uri/-/*", "every://uri/-/ur*", "every://de*/-/x"])
def test_a_pattern_that_does_not_say_which_scheme_is_meant_is_refused(unclear):
    with pytest.raises(e.PatternSyntax, match="does not say which scheme"):
        canonical_pattern(f"mcp.request.resources/*:{unclear}", {"every"})


@pytest.mark.requirement("gateway.foreign-uris")
@given(NAMESPACES | st.just("docs"), URIS)
@example("docs", "docs://docs/")
def test_whatever_a_uri_is_it_is_mapped_and_undone(namespace, own):
    here = exposed_uri(namespace, own)
    assert here.startswith(f"{namespace}://")
    assert own_uri(namespace, here) == own


@given(URIS)
def test_a_uri_has_one_spelling_that_rights_are_asked_about(uri):
    own = own_uri("docs", uri)
    canonical = canonical_uri(uri, {"docs"})
    if own is not None:
        assert exposed_uri("docs", own) == uri == canonical
    if canonical is not None:
        assert canonical_uri(canonical, {"docs"}) == canonical
        assert own_uri("docs", canonical) is not None


@pytest.mark.parametrize(
    ("spelled", "canonical"),
    [
        ("docs://docs//secrets/1", "docs://secrets/1"),
        ("docs://-/docs://secrets/1", "docs://secrets/1"),
        ("docs://-/file:///a", "docs://file///a"),
        ("docs://file/:///a", "docs://file///a"),
        # A template is filled in without knowing how URIs are shown.
        ("docs://file/-/-/notes/README.md", "docs://file///notes/README.md"),
        ("docs://file/-/-/notes/my%20notes", "docs://file///notes/my%20notes"),
        ("docs://file/-/-/notes//x", "docs://file///notes//x"),
        ("docs://file/-/-/notes/--0ff", "docs://file///notes/--0ff"),
    ],
)
def test_another_spelling_of_a_uri_leads_nowhere_until_it_is_made_canonical(spelled, canonical):
    assert own_uri("docs", spelled) is None
    assert canonical_uri(spelled, {"docs"}) == canonical


def test_a_uri_of_no_backend_has_no_canonical_form():
    for uri in ("mmp://mailboxes/inbox", "ui://mmp-inbox", "ui://other/a", "docs", "docs:a", ""):
        assert canonical_uri(uri, {"docs"}) is None
    assert own_uri("docs", "other://a/b") is None


def test_the_uri_of_an_app_keeps_its_scheme_on_the_wire():
    assert shown_uri("docs", "ui://viewer/main.html") == "ui://docs/viewer/main.html"
    assert canonical_uri("ui://docs/viewer/main.html", {"docs"}) == "docs://ui//viewer/main.html"
    assert own_uri("docs", "docs://ui//viewer/main.html") == "ui://viewer/main.html"
    assert shown_uri("docs", "file:///a") == "docs://file/-/-/a"


@pytest.mark.requirement("gateway.snake-case")
@pytest.mark.parametrize(
    ("own", "canonical"),
    [
        ("create_issue", "github:create_issue"),
        ("createIssue", "github:create_issue"),
        ("Create-Issue", "github:create_issue"),
        ("github:create_issue", "github:create_issue"),
        ("github:createIssue", "github:create_issue"),
        ("gitlab:create_issue", "github:gitlab_create_issue"),
    ],
)
def test_a_tool_is_known_by_its_namespace_and_its_name_in_snake_case(own, canonical):
    exposed = exposed_names("github", [tool(own)], what="tool")
    assert {name: each["name"] for name, each in exposed.by_name.items()} == {canonical: own}
    assert exposed.faults == ()


@given(NAMESPACES, st.text(min_size=1, max_size=60))
def test_every_name_a_backend_can_think_of_becomes_a_valid_one(namespace, own):
    validate_tool_name(canonical_name(namespace, own), namespace)


@pytest.mark.requirement("gateway.collision-refused")
def test_tools_that_would_get_the_same_name_are_all_refused_by_name():
    listed = [tool("createIssue"), tool("create_issue"), tool("create-issue"), tool("close_issue")]
    exposed = exposed_names("github", listed, what="tool")
    assert list(exposed.by_name) == ["github:close_issue"]
    (fault,) = exposed.faults
    for named in ("'createIssue'", "'create_issue'", "'create-issue'", "github:create_issue"):
        assert named in fault


def test_a_tool_that_is_listed_twice_is_one_unless_it_differs_and_a_pattern_settles_a_collision():
    assert exposed_names("docs", [tool("read"), tool("read")], what="tool").faults == ()
    differing = [tool("read"), tool("read", description="Deletes.")]
    exposed = exposed_names("docs", differing, what="tool")
    assert (len(exposed.by_name), len(exposed.faults)) == (0, 1)
    listed = [tool("createIssue"), tool("create_issue")]
    exposed = exposed_names("github", listed, what="tool", patterns=("createIssue",))
    # The pattern speaks of the one by its own name; the name here is what both would have.
    assert [each["name"] for each in exposed.by_name.values()] == ["createIssue"]


@pytest.mark.parametrize(
    ("patterns", "shown"),
    [
        ((), {"read_file", "read_all", "write_file"}),
        (("read_*",), {"read_file", "read_all"}),
        (("readFile",), {"read_file"}),
        (("*_file", "readAll"), {"read_file", "read_all", "write_file"}),
        (("docs:read_*",), {"read_file", "read_all"}),
        (("READ_*",), set()),
    ],
)
def test_patterns_choose_tools_by_their_names_here_or_there(patterns, shown):
    listed = [tool("readFile"), tool("readAll"), tool("write_file")]
    exposed = exposed_names("docs", listed, what="tool", patterns=patterns)
    assert exposed.by_name.keys() == {f"docs:{name}" for name in shown}
    if not shown:
        assert exposed.faults == ("No tool of docs matches 'READ_*', which its settings list.",)
    else:
        assert not exposed.faults


@pytest.mark.parametrize(
    "nameless", [{}, {"name": ""}, {"name": 7}, "read", None, {"name": "x" * 300}]
)
def test_what_has_no_usable_name_is_left_out_and_told(nameless):
    exposed = exposed_names("docs", [nameless, tool("read")], what="tool")
    assert (list(exposed.by_name), len(exposed.faults)) == (["docs:read"], 1)
