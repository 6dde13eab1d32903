"""The page of all settings, from `folkmoot.settings`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from docs.pages.markdown import document, table
from folkmoot.settings import FIELDS, OTHER_VARIABLES, SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

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
wrong value that a later source would replace. `folkmoot config schema` prints the JSON Schema of
the file, for editors."""

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
```"""

ENVIRONMENT = """\
## The environment

The variable of a setting is `FOLKMOOT_`, its section and its name, in capitals:
`FOLKMOOT_LOG_LEVEL`. Lists are separated by commas; switches are `true`, `1`, `on`, `false`, `0` or
`off`. A variable that begins with `FOLKMOOT_` and means nothing is an error. Those that Kubernetes
and Docker make for a service called `folkmoot` are ignored: `FOLKMOOT_SERVICE_HOST`,
`FOLKMOOT_SERVICE_PORT`, `FOLKMOOT_PORT_8420_TCP` and the like, and `FOLKMOOT_PORT` when it is
something like `tcp://10.0.0.1:8420`.

Three more variables are no settings:"""

SECRETS = """\
## Secrets

`master_key` is a secret. It is taken from the environment alone, never from a file or an option,
and is shown as `***`."""


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


def row(field: Field) -> list[str]:
    """One setting: name and variable, default, description and what it must be."""
    return [
        f"`{field.name}`<br>`{field.variable}`",
        f"`{json.dumps(field.default)}`",
        field.description,
        field.must_be,
    ]
