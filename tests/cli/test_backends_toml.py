"""The settings file is changed as a careful person would change it: nothing else moves."""

from __future__ import annotations

import tomllib
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from folkmoot.core import errors as e
from folkmoot.settings.editing import with_backend, with_value, without_backend

FILE = dedent("""\
    # What this hub is.
    port = 1   # any

    # Issues.
    [backends.github]
    # By its own token.
    command = ["npx",
      "server"] # quick
    # Nothing more.

    # Its environment.
    [backends.github.env]
    TOKEN = { env = "GH" }
    # How loud.
    [log]
    level = "debug"

    [backends]
    # The web.
    web.url = "http://h/"
    docs = { url = "http://d/" }

    [backends.last]
    url = "http://l/"
    """)

PARTS = {
    "github": FILE[FILE.index("# Issues.") : FILE.index("# How loud.")],
    "web": '# The web.\nweb.url = "http://h/"\n',
    "docs": 'docs = { url = "http://d/" }\n',
    "last": '\n[backends.last]\nurl = "http://l/"\n',
}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", PARTS)
def test_a_table_goes_with_what_belongs_to_it_and_nothing_else(name, end):
    assert FILE.count(PARTS[name]) == 1
    changed = without_backend(FILE.replace("\n", end), name)
    assert changed == FILE.replace(PARTS[name], "").replace("\n", end)


def test_the_comment_that_begins_a_file_stays():
    assert without_backend("# Ours.\n[backends.abc]\nurl = 'x'\n", "abc") == "# Ours.\n"
    assert without_backend("[backends.abc]\nurl = 'x'\n", "abc") == ""


def test_a_table_is_put_at_the_end():
    table = {
        "command": ["a b", '"\\', "é\t"],
        "everyone": True,
        "env": {"T": {"env": "X", "prefix": "Bearer "}, "odd name": "v"},
    }
    assert with_backend("port = 1", "my x", table) == dedent("""\
        port = 1

        [backends."my x"]
        command = ["a b", "\\"\\\\", "é\\t"]
        everyone = true

        [backends."my x".env]
        T = { env = "X", prefix = "Bearer " }
        "odd name" = "v"
        """)
    assert with_backend("", "abc", {"url": "x"}) == '[backends.abc]\nurl = "x"\n'
    assert with_backend("a = 1\r\n", "abc", {"url": "x"}).endswith(
        '\r\n\r\n[backends.abc]\r\nurl = "x"\r\n'
    )


def test_what_cannot_be_changed_alone_is_refused():
    text = "backends = { abc = { url = 'x' }, other = { url = 'y' } }\n"
    with pytest.raises(e.SettingsUnwritable, match="by hand"):
        without_backend(text, "abc")
    with pytest.raises(e.SettingsUnwritable, match="by hand"):
        with_backend(text, "new", {"url": "z"})


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
TABLE = st.fixed_dictionaries(
    {},
    optional={
        "command": st.lists(TEXT, min_size=1, max_size=3),
        "trusted": st.booleans(),
        "env": st.dictionaries(TEXT, TEXT | st.fixed_dictionaries({"env": TEXT}), max_size=2),
    },
)
BEFORE = st.lists(
    st.sampled_from(["# note", "", "x = 1", "[log]", "[[a]]", "y = '''\n[backends.n]\n'''", "[b]"]),
    max_size=6,
    unique=True,
).map(lambda lines: "\n".join([*lines, ""]))


@given(BEFORE, TEXT, TABLE)
def test_what_was_put_in_is_read_back_and_taken_out_again(before, name, table):
    added = with_backend(before, name, table)
    assert added.startswith(before)
    assert tomllib.loads(added)["backends"] == {name: table}
    assert without_backend(added, name).strip() == before.strip()


GROUPS = dedent("""\
    # Who is who.
    [groups]
    # The first.
    team = [
      "ann",  # away
    ]

    [log]
    level = "debug"
    """)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_value_is_set_where_it_stands_or_behind_its_table_and_nothing_else_moves(end):
    def changed(text, key, value):
        return with_value(text.replace("\n", end), key, value).replace(end, "\n")

    written = GROUPS[GROUPS.index("team") : GROUPS.index("\n[log]")]
    assert changed(GROUPS, ("groups", "team"), ["bob"]) == GROUPS.replace(
        written, 'team = ["bob"]\n'
    )
    assert changed(GROUPS, ("groups", "team"), None) == GROUPS.replace(written, "")
    assert changed(GROUPS, ("groups", "more"), []) == GROUPS.replace(
        written, written + "more = []\n"
    )
    assert changed(GROUPS, ("grants", "@team"), ["a"]) == GROUPS + '\n[grants]\n"@team" = ["a"]\n'
    assert changed("", ("grants", "x"), ["a"]) == '[grants]\nx = ["a"]\n'
    assert changed("groups.team = []\n", ("groups", "team"), ["a"]) == 'groups.team = ["a"]\n'
    assert changed(GROUPS, ("grants", "x"), None) == GROUPS


def test_a_value_that_stands_with_others_in_one_statement_is_for_hands():
    text = "groups = { a = [], b = [] }\n"
    with pytest.raises(e.SettingsUnwritable, match="by hand"):
        with_value(text, ("groups", "a"), ["x"])
    with pytest.raises(e.SettingsUnwritable, match="by hand"):
        with_value(text, ("groups", "c"), ["x"])
