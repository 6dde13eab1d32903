"""Puts one entry into the settings file of an MCP client, JSON or TOML, and changes nothing else.

Comments and every other character of the file stay as they were.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from folkmoot.core import errors as e
from folkmoot.settings.editing import kept_lines, statements_of
from folkmoot.settings.jsonc import JsonMember, JsonObject, JsonReader, NotJson
from folkmoot.web.clients import toml_text

INDENT = re.compile(r"\n([ \t]+)[^\s]")
BOM = "\ufeff"


def put_json_entry(text: str, member: str, name: str, entry: dict[str, Any], *, force: bool) -> str:
    """The text with `{member: {name: entry}}` in it; an entry that is there needs `force`."""
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    if not body.strip():
        return f"{mark}{json.dumps({member: {name: entry}}, indent=2, ensure_ascii=False)}\n"
    value, root, objects = read_object(body)
    changed = insert(body, root, objects, (member, name), entry, force=force)
    table = {**value.get(member, {}), name: entry}
    if read_object(changed)[0] != {**value, member: table}:
        raise e.ClientFileUnusable("the entry cannot be added without changing something else.")
    return mark + changed


def read_object(text: str) -> tuple[dict[str, Any], JsonObject, dict[int, JsonObject]]:
    """The object a text holds, where it lies, and every object by where it begins."""
    reader = JsonReader(text)
    try:
        value, start = reader.document()
    except (NotJson, RecursionError) as error:
        raise e.ClientFileUnusable(
            f"it is not valid JSON ({error}), so it was not changed."
        ) from None
    if not isinstance(value, dict):
        raise e.ClientFileUnusable("it is not a JSON object, so it was not changed.")
    return value, reader.objects[start], reader.objects


def insert(
    text: str,
    root: JsonObject,
    objects: dict[int, JsonObject],
    path: tuple[str, str],
    entry: dict[str, Any],
    *,
    force: bool,
) -> str:
    """Put the entry into the table, and the table into the object where there is none."""
    member, name = path
    style = Style(text)
    table = one(root, member)
    if table is None:
        return style.append(root, member, {name: entry}, 0)
    inner = objects.get(table.start)
    if inner is None:
        raise e.ClientFileUnusable(f'"{member}" in it is not an object, so it was not changed.')
    present = one(inner, name)
    if present is None:
        return style.append(inner, name, entry, 1)
    if not force:
        raise e.ClientFileUnusable(f'it already has an entry "{name}". --force replaces it.')
    shown = style.dump(entry, style.indent_of(present.at, 2))
    return text[: present.start] + shown + text[present.end :]


def one(found: JsonObject, name: str) -> JsonMember | None:
    """The member of that name; two of one name are nothing to choose from."""
    members = [member for member in found.members if member.name == name]
    if len(members) > 1:
        raise e.ClientFileUnusable(f'it has "{name}" twice, so it was not changed.')
    return members[0] if members else None


class Style:
    """The indentation and line endings of a file, so that additions match it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.end = "\r\n" if "\r\n" in text else "\n"
        match = INDENT.search(text)
        self.unit = match[1] if match else "  "

    def indent_of(self, at: int, depth: int) -> str:
        """The white space before the line of a position, if the position begins its line."""
        before = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return before if not before.strip() and "\n" in self.text[:at] else self.unit * depth

    def dump(self, value: dict[str, Any], indent: str) -> str:
        """A value as JSON whose further lines are indented."""
        shown = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return shown.replace("\n", f"{self.end}{indent}")

    def append(self, target: JsonObject, name: str, value: dict[str, Any], depth: int) -> str:
        """The text with one member more at the end of an object."""
        members = target.members
        indent = self.indent_of(members[0].at, depth + 1) if members else self.unit * (depth + 1)
        added = f"{self.end}{indent}{json.dumps(name)}: {self.dump(value, indent)}"
        text, tail = self.text, target.tail
        rest = text[tail : target.end]
        if not rest.strip() and "\n" not in rest:
            rest = self.end + self.unit * depth
        head = text[:tail]
        if members and not target.comma:
            last = members[-1].end
            head = f"{text[:last]},{text[last:tail]}"
        return f"{head}{added}{rest}{text[target.end :]}"


def put_toml_entry(text: str, member: str, name: str, entry: dict[str, Any], *, force: bool) -> str:
    """The text with `[member.name]` at its end; an entry that is there needs `force`."""
    mark = BOM if text.startswith(BOM) else ""
    body = text.removeprefix(BOM)
    value = parsed_toml(body)
    table = value.get(member, {})
    if not isinstance(table, dict):
        raise e.ClientFileUnusable(f'"{member}" in it is not a table, so it is not changed.')
    wanted = {**value, member: {**table, name: entry}}
    if name in table:
        if not force:
            raise e.ClientFileUnusable(f'it has an entry "{name}" already; --force replaces it.')
        body = without_entry(body, member, name)
    end = "\r\n" if "\r\n" in body else "\n"
    blank = "" if not body.strip() or body.endswith(end * 2) else end
    last = "" if not body or body.endswith("\n") else end
    shown = toml_text({member: {name: entry}}).replace("\n", end)
    changed = f"{body}{last}{blank}{shown}{end}"
    if parsed_toml(changed) != wanted:
        raise e.ClientFileUnusable("the entry cannot be added without changing something else.")
    return mark + changed


def without_entry(text: str, member: str, name: str) -> str:
    """The text without one entry; a statement that also sets other keys is refused."""
    gone: set[int] = set()
    for statement in statements_of(text):
        about = [key[:2] == (member, name) for key in statement.keys]
        if any(about) and not all(about):
            raise e.ClientFileUnusable("several entries stand in one statement; edit it by hand.")
        if any(about):
            gone.update(range(statement.first, statement.after))
    return "\n".join(kept_lines(text.split("\n"), gone))


def parsed_toml(text: str) -> dict[str, Any]:
    """The values of a TOML file."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise e.ClientFileUnusable(
            f"it is not valid TOML ({error}), so it is not changed."
        ) from None
