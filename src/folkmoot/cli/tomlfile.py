"""Puts one entry into a TOML settings file, and leaves every other line as it was."""

from __future__ import annotations

import tomllib
from typing import Any

from folkmoot.core.errors import ClientFileUnusable
from folkmoot.settings.tomledit import kept_lines, read
from folkmoot.web.clients import toml_text

BOM = "\ufeff"


def put_entry(text: str, member: str, name: str, entry: dict[str, Any], *, force: bool) -> str:
    """The text with `[member.name]` at its end; an entry that is there needs `force`."""
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    value = parsed(body)
    table = value.get(member, {})
    if not isinstance(table, dict):
        raise ClientFileUnusable(f'"{member}" in it is not a table, so it is not changed.')
    wanted = {**value, member: {**table, name: entry}}
    if name in table:
        if not force:
            raise ClientFileUnusable(f'it has an entry "{name}" already; --force replaces it.')
        body = without(body, member, name)
    end = "\r\n" if "\r\n" in body else "\n"
    blank = "" if not body.strip() or body.endswith(end * 2) else end
    last = "" if not body or body.endswith("\n") else end
    shown = toml_text({member: {name: entry}}).replace("\n", end)
    changed = f"{body}{last}{blank}{shown}{end}"
    if parsed(changed) != wanted:
        raise ClientFileUnusable("the entry cannot be added without changing something else.")
    return mark + changed


def without(text: str, member: str, name: str) -> str:
    """The text without the statements of an entry; one that sets others as well is refused."""
    gone: set[int] = set()
    for statement in read(text):
        about = [key[:2] == (member, name) for key in statement.keys]
        if any(about) and not all(about):
            raise ClientFileUnusable("several entries stand in one statement; edit it by hand.")
        if any(about):
            gone.update(range(statement.first, statement.after))
    return "\n".join(kept_lines(text.split("\n"), gone))


def parsed(text: str) -> dict[str, Any]:
    """What a file says."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ClientFileUnusable(f"it is not valid TOML ({error}), so it is not changed.") from None
