"""Loads the settings: defaults, then the file, then the environment, then options."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from folkmoot.core import errors as e
from folkmoot.settings.backends import GatewaySpec
from folkmoot.settings.fields import (
    FIELDS,
    OPEN_TABLES,
    SECTIONS,
    BadValue,
    check,
    nearest,
    quoted,
    read_text,
)
from folkmoot.settings.files import (
    FROM_ENVIRONMENT,
    FROM_FILE,
    FROM_OPTION,
    FileUnreadable,
    Problem,
    SettingsDocument,
    find_file,
    read_file,
)
from folkmoot.settings.limits import MAX_NODE_MESSAGE_BYTES, MAX_PROBLEMS
from folkmoot.settings.model import Settings
from folkmoot.settings.types import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from folkmoot.settings.model import Settings


PATH: Final = (
    "public_url has a path: MCP and REST work below it, but the inbox and the console do not. Give "
    "the hub a host name of its own to use them"
)

TOKENS: Final = (
    "tokens in URLs, as in ?token=sk_…, get into the logs of proxies. Unless a client needs them, "
    "set sign_in.token_in_url to false"
)

PLAIN: Final = (
    "the hub listens on {host} without TLS, so tokens and mail cross the network unencrypted. Set "
    "tls.certificate and tls.key, or put a proxy with TLS in front and set public_url to its "
    "https:// address"
)


def contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    """Each with the path of a setting that was set, which it is told of, and a sentence."""
    tls, limits = settings.tls, settings.limits
    if tls.certificate and not tls.key:
        yield "tls.certificate", "tls.certificate needs tls.key beside it"
    if tls.key and not tls.certificate:
        yield "tls.key", "tls.key needs tls.certificate beside it"
    if limits.unsent_bytes < limits.message_bytes:
        # Otherwise whoever is sent the largest message could be closed for it as too slow.
        raised = limits.message_bytes > type(limits)().message_bytes
        path = "limits.message_bytes" if raised else "limits.unsent_bytes"
        yield path, "limits.unsent_bytes must be at least limits.message_bytes"
    if settings.bus.url and limits.message_bytes > MAX_NODE_MESSAGE_BYTES:
        # The session of two nodes would end with each larger message of a room in memory.
        most = f"at most {MAX_NODE_MESSAGE_BYTES} with bus.url: nodes carry no larger message"
        yield "limits.message_bytes", f"limits.message_bytes must be {most}"
    oidc = settings.sign_in.oidc
    if oidc.issuer and not oidc.client_id:
        yield "sign_in.oidc.issuer", "sign_in.oidc.issuer needs sign_in.oidc.client_id beside it"
    issuer = urlsplit(oidc.issuer)
    if issuer.scheme == "http" and not is_loopback(issuer.hostname or ""):
        yield "sign_in.oidc.issuer", "sign_in.oidc.issuer must be https unless on this machine"
    if oidc.issuer and urlsplit(settings.public_url).path.strip("/"):
        yield "sign_in.oidc.issuer", "sign_in.oidc.issuer needs a public_url without a path"
    if settings.bus.url and not settings.store.url:
        yield "bus.url", "bus.url needs store.url: nodes share one database"
    if settings.bus.url and not settings.cluster.address:
        yield "bus.url", "bus.url needs cluster.address, where other nodes reach this one"


def advice(settings: Settings) -> Iterator[tuple[str, str]]:
    """Warnings about chosen settings: the path of each, and a sentence."""
    if urlsplit(settings.public_url).path.strip("/"):
        yield "public_url", PATH
    if settings.public_url and settings.sign_in.token_in_url:
        yield "public_url", TOKENS
    if settings.cluster.address and not settings.bus.url:
        yield "cluster.address", "cluster.address has no effect without bus.url"
    encrypted = settings.tls.certificate or urlsplit(settings.public_url).scheme == "https"
    if not is_loopback(settings.host) and not encrypted:
        yield "host", PLAIN.format(host=settings.host)


PREFIX = "FOLKMOOT_"
OTHER_VARIABLES = {
    "FOLKMOOT_CONFIG": "The settings file, when `--config` does not name one.",
    "FOLKMOOT_CREDENTIALS": "The file in which the command line saves your accounts.",
    "FOLKMOOT_TOKEN": "The token that commands use, instead of a saved account.",
    "FOLKMOOT_URL": "The hub of that token, when `--url` does not name one.",
    "FOLKMOOT_INVITATION": "The invitation that `folkmoot room join --invitation` uses.",
    "FOLKMOOT_PASSPHRASE": "The passphrase of `folkmoot bridge key export` and `import`.",
    "FOLKMOOT_DEBUG": "When set to anything, an unexpected error shows its traceback.",
    "FOLKMOOT_TEST_PROFILE": "How deep the project's own tests search; a hub ignores it.",
}
"""Variables with our prefix that are not settings."""

SERVICE_LINKS = {
    r"FOLKMOOT(_[A-Z0-9_]+)?_SERVICE_HOST": r".*",
    r"FOLKMOOT(_[A-Z0-9_]+)?_SERVICE_PORT(_[A-Z0-9_]+)?": r"[0-9]+",
    r"FOLKMOOT(_[A-Z0-9_]+)?_PORT": r"(tcp|udp|sctp)://.*",
    r"FOLKMOOT(_[A-Z0-9_]+)?_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?": r".*",
}
"""Names and values of the variables that Kubernetes and Docker make for a service whose name begins
with `folkmoot`: nobody meant them for the hub."""

MCP_SERVERS = "gateway.mcp_servers"


class LoadArguments(Struct, frozen=True, kw_only=True):
    """The arguments with which settings were loaded, to load them again."""

    config: str | None = None
    environ: Mapping[str, str] | None = None
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    runs: bool = False

    def __repr__(self) -> str:
        # The environment holds secrets.
        return f"<Given {self.config}>"


class Loaded(Struct, frozen=True, kw_only=True):
    """The settings, where each value came from, and the file that was read, if one was."""

    settings: Settings
    origins: dict[str, str]
    file: str | None
    gateway: GatewaySpec = msgspec.field(default_factory=GatewaySpec)
    """The servers behind the hub, and who may use them."""
    gateway_origins: dict[str, str] = msgspec.field(default_factory=dict)
    """Where each of it was written, by paths such as `backends.github.url`."""
    notes: tuple[str, ...] = ()
    """What is right about backends and yet should be known, a sentence each."""
    advice: tuple[str, ...] = ()
    """The same about the other settings."""
    place: str | None = None
    """Where the settings file is, or would be; None where that cannot be told."""
    files: tuple[str, ...] = ()
    """All files that had a say, those included that would have one if they were there."""
    given: LoadArguments = msgspec.field(default_factory=LoadArguments)

    def again(self) -> Loaded:
        """Load the same settings from the present files."""
        given = self.given
        return load(given.config, environ=given.environ, options=given.options, runs=given.runs)


class MergedValues(Struct, kw_only=True):
    """The values so far with their origins, and the problems."""

    values: dict[str, Any] = msgspec.field(default_factory=dict)
    origins: dict[str, str] = msgspec.field(default_factory=dict)
    problems: list[Problem] = msgspec.field(default_factory=list)

    def set(self, path: str, value: Any, origin: str) -> None:
        """A later source takes the place of an earlier one."""
        self.values[path], self.origins[path] = value, origin

    def refuse(self, source: int, line: int, text: str) -> None:
        """Note a problem; all are told together."""
        self.problems.append(Problem(source, line, text))


def load(
    config: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
    raw: bytes | None = None,
    runs: bool = False,
) -> Loaded:
    """The effective settings, or one `SettingsError` that tells everything wrong, a line each.

    `options` are the command line's, by path (`"log.level"`); those that are `None` were not given.
    `raw` is taken for what the settings file holds, to see whether it may be written. `runs` says
    that what the files name may be started: then those that others may write are refused.
    """
    given = LoadArguments(
        config=os.fspath(config) if config is not None else None,
        environ=environ,
        options={path: value for path, value in (options or {}).items() if value is not None},
        runs=runs,
    )
    # Those who only want help need not wait for it.
    from folkmoot.settings.gateway import take_gateway

    environ = os.environ if environ is None else environ
    merge = MergedValues()
    place = find_file(given.config, environ, given.options)
    document = None
    if place is not None and (place.there or raw is not None):
        try:
            document = read_file(
                place.name, in_data_folder=place.in_data_folder, raw=raw, runs=runs
            )
            take_file(merge, document)
        except FileUnreadable as error:
            merge.refuse(FROM_FILE, 0, str(error))
    take_environment(merge, environ)
    take_options(merge, given.options)
    imports = imported_files(merge, place.name if place else "")
    gathering = take_gateway(document, place.name if place else "", imports, environ, runs=runs)
    files = (*([place.name] if place else []), *imports)
    problems = merge.problems + gathering.problems
    if problems:
        raise failure(problems, files)
    settings = build(merge.values)
    if wrong := list(contradictions(settings)):
        raise failure([contradiction(merge, *each) for each in wrong], files)
    return Loaded(
        settings=settings,
        origins={path: merge.origins.get(path, "default") for path in FIELDS},
        file=place.name if place and document else None,
        gateway=gathering.spec(),
        gateway_origins=gathering.origins,
        notes=tuple(gathering.notes),
        advice=tuple(f"{merge.origins[path]}: {text}" for path, text in advice(settings)),
        place=place.name if place else None,
        files=files,
        given=given,
    )


def imported_files(merge: MergedValues, file: str) -> tuple[str, ...]:
    """The files of servers to take in, as paths that can be opened."""
    origin = merge.origins.get(MCP_SERVERS, "")
    elsewhere = origin in (FIELDS[MCP_SERVERS].variable, FIELDS[MCP_SERVERS].option)
    folder = Path() if elsewhere else Path(file).parent
    names = merge.values.get(MCP_SERVERS, ())
    return tuple(str(folder / Path(name).expanduser()) for name in names)


def take_file(merge: MergedValues, document: SettingsDocument) -> None:
    """Every setting of the file, and every key that is none."""
    for section, name, value in flatten(document.values):
        path = f"{section}.{name}" if section else name
        where, line = document.where(*(section.split(".") if section else ()), name)
        if path in SECTIONS:
            wrong = f"{path} must be a table of settings, not {quoted(value)}"
        elif path not in FIELDS:
            wrong = f"unknown {unknown(section, name, value)}"
        elif FIELDS[path].secret:
            wrong = (
                f"{path} is a secret and cannot be set in a file; set {FIELDS[path].variable} "
                "in the environment"
            )
        elif path == "data" and document.in_data_folder:
            wrong = (
                "data cannot be set in the data folder's own file; use --data or FOLKMOOT_DATA, "
                "or name the file with --config"
            )
        else:
            try:
                merge.set(path, check(FIELDS[path], value), where)
                continue
            except BadValue as error:
                wrong = f"{path} {error}"
        merge.refuse(FROM_FILE, line, f"{where}: {wrong}")


def take_environment(merge: MergedValues, environ: Mapping[str, str]) -> None:
    """Every variable with our prefix; one that means nothing is a mistake, not a wish."""
    variables = {field.variable: field for field in FIELDS.values()}
    for name in sorted(name for name in environ if name.startswith(PREFIX)):
        if name in OTHER_VARIABLES or is_service_link(name, environ[name]):
            continue
        if name not in variables:
            hint = nearest(name, [*variables, *OTHER_VARIABLES])
            merge.refuse(FROM_ENVIRONMENT, 0, f"{quoted(name)[1:-1]}: unknown variable{hint}")
            continue
        field = variables[name]
        try:
            merge.set(field.path, read_text(field, environ[name]), name)
        except BadValue as error:
            merge.refuse(FROM_ENVIRONMENT, 0, f"{name} {error}")


def is_service_link(name: str, value: str) -> bool:
    """Whether a container platform made the variable to tell where a service is."""
    return any(
        re.fullmatch(names, name) and re.fullmatch(values, value)
        for names, values in SERVICE_LINKS.items()
    )


def take_options(merge: MergedValues, options: Mapping[str, Any]) -> None:
    """The command line's options, as text or as values."""
    for path, value in options.items():
        field = FIELDS[path]
        try:
            converted = read_text(field, value) if isinstance(value, str) else check(field, value)
            merge.set(path, converted, field.option)
        except BadValue as error:
            merge.refuse(FROM_OPTION, 0, f"{field.option} {error}")


