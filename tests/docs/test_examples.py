"""The examples of the documentation do what the pages say they do."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import tomllib
from textwrap import dedent
from typing import Any

import pytest
from typer.main import get_command

from folkmoot.cli.program import app
from folkmoot.cli.serve import welcome
from folkmoot.settings import load
from tests.docs.pages import ROOT, Block, Page, pages

PROGRAM = "folkmoot"
UNIT = re.compile(r"^ExecStart=\S*/(folkmoot .*)$", re.MULTILINE)


def run_python(page: Page) -> None:
    """Run a page's Python from its first line to its last; text behind a block is its output."""
    names: dict[str, Any] = {}
    blocks = page.blocks
    for block, following in zip(blocks, [*blocks[1:], Block("", "", 0)], strict=True):
        if block.language != "python":
            continue
        # Empty lines in front make the line numbers of a failure those of the page.
        program = compile("\n" * block.line + block.text, page.name, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, names)
        assert printed.getvalue() == (following.text if following.language == "text" else "")


def test_the_python_of_the_developers_tutorial_prints_what_the_page_shows():
    page = pages()["docs/tutorials/developer.md"]
    assert sum(block.language == "python" for block in page.blocks) >= 7
    run_python(page)


@pytest.mark.parametrize(
    "name", [name for name in pages() if name != "docs/tutorials/developer.md"]
)
def test_the_python_of_the_other_pages_can_be_read(name):
    for block in pages()[name].blocks:
        if block.language == "python":
            compile("\n" * block.line + dedent(block.text), name, "exec")


@pytest.mark.parametrize("name", pages())
def test_the_json_and_toml_of_a_page_can_be_read(name):
    for block in pages()[name].blocks:
        if block.language == "json":
            json.loads(block.text)
        if block.language == "toml":
            tomllib.loads(block.text)


@pytest.mark.parametrize("name", pages())
def test_the_commands_a_page_names_exist(name):
    for line in commands(pages()[name]):
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            check_make(words[1:], name)
        elif words[0] == PROGRAM:
            check_folkmoot(words[1:], f"{name}: {line}")


def commands(page: Page) -> list[str]:
    """Command lines in blocks, in units of systemd and within lines."""
    shell = [b.text.replace("\\\n", "") for b in page.blocks if b.language == "sh"]
    lines = [line for text in shell for line in text.splitlines()]
    lines += [line for b in page.blocks if b.language == "ini" for line in UNIT.findall(b.text)]
    return [line for line in lines + page.code if re.match(r"(make|folkmoot) \S", line)]


def check_make(words: list[str], where: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words:
        if "=" not in word:
            assert re.search(rf"^{re.escape(word)}:", makefile, re.MULTILINE), f"{where}: {word}"


def check_folkmoot(words: list[str], where: str) -> None:
    command: Any = get_command(app)
    # What stands behind -- is another program's.
    rest = iter(words[: words.index("--")] if "--" in words else words)
    for word in rest:
        inner = getattr(command, "commands", {})
        if word.startswith("-") and word != "-":
            name, equals, _ = word.partition("=")
            options = {option: param for param in command.params for option in param.opts}
            assert name in options.keys() | {"-h", "--help"}, where
            if inner and name in options and not equals and not options[name].is_flag:
                next(rest)
        elif inner:
            assert word in inner, where
            command = inner[word]


def test_the_readme_shows_what_serve_prints():
    loaded = load(None, options={"data": "/home/ada/folkmoot/.folkmoot"}, environ={})
    shown = [block.text for block in pages()["README.md"].blocks if block.language == "text"]
    assert shown == [welcome("http://127.0.0.1:8420", loaded, "…") + "\n"]
