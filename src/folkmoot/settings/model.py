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
    BusUrl,
    Count,
    DatabaseUrl,
    FilePath,
    FolderPath,
    Host,
    HostPattern,
    HttpUrl,
    Network,
    NodeUrl,
    Origin,
    SettingsTable,
    is_loopback,
)


class LogSettings(SettingsTable, frozen=True, kw_only=True):
    """What the hub logs, and how."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important message that is still logged."""
    format: Literal["auto", "text", "json"] = "auto"
    """How log lines look: text for people, JSON for programs; auto is text on a terminal and JSON
    otherwise."""
    requests: Literal["all", "failed", "none"] = "failed"
    """Which HTTP requests are logged; failed means those answered with 400 or above. The metrics
    count all of them."""


class HttpSettings(SettingsTable, frozen=True, kw_only=True):
    """The HTTP server."""

    allowed_hosts: Annotated[tuple[HostPattern, ...], Meta(max_length=100)] = ()
    """Additional host names that requests may use, besides the loopback names, the host the hub
    listens on and that of `public_url`; `*.example.org` matches all its subdomains."""
    allowed_origins: Annotated[tuple[Origin, ...], Meta(max_length=100)] = ()
    """Additional origins whose web pages may use the hub, besides those of its own hosts (CORS)."""
    trusted_proxies: Annotated[tuple[Network, ...], Meta(max_length=100)] = ()
    """Proxies whose `X-Forwarded-For` is trusted; for all others the address of the connection is
    used."""
    shutdown_seconds: Annotated[float, Meta(ge=0, le=600)] = 10.0
    """How long a stopping hub waits for requests in progress before it ends them."""
    max_connections: Count = 1000
    """Connections at the same time, open WebSockets included; further ones get 503. A tenth is
    reserved for signed-in clients, and `/health` is always answered."""
    max_connections_per_address: Count = 200
    """Connections without an account that one address may have open, and request bodies it may have
    half sent; beyond, its idle and slow ones are closed. Those of `trusted_proxies` count by the
    address they forward."""
    max_connections_per_account: Count = 200
    """Connections one account may have open, each WebSocket and stream included; further ones are
    answered 429."""
    max_body_bytes: Annotated[int, Meta(ge=1024, le=1_073_741_824)] = 4_194_304
    """The largest request body that is read; larger ones are answered 413."""
    max_anonymous_body_bytes: Annotated[int, Meta(ge=1024, le=1_073_741_824)] = 65_536
    """The same for a request without a valid token. At `/mcp`, a hub that records takes 16 KiB."""
    max_body_values: Annotated[int, Meta(ge=100, le=100_000_000)] = 20_000
    """The most JSON values (objects, lists, texts, numbers) in a request body or room message; more
    are answered 413 before they are decoded. Everyone waits while one message is decoded."""
    max_anonymous_body_values: Annotated[int, Meta(ge=100, le=100_000_000)] = 2_000
    """The same for a request without a valid token."""
    max_bodies_bytes: Annotated[int, Meta(ge=65_536, le=1_099_511_627_776)] = 25_165_824
    """Bytes of the bodies of all requests in progress; an eighth of them is for requests without a
    valid token, and one account may have a quarter. Beyond, requests are answered 503 or 429."""


class TlsSettings(SettingsTable, frozen=True, kw_only=True):
    """TLS of the hub's own: HTTPS and WSS on its port, and nothing else on it then."""

    certificate: FilePath = ""
    """The certificate in PEM form, followed by the intermediate certificates; read at the start.
    Empty serves without TLS."""
    key: FilePath = ""
    """The certificate's private key in PEM form, without a password. Set both or neither."""


class McpSettings(SettingsTable, frozen=True, kw_only=True):
    """The MCP endpoint `/mcp`."""

    names: Literal["safe", "canonical"] = "safe"
    """How `tools/list` spells names when the URL does not say `?names=`: safe is `msg_send`, which
    every model API takes; canonical is `msg/send`. A call may use either."""
    max_sessions: Count = 10_000
    """Sessions of the handshake era that may be open at the same time, at all nodes together;
    further ones are answered 503."""
    max_anonymous_sessions: Count = 200
    """Sessions of the handshake era that may be open from one address without an account; further
    ones get 429."""
    max_session_bytes: Annotated[int, Meta(ge=1_048_576, le=1_099_511_627_776)] = 268_435_456
    """Memory that all sessions of the handshake era may take, by a careful estimate; an eighth of
    it is for sessions without an account. When it is full, the least recently used session without
    an account is closed for a new one."""
    session_idle_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 1_800
    """How long a session may be idle before it is closed."""
    resume_seconds: Annotated[int, Meta(ge=0, le=3_600)] = 60
    """How long a call of the handshake era continues, and its stream is kept, after its client's
    connection broke; the client gets the rest with `Last-Event-ID`. 0: such calls are cancelled,
    and streams can't be resumed."""
    max_stream_bytes: Annotated[int, Meta(ge=1_048_576, le=1_099_511_627_776)] = 67_108_864
    """Memory that streams kept for resuming may take, by a careful estimate; an account may have an
    eighth of it, a session a sixteenth. When it is full, the oldest streams are dropped and their
    calls cancelled."""


