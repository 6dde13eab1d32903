"""The table of all settings: how values are checked, and shown without secrets."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from folkmoot.core.redaction import sounds_secret
from folkmoot.settings import types
from folkmoot.settings.backends import AskRule, BackendSpec
from folkmoot.settings.limits import SHOWN_CHARACTERS
from folkmoot.settings.model import Settings
from folkmoot.settings.types import MASK, SettingsTable

if TYPE_CHECKING:
    from folkmoot.settings.backends import Value
    from folkmoot.settings.load import Loaded


PAIR = re.compile(r"(-{0,2}[A-Za-z_][\w-]*)([=:])\s*(?!\$)(.+)", re.DOTALL)
"""`--token=…`, `TOKEN=…` or `Authorization: …`; what begins with `$` only refers to something."""
OPTION = re.compile(r"--?[A-Za-z][\w-]*")


def masked_arguments(arguments: Sequence[str]) -> Iterator[str]:
    """A command's arguments with `***` for each that an option, or its own name, says is secret."""
    awaited = False
    for argument in arguments:
        pair = PAIR.fullmatch(argument)
        if awaited and not argument.startswith(("-", "$")):
            yield MASK
        elif pair is not None and sounds_secret(pair[1]):
            yield f"{pair[1]}{pair[2]}{MASK}"
        else:
            yield argument
        awaited = OPTION.fullmatch(argument) is not None and sounds_secret(argument)


def has_open_secret(arguments: Sequence[str]) -> bool:
    """Whether a command's arguments hold something that looks like a secret."""
    return list(masked_arguments(arguments)) != list(arguments)


Shape = Callable[[str], bool]

WORDS = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
BARE = re.compile(r"[A-Za-z0-9_-]{1,64}")
URL_SECRET = re.compile(r"(?<=//)[^/@]*(?=@)|(?<=\?).+")
"""Where a URL may hold a password or a token; no error repeats it."""


class Field(Struct, frozen=True, kw_only=True):
    """One setting: its place, its type and bounds, and its description."""

    path: str
    section: str
    name: str
    table: type[Struct]
    type: Any
    base: Any
    default: Any
    must_be: str
    choices: tuple[str, ...]
    shape: Shape
    secret: bool

    @property
    def variable(self) -> str:
        """The environment variable of this setting."""
        return "FOLKMOOT_" + self.path.replace(".", "_").upper()

    def value_in(self, settings: Settings) -> Any:
        """What it is set to."""
        return attrgetter(self.path)(settings)

    @property
    def description(self) -> str:
        """The description, from the docstring below its declaration."""
        return descriptions(self.table)[self.name]

    @property
    def option(self) -> str:
        """The command-line option of this setting, if a command has one."""
        return "--" + self.path.replace(".", "-").replace("_", "-")


class BadValue(ValueError):
    """A value a setting cannot take; the message completes the sentence "SETTING must be …"."""


def check(field: Field, value: object) -> Any:
    """The value as the setting's type, or `BadValue`."""
    try:
        converted = msgspec.convert(value, field.type)
    except (msgspec.ValidationError, OverflowError):
        items = value if isinstance(value, list) else []
        wrong = next((item for item in items if not isinstance(item, str)), value)
        raise refusal(field, wrong) from None
    texts = converted if isinstance(converted, tuple) else (converted,)
    for item in texts:
        if isinstance(item, str) and not (types.text(item) and field.shape(item)):
            raise refusal(field, item)
        if isinstance(item, float) and not math.isfinite(item):
            raise refusal(field, item)
    return converted


def read_text(field: Field, text: str) -> Any:
    """The value a piece of text stands for, from the environment or the command line."""
    return check(field, READERS.get(field.base, str)(text))


def read_integer(text: str) -> int | str:
    """An integer in decimal digits; other text is left for the check to refuse."""
    stripped = text.strip()
    digits = stripped.removeprefix("-")
    return int(stripped) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text


def read_number(text: str) -> float | str:
    """A number; other text is left for the check to refuse."""
    try:
        return float(text)
    except ValueError:
        return text


def read_switch(text: str) -> bool | str:
    """True or false in the words people use."""
    return WORDS.get(text.strip().lower(), text)


