"""What other packages may say to the store, so that another engine can take its place.

They import from the front of `folkmoot.store` alone, and their SQL is what PostgreSQL understands
as SQLite does. What is peculiar to SQLite is in `store/`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import folkmoot
from folkmoot.store.schema import STEPS, load_schema

SOURCE = Path(folkmoot.__file__).parent
ENGINES = {"apsw", "sqlite3", "asyncpg"}
# The store, and the bridge, which keeps a file of its own on its user's machine.
OWN = ("store", "bridge")
FRONT = {"folkmoot.store", "folkmoot.store.meta", "folkmoot.store.postgres"}

SQL = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM|WHERE|ORDER BY|(LEFT|CROSS) JOIN)\b"
)
REFUSED = {
    "a planner's hint": r"\bINDEXED BY\b|\+ 0\b|[ (,]\+[a-z]\w*\.?\w*\b",
    "rows by their number": r"\b(rowid|oid|_rowid_|last_insert_rowid)\b",
    "another way to say ON CONFLICT": r"\bINSERT OR\b|\bREPLACE INTO\b",
    "a function of SQLite's": r"\b(IFNULL|strftime|julianday|datetime|unixepoch|json\w*"
    r"|group_concat|randomblob|zeroblob|hex|printf|format|typeof|total|instr|changes|iif|unicode"
    r"|char) ?\(",
    "a comparison of SQLite's": r"\bGLOB\b|\bMATCH\b|\bREGEXP\b|==|\bIS \?|\bIS NOT \?|\bNOCASE\b",
    "the larger of two": r"\b(MAX|MIN)\([^()]*,",
    "a reserved word as a name": r"\bAS (some|all|any|user|end|order|group|limit|table)\b",
    "a join that is two": r"\bCROSS JOIN \w+ \w+ ON\b",
    "a value whose type nothing tells": r"COALESCE\(\?|\bSELECT \?",
    "a limit that is none": r"\bLIMIT -1\b|\bLIMIT \?, \?",
    "a setting": r"\bPRAGMA\b|\bVACUUM\b|\bATTACH\b|\bsqlite_\w+",
    "a name in quotes of its own": r"`\w+`|\[\w+\]",
    "a type of SQLite's": r"\bAS (INTEGER|BLOB|REAL|NUMERIC)\b",
    "a table that is made": r"\bCREATE (TEMP )?(TABLE|INDEX|TRIGGER|VIEW)\b",
}
IMPORT = re.compile(r"^ *(?:from ([\w.]+) import|import (.+))", re.MULTILINE)


@cache
def modules() -> list[tuple[str, str]]:
    names = sorted(file.relative_to(SOURCE) for file in SOURCE.rglob("*.py"))
    return [(str(name), (SOURCE / name).read_text()) for name in names if name.parts[0] not in OWN]


def says_sql(text: str) -> bool:
    return SQL.search(text) is not None or " LIKE " in text


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The texts of a module but for its docstrings; what is filled in stands as `{}`."""
    inside: set[ast.AST] = set()
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            parts = (
                str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
            )
            yield node.lineno, "".join(parts)
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.lineno, node.value


@cache
def statements() -> list[tuple[str, str]]:
    # To parse all of the source takes seconds. A statement may be written in parts, each on a line
    # of its own, but one part at least says what it is.
    return [
        (f"{name}:{line}", text)
        for name, source in modules()
        if says_sql(source)
        for line, text in texts(ast.parse(source))
        if says_sql(text)
    ]


def imports(source: str) -> Iterator[str]:
    for front, names in IMPORT.findall(source):
        yield from (name.split()[0] for name in names.split(",")) if names else (front,)


def test_nothing_outside_the_store_knows_its_engine():
    found = [
        (name, module)
        for name, source in modules()
        for module in imports(source)
        if module.split(".")[0] in ENGINES
        or (module.startswith("folkmoot.store.") and module not in FRONT)
    ]
    assert found == []


@pytest.mark.parametrize("what", REFUSED)
def test_no_statement_says_what_only_sqlite_understands(what):
    refused = re.compile(REFUSED[what])
    assert len(statements()) > 250
    assert [place for place, text in statements() if refused.search(text)] == []


def test_texts_that_are_searched_are_compared_without_case_on_both_sides():
    """SQLite's LIKE ignores case, and PostgreSQL's does not."""
    found = [text for _, text in statements() if " LIKE " in text]
    assert len(found) > 3
    assert all("LOWER(" in text and "LIKE LOWER(?)" in text for text in found), found


def test_the_schema_is_made_of_what_both_engines_understand():
    texts = re.sub(r"--.*", "", "\n".join(load_schema()))
    assert set(re.findall(r"^    [a-z]\w* ([A-Z]+)", texts, re.MULTILINE)) <= {
        *("TEXT", "BIGINT", "DOUBLE", "BLOB")
    }
    for what, pattern in REFUSED.items():
        if what != "a table that is made":
            assert not re.search(pattern, texts), what


def test_what_a_release_does_to_the_schema_only_adds():
    for step in STEPS:
        assert not re.search(r"\b(DROP TABLE|DROP COLUMN|RENAME)\b", step)