class EventSettings(SettingsTable, frozen=True, kw_only=True):
    """Streams of events, at `/v1/events`."""

    max_streams: Count = 1_000
    """Streams of events that may be open or kept; further ones are answered 503. Each open one is
    also a connection."""
    max_streams_per_account: Count = 20
    """The same for one account; further ones are answered 429."""
    resume_seconds: Annotated[int, Meta(ge=0, le=3_600)] = 300
    """How long a stream is kept after its connection broke; until then its client gets the rest
    with `Last-Event-ID`."""
    max_bytes: Annotated[int, Meta(ge=1_048_576, le=1_099_511_627_776)] = 16_777_216
    """Memory that the events of all streams may take; an account may have a sixteenth of it. When
    it is full, the oldest streams that nobody reads are dropped."""


class WebSettings(SettingsTable, frozen=True, kw_only=True):
    """The pages for people, and browsers that are signed in there."""

    session_idle_seconds: Annotated[int, Meta(ge=900, le=31_536_000)] = 604_800
    """How long a browser stays signed in without being used."""
    session_seconds: Annotated[int, Meta(ge=900, le=31_536_000)] = 2_592_000
    """How long a browser stays signed in at most; then it must sign in again."""


class OidcSettings(SettingsTable, frozen=True, kw_only=True):
    """Signing in with the accounts of a company, by OpenID Connect."""

    issuer: HttpUrl = ""
    """The company's provider, to the letter as it names itself, such as
    `https://login.example.org/realms/staff`. It can be on a private network, and needs https unless
    it is on this machine. Empty: nobody signs in so."""
    client_id: Annotated[str, Meta(max_length=255)] = ""
    """What the hub is called at the provider, where it is registered as a web application that
    returns to `/sign-in/oidc` of the hub."""
    client_secret: Annotated[str, Meta(max_length=1024, extra={"secret": True})] = ""
    """The secret of that registration; empty where it has none."""
    name: Annotated[str, Meta(min_length=1, max_length=40)] = "your company account"
    """What people sign in with, as the button says it."""
    scopes: Annotated[str, Meta(max_length=255)] = "openid profile"
    """What the provider is asked for, in words with spaces between."""
    handle_claim: Annotated[str, Meta(min_length=1, max_length=100)] = "preferred_username"
    """The claim that a new person's handle is taken from: what is before an `@` in it, with `_` for
    dots and hyphens."""
    groups_claim: Annotated[str, Meta(max_length=100)] = ""
    """The claim with the names of a person's groups. Who is in a group there is also in the one of
    the same name in `[groups]`, as of their last sign-in. Empty: groups are not looked at."""
    operators: Annotated[tuple[Annotated[str, Meta(max_length=100)], ...], Meta(max_length=32)] = ()
    """Groups at the provider whose people can run the hub in a browser they signed in with."""
    register: bool = True
    """Whether somebody of the company who is new here gets an account at their first sign-in,
    whoever else may register."""


class SignInSettings(SettingsTable, frozen=True, kw_only=True):
    """Apps that sign in to people's accounts, such as AI assistants."""

    challenge: Literal["auto", "always", "calls"] = "auto"
    """When an app without a token is asked to sign in. always: when it connects. calls: it can
    connect, look around and register, and is told so by the tools that need an account. auto:
    calls if everyone can register, else always."""
    token_in_url: bool = True
    """Whether the token of an account can be in the URL of a request, as `?token=sk_…`. It is then
    in the logs of proxies, which a hub with a `public_url` warns of. Apps that sign in never have
    theirs there. false: such requests are refused."""
    access_seconds: Annotated[int, Meta(ge=900, le=86_400)] = 3_600
    """How long an app's access token is valid; then the app gets a new one by itself."""
    refresh_seconds: Annotated[int, Meta(ge=86_400, le=7_776_000)] = 5_184_000
    """How long an app stays signed in without getting a new access token."""
    refresh_window_seconds: Annotated[int, Meta(ge=0, le=3_600)] = 120
    """How long a refresh token can be used again after its first use, by several processes of one
    app. Later use ends the app's access."""
    oidc: OidcSettings = field(default_factory=OidcSettings)


