"""Settings: one TOML file, `FOLKMOOT_…` variables and command-line options, typed.

A *field* is one setting with its type, bounds and description (`model`, `rooms`); the table of all
fields and the one check each value passes are in `fields`; `load` merges the sources into `Loaded`,
which holds the `Settings` and the *origin* of every value, and has `consistency` look whether they
go together; `locate` finds the line a key stands on.
"""

from __future__ import annotations

from folkmoot.settings.fields import FIELDS, SECTIONS, BadValue, Field, check, read_text, shown
from folkmoot.settings.load import CONFIG_NAME, OTHER_VARIABLES, Loaded, load
from folkmoot.settings.model import (
    HttpSettings,
    LogSettings,
    MailSettings,
    McpSettings,
    RateSettings,
    Settings,
    StoreSettings,
    TelemetrySettings,
    TlsSettings,
)
from folkmoot.settings.rooms import KindSettings, LimitSettings, RoomSettings
from folkmoot.settings.schema import schema

__all__ = [
    "CONFIG_NAME",
    "FIELDS",
    "OTHER_VARIABLES",
    "SECTIONS",
    "BadValue",
    "Field",
    "HttpSettings",
    "KindSettings",
    "LimitSettings",
    "Loaded",
    "LogSettings",
    "MailSettings",
    "McpSettings",
    "RateSettings",
    "RoomSettings",
    "Settings",
    "StoreSettings",
    "TelemetrySettings",
    "TlsSettings",
    "check",
    "load",
    "read_text",
    "schema",
    "shown",
]
