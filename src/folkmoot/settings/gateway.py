"""Reads `[backends]`, `[groups]`, `[grants]` and `[asks]`, and notes everything that is wrong in
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from folkmoot.core import errors as e
from folkmoot.names import RESERVED_NAMES
from folkmoot.names.grammar import parse_handle
from folkmoot.names.safe_names import is_hashed, spelled_out
from folkmoot.settings.backend_tables import GatewayTables, TablePlace, read_backend, read_plain
from folkmoot.settings.backends import AskRule
from folkmoot.settings.fields import ASK_FIELDS, OPEN_TABLES, BadValue, bare, nearest, quoted
from folkmoot.settings.files import FROM_FILE, FROM_IMPORT, SettingsDocument
from folkmoot.settings.limits import MAX_ASK_RULES, MAX_MEMBERS, MAX_PATTERNS
from folkmoot.settings.mcpservers import take_servers

GROUP = re.compile(r"[a-z][a-z0-9_-]{0,31}")


def read_groups(table: object, place: TablePlace) -> None:
    """Every group with its handles; a handle is written with or without its `@`."""
    for name, members in entries(table, place):
        if not GROUP.fullmatch(name):
            place.refuse(
                (name,),
                f"{place.name(name)}: a group's name is a lower-case letter and up to 31 letters, "
                "digits, hyphens and underscores",
            )
        handles = read_members(name, members, place)
        place.gathering.groups[name] = tuple(dict.fromkeys(handles))
        place.found(name)
    for name, given in table.items() if isinstance(table, dict) else ():
        refuse_nesting(name, given, place)


def read_members(name: str, members: object, place: TablePlace) -> Iterator[str]:
    """The handles of one group."""
    if not isinstance(members, list) or len(members) > MAX_MEMBERS:
        place.refuse(
            (name,), f"{place.name(name)} must be a list of handles, not {quoted(members)}"
        )
        return
    for member in members:
        handle = parse_handle(member) if isinstance(member, str) else None
        if handle is None:
            place.refuse((name,), f"{place.name(name)}: {quoted(member)} is not a valid handle")
        else:
            yield handle


def refuse_nesting(name: str, members: object, place: TablePlace) -> None:
    """Refuse a group among the members of another: `@ops` there would be a person."""
    for member in members if isinstance(members, list) else ():
        if isinstance(member, str) and member[:1] == "@" and member[1:] in place.gathering.groups:
            place.refuse(
                (name,),
                f"{place.name(name)}: {member} is a group; a group can only contain handles",
            )


def read_grants(table: object, place: TablePlace) -> None:
    """Capabilities by handle or `@GROUP`, each compiled once to check it."""
    gathering = place.gathering
    for name, given in entries(table, place):
        who = holder(name, place)
        patterns = read_patterns(name, given, place)
        if who is None:
            continue
        if who in gathering.grants:
            place.refuse((name,), f"{place.name(name)}: {who} already has an entry")
        gathering.grants[who] = patterns
        gathering.origins[f"{place.path}.{who}"] = place.where(name)[0]


def holder(name: str, place: TablePlace) -> str | None:
    """The account or group that a key of `[grants]` names; None if it names nobody."""
    groups = place.gathering.groups
    if name.startswith("@"):
        if name[1:] in groups:
            return name
        hint = nearest(name[1:], groups, "'@{}'")
        place.refuse((name,), f"{place.name(name)}: there is no group {bare(name[1:])}{hint}")
        return None
    handle = parse_handle(name)
    if handle is None:
        place.refuse(
            (name,), f"{place.name(name)}: {quoted(name)} is neither a handle nor a @GROUP"
        )
    return handle


def read_patterns(name: str, given: object, place: TablePlace) -> tuple[Any, ...]:
    """The capabilities of one holder."""
    # Compiling is for those who have grants; most settings have none.
    from folkmoot.core.capability import capability
    from folkmoot.core.constraint import loose_paths

    patterns: list[Any] = []

    if not isinstance(given, list) or len(given) > MAX_PATTERNS:
        place.refuse(
            (name,),
            f"{place.name(name)} must be a list of at most {MAX_PATTERNS:,} capabilities, "
            f"not {quoted(given)}",
        )
        return ()
    for each in (pattern for written in given for pattern in meant(name, written, place)):
        patterns.append(each)
        try:
            compiled = capability(each)
        except e.FolkmootError as error:
            place.refuse((name,), f"{place.name(name)}: {error.message.rstrip('.')}")
            continue
        constraint = compiled.constraint
        if compiled.target is not None:
            place.refuse(
                (name,),
                f'{place.name(name)}: "to" is for rights in a room; what is asked of the hub has '
                "no recipients",
            )
        for member in loose_paths(constraint.source) if constraint else ():
            place.note(
                (name,),
                f"{place.name(name)}: {bare(member)} is compared as text, and paths such as a/../b "
                f'or a//b get around it; write {bare(member)} = {{ under = "FOLDER/" }}',
            )
    return tuple(patterns)


def meant(name: str, written: Any, place: TablePlace) -> Iterator[Any]:
    """The capabilities that one stands for which may be written in a short form."""
    kind = written.get("kind") if isinstance(written, dict) else written
    if not isinstance(kind, str):
        yield written
        return
    namespaces = place.gathering.backends
    if is_hashed(kind, namespaces):
        # Which tool it is only the catalogue of a running hub knows; a deny must not miss it.
        place.refuse(
            (name,),
            f"{place.name(name)}: {quoted(kind)} may be a name that the hub shortened; write the "
            "tool as NAMESPACE:TOOL",
        )
        return
    for pattern in spelled_out([kind], namespaces):
        yield {**written, "kind": pattern} if isinstance(written, dict) else pattern


def read_asks(table: object, place: TablePlace) -> None:
    """The rules of `[asks.NAME]`, in the order of the file."""
    if isinstance(table, list):
        place.refuse((), "a rule has a name: write [asks.NAME] in place of [[asks]]")
        return
    rules = tuple(entries(table, place))
    if len(rules) > MAX_ASK_RULES:
        place.refuse((), f"asks has more than {MAX_ASK_RULES} rules")
        return
    for name, given in rules:
        rule = read_ask(
            name,
            given,
            place._replace(
                label=f"asks.{bare(name)}",
                path=f"asks.{name}",
                where=partial(place.where, name),
            ),
        )
        if rule is not None:
            place.gathering.asks.append(rule)


def read_ask(name: str, table: object, place: TablePlace) -> AskRule | None:
    """One rule; None when something is wrong with it, which is noted."""
    if not isinstance(table, dict) or not GROUP.fullmatch(name):
        what = "must be a table" if GROUP.fullmatch(name) else "is no name for a rule"
        place.refuse((), f"{place.label} {what}")
        return None
    before = len(place.gathering.problems)
    place.found()
    values: dict[str, Any] = {}
    for key, value in table.items():
        try:
            values[key] = read_plain(key, value, place, ASK_FIELDS)
            place.found(key)
        except BadValue as error:
            place.refuse((key,), str(error))
    if "what" not in table:
        place.refuse((), f"{place.label} needs what: the calls that it is about")
    elif "what" in values:
        values["what"] = read_patterns("what", list(values["what"]), place)
    for each in values["what"] if not place.gathering.problems[before:] else ():
        written = each["kind"] if isinstance(each, dict) else each
        if written.startswith("!"):
            place.refuse(("what",), f"{place.name('what')}: {quoted(written)} denies; see verdict")
    for who in values.get("who", ()):
        if who.startswith("@") and who[1:] not in place.gathering.groups:
            hint = nearest(who[1:], place.gathering.groups, "'@{}'")
            place.refuse(("who",), f"{place.name('who')}: there is no group {bare(who[1:])}{hint}")
    if len(place.gathering.problems) > before:
        return None
    given = values.get("who", ())
    values["who"] = tuple(who if who[0] == "@" else parse_handle(who) for who in given)
    values["to"] = parse_handle(values.get("to", "")) or ""
    return AskRule(name=name, **values)


def entries(table: object, place: TablePlace) -> Iterator[tuple[str, object]]:
    """The keys and values of a table, if it is one."""
    if isinstance(table, dict):
        yield from table.items()
    else:
        place.refuse((), f"{place.label} must be a table, not {quoted(table)}")


def check_names(gathering: GatewayTables, places: Mapping[str, TablePlace]) -> None:
    """Refuse handles that are namespaces: people and backends share one world of names."""
    for table, place in places.items():
        named = gathering.groups if table == "groups" else gathering.grants
        for name, members in named.items():
            for handle in members if table == "groups" else (name,):
                if handle in gathering.backends or handle in RESERVED_NAMES:
                    taken = "a backend" if handle in gathering.backends else "a reserved name"
                    place.refuse(
                        (name,), f"{place.name(name)}: {handle} is {taken}, and nobody's handle"
                    )


def take_gateway(
    document: SettingsDocument | None,
    file: str,
    imports: Sequence[str],
    environ: Mapping[str, str],
    *,
    runs: bool = False,
) -> GatewayTables:
    """The gateway as described by a settings file and the files it imports.

    `runs` refuses imported files that others may write.
    """
    gathering = GatewayTables()
    folder = Path(file).absolute().parent
    places: dict[str, TablePlace] = {}
    if document is not None:
        for table in OPEN_TABLES:
            where = partial(document.where, table)
            places[table] = TablePlace(gathering, table, table, where, FROM_FILE, folder)
        take_backends(document, places["backends"])
    # A table of the same name stands in the place of what is imported, and can say more.
    tables = {} if document is None else document.values.get("backends", {})
    described = tables if isinstance(tables, dict) else {}
    for each in imports:
        take_servers(gathering, each, environ, FROM_IMPORT, described, runs=runs)
    if document is not None:
        read_groups(document.values.get("groups", {}), places["groups"])
        read_grants(document.values.get("grants", {}), places["grants"])
        read_asks(document.values.get("asks", {}), places["asks"])
        check_names(gathering, {name: places[name] for name in ("groups", "grants")})
    return gathering


def take_backends(document: SettingsDocument, outer: TablePlace) -> None:
    tables = document.values.get("backends", {})
    if not isinstance(tables, dict):
        outer.refuse((), f"backends must be a table of tables, not {quoted(tables)}")
        return
    for name, table in tables.items():
        place = outer._replace(
            label=f"backends.{bare(name)}",
            path=f"backends.{name}",
            where=partial(document.where, "backends", name),
        )
        spec = read_backend(name, table, place)
        if spec is not None:
            outer.gathering.add(spec, place)
