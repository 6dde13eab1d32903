"""Which files are read, and what happens to those that cannot be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from folkmoot.core import errors as e
from folkmoot.names.lint import project
from folkmoot.names.lint.project import MAX_SOURCE_BYTES
from folkmoot.names.lint.sources import read_sources
from tests.names.lint.projects import SERVER, lint, write

TOOL = SERVER + "@mcp.tool\ndef one(): ...\n"


@pytest.mark.parametrize(
    "folder",
    [
        ".venv", "venv", "node_modules", "build", "dist", "__pycache__", ".git", "site-packages",
        "tests", "src/shop/tests", "docs", "examples",
    ],
)  # fmt: skip
def test_what_others_wrote_or_what_was_made_is_not_looked_at(folder: str, tmp_path: Path) -> None:
    write(tmp_path, {f"{folder}/server.py": TOOL, "src/shop/docs/server.py": TOOL})
    found = read_sources([tmp_path])
    assert found.files == ["src/shop/docs/server.py"]
    assert read_sources([tmp_path / folder]).declared != []
    assert read_sources([tmp_path / folder / "server.py"]).declared != []


def test_an_environment_of_any_name_is_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, {"py/pyvenv.cfg": "", "py/lib/server.py": TOOL})
    assert read_sources([tmp_path]).files == []


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        ("a", ["b/a.py", "b/c/x.py"]),
        ("b/c", ["a/x.py", "b/a.py"]),
        ("/b", ["a/x.py"]),
        ("*.py", []),
        ("b/*.py", ["a/x.py"]),
    ],
)
def test_files_and_folders_can_be_excluded(pattern: str, left: list[str], tmp_path: Path) -> None:
    settings = f"[tool.folkmoot.names]\nexclude = ['{pattern}']\n"
    write(tmp_path, {"pyproject.toml": settings, "a/x.py": "", "b/a.py": "", "b/c/x.py": ""})
    if pattern == "b/*.py":
        (tmp_path / "b/c/x.py").unlink()
    assert read_sources([tmp_path]).files == left


def test_links_that_lead_in_circles_end(tmp_path: Path) -> None:
    write(tmp_path, {"a/server.py": TOOL})
    (tmp_path / "a/again").symlink_to(tmp_path)
    (tmp_path / "a/loop.py").symlink_to("loop.py")
    assert read_sources([tmp_path]).files == ["a/server.py"]


def test_a_pipe_that_is_named_like_a_source_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert read_sources([tmp_path]).files == []
    with pytest.raises(e.ProjectUnusable, match="neither a file nor a folder"):
        read_sources([tmp_path / "pipe.py"])


UNREADABLE = {
    "not Python": (b"\ndef (:\n", 2, "It is not Python: invalid syntax."),
    "not UTF-8": (b"x = 1\n\n\ny = '\xff'\n", 4, "It is not UTF-8 text."),
    "not UTF-8 from the beginning": (b"\xff\n", 1, "It is neither UTF-8 nor in an encoding"),
    "an encoding nobody knows": (
        b"# coding: klingon\n",
        1,
        "It is neither UTF-8 nor in an encoding",
    ),
    "no text": (b"# coding: hex\nx\n", 1, "It "),
    "a null byte": (b"x = '\0'\n", 1, "It is not Python"),
    "too deep": (b"(" * 5_000, 1, "It is not Python: too many nested parentheses."),
    "too deep to walk": (
        b"x = " + b"-" * 100_000 + b"1\n",
        1,
        "It is nested too deeply to be read.",
    ),
    "too large": (b"#" * (MAX_SOURCE_BYTES + 1), 1, "It is larger than 2 MiB, and was not read."),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_is_a_finding(case: str, tmp_path: Path) -> None:
    raw, line, message = UNREADABLE[case]
    (tmp_path / "broken.py").write_bytes(raw)
    write(tmp_path, {"server.py": TOOL})
    found = lint(tmp_path, select=("collision",)).findings
    assert [each.rule for each in found] == ["unreadable"]
    assert found[0].place is not None
    assert (found[0].place.path, found[0].place.line) == ("broken.py", line)
    assert found[0].message.startswith(message)


def test_what_the_parser_warns_of_is_not_our_business(tmp_path: Path) -> None:
    write(tmp_path, {"server.py": TOOL + "X = '\\d' is 1\n"})
    assert [each.name for each in read_sources([tmp_path]).declared] == ["one"]


def test_an_encoding_that_a_source_declares_is_read(tmp_path: Path) -> None:
    raw = f"# coding: latin-1\n{SERVER}@mcp.tool(name='ä')\ndef f(): ...\n".encode("latin-1")
    (tmp_path / "server.py").write_bytes(raw)
    assert [each.name for each in read_sources([tmp_path]).declared] == ["ä"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_a_finding(tmp_path: Path) -> None:
    write(tmp_path, {"server.py": TOOL, "shut/x.py": TOOL})
    (tmp_path / "server.py").chmod(0)
    (tmp_path / "shut").chmod(0)
    try:
        found = lint(tmp_path).findings
    finally:
        (tmp_path / "shut").chmod(0o700)
    assert [each.message for each in found] == ["It cannot be read: permission denied."] * 2


WRONG = {
    "namspace = 'x'": "there is no key 'namspace'; did you mean 'namespace'?",
    "standalone = 'yes'": "'standalone' must be true or false",
    "exclude = 'tests'": "'exclude' must be a list of strings",
    "ignore = [1]": "'ignore' must be a list of strings",
    "ignore = ['singular']": "there is no rule 'singular'",
    "select = ['collisions']": "there is no rule 'collisions'; did you mean 'collision'?",
    "client-prefix = '{server}'": "'client-prefix' may hold {namespace}, and no other braces",
    "namespaces-file = '../x.md'": "'namespaces-file' must be a file inside the project",
    "namespace = 'My-Shop'": "'namespace': Invalid namespace: My-Shop.",
}


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_configuration_is_told_clearly(line: str, tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    write(tmp_path, {"pyproject.toml": f"[tool.folkmoot.names]\n{line}\n"})
    with pytest.raises(e.SettingsError) as raised:
        lint(tmp_path)
    assert raised.value.message.startswith(f"{file}: [tool.folkmoot.names]: {WRONG[line]}")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[tool\n", ":1:6: expected ']' at the end of a table declaration"),
        (b"\xff", ": is not UTF-8 text"),
        (b"x = 1" + b"0" * 2_000_000, ": is larger than 1 MiB"),
    ],
)
def test_a_pyproject_that_cannot_be_read_is_told(raw: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(raw)
    with pytest.raises(e.SettingsError) as raised:
        lint(tmp_path)
    assert raised.value.message == f"{tmp_path / 'pyproject.toml'}{message}"


def test_what_pyproject_says_is_used_and_where_it_says_it(tmp_path: Path) -> None:
    text = (
        "[project]\nname = 'my-shop'\nversion = '1.2'\n\n[tool.folkmoot.names]\n"
        "standalone = true\nnamespace = 'shop'\nnamespaces-file = 'docs/NAMES.md'\n\n[tool.x]\n"
    )
    write(tmp_path, {"pyproject.toml": text, "a/b/server.py": TOOL})
    found = project.find_config(tmp_path / "a/b")
    assert (found.root, found.name, found.version) == (tmp_path, "my-shop", "1.2")
    assert found.constant is not None
    assert text[found.constant.span.start : found.constant.span.end] == "'shop'"
    assert (found.constant.place.line, found.constant.place.column) == (7, 13)
    linting = lint(tmp_path / "a")
    assert {each.severity for each in linting.findings} == {"hint"}
    assert linting.project.namespaces_file == "docs/NAMES.md"


def test_a_namespace_of_another_table_is_not_taken_for_ours(tmp_path: Path) -> None:
    text = "[tool.folkmoot.names]\n'namespace' = 'shop'\n\n[tool.x]\nnamespace = 'shop'\n"
    write(tmp_path, {"pyproject.toml": text})
    assert project.find_config(tmp_path).config.namespace == "shop"
    assert project.find_config(tmp_path).constant is None