def read_list(text: str) -> list[str]:
    """Comma-separated items; empty text is an empty list."""
    return [item.strip() for item in text.split(",") if item.strip()]


READERS: dict[Any, Callable[[str], Any]] = {
    int: read_integer,
    float: read_number,
    bool: read_switch,
    tuple: read_list,
}


def refusal(field: Field, value: object) -> BadValue:
    """The end of the sentence: what the setting must be, and what it is instead."""
    if field.secret:
        return BadValue(f"must be {field.must_be}")
    if field.shape in types.WITH_PASSWORDS and isinstance(value, str):
        value = types.without_password(value)
    return BadValue(f"must be {field.must_be}, not {quoted(value)}")


def quoted(value: object) -> str:
    """A value as a settings file spells it, cut to a readable length."""
    match value:
        case bool():
            spelled = "true" if value else "false"
        case dict():
            return "a table"
        case list() | tuple():
            return "a list"
        case str():
            told = URL_SECRET.sub("…", value)
            spelled = json.dumps(told, ensure_ascii=not types.text(told))
        case int() if value.bit_length() > 64:
            return "a number that large"
        case _:
            spelled = str(value)
    if len(spelled) <= SHOWN_CHARACTERS:
        return spelled
    return spelled[:SHOWN_CHARACTERS] + "…"


def bare(name: str) -> str:
    """A key as TOML spells it, quoted where it must be."""
    return name if BARE.fullmatch(name) else quoted(name)


def nearest(name: str, known: Iterable[str], spelled: str = "'{}'") -> str:
    """The hint for a name that is nearly right."""
    matches = difflib.get_close_matches(name[:100], list(known), 1, 0.7)
    return f"; did you mean {spelled.format(matches[0])}?" if matches else ""


def expectation(base: Any, arguments: tuple[Any, ...], meta: Mapping[str, Any]) -> str:
    """The allowed values in words, from type, bounds and shape."""
    low, high = meta.get("ge"), meta.get("le")
    if base is int or base is float:
        noun = "an integer" if base is int else "a number"
        return f"{noun} between {low} and {high}"
    if base is bool:
        return "true or false"
    if base is Literal:
        *others, last = (f'"{choice}"' for choice in arguments)
        return f"{', '.join(others)} or {last}"
    sentence = (meta["shape"].__doc__ or "").strip().rstrip(".")
    words = sentence if sentence[1:2].isupper() else sentence[0].lower() + sentence[1:]
    if base is tuple:
        return f"a list of at most {meta['max_length']} {words}"
    if base is dict:
        return f"a table of at most {meta['max_length']} texts and references"
    if "max_length" in meta:
        least = f"{meta['min_length']} to" if "min_length" in meta else "at most"
        return f"text of {least} {meta['max_length']} printable characters"
    return words


