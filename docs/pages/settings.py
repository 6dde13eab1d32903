"""The page of all settings, from `folkmoot.settings`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from docs.pages.markdown import document, table
from folkmoot.settings import (
    ASK_FIELDS,
    BACKEND_FIELDS,
    FIELDS,
    OTHER_VARIABLES,
    SECTIONS,
    AskRule,
    BackendSpec,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from folkmoot.settings import Field

INTRODUCTION = """\
A hub runs without any setting. What you want otherwise you say in one TOML file, in `FOLKMOOT_…`
environment variables, or with options of the command; a later one of these wins over an earlier:

1. the default,
2. the settings file,
3. the environment,
4. the command line.

`folkmoot config show` prints every value in effect and where it came from. `folkmoot config check`
tells everything wrong with its line; a key or a variable that is not known is an error, and so is a
wrong value that a later source would replace."""

FILE = """\
## The file

The settings file is, in this order:

1. the one `--config FILE` names,
2. the one `FOLKMOOT_CONFIG` names,
3. `config.toml` in the data folder (`--data`, `FOLKMOOT_DATA` or `./.folkmoot`), if it is there.

The file in the data folder cannot itself set `data`. A file is UTF-8 and at most 1 MiB large.

```toml
port = 9000
public_url = "https://hub.example.org"

[log]
level = "debug"

[http]
allowed_hosts = ["hub.example.org"]
```

A hub reads the file at its start. What stands behind it, `[backends]`, `[groups]`, `[grants]` and
`gateway.mcp_servers`, is followed while it runs."""

ENVIRONMENT = """\
## The environment

The variable of a setting is `FOLKMOOT_`, its section and its name, in capitals:
`FOLKMOOT_LOG_LEVEL`. Lists are separated by commas; switches are `true`, `1`, `on`, `false`, `0` or
`off`. A variable that begins with `FOLKMOOT_` and means nothing is an error. Those that Kubernetes
and Docker make for a service called `folkmoot` are ignored: `FOLKMOOT_SERVICE_HOST`,
`FOLKMOOT_SERVICE_PORT`, `FOLKMOOT_PORT_8420_TCP` and the like, and `FOLKMOOT_PORT` when it is
something like `tcp://10.0.0.1:8420`.

Other variables with that beginning are no settings:"""

SECRETS = """\
## Secrets

`master_key` and `telemetry.token` are secrets. They are taken from the environment alone, never
from the settings file or an option, and are shown as `***`. Secrets of backends are
[referred to](#references)."""

BACKENDS = """\
## `[backends.NAME]`

{described}

There are as many tables as servers; [Servers behind the hub](../operations/gateway.md) tells how
they are used. A running hub follows changes of these tables, of `[groups]` and of `[grants]`;
variables and options set nothing in them.

```toml
[backends.github]
command = ["npx", "-y", "@modelcontextprotocol/server-github"]
env = {{ GITHUB_PERSONAL_ACCESS_TOKEN = {{ env = "GITHUB_TOKEN" }} }}

[backends.our-docs]
namespace = "docs"
url = "https://docs.example.org/mcp"
headers = {{ Authorization = {{ file = "docs-token", prefix = "Bearer " }} }}
everyone = true
```"""

REFERENCES = """\
### References

A value in `env` or `headers` is text, or it refers to a secret, which is read whenever the server
is reached:"""

REFERENCE_ROWS = {
    '{ env = "NAME" }': "What the variable `NAME` of the hub's environment holds.",
    '{ file = "PATH" }': "What a file holds, without the end of its last line. A relative path is "
    "taken from the settings file.",
    '{ env = "NAME", prefix = "Bearer " }': "The same with text before it; `suffix` puts text "
    "behind it.",
}

OPEN_SECRETS = """\
A value that looks like a secret and stands in the file itself is allowed. It is noted at the start,
by `folkmoot config check` and by `folkmoot doctor`."""

PEOPLE = """\
## `[groups]` and `[grants]`

`[groups]` has lists of handles by the name of a group: a lower-case letter and up to 31 lower-case
letters, digits, hyphens and underscores. `[grants]` has lists of
[capabilities](capabilities.md) by handle, or by `@` and a group's name. A capability is a pattern,
or a table with `kind` and `payload`. [Rights at the hub](../operations/rights.md) tells what they
open, and which short forms a pattern has.

```toml
[groups]
ops = ["gina", "tom"]

[grants]
"@ops" = ["mcp.request.tools/call:github:*"]
gina = ["mcp.request.tools/call:files:read_*"]
```"""

ASKS = """\
## `[asks.NAME]`

{described} A rule holds for calls at `/mcp`, over REST and in the console; in a room such a call is
refused. [Approve what agents do](../tutorials/approvals.md) tells what becomes of an ask.
`folkmoot policy test` tells what would become of a call. The file is followed while the hub runs.

```toml
[asks.deploy]
what = ["shell:deploy", "github:merge_*"]
callers = "agents"
to = "ada"
reason = "Two pairs of eyes."

[asks.flood]
what = ["mail:*"]
more_than = 20
seconds = 60
```"""


def page() -> str:
    """The whole page."""
    others = table(
        ["Variable", "What it does"],
        ([f"`{name}`", sentence] for name, sentence in OTHER_VARIABLES.items()),
    )
    return document(
        "# Settings",
        INTRODUCTION,
        FILE,
        ENVIRONMENT,
        others,
        SECRETS,
        "## At the top of the file",
        rows_of(""),
        *sections(),
        BACKENDS.format(described=(BackendSpec.__doc__ or "").strip()),
        rows_of_table(BACKEND_FIELDS, {"namespace": "the key", "command": "", "url": ""}),
        REFERENCES,
        table(
            ["Written", "Stands for"],
            ([f"`{written}`", meaning] for written, meaning in REFERENCE_ROWS.items()),
        ),
        OPEN_SECRETS,
        PEOPLE,
        ASKS.format(described=" ".join((AskRule.__doc__ or "").split())),
        rows_of_table(ASK_FIELDS, {"what": ""}),
    )


def sections() -> Iterator[str]:
    """Each section with its table."""
    for name, section in SECTIONS.items():
        yield f"## `[{name}]`"
        yield (section.__doc__ or "").strip()
        yield rows_of(name)


def rows_of(section: str) -> str:
    """The table of one section's settings."""
    fields = [field for field in FIELDS.values() if field.section == section]
    return table(["Setting", "Default", "Meaning", "Must be"], map(row, fields))


def rows_of_table(fields: Mapping[str, Field], needed: Mapping[str, str]) -> str:
    """The table of what a table with a name may hold; `needed` has no defaults in the settings."""
    rows = (
        [
            f"`{field.name}`",
            needed[field.name] if field.name in needed else f"`{json.dumps(field.default)}`",
            field.description,
            field.must_be,
        ]
        for field in fields.values()
    )
    return table(["Setting", "Default", "Meaning", "Must be"], rows)


def row(field: Field) -> list[str]:
    """One setting: name and variable, default, description and what it must be."""
    return [
        f"`{field.name}`<br>`{field.variable}`",
        f"`{json.dumps(field.default)}`",
        field.description,
        field.must_be,
    ]