def flatten(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, str, Any]]:
    """Section, name and value of each key; the section is empty at the top."""
    for name, value in values.items():
        path = f"{section}.{name}" if section else name
        if path in OPEN_TABLES:
            continue
        if path in SECTIONS and isinstance(value, dict):
            yield from flatten(value, path)
        else:
            yield section, name, value


def unknown(section: str, name: str, value: object) -> str:
    """What is not known, in which table, and what was probably meant."""
    key = quoted(name)[1:-1]
    if not section and isinstance(value, dict):
        return f"table [{key}]{nearest(name, [*SECTIONS, *OPEN_TABLES], '[{}]')}"
    place = f" in [{section}]" if section else ""
    names = [field.name for field in FIELDS.values() if field.section == section]
    hint = nearest(name, names) or elsewhere(name, section)
    return f"setting '{key}'{place}{hint}"


def elsewhere(name: str, section: str) -> str:
    """The hint for a setting written in the wrong table."""
    others = {field.name: field for field in FIELDS.values() if field.section != section}
    for match in difflib.get_close_matches(name[:100], others, 1, 0.75):
        home = others[match].section
        return f"; did you mean '{match}' {f'in [{home}]' if home else 'at the top of the file'}?"
    return ""


def contradiction(merge: MergedValues, path: str, text: str) -> Problem:
    """A problem of values that are right alone, told where one of them was set."""
    return Problem(FROM_FILE, 0, f"{merge.origins[path]}: {text}")


def build(values: Mapping[str, Any]) -> Settings:
    """The struct from checked values by path."""
    nested: dict[str, Any] = {}
    for path, value in values.items():
        *sections, name = path.split(".")
        table = nested
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    return msgspec.convert(nested, Settings)


def failure(problems: list[Problem], files: tuple[str, ...]) -> e.SettingsError:
    """One error that tells every problem, in the order of the file, and which files were read."""
    lines = [problem.text for problem in sorted(problems)]
    if len(lines) > MAX_PROBLEMS:
        lines[MAX_PROBLEMS:] = [f"… and {len(lines) - MAX_PROBLEMS} more"]
    return e.SettingsError("\n".join(lines), problems=lines, files=files)
