"""The settings as typed structs; descriptions and bounds stand beside the types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from folkmoot.settings.sections import (
    GatewaySettings,
    InterceptorSettings,
    KindSettings,
    LimitSettings,
    QuotaSettings,
    RecordSettings,
    RoomSettings,
)
from folkmoot.settings.types import (
    Count,
    FilePath,
    FolderPath,
    Host,
    HostPattern,
    HttpUrl,
    Network,
    Origin,
    SettingsTable,
    is_loopback,
)


class LogSettings(SettingsTable, frozen=True, kw_only=True):
    """What the hub logs, and how."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        "The least important message that is still logged.",
    ] = "info"
    format: Annotated[
        Literal["auto", "text", "json"],
        "How log lines look: text for people, JSON for programs; auto is text on a terminal and "
        "JSON otherwise.",
    ] = "auto"
    requests: Annotated[
        Literal["all", "failed", "none"],
        "Which HTTP requests are logged; failed means those answered with 400 or above. The "
        "metrics count all of them.",
    ] = "failed"


class HttpSettings(SettingsTable, frozen=True, kw_only=True):
    """The HTTP server."""

    allowed_hosts: Annotated[
        tuple[HostPattern, ...],
        Meta(max_length=100),
        "Additional host names that requests may use, besides the loopback names, the host the "
        "hub listens on and that of `public_url`; `*.example.org` matches all its subdomains.",
    ] = ()
    allowed_origins: Annotated[
        tuple[Origin, ...],
        Meta(max_length=100),
        "Additional origins whose web pages may use the hub, besides those of its own hosts "
        "(CORS).",
    ] = ()
    trusted_proxies: Annotated[
        tuple[Network, ...],
        Meta(max_length=100),
        "Proxies whose `X-Forwarded-For` is trusted; for all others the address of the connection "
        "is used.",
    ] = ()
    shutdown_seconds: Annotated[
        float,
        Meta(ge=0, le=600),
        "How long a stopping hub waits for requests in progress before it ends them.",
    ] = 10.0
    max_connections: Annotated[
        Count,
        "Connections at the same time, open WebSockets included; further ones get 503. A tenth is "
        "reserved for signed-in clients, and `/health` is always answered.",
    ] = 1000
    max_connections_per_address: Annotated[
        Count,
        "Connections without an account that one address may have open, and request bodies it may "
        "have half sent; beyond, its idle and slow ones are closed. Those of `trusted_proxies` "
        "count by the address they forward.",
    ] = 200
    max_connections_per_account: Annotated[
        Count,
        "Connections one account may have open, each WebSocket and stream included; further ones "
        "are answered 429.",
    ] = 200
    max_body_bytes: Annotated[
        int,
        Meta(ge=1024, le=1_073_741_824),
        "The largest request body that is read; larger ones are answered 413.",
    ] = 4_194_304
    max_anonymous_body_bytes: Annotated[
        int,
        Meta(ge=1024, le=1_073_741_824),
        "The same for a request without a valid token. A hub that records accepts at most 16 KiB.",
    ] = 65_536
    max_body_values: Annotated[
        int,
        Meta(ge=100, le=100_000_000),
        "The most JSON values (objects, lists, texts, numbers) in a request body or room message; "
        "more are answered 413 before they are decoded. Everyone waits while one message is "
        "decoded.",
    ] = 20_000
    max_anonymous_body_values: Annotated[
        int,
        Meta(ge=100, le=100_000_000),
        "The same for a request without a valid token.",
    ] = 2_000
    max_bodies_bytes: Annotated[
        int,
        Meta(ge=65_536, le=1_099_511_627_776),
        "Bytes of the bodies of all requests in progress; an eighth of them is for requests "
        "without a valid token, and one account may have a quarter. Beyond, requests are answered "
        "503 or 429.",
    ] = 25_165_824


class TlsSettings(SettingsTable, frozen=True, kw_only=True):
    """TLS of the hub's own: HTTPS and WSS on its port, and nothing else on it then."""

    certificate: Annotated[
        FilePath,
        "The certificate in PEM form, followed by the intermediate certificates; read at the "
        "start. Empty serves without TLS.",
    ] = ""
    key: Annotated[
        FilePath,
        "The certificate's private key in PEM form, without a password. Set both or neither.",
    ] = ""


