"""The settings as typed structs; descriptions and bounds stand beside the types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from folkmoot.settings.shapes import host, host_pattern, http_url, path

Host = Annotated[str, Meta(extra={"shape": host})]
FilePath = Annotated[str, Meta(extra={"shape": path})]
HttpUrl = Annotated[str, Meta(extra={"shape": http_url})]
HostPattern = Annotated[str, Meta(extra={"shape": host_pattern})]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""


class LogSettings(Section, frozen=True, kw_only=True):
    """What the hub logs, and how."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important message that is still logged."),
    ] = "info"
    format: Annotated[
        Literal["auto", "text", "json"],
        Meta(
            description="How log lines look: text for people, JSON for programs; auto is text on a "
            "terminal and JSON otherwise."
        ),
    ] = "auto"


class HttpSettings(Section, frozen=True, kw_only=True):
    """The HTTP server."""

    allowed_hosts: Annotated[
        tuple[HostPattern, ...],
        Meta(
            max_length=100,
            description="Further host names a request may be addressed to, besides the loopback "
            "names, the host the hub listens on and that of `public_url`; `*.example.org` stands "
            "for every name below it.",
        ),
    ] = ()
    shutdown_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=600,
            description="How long a stopping hub waits for requests in progress before it ends "
            "them.",
        ),
    ] = 10.0
    max_connections: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Connections served at the same time; further ones are answered 503.",
        ),
    ] = 1000
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1_073_741_824,
            description="The largest request body that is read; larger ones are answered 413.",
        ),
    ] = 4_194_304


class StoreSettings(Section, frozen=True, kw_only=True):
    """The database."""

    synchronous: Annotated[
        Literal["full", "normal"],
        Meta(
            description="full: what was answered survives a power cut; normal: the last moments "
            "before a power cut may be lost, never the database."
        ),
    ] = "full"
    readers: Annotated[
        int, Meta(ge=1, le=32, description="Connections that read at the same time.")
    ] = 2
    queue: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            description="Writes that may wait for their commit; beyond it a write is refused with "
            "`store_overloaded`.",
        ),
    ] = 10_000


class TelemetrySettings(Section, frozen=True, kw_only=True):
    """Metrics and traces."""

    metrics: Annotated[
        bool, Meta(description="Whether `/metrics` is served, in the format Prometheus reads.")
    ] = True
    otlp_endpoint: Annotated[
        HttpUrl,
        Meta(
            description="Where OpenTelemetry traces are sent, as OTLP over HTTP; empty sends none."
        ),
    ] = ""
    service_name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=100,
            description="The name of this hub in traces.",
        ),
    ] = "folkmoot"


class Settings(Section, frozen=True, kw_only=True):
    """Everything a hub can be told before it starts."""

    host: Annotated[
        Host,
        Meta(
            description="The address the hub listens on. 127.0.0.1 is this machine alone; 0.0.0.0 "
            "or :: is every network it is on."
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int, Meta(ge=0, le=65535, description="The port the hub listens on; 0 takes any free one.")
    ] = 8420
    data: Annotated[
        FilePath,
        Meta(
            description="The data folder: database, key file and control socket. Made at the first "
            "start; a relative path is taken from the working directory."
        ),
    ] = "./.folkmoot"
    public_url: Annotated[
        HttpUrl,
        Meta(description="What clients reach the hub at, when it is behind a proxy."),
    ] = ""
    master_key: Annotated[
        str,
        Meta(
            max_length=1024,
            description="The key that protects what is stored. When empty, the key file in the "
            "data folder is used, and made at the first start.",
            extra={"secret": True},
        ),
    ] = ""
    log: LogSettings = field(default_factory=LogSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

    @property
    def data_folder(self) -> Path:
        """The data folder as an absolute path."""
        return Path(self.data).expanduser().absolute()

    def __repr__(self) -> str:
        # The settings may end up in a log or a traceback; the key must not.
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Settings({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [
            (name, "***" if name == "master_key" and value else value) for name, value in values
        ]