@cache
def descriptions(table: type[Struct]) -> dict[str, str]:
    """The texts below the fields of a struct, by name, from its source."""
    body = ast.parse(inspect.getsource(table)).body[0].body  # type: ignore[attr-defined]
    return {
        ast.unparse(field.target): " ".join(str(ast.literal_eval(text.value)).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def describe(table: type[Struct], section: str, name: str, hint: Any, default: Any) -> Field:
    """The entry of one struct field, read from its annotation."""
    meta: dict[str, Any] = {"shape": types.text}
    base = unwrap(hint, meta)
    arguments = get_args(base)
    origin = get_origin(base) or base
    if origin is tuple:
        unwrap(arguments[0], meta)
    path = f"{section}.{name}" if section else name
    return Field(
        path=path,
        section=section,
        name=name,
        table=table,
        type=hint,
        base=origin,
        default=default,
        must_be=expectation(origin, arguments, meta),
        choices=arguments if origin is Literal else (),
        shape=meta["shape"],
        secret=meta.get("secret", False),
    )


def fields_of(struct: type[Struct], section: str) -> Iterator[Field]:
    """The entries of the fields of a struct, and of the tables in it."""
    hints = get_type_hints(struct, include_extras=True)
    for each in msgspec.structs.fields(struct):
        hint, made = hints[each.name], each.default_factory
        if is_table(hint):
            yield from fields_of(hint, f"{section}.{each.name}" if section else each.name)
            continue
        default = each.default if made is msgspec.NODEFAULT else made()
        yield describe(struct, section, each.name, hint, default)


def is_table(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, SettingsTable)


def tables_of(struct: type[Struct], section: str = "") -> Iterator[tuple[str, type[SettingsTable]]]:
    """Every table by its name, such as `sign_in.oidc`; those within one come after it."""
    for name, hint in get_type_hints(struct).items():
        if is_table(hint):
            path = f"{section}.{name}" if section else name
            yield path, hint
            yield from tables_of(hint, path)


def unwrap(hint: Any, meta: dict[str, Any]) -> Any:
    """The type inside `Annotated`; its bounds are added to `meta`."""
    if get_origin(hint) is not Annotated:
        return hint
    inner, *notes = get_args(hint)
    for note in notes:
        if isinstance(note, Meta):
            told = {key: getattr(note, key) for key in ("ge", "le", "min_length", "max_length")}
            meta.update({key: value for key, value in told.items() if value is not None})
            meta.update(note.extra or {})
    return inner


FIELDS: dict[str, Field] = {field.path: field for field in fields_of(Settings, "")}
"""Every setting by its path, in the order of the model."""
SECTIONS: dict[str, type[SettingsTable]] = dict(tables_of(Settings))
BACKEND_FIELDS: dict[str, Field] = {
    field.name: field for field in fields_of(BackendSpec, "backends.NAME") if field.name != "name"
}
ASK_FIELDS: dict[str, Field] = {
    field.name: field for field in fields_of(AskRule, "asks.NAME") if field.name != "name"
}
OPEN_TABLES: dict[str, str] = {
    "backends": "The MCP servers behind the hub, a table each.",
    "groups": "Handles by the name of a group.",
    "grants": "Capabilities by handle, or by @GROUP.",
    "asks": "The calls before which a person is asked, a rule each.",
}
"""Tables whose keys their writer chooses; no variable and no option sets anything in them."""


def in_effect(loaded: Loaded) -> Iterator[tuple[str, Any, str]]:
    """Path, value and origin of every setting, and of what is said of backends and rights."""
    for path, field in FIELDS.items():
        yield path, masked(field, field.value_in(loaded.settings)), loaded.origins[path]
    yield from gateway_in_effect(loaded)


def masked(field: Field, value: Any) -> Any:
    """A value for display, with secrets masked."""
    if field.secret:
        return value and MASK
    return types.without_password(value) if field.shape in types.WITH_PASSWORDS and value else value


def gateway_in_effect(loaded: Loaded) -> Iterator[tuple[str, Any, str]]:
    """Path, value and origin of all that the settings say of backends, people and asks."""
    gateway, origins = loaded.gateway, loaded.gateway_origins
    for spec in gateway.backends.values():
        path = f"backends.{spec.name}"
        for field in BACKEND_FIELDS.values():
            value = getattr(spec, field.name)
            if value != field.default:
                inner = f"{path}.{field.name}"
                yield inner, shown_value(field.name, value), origins.get(inner, origins[path])
    for table in ("groups", "grants"):
        for name, members in getattr(gateway, table).items():
            path = f"{table}.{name}"
            yield path, list(members), origins.get(path, "")
    for rule in gateway.asks:
        path = f"asks.{rule.name}"
        for field in ASK_FIELDS.values():
            value = getattr(rule, field.name)
            if value != field.default:
                inner = f"{path}.{field.name}"
                yield inner, value, origins.get(inner, origins[path])


def shown_value(name: str, value: Any) -> Any:
    """A value of a backend's, with references as they are and secrets masked."""
    match name:
        case "command":
            return list(masked_arguments(value))
        case "url":
            return without_query(value)
        case "env" | "headers":
            return {key: shown_secret(key, each) for key, each in value.items()}
        case "client_secret":
            return shown_secret(name, value)
        case _:
            return value


def shown_secret(name: str, value: Value) -> Any:
    """One variable or header for display, masked if it is a secret."""
    if isinstance(value, str):
        return MASK if sounds_secret(name) else value
    return {key: told for key, told in msgspec.structs.asdict(value).items() if told}


def without_query(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return parts._replace(query="…" if parts.query else "").geturl()