class McpSettings(SettingsTable, frozen=True, kw_only=True):
    """The MCP endpoint `/mcp`."""

    names: Annotated[
        Literal["safe", "canonical"],
        "How `tools/list` spells names when the URL does not say `?names=`: safe is `msg_send`, "
        "which every model API takes; canonical is `msg/send`. A call may use either.",
    ] = "safe"
    max_sessions: Annotated[
        Count,
        "Sessions of the handshake era that may be open at the same time; further ones are "
        "answered 503.",
    ] = 10_000
    max_anonymous_sessions: Annotated[
        Count,
        "Sessions of the handshake era that may be open from one address without an account; "
        "further ones get 429.",
    ] = 200
    max_session_bytes: Annotated[
        int,
        Meta(ge=1_048_576, le=1_099_511_627_776),
        "Memory that all sessions of the handshake era may take, by a careful estimate; an eighth "
        "of it is for sessions without an account. When it is full, the least recently used "
        "session without an account is closed for a new one.",
    ] = 268_435_456
    session_idle_seconds: Annotated[
        int,
        Meta(ge=1, le=86_400),
        "How long a session may be idle before it is closed.",
    ] = 1_800
    resume_seconds: Annotated[
        int,
        Meta(ge=0, le=3_600),
        "How long a call of the handshake era continues, and its stream is kept, after its "
        "client's connection broke; the client gets the rest with `Last-Event-ID`. 0: such calls "
        "are cancelled, and streams can't be resumed.",
    ] = 60
    max_stream_bytes: Annotated[
        int,
        Meta(ge=1_048_576, le=1_099_511_627_776),
        "Memory that streams kept for resuming may take, by a careful estimate; an account may "
        "have an eighth of it, a session a sixteenth. When it is full, the oldest streams are "
        "dropped and their calls cancelled.",
    ] = 67_108_864


class EventSettings(SettingsTable, frozen=True, kw_only=True):
    """Streams of events, at `/v1/events`."""

    max_streams: Annotated[
        Count,
        "Streams of events that may be open or kept; further ones are answered 503. Each open one "
        "is also a connection.",
    ] = 1_000
    max_streams_per_account: Annotated[
        Count,
        "The same for one account; further ones are answered 429.",
    ] = 20
    resume_seconds: Annotated[
        int,
        Meta(ge=0, le=3_600),
        "How long a stream is kept after its connection broke; until then its client gets the "
        "rest with `Last-Event-ID`.",
    ] = 300
    max_bytes: Annotated[
        int,
        Meta(ge=1_048_576, le=1_099_511_627_776),
        "Memory that the events of all streams may take; an account may have a sixteenth of it. "
        "When it is full, the oldest streams that nobody reads are dropped.",
    ] = 16_777_216


class WebSettings(SettingsTable, frozen=True, kw_only=True):
    """The pages for people, and browsers that are signed in there."""

    session_idle_seconds: Annotated[
        int,
        Meta(ge=900, le=31_536_000),
        "How long a browser stays signed in without being used.",
    ] = 604_800
    session_seconds: Annotated[
        int,
        Meta(ge=900, le=31_536_000),
        "How long a browser stays signed in at most; then it must sign in again.",
    ] = 2_592_000


