"""Tools are found by words."""

from __future__ import annotations

import pytest

from folkmoot.gateway.catalogue import Catalogue
from folkmoot.gateway.model import Definition, Inventory, ToolEntry
from folkmoot.gateway.search import Search, own_tool, words_of
from folkmoot.operations.table import CATALOGUE
from tests.gateway.support import catalogue_of, parts_of, tool
from tests.harness import run


def about(name: str, description: str, **arguments: str) -> Definition:
    properties = {each: {"type": "string", "description": told} for each, told in arguments.items()}
    schema = {"type": "object", "properties": properties}
    return tool(name, description=description, inputSchema=schema)


GITHUB = Inventory(
    tools=(
        about("createIssue", "Opens a new issue in a repository.", title="What it is about."),
        about("listIssues", "Shows the issues of a repository.", label="Only those with it."),
        about("mergePullRequest", "Merges a branch that was proposed.", strategy="Squash or not."),
        tool("searchCode", title="Find text", description="Looks through code."),
    )
)
FILES = Inventory(
    tools=(
        about("read_file", "Reads a file.", path="Where the file is."),
        about("list_directory", "Shows the files of a directory.", path="Where it is."),
        about("move_file", "Gives a file another name or place.", source="From.", target="To."),
    )
)


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return catalogue_of(tmp_path_factory.mktemp("search"), github=GITHUB, files=FILES)


@pytest.fixture
def search(catalogue: Catalogue) -> Search:
    search = Search(own_tool(each) for each in CATALOGUE.listing("canonical", app_only=True))
    search.renew(catalogue)
    return search


def everyone(_: ToolEntry) -> bool:
    return True


def found(search: Search, query: str, limit: int = 10) -> list[str]:
    return [each.entry.canonical for each in search.find(query, everyone, limit)]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("create issue", "github:create_issue"),
        ("open a new ticket or issue in a repository", "github:create_issue"),
        ("createIssue", "github:create_issue"),
        ("squash", "github:merge_pull_request"),
        ("directories", "files:list_directory"),
        ("find text", "github:search_code"),
        ("repo merge", "github:merge_pull_request"),
        ("send a message to someone", "msg/send"),
        ("READ FILE", "files:read_file"),
    ],
)
def test_the_tool_that_is_meant_comes_first(search, query, best):
    assert found(search, query)[0] == best


@pytest.mark.parametrize("query", ["", "  ", "?!", "xyzzy", "\x00", "x" * 100_000])
def test_what_nothing_fits_finds_nothing(search, query):
    assert found(search, query) == []


def test_the_better_fit_comes_first_of_what_is_allowed_and_as_much_as_is_wanted(search):
    hits = search.find("file", everyone)
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) > 0
    names = [hit.entry.canonical for hit in hits]
    assert found(search, "file") == names
    hits = search.find("file", lambda entry: entry.canonical != "files:read_file")
    assert {"files:move_file"} <= {hit.entry.canonical for hit in hits} < set(names)
    assert (found(search, "file", limit=2), found(search, "file", limit=0)) == (names[:2], [])


def test_tools_for_apps_alone_are_not_found(search):
    app_only = [each.name for each in CATALOGUE.tools if each.app_only]
    assert app_only
    for name in app_only:
        assert name not in found(search, name, limit=1_000)


def test_what_a_backend_that_is_away_offers_is_not_found(catalogue):
    search = Search()
    search.renew(Catalogue(catalogue.parts, {"github": "It is away."}))
    assert found(search, "issue") == []
    assert found(search, "read a file")[0] == "files:read_file"


def test_a_change_of_one_backend_is_seen_at_once(search, tmp_path):
    catalogue = catalogue_of(tmp_path, github=GITHUB, files=FILES)
    search.renew(catalogue)
    run(search.ready())
    assert found(search, "issue")[0].startswith("github:")
    changed = parts_of(
        tmp_path,
        {"github": Inventory(tools=(about("star", "Marks a repository."),))},
        hold_new=False,
    )
    search.renew(Catalogue({**catalogue.parts, **changed}))
    assert not [name for name in found(search, "issue") if name.startswith("github:")]
    assert found(search, "star")[0] == "github:star"
    assert found(search, "read file")[0] == "files:read_file"


def test_many_tools_are_read_beforehand_and_found(tmp_path):
    many = Inventory(tools=tuple(about(f"tool_{n}", f"About topic{n}.") for n in range(600)))
    search = Search()
    search.renew(catalogue_of(tmp_path, docs=many))
    run(search.ready())
    assert found(search, "topic599") == ["docs:tool_599"]
    assert len(found(search, "topic", limit=1_000)) == 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("createIssue", ["create", "issue"]),
        ("github:list_pull_requests", ["github", "list", "pull", "request"]),
        ("HTTPServer boxes", ["http", "server", "box"]),
        ("Categories, classes & status", ["category", "class", "status"]),
        ("Grüße", ["grüsse"]),
        ("v2 gas is", ["v2", "gas", "is"]),
    ],
)
def test_a_text_is_read_as_words_in_the_singular(text, words):
    assert words_of(text) == words
