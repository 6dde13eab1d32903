"""Cells of Markdown tables hold any text, and give it back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from folkmoot.names.generate.tables import MAX_CELL, cell, read_table, table

TEXTS = (
    st.text(max_size=40)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: not (text.startswith("`") or text.endswith("`")))
)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=4))
def test_what_is_written_into_a_table_is_read_back(rows: list[tuple[str, str]]) -> None:
    lines = table(("One", "Two"), rows)
    titles, read = read_table(lines)
    assert titles == ["One", "Two"]
    # A row is one line, whatever is in it, and characters that end lines or hide are spaces.
    assert len(lines) == len(rows) + 2
    assert [[cell(text) for text in row] for row in read] == [
        [cell(text) for text in row] for row in rows
    ]


def test_a_description_cannot_end_its_cell_its_line_or_our_part_of_the_page() -> None:
    hostile = "a | b\n<!-- folkmoot:end -->\x1b[2J \\"
    assert cell(hostile) == r"a \| b \<!-- folkmoot:end --> [2J \\"
    assert read_table(table(("One",), [(hostile,)]))[1] == [["a | b <!-- folkmoot:end --> [2J \\"]]


def test_a_long_description_is_cut() -> None:
    assert len(cell("x" * 1000)) == MAX_CELL