class RateSettings(SettingsTable, frozen=True, kw_only=True):
    """How often things may be done; `rate_limits` switches all of it."""

    register_per_hour: Count = 5
    """Accounts one address may make in an hour. Requests from the hub's own machine do not count
    while the hub has neither `public_url` nor `http.trusted_proxies`, unless a proxy has passed
    them on."""
    refused_handles_per_hour: Count = 20
    """Handles one address may try to register in an hour that are taken, reserved or need another
    invite."""
    recover_per_hour: Count = 5
    """Wrong recovery codes for one handle from one address in an hour."""
    recover_address_per_hour: Count = 20
    """Wrong recovery codes from one address in an hour, for any handles."""
    recover_handle_per_day: Count = 1_000
    """Wrong recovery codes for one handle in a day, from any address; further attempts take two
    seconds each, and are never refused."""
    sign_in_per_hour: Count = 20
    """Wrong tokens and one-time codes that one address may try to sign a browser in with in an
    hour."""
    missed_handles_per_hour: Count = 100
    """Unknown or unreachable handles one user may try in an hour."""
    send_per_minute: Count = 60
    """Messages one user may send in a minute."""
    search_per_minute: Count = 30
    """Searches one user may make in a minute."""
    invite_per_day: Count = 10
    """Invites one user may make in a day."""
    export_per_hour: Count = 10
    """Times one user may download everything that the hub keeps of them in an hour."""
    chat_person_per_minute: Count = 60
    """Chat messages one person may send to a room per minute on average; a burst may have a
    minute's worth."""
    chat_agent_per_minute: Count = 60
    """Chat messages one agent may send to a room per minute on average; a burst may have a minute's
    worth. A room's `loop_guard` stops agents that only answer each other."""
    chat_guest_per_minute: Count = 10
    """Chat messages one guest may send to a room per minute on average; a burst may have a minute's
    worth."""
    room_messages_per_second: Count = 20
    """Messages of any kind, including chat, that one participant may send to a room per second on
    average; a burst may have ten seconds' worth."""
    room_bytes_per_second: Annotated[int, Meta(ge=1024, le=1_073_741_824)] = 1_048_576
    """Bytes of messages that one participant may send to a room per second on average; a burst may
    have ten seconds' worth."""
    body_bytes_per_second: Annotated[int, Meta(ge=1024, le=1_073_741_824)] = 524_288
    """Bytes of requests larger than `http.max_anonymous_body_bytes` that one account may send per
    second on average; a burst may have ten seconds' worth."""
    answers_per_second: Count = 100
    """Answers to requests and progress messages that one participant may send to a room per second
    on average; a burst may have ten seconds' worth. They do not count towards
    `room_messages_per_second`."""
    answer_bytes_per_second: Annotated[int, Meta(ge=1024, le=1_073_741_824)] = 4_194_304
    """Bytes of answers and progress that one participant may send to a room per second on average;
    a burst may have ten seconds' worth."""
    guest_per_hour: Count = 20
    """Invalid guest invitations that one address may try in an hour."""


class MailSettings(SettingsTable, frozen=True, kw_only=True):
    """Messages between people."""

    max_body_characters: Count = 100_000
    """The longest body of a message, and of an invite's message, in characters. What a client
    encrypted itself may have four bytes for each. A request must also fit in
    `http.max_body_bytes`."""
    keep_days: Annotated[int, Meta(ge=0, le=36_500)] = 0
    """Days after which a message is removed from both sides, read or not; 0 keeps them until
    someone deletes them."""


class StoreSettings(SettingsTable, frozen=True, kw_only=True):
    """The database."""

    url: DatabaseUrl = ""
    """Where a PostgreSQL server is, 15 or later, such as
    `postgresql://hub@db1,db2/folkmoot?target_session_attrs=read-write`; several hosts are tried in
    turn. Empty: a file in the data folder. Give one with a password as `FOLKMOOT_STORE_URL`."""
    connections: Annotated[int, Meta(ge=2, le=200)] = 10
    """Connections to PostgreSQL, at most; one more renews the hub's lease."""
    pooler: bool = False
    """A pooler in transaction mode that cannot keep prepared statements stands before PostgreSQL:
    none are kept."""
    synchronous_replica: bool = False
    """Every commit of PostgreSQL waits for a replica, so one that takes over has all that was
    acknowledged. Otherwise rooms begin a new epoch after it."""
    synchronous: Literal["full", "normal"] = "full"
    """full: everything that was acknowledged survives a power cut; normal: the last moments before
    a power cut may be lost, but never the database."""
    readers: Annotated[int, Meta(ge=1, le=32)] = 2
    """Connections that read at the same time."""
    queue: Count = 10_000
    """Writes that may wait for their commit; further ones are refused with `store_overloaded`."""
    empty_log_seconds: Annotated[int, Meta(ge=1, le=60)] = 30
    """Seconds after a write until the write-ahead log is emptied, so that what was deleted is in
    none of the database's files."""