class RateSettings(SettingsTable, frozen=True, kw_only=True):
    """How often things may be done; `rate_limits` switches all of it."""

    register_per_hour: Annotated[
        Count,
        "Accounts one address may make in an hour. Requests from the hub's own machine do not "
        "count while the hub has neither `public_url` nor `http.trusted_proxies`, unless a proxy "
        "has passed them on.",
    ] = 5
    refused_handles_per_hour: Annotated[
        Count,
        "Handles one address may try to register in an hour that are taken, reserved or need "
        "another invite.",
    ] = 20
    recover_per_hour: Annotated[
        Count,
        "Wrong recovery codes for one handle from one address in an hour.",
    ] = 5
    recover_address_per_hour: Annotated[
        Count,
        "Wrong recovery codes from one address in an hour, for any handles.",
    ] = 20
    recover_handle_per_day: Annotated[
        Count,
        "Wrong recovery codes for one handle in a day, from any address; further attempts take "
        "two seconds each, and are never refused.",
    ] = 1_000
    sign_in_per_hour: Annotated[
        Count,
        "Wrong tokens and one-time codes that one address may try to sign a browser in with in an "
        "hour.",
    ] = 20
    missed_handles_per_hour: Annotated[
        Count,
        "Unknown or unreachable handles one user may try in an hour.",
    ] = 100
    send_per_minute: Annotated[
        Count,
        "Messages one user may send in a minute.",
    ] = 60
    search_per_minute: Annotated[
        Count,
        "Searches one user may make in a minute.",
    ] = 30
    invite_per_day: Annotated[
        Count,
        "Invites one user may make in a day.",
    ] = 10
    export_per_hour: Annotated[
        Count,
        "Times one user may download everything that the hub keeps of them in an hour.",
    ] = 10
    chat_person_per_minute: Annotated[
        Count,
        "Chat messages one person may send to a room per minute on average; a burst may have a "
        "minute's worth.",
    ] = 60
    chat_agent_per_minute: Annotated[
        Count,
        "Chat messages one agent may send to a room per minute on average; a burst may have a "
        "minute's worth. A room's `loop_guard` stops agents that only answer each other.",
    ] = 60
    chat_guest_per_minute: Annotated[
        Count,
        "Chat messages one guest may send to a room per minute on average; a burst may have a "
        "minute's worth.",
    ] = 10
    room_messages_per_second: Annotated[
        Count,
        "Messages of any kind, including chat, that one participant may send to a room per second "
        "on average; a burst may have ten seconds' worth.",
    ] = 20
    room_bytes_per_second: Annotated[
        int,
        Meta(ge=1024, le=1_073_741_824),
        "Bytes of messages that one participant may send to a room per second on average; a burst "
        "may have ten seconds' worth.",
    ] = 1_048_576
    body_bytes_per_second: Annotated[
        int,
        Meta(ge=1024, le=1_073_741_824),
        "Bytes of requests larger than `http.max_anonymous_body_bytes` that one account may send "
        "per second on average; a burst may have ten seconds' worth.",
    ] = 524_288
    answers_per_second: Annotated[
        Count,
        "Answers to requests and progress messages that one participant may send to a room per "
        "second on average; a burst may have ten seconds' worth. They do not count towards "
        "`room_messages_per_second`.",
    ] = 100
    answer_bytes_per_second: Annotated[
        int,
        Meta(ge=1024, le=1_073_741_824),
        "Bytes of answers and progress that one participant may send to a room per second on "
        "average; a burst may have ten seconds' worth.",
    ] = 4_194_304
    guest_per_hour: Annotated[
        Count,
        "Invalid guest invitations that one address may try in an hour.",
    ] = 20


class MailSettings(SettingsTable, frozen=True, kw_only=True):
    """Messages between people."""

    max_body_characters: Annotated[
        Count,
        "The longest body of a message, and of an invite's message, in characters. What a client "
        "encrypted itself may have four bytes for each. A request must also fit in "
        "`http.max_body_bytes`.",
    ] = 100_000
    keep_days: Annotated[
        int,
        Meta(ge=0, le=36_500),
        "Days after which a message is removed from both sides, read or not; 0 keeps them until "
        "someone deletes them.",
    ] = 0


class StoreSettings(SettingsTable, frozen=True, kw_only=True):
    """The database."""

    synchronous: Annotated[
        Literal["full", "normal"],
        "full: everything that was acknowledged survives a power cut; normal: the last moments "
        "before a power cut may be lost, but never the database.",
    ] = "full"
    readers: Annotated[int, Meta(ge=1, le=32), "Connections that read at the same time."] = 2
    queue: Annotated[
        Count,
        "Writes that may wait for their commit; further ones are refused with `store_overloaded`.",
    ] = 10_000
    empty_log_seconds: Annotated[
        int,
        Meta(ge=1, le=60),
        "Seconds after a write until the write-ahead log is emptied, so that what was deleted is "
        "in none of the database's files.",
    ] = 30


