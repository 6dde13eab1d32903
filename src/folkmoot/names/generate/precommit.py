"""`.pre-commit-config.yaml`: one local hook put among those of a project.

It reads no more YAML than it must, and leaves alone what could mean something else.
"""

from __future__ import annotations

import re

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.plan import with_ends_of

FILE = ".pre-commit-config.yaml"
HOOK = "validate-mcp-names"
ENTRY = f"""\
- repo: local
  hooks:
    - id: {HOOK}
      name: Validate MCP naming conventions
      entry: folkmoot names lint .
      language: system
      pass_filenames: false
"""
NAMED = re.compile(rf"""^\s*-?\s*id:\s*["']?{HOOK}["']?\s*(?:#.*)?$""", re.MULTILINE)
REPOS = re.compile(r"repos:\s*(\[\s*\]\s*)?(?:#.*)?")
ITEM = re.compile(r"( *)- ")
KEY = re.compile(r"[A-Za-z_][\w-]*:(?:\s.*)?")


def with_hook(text: str | None) -> str:
    """The text with our hook in it; one that is there is left as it is."""
    if not text or not text.strip():
        return f"repos:\n{indented(2)}"
    if NAMED.search(text):
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    places = [number for number, line in enumerate(lines) if line.startswith("repos:")]
    head = REPOS.fullmatch(lines[places[0]]) if len(places) == 1 else None
    if head is None:
        raise refusal()
    if head[1]:
        lines[places[0]] = "repos:"
    start = places[0] + 1
    end, indent = list_end(lines, start)
    if head[1] and indent is not None:
        raise refusal()
    hook = indented(2 if indent is None else indent).removesuffix("\n").split("\n")
    after = "\n".join([*lines[:end], *hook, *lines[end:]])
    return with_ends_of(text, after if after.endswith("\n") else f"{after}\n")


def list_end(lines: list[str], start: int) -> tuple[int, int | None]:
    """The line behind the last one of the list, and how far its items are indented."""
    indent: int | None = None
    end = start
    for number in range(start, len(lines)):
        line = lines[number]
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item = ITEM.match(f"{line} ")
        if indent is None:
            if item is None and not KEY.fullmatch(line):
                raise refusal()
            if item is None:
                break
            indent = len(item[1])
        depth = len(line) - len(line.lstrip(" "))
        if depth < indent or (depth == indent and item is None):
            if depth > 0 or not (KEY.fullmatch(line) or line.startswith("...")):
                raise refusal()
            break
        end = number + 1
    return end, indent


def indented(by: int) -> str:
    """Our entry, as far in as the others of the list are."""
    return "".join(f"{' ' * by}{line}\n" for line in ENTRY.splitlines())


def refusal() -> ProjectUnusable:
    """That a file is not plain enough to be changed for certain."""
    return ProjectUnusable(
        f"{FILE} cannot be read for certain, so it is left alone; use --no-pre-commit, and add a "
        "hook that runs 'folkmoot names lint .' yourself."
    )