class BusSettings(SettingsTable, frozen=True, kw_only=True):
    """The bus between the nodes of a hub."""

    url: BusUrl = ""
    """The NATS servers that connect this node with the other nodes of its hub, such as
    `tls://nats1:4222,nats2:4222`; `store.url` and `cluster.address` are needed too. Empty: this hub
    has one node. Give one with a password or token as `FOLKMOOT_BUS_URL`."""


class ClusterSettings(SettingsTable, frozen=True, kw_only=True):
    """The hub as one of several nodes."""

    address: NodeUrl = ""
    """Where the other nodes reach this one, such as `http://node1.internal:8420`."""
    lease_seconds: Annotated[float, Meta(ge=2, le=300)] = 5.0
    """How long a node that was killed or lost its database is still thought to run. Its rooms go on
    at other nodes afterwards."""
    ca_file: FilePath = ""
    """Certificates in PEM form, such as that of your own CA, which are trusted for `tls://` to NATS
    and for `https://` to other nodes; read at the start. Empty: those that the system trusts."""


class AuditSettings(SettingsTable, frozen=True, kw_only=True):
    """The audit log in the database, which `folkmoot audit` reads."""

    keep_days: Annotated[int, Meta(ge=0, le=36_500)] = 90
    """Days after which an audit line is removed; 0 keeps them while there are no more than
    `audit.keep_lines`."""
    keep_lines: Annotated[int, Meta(ge=1_000, le=1_000_000_000)] = 1_000_000
    """Audit lines that are kept of each sort: calls, what people do to tokens and rights, and what
    operators do. The oldest beyond it are removed. A line takes about 300 bytes, and more where
    `gateway.audit_arguments` records arguments."""


class TelemetrySettings(SettingsTable, frozen=True, kw_only=True):
    """Metrics and traces."""

    metrics: bool = True
    """Whether `/metrics` is served, in the format Prometheus reads."""
    access: Literal["operators", "everyone"] = "operators"
    """Who may read `/metrics` and the details of `/health/ready`. operators: with the token, or on
    this machine while the hub has neither `public_url` nor `http.trusted_proxies`. everyone: anyone
    who can reach the hub."""
    token: Annotated[str, Meta(max_length=1024, extra={"secret": True})] = ""
    """The bearer token with which operators read them from elsewhere."""
    token_file: FilePath = ""
    """A file that holds this token; `telemetry.token` wins over it."""
    otlp_endpoint: HttpUrl = ""
    """Where OpenTelemetry traces are sent, as OTLP over HTTP; empty sends none."""
    service_name: Annotated[str, Meta(min_length=1, max_length=100)] = "folkmoot"
    """The name of this hub in traces."""


class Settings(SettingsTable, frozen=True, kw_only=True):
    """Everything a hub can be told before it starts."""

    host: Host = "127.0.0.1"
    """The address the hub listens on. 127.0.0.1 is only this machine; 0.0.0.0 or :: is all network
    interfaces."""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8420
    """The port the hub listens on; 0 chooses a free one."""
    data: FolderPath = "./.folkmoot"
    """The data folder: database, key file and control socket. Created at the first start; a
    relative path is relative to the working directory."""
    public_url: HttpUrl = ""
    """The address at which clients reach the hub, when it is behind a proxy."""
    master_key: Annotated[str, Meta(max_length=1024, extra={"secret": True})] = ""
    """The key that protects what is stored. When empty, the key file in the data folder is used,
    and created at the first start."""
    registration: Literal["auto", "open", "invite", "closed"] = "auto"
    """Who may register. open: everyone. invite: people with an invite. closed: only people with an
    invite from the operator. auto: open while the hub listens only on this machine and has no
    `public_url`, otherwise invite."""
    rate_limits: Literal["on", "off"] = "on"
    """Whether the limits of `[rates]` and `limits.frames_per_second` apply; off is for tests and
    private networks."""
    log: LogSettings = field(default_factory=LogSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    events: EventSettings = field(default_factory=EventSettings)
    web: WebSettings = field(default_factory=WebSettings)
    sign_in: SignInSettings = field(default_factory=SignInSettings)
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
    bus: BusSettings = field(default_factory=BusSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
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

    @property
    def challenges_everyone(self) -> bool:
        """Whether an app without a token is asked to sign in when it connects."""
        if self.sign_in.challenge == "auto":
            return self.registration_policy != "open"
        return self.sign_in.challenge == "always"
