"""Settings: one TOML file, `FOLKMOOT_…` variables and command-line options, typed.

A *field* is one setting with its type, bounds and description (`model`, `sections`); the table of
all fields and the one check each value passes are in `fields`; `files` reads a file and finds the
line of each key; `load` merges the sources into `Loaded`, which holds the `Settings` and the
*origin* of every value. What stands behind the hub, and who may use it, is a `GatewaySpec`
(`backends`), read from tables whose keys their writer chooses (`gateway`, `backend_tables`) and
from the files of MCP clients (`mcpservers`). `editing` adds a backend to the file or removes one.
"""

from __future__ import annotations

from folkmoot.settings.backends import AskRule, BackendSpec, GatewaySpec, SecretReference
from folkmoot.settings.fields import (
    ASK_FIELDS,
    BACKEND_FIELDS,
    FIELDS,
    OPEN_TABLES,
    SECTIONS,
    BadValue,
    Field,
    check,
    quoted,
    read_text,
)
from folkmoot.settings.files import CONFIG_NAME
from folkmoot.settings.load import OTHER_VARIABLES, Loaded, load
from folkmoot.settings.model import (
    EventSettings,
    HttpSettings,
    LogSettings,
    MailSettings,
    McpSettings,
    OidcSettings,
    RateSettings,
    Settings,
    SignInSettings,
    StoreSettings,
    TelemetrySettings,
    TlsSettings,
    WebSettings,
)
from folkmoot.settings.sections import GatewaySettings, KindSettings, LimitSettings, RoomSettings
