"""Settings: one TOML file, `FOLKMOOT_…` variables and command-line options, typed.

A *field* is one setting with its type, bounds and description (`model`, `rooms`); the table of all
fields and the one check each value passes are in `fields`; `load` merges the sources into `Loaded`,
which holds the `Settings` and the *origin* of every value, and has `consistency` look whether they
go together; `locate` finds the line a key stands on. What stands behind the hub, and who may use
it, is a `GatewaySpec` (`backends`), from tables whose keys their writer chooses and from the files
of MCP clients (`mcpservers`); `gateway_load` reads all of it.
"""

from __future__ import annotations

from folkmoot.settings.backends import BackendSpec, GatewaySpec, Secret
from folkmoot.settings.fields import (
    BACKEND_FIELDS,
    FIELDS,
    OPEN_TABLES,
    SECTIONS,
    BadValue,
    Field,
    check,
    read_text,
    shown,
)
from folkmoot.settings.files import CONFIG_NAME
from folkmoot.settings.load import OTHER_VARIABLES, Loaded, load
from folkmoot.settings.model import (
    EventSettings,
    HttpSettings,
    LogSettings,
    MailSettings,
    McpSettings,
    RateSettings,
    Settings,
    StoreSettings,
    TelemetrySettings,
    TlsSettings,
    WebSettings,
)
from folkmoot.settings.sections import GatewaySettings, KindSettings, LimitSettings, RoomSettings

__all__ = [
    "BACKEND_FIELDS",
    "CONFIG_NAME",
    "FIELDS",
    "OPEN_TABLES",
    "OTHER_VARIABLES",
    "SECTIONS",
    "BackendSpec",
    "BadValue",
    "EventSettings",
    "Field",
    "GatewaySettings",
    "GatewaySpec",
    "HttpSettings",
    "KindSettings",
    "LimitSettings",
    "Loaded",
    "LogSettings",
    "MailSettings",
    "McpSettings",
    "RateSettings",
    "RoomSettings",
    "Secret",
    "Settings",
    "StoreSettings",
    "TelemetrySettings",
    "TlsSettings",
    "WebSettings",
    "check",
    "load",
    "read_text",
    "shown",
]
