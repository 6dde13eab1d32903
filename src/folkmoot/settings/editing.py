"""Changes the settings file: the table of a backend, or one value, and nothing else.

The file is written whole, in one step, and only if a hub would accept it. It is edited by lines,
not with tomlkit, which counts a comment above a table to the table before it.
"""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from folkmoot.core import errors as e
from folkmoot.settings.files import Key, header, statements
from folkmoot.settings.load import Loaded, load
from folkmoot.staging import staged

NEW_MODE = 0o600
FOLDER_MODE = 0o700
BOM = "\ufeff"


def edit(loaded: Loaded, change: Callable[[str], str], *, pretend: bool = False) -> Loaded:
    """Change the text of the settings file; the answer is what it says then.

    A result that a hub would not read raises its `SettingsError`, and nothing is written. Nor is
    anything when one only pretends, to learn that.
    """
    if loaded.place is None:
        raise e.SettingsUnwritable("Cannot tell where the settings file would be.")
    # Through a link to the file itself, which a whole new file would otherwise replace.
    path = Path(os.path.realpath(loaded.place))
    before = read(path)
    text = (before or b"").decode("utf-8")
    mark = BOM if text.startswith(BOM) else ""
    try:
        after = f"{mark}{change(text.removeprefix(BOM))}".encode()
    except e.SettingsUnwritable as error:
        raise e.SettingsUnwritable(f"{loaded.place}: {error.message}") from None
    given = loaded.given
    changed = load(given.config, environ=given.environ, options=given.options, raw=after)
    if pretend:
        return changed
    try:
        write(path, before, after)
    except OSError as error:
        raise unwritable(path, error) from None
    return changed


def is_in_file(loaded: Loaded, path: str) -> bool:
    """Whether a part of the gateway is in the settings file itself, not in one that it imports."""
    file, _, _ = loaded.gateway_origins[path].rpartition(":")
    return loaded.file is not None and same_file(file, loaded.file)


def same_file(one: str | None, other: str) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one is not None and Path(one).samefile(other)
    except OSError:
        return False


def text_of(loaded: Loaded) -> str:
    """The text of the settings file; empty when there is none."""
    before = None if loaded.place is None else read(Path(os.path.realpath(loaded.place)))
    return (before or b"").decode("utf-8").removeprefix(BOM)


def read(path: Path) -> bytes | None:
    """What a file holds; None when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> e.SettingsUnwritable:
    """What the system said of a file."""
    reason = (error.strerror or type(error).__name__).lower()
    return e.SettingsUnwritable(f"{path}: cannot be written: {reason}.")


def write(path: Path, before: bytes | None, after: bytes) -> None:
    """Put a whole new file in the place of the old one, with its owner and permissions."""
    if before is None:
        path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    status = path.stat() if before is not None else None
    mode = stat.S_IMODE(status.st_mode) if status else NEW_MODE
    with staged(path, after, mode) as part:
        if status is not None:
            with suppress(PermissionError):
                os.chown(part, status.st_uid, status.st_gid)
        check_unchanged(path, before)
        part.replace(path)


def check_unchanged(path: Path, before: bytes | None) -> None:
    """Refuse to undo what another program wrote meanwhile."""
    if read(path) != before:
        raise e.SettingsUnwritable(f"{path}: another program has just changed it. Try again.")


BACKENDS = "backends"
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Statement(NamedTuple):
    """One statement or comment: its lines, counted from 0, and its key."""

    first: int
    after: int
    heads: bool
    """Whether it begins a table."""
    keys: tuple[Key, ...]
    """The keys that it sets, as deep as they go; none for a comment."""


def with_backend(text: str, name: str, table: Mapping[str, Any]) -> str:
    """The text with one table more at its end."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = list(table_lines(name, table))
    blank = "" if not text.strip() or text.endswith(end * 2) else end
    mend = "" if not text or text.endswith("\n") else end
    changed = f"{text}{mend}{blank}{end.join(lines)}{end}"
    wanted = dict(parsed(text))
    wanted[BACKENDS] = {**wanted.get(BACKENDS, {}), name: plain(table)}
    check_same(changed, wanted)
    return changed