class AuditSettings(SettingsTable, frozen=True, kw_only=True):
    """The audit log in the database, which `folkmoot audit` reads."""

    keep_days: Annotated[
        int,
        Meta(ge=0, le=36_500),
        "Days after which an audit line is removed; 0 keeps them while there are no more than "
        "`audit.keep_lines`.",
    ] = 90
    keep_lines: Annotated[
        int,
        Meta(ge=1_000, le=1_000_000_000),
        "Audit lines that are kept; the oldest beyond it are removed. A line takes about 300 "
        "bytes, and more where `gateway.audit_arguments` records arguments.",
    ] = 1_000_000


class TelemetrySettings(SettingsTable, frozen=True, kw_only=True):
    """Metrics and traces."""

    metrics: Annotated[bool, "Whether `/metrics` is served, in the format Prometheus reads."] = True
    access: Annotated[
        Literal["operators", "everyone"],
        "Who may read `/metrics` and the details of `/health/ready`. operators: with the token, "
        "or on this machine while the hub has neither `public_url` nor `http.trusted_proxies`. "
        "everyone: anyone who can reach the hub.",
    ] = "operators"
    token: Annotated[
        str,
        Meta(max_length=1024, extra={"secret": True}),
        "The bearer token with which operators read them from elsewhere.",
    ] = ""
    token_file: Annotated[
        FilePath,
        "A file that holds this token; `telemetry.token` wins over it.",
    ] = ""
    otlp_endpoint: Annotated[
        HttpUrl,
        "Where OpenTelemetry traces are sent, as OTLP over HTTP; empty sends none.",
    ] = ""
    service_name: Annotated[
        str,
        Meta(min_length=1, max_length=100),
        "The name of this hub in traces.",
    ] = "folkmoot"


class Settings(SettingsTable, frozen=True, kw_only=True):
    """Everything a hub can be told before it starts."""

    host: Annotated[
        Host,
        "The address the hub listens on. 127.0.0.1 is only this machine; 0.0.0.0 or :: is all "
        "network interfaces.",
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Meta(ge=0, le=65535),
        "The port the hub listens on; 0 chooses a free one.",
    ] = 8420
    data: Annotated[
        FolderPath,
        "The data folder: database, key file and control socket. Created at the first start; a "
        "relative path is relative to the working directory.",
    ] = "./.folkmoot"
    public_url: Annotated[
        HttpUrl,
        "The address at which clients reach the hub, when it is behind a proxy.",
    ] = ""
    master_key: Annotated[
        str,
        Meta(max_length=1024, extra={"secret": True}),
        "The key that protects what is stored. When empty, the key file in the data folder is "
        "used, and created at the first start.",
    ] = ""
    registration: Annotated[
        Literal["auto", "open", "invite", "closed"],
        "Who may register. open: everyone. invite: people with an invite. closed: only people "
        "with an invite from the operator. auto: open while the hub listens only on this machine "
        "and has no `public_url`, otherwise invite.",
    ] = "auto"
    rate_limits: Annotated[
        Literal["on", "off"],
        "Whether the limits of `[rates]` and `limits.frames_per_second` apply; off is for tests "
        "and private networks.",
    ] = "on"
    log: LogSettings = field(default_factory=LogSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    events: EventSettings = field(default_factory=EventSettings)
    web: WebSettings = field(default_factory=WebSettings)
    rates: RateSettings = field(default_factory=RateSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    rooms: RoomSettings = field(default_factory=RoomSettings)
    kinds: KindSettings = field(default_factory=KindSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)
    record: RecordSettings = field(default_factory=RecordSettings)
    interceptors: InterceptorSettings = field(default_factory=InterceptorSettings)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)

    @property
    def data_folder(self) -> Path:
        """The data folder as an absolute path."""
        return Path(self.data).expanduser().absolute()

    @property
    def registration_policy(self) -> Literal["open", "invite", "closed"]:
        """Who may register, once `auto` is settled."""
        if self.registration == "auto":
            return "open" if is_loopback(self.host) and not self.public_url else "invite"
        return self.registration
