"""The line of a key, in every form TOML has for one."""

from __future__ import annotations

import tomllib
from textwrap import dedent

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.settings.files import key_lines

DOCUMENT = dedent(
    '''\
    # [not] = "a table"
    plain = 1
    "quoted key" = 2
    dotted.one = 3
    inline = { a = 1, "b" = [ { c = "]" } ] }

    text = """
    [fake]
    fake = 1 \\""" still
    """""
    literal = \'\'\'
    fake = 2\'\'\'\'\'
    list = [ # ] not the end
      "a]", 'b[',
      { x = "}" },
    ]
    after = "# no comment"   # a comment [
    [table]
    inner = """a"""

      [table.deep.deeper]
      deepest = 1
    [ "odd name" . x ]
    y = 1
    [[array]]
    item = 1
    [[array]]
    item = 2
    '''
)


def test_every_form_of_key_is_found_on_its_line():
    tomllib.loads(DOCUMENT)
    found: dict[int, list[str]] = {}
    for key, line in key_lines(DOCUMENT).items():
        found.setdefault(line, []).append(".".join(key))
    assert found == {
        2: ["plain"], 3: ["quoted key"], 4: ["dotted", "dotted.one"],
        5: ["inline", "inline.a", "inline.b"], 7: ["text"], 11: ["literal"], 13: ["list"],
        17: ["after"], 18: ["table"], 19: ["table.inner"], 21: ["table.deep", "table.deep.deeper"],
        22: ["table.deep.deeper.deepest"], 23: ["odd name", "odd name.x"], 24: ["odd name.x.y"],
        25: ["array"], 26: ["array.item"],
    }  # fmt: skip


def test_windows_line_ends_and_a_missing_last_one_count_the_same():
    assert key_lines("a = 1\r\n\r\nb = [\r\n1]\r\nc = 2") == {("a",): 1, ("b",): 3, ("c",): 5}


VALUES = st.sampled_from(
    ["1", '"x"', "'[{'", '"""\n#\n"""', "'''\n'\n'''", "[\n1, # ]\n]", "{ z = 1 }", "1979-05-27"]
)


@given(st.lists(st.tuples(st.integers(0, 3), VALUES), max_size=20))
def test_statements_are_told_apart_whatever_their_values_hold(parts):
    lines, expected = 1, {}
    document = ""
    for number, (blank, value) in enumerate(parts):
        document += "\n" * blank
        lines += blank
        expected[(f"k{number}",)] = lines
        statement = f"k{number} = {value}\n"
        document += statement
        lines += statement.count("\n")
    found = {key: line for key, line in key_lines(document).items() if len(key) == 1}
    assert found == expected