def table_lines(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table; what is a table in it comes last, under a heading of its own."""
    heading = f"{BACKENDS}.{toml_key(name)}"
    yield f"[{heading}]"
    inner = {key: value for key, value in table.items() if isinstance(value, dict)}
    for key, value in table.items():
        if key not in inner:
            yield f"{toml_key(key)} = {toml_value(value)}"
    for key, values in inner.items():
        yield ""
        yield f"[{heading}.{toml_key(key)}]"
        for name_, value in values.items():
            yield f"{toml_key(name_)} = {toml_value(value)}"


def without_backend(text: str, name: str) -> str:
    """The text without the table of a backend, the tables below it, and comments right above it."""
    lines = text.split("\n")
    gone = set(removed_lines(list(statements_of(text)), name))
    changed = "\n".join(kept_lines(lines, gone))
    wanted = dict(parsed(text))
    wanted[BACKENDS] = {key: each for key, each in wanted[BACKENDS].items() if key != name}
    check_same(changed, wanted)
    return changed


def with_value(text: str, key: Key, value: Any) -> str:
    """The text with one value of a table set, or without it where that is None; comments stay."""
    end = "\r" if "\r\n" in text else ""
    lines = text.removesuffix("\n").split("\n") if text else []
    *names, name = key
    new = [f"[{'.'.join(map(toml_key, names))}]{end}", line_of((name,), value) + end]
    first, after = (len(lines), len(lines)) if names else (0, 0)
    new = new if names else new[1:]
    table: Key = ()
    for statement in statements_of(text):
        if statement.heads:
            (table,) = statement.keys
        elif set_by(statement, key):
            first, after, new = *statement[:2], [line_of(key[len(table) :], value) + end]
            break
        if table == key[:-1] and statement.keys:
            # Behind the last value of its table.
            first, after, new = statement.after, statement.after, new[-1:]
    else:
        if len(new) > 1 and lines and lines[-1].strip():
            new.insert(0, end)
    lines[first:after] = [] if value is None else new
    changed = "".join(f"{line}\n" for line in lines)
    check_same(changed, with_key(parsed(text), key, value))
    return changed


RULE: Key = ("rule",)


def with_rule(text: str, rule: Mapping[str, Any]) -> str:
    """The text of a file of rules with one more at its end."""
    lines = ["[[rule]]", *(f"{toml_key(key)} = {toml_value(value)}" for key, value in rule.items())]
    before = f"{text.rstrip()}\n\n" if text.strip() else ""
    changed = before + "".join(f"{line}\n" for line in lines)
    check_same(changed, {**parsed(text), "rule": [*parsed(text).get("rule", []), plain(rule)]})
    return changed


def without_rule(text: str, number: int) -> str:
    """The text of a file of rules without one of them, by its place from 0."""
    found = list(statements_of(text))
    lines = text.split("\n")
    heads = [each.first for each in found if each.heads and each.keys == (RULE,)]
    end = heads[number + 1] if number + 1 < len(heads) else len(lines) - 1
    while lines[end - 1].startswith("#"):
        # A comment above a rule is about that one.
        end -= 1
    del lines[heads[number] : end]
    changed = "\n".join(lines)
    rules = parsed(text)["rule"]
    left = rules[:number] + rules[number + 1 :]
    check_same(changed, {"rule": left} if left else {})
    return changed


def line_of(key: Key, value: Any) -> str:
    """One statement."""
    return f"{'.'.join(map(toml_key, key))} = {toml_value(value)}"


def set_by(statement: Statement, key: Key) -> bool:
    """Whether a statement sets this value, and nothing else."""
    about = [each[: len(key)] == key for each in statement.keys]
    if any(about) and not all(about):
        raise e.SettingsUnwritable("several values are in one statement; edit it by hand.")
    return any(about)


def with_key(values: dict[str, Any], key: Key, value: Any) -> dict[str, Any]:
    """Values with one of them set, or without it."""
    name, *rest = key
    if rest:
        return {**values, name: with_key(values.get(name, {}), tuple(rest), value)}
    left = {other: each for other, each in values.items() if other != name}
    return left if value is None else {**left, name: value}


def kept_lines(lines: list[str], gone: set[int]) -> list[str]:
    """The remaining lines, without blank lines that only separated the removed ones."""
    kept: list[str] = []
    behind = False
    for number, line in enumerate(lines):
        if number in gone:
            behind = True
        elif line.strip():
            kept.append(line)
            behind = False
        elif not behind or (kept and kept[-1].strip()):
            kept.append(line)
    if behind and kept and not kept[-1].strip():
        # The end of the text, not half the end of a Windows line.
        kept[-1] = ""
    return kept


def statements_of(text: str) -> Iterator[Statement]:
    """Every statement and comment of a document, with the keys it sets."""
    table: Key = ()
    for line, statement in statements(text):
        found = tomllib.loads(statement)
        first, after = line - 1, line + statement.count("\n")
        if statement.lstrip().startswith("["):
            table = header(found)
            yield Statement(first, after, True, (table,))  # noqa: FBT003
        else:
            keys = tuple(table + key for key in leaves(found))
            yield Statement(first, after, False, keys)  # noqa: FBT003


def leaves(value: Mapping[str, Any]) -> Iterator[Key]:
    """The innermost keys that a value sets."""
    for name, each in value.items():
        if isinstance(each, dict) and each:
            yield from ((name, *inner) for inner in leaves(each))
        else:
            yield (name,)


def removed_lines(found: list[Statement], name: str) -> Iterator[int]:
    """The lines that go with a backend, those of comments about it included."""
    inside = False
    for number, statement in enumerate(found):
        if statement.keys:
            gone = is_about(statement, (BACKENDS, name))
            inside = gone if statement.heads else inside
        else:
            owner = spoken_of(found, number)
            first = owner is None or block_begins(found, number) > 0
            gone = is_about(owner, (BACKENDS, name)) and first if owner else inside
        if gone:
            yield from range(statement.first, statement.after)


def is_about(statement: Statement, meant: Key) -> bool:
    """Whether a statement sets what is meant, and nothing else."""
    about = [key[:2] == meant for key in statement.keys]
    if any(about) and not all(about):
        raise e.SettingsUnwritable("several backends are in one statement; edit it by hand.")
    return any(about)


def spoken_of(found: list[Statement], number: int) -> Statement | None:
    """The statement right below a comment, which the comment is about; None if there is none."""
    for above, below in zip(found[number:], found[number + 1 :], strict=False):
        if above.after != below.first:
            return None
        if below.keys:
            return below
    return None


def block_begins(found: list[Statement], number: int) -> int:
    """The line on which the comments begin that a comment belongs to."""
    while number and not found[number - 1].keys and found[number - 1].after == found[number].first:
        number -= 1
    return found[number].first


def parsed(text: str) -> dict[str, Any]:
    """The values of a document."""
    return tomllib.loads(text)


def check_same(changed: str, wanted: dict[str, Any]) -> None:
    """Refuse a text that says anything else than it should."""
    try:
        said = parsed(changed)
    except ValueError:
        told = "it is written in a way that cannot be extended; edit it by hand."
        raise e.SettingsUnwritable(told) from None
    # A table that is empty and one that is not there say the same.
    if filled(said) != filled(wanted):
        raise e.SettingsUnwritable(
            "it cannot be changed without changing something else. Edit it by hand."
        )


def filled(values: dict[str, Any]) -> dict[str, Any]:
    """Values without empty tables."""
    return {name: each for name, each in values.items() if each != {}}


def plain(value: Any) -> Any:
    """A value without tomlkit's types."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def toml_key(key: str) -> str:
    """A key as TOML spells it."""
    return key if BARE_KEY.fullmatch(key) else toml_value(key)


def toml_value(value: Any) -> str:
    """A value as TOML spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{toml_key(key)} = {toml_value(each)}" for key, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return str(value)
