"""`pyproject.toml`: what is read of it, and a table put at its end."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from folkmoot.core.errors import ProjectUnusable
from folkmoot.names.generate.plan import with_ends_of

FILE = "pyproject.toml"


def parse(text: str, where: str = FILE) -> dict[str, Any]:
    """The document. Raises `ProjectUnusable` for what is no TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProjectUnusable(f"{where} is not TOML: {error}.") from None


def member(document: dict[str, Any], *path: str) -> Any:
    """What stands at a path of tables; None where nothing does."""
    found: Any = document
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def with_names(text: str, namespace: str) -> str:
    """The text with `[tool.folkmoot.names]` in it; one that is there is left as it is.

    Every other character stays. Raises `ProjectUnusable` where a table cannot be put at the end.
    """
    before = parse(text)
    if member(before, "tool", "folkmoot", "names") is not None:
        return text
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    table = f"{gap}[tool.folkmoot.names]\nnamespace = {json.dumps(namespace)}\n"
    after = with_ends_of(text, text + table) if "\r\n" in text else text + table
    try:
        document = tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        document = {}
    if member(document, "tool", "folkmoot", "names") != {"namespace": namespace}:
        raise ProjectUnusable(
            f"{FILE} takes no table at its end; put in 'tool.folkmoot.names.namespace' yourself."
        )
    return after


def with_namespace(text: str, old: str, new: str) -> str:
    """The text with another namespace in `[tool.folkmoot.names]`, checked by reading it again."""
    line = re.compile(rf"""^([ \t]*namespace[ \t]*=[ \t]*)(["']){re.escape(old)}\2""", re.MULTILINE)
    wanted = parse(text)
    wanted["tool"]["folkmoot"]["names"]["namespace"] = new
    for found in line.finditer(text):
        after = f"{text[: found.start()]}{found[1]}{found[2]}{new}{found[2]}{text[found.end() :]}"
        if parse(after) == wanted:
            return after
    raise ProjectUnusable(
        f"The namespace in {FILE} is written in a way that cannot be changed for certain; change "
        "it there by hand."
    )
