"""The first page, the page of an invite, and the page that says what went wrong."""

from __future__ import annotations

import base64
import gzip
import hashlib
import math
import re
import shlex
from collections.abc import Awaitable, Callable
from functools import lru_cache
from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from folkmoot.web.clients import CLIENTS, claude_code_command, vscode_command
from folkmoot.web.discovery import Discovery
from folkmoot.web.invites import (
    FORM_HEADERS,
    HEADERS,
    INVITES,
    Invitations,
    Join,
    Joined,
    closed_note,
    handle_in,
    look_up,
    none_known,
    who_invites,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request
    from starlette.types import Scope

    from folkmoot.accounts import Invitation

DOORS = (
    ("{base}/mcp", "Mail and room tools, for any MCP client."),
    ("{socket}/ws?room=…", "A room, over a WebSocket."),
    ("{base}/v1/rooms", "Rooms over REST, without a WebSocket."),
)
"""What a program connects to, and what it finds there."""

METRICS = "/metrics"
PLACES = (
    ("/health", "Status, version and uptime."),
    ("/health/ready", "Whether the hub can read and write its database."),
    (METRICS, "Metrics for Prometheus."),
)
"""What an operator may want to open, and what it shows."""

ShowsMetrics: TypeAlias = Callable[["Scope"], bool]
"""Whether whoever makes a request may read the metrics."""


SignedIn: TypeAlias = Callable[["Scope"], Awaitable[bool]]
"""Whether a request brings the cookie of a browser session."""


def never(_: Scope) -> bool:
    """Nobody reads metrics where there are none."""
    return False


async def nobody(_: Scope) -> bool:
    """Nobody is signed in where there are no accounts."""
    return False


APP = ("/inbox", "/account", "/sign-in")
"""Where the page of one's mail and account is."""
CONSOLE = ("rooms", "asks", "servers", "tapes", "people", "audit")
"""Where the console is, with all that is below; and at `/` for whoever is signed in."""
YOUR_NAME = "yourname"
FREE_HANDLE = f"Replace <b>@{YOUR_NAME}</b> with the handle you want."
GIVEN_HANDLE = "This invitation is only for the handle below."
"""What is said of the handle: that of most invitations is free, an operator's may be for one."""

LANDINGS = 16
"""Landing pages that are kept: one for each address a hub is reached by."""
BODIES = (
    "landing", "clients", "invite", "invite_valid", "invite_form", "invite_joined", "invite_other",
    "error",
)  # fmt: skip
WORDS = '<blockquote class="words" dir="auto">$words</blockquote>'
WRONG = '<p class="wrong" role="alert">$error</p>'
OWN_INBOX = (
    '<li><h2>Read your mail here</h2><p>This browser is signed in as you: <a href="/inbox">open '
    "your inbox</a>.</p></li>"
)
POLICY = "content-security-policy"
FORMS_NOWHERE = "form-action 'none'"

Policy: TypeAlias = Literal["open", "invite", "closed"]
OPERATORS_WORDS = (
    " The operator invites people with <code>folkmoot invite --for HANDLE</code> and creates the "
    "first account with <code>folkmoot people add HANDLE</code>.</p>"
)
REGISTRATION: dict[Policy, str] = {
    "open": "",
    "invite": "<p>Registration is by invitation. Ask someone who has an account for a "
    f"link.{OPERATORS_WORDS}",
    "closed": f"<p>Registration is closed. Only the operator can add people.{OPERATORS_WORDS}",
}
"""What the first page says of who may register."""


def _source(name: str) -> str:
    return files("folkmoot.web").joinpath(name).read_text("utf-8")


def _fill(template: str, *, trusted: dict[str, str] | None = None, **values: str) -> str:
    """Put values into a template: escaped, unless they are markup of our own."""
    escaped = {name: escape(value, quote=True) for name, value in values.items()}
    return Template(template).substitute(escaped, **(trusted or {}))


def _ring(stones: int, *, size: float, ground: bool = False) -> str:
    """The meeting seen from above: stones in a ring, one of them speaking, a fire in the middle."""
    around = []
    for place in range(stones):
        turn = 360 * place / stones
        # No two stones of a real ring are alike; a fixed rhythm keeps the drawing the same.
        width = size * (1 + 0.2 * math.sin(place * 2.4))
        depth = size * (0.72 + 0.1 * math.cos(place * 3.1))
        distance = 45 + 1.6 * math.cos(place * 1.7)
        kind = "speaker" if place == stones // 6 else "stone"
        around.append(
            f'<ellipse class="{kind}" cx="60" cy="{60 - distance:.2f}" '
            f'rx="{width:.2f}" ry="{depth:.2f}" transform="rotate({turn:.1f} 60 60)"/>'
        )
    circles = [("glow", size * 3), ("fire", size * 1.1)]
    if ground:
        circles = [("ground", 56.0), ("ground", 34.0), ("ground", 24.0), *circles]
    middle = "".join(f'<circle class="{k}" cx="60" cy="60" r="{r:.2f}"/>' for k, r in circles)
    return (
        '<svg class="ring" viewBox="0 0 120 120" width="28" height="28" aria-hidden="true">'
        f"{middle}{''.join(around)}</svg>"
    )


def _typed(commands: Iterable[Iterable[str]]) -> str:
    """Commands as they are typed, one each line."""
    return "\n".join(shlex.join(["folkmoot", *command]) for command in commands)


def _doors(base: str, socket: str) -> str:
    """What programs connect to, with the address the reader came by."""
    door = "<li><div><code>$where</code><span>$what</span></div></li>"
    rows = ((where.format(base=base, socket=socket), what) for where, what in DOORS)
    return "\n".join(_fill(door, where=where, what=what) for where, what in rows)


def policy_in(page: str) -> str:
    """The policy that a built page names for itself: its script and style by hash."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    if found is None:
        raise ValueError("a built page has no policy")
    return found[1]


def _digest(source: str) -> str:
    return base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
    '<circle cx="16" cy="16" r="12" fill="none" stroke="#7d8a6f" stroke-width="5" '
    'stroke-dasharray="4.5 4.88"/><circle cx="16" cy="16" r="4" fill="#d9763f"/></svg>'
)


class Built:
    """A page that app/ builds, with the policy that it names for itself."""

    def __init__(self, name: str) -> None:
        page = _source(f"built/{name}")
        self._plain = page.encode()
        self._zipped = gzip.compress(self._plain, mtime=0)
        self._headers = {
            "cache-control": "no-store",
            "vary": "accept-encoding",
            POLICY: f"{policy_in(page)}; frame-ancestors 'none'",
        }

    def answer(self, request: Request) -> Response:
        """The page, compressed for whoever takes that."""
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return HTMLResponse(self._plain, 200, self._headers)
        return HTMLResponse(self._zipped, 200, {**self._headers, "content-encoding": "gzip"})


class Pages:
    """Draws every page of one hub."""

    def __init__(
        self,
        *,
        version: str,
        public_url: str,
        shows_metrics: ShowsMetrics = never,
        signed_in: SignedIn = nobody,
        invitations: Invitations = none_known,
        join: Join | None = None,
        policy: Policy = "open",
    ) -> None:
        self._version = version
        self._policy: Policy = policy
        self._invitations = invitations
        self._join = join
        self._public_url = public_url.rstrip("/")
        self._shows_metrics = shows_metrics
        self._signed_in = signed_in
        # Strangers ask for it as often as they like, and it is the same for most.
        self._landing = lru_cache(LANDINGS)(self._draw_landing)
        style, script = _source("built/tokens.css") + _source("style.css"), _source("copy.js")
        self._frame = _source("frame.html")
        self._bodies = {name: _source(f"{name}.html") for name in BODIES}
        self._own = {
            "style": style,
            "script": script,
            "mark": _ring(9, size=10),
            "icon": f"data:image/svg+xml,{quote(_ICON)}",
        }
        self._app = Built("web.html")
        self._console = Built("console.html")
        self._headers = {
            "cache-control": "no-store",
            POLICY: (
                f"default-src 'none'; style-src 'sha256-{_digest(style)}'; "
                f"script-src 'sha256-{_digest(script)}'; img-src data:; "
                f"base-uri 'none'; {FORMS_NOWHERE}; frame-ancestors 'none'"
            ),
        }

    def routes(self) -> list[Route]:
        """Where the pages are served, and the discovery document beside them."""
        return [
            Route("/", self.landing),
            *(Route(path, self.app) for path in APP),
            *(Route(f"/{name}", self.console) for name in CONSOLE),
            *(Route(f"/{name}/{{rest:path}}", self.console) for name in CONSOLE),
            Route("/invite/{code}", self.invite),
            Route("/invite/{code}", self.accept, methods=["POST"]),
            *Discovery(public_url=self._public_url).routes(),
        ]

    async def app(self, request: Request) -> Response:
        """One's mail and account: the same page for everyone, it asks who is signed in."""
        return self._app.answer(request)

    async def console(self, request: Request) -> Response:
        """The console: the same page for everyone, it asks who is signed in."""
        return self._console.answer(request)

    async def landing(self, request: Request) -> Response:
        """MMP §9.1: what this is, that it runs, and how to connect to it.

        Whoever is signed in has the console here instead. A link on another site comes without the
        cookie, so this page leads there as well.
        """
        if await self._signed_in(request.scope):
            return self._console.answer(request)
        page = self._landing(self._base(request), self._shows_metrics(request.scope))
        return HTMLResponse(page, 200, self._headers)

    def _draw_landing(self, base: str, shown: bool) -> bytes:  # noqa: FBT001 - it is a key
        socket = base.replace("http", "ws", 1)
        register = ["register", "ada", "--url", base]
        if self._policy != "open":
            register += ["--invite", "CODE"]
        commands = [register, ["connect", "claude-code"]]
        places = [place for place in PLACES if shown or place[0] != METRICS]
        rooms = [["room", "create", "square"], ["room", "join", "square"]]
        body = _fill(
            self._bodies["landing"],
            trusted={
                "ring": _ring(17, size=5.4, ground=True),
                "places": self._links(places),
                "doors": _doors(base, socket),
                "registration": REGISTRATION[self._policy],
                "clients": self._clients(f"{base}/mcp"),
            },
            version=self._version,
            endpoint=f"{base}/mcp",
            commands=_typed(commands),
            rooms=_typed(rooms),
        )
        return self._drawn("Folkmoot", body)

    def _clients(self, endpoint: str, token: str = "") -> str:
        """What to give each client, to choose from; with a token it is signed in."""
        snippets = {
            client.id.replace("-", "_"): client.snippet(endpoint, token)
            for client in CLIENTS.values()
        }
        snippets["claude_code"] = claude_code_command(endpoint, token)
        return _fill(
            self._bodies["clients"],
            trusted=None,
            url=f"{endpoint}?token={token}" if token else endpoint,
            vscode_command=vscode_command(endpoint, token),
            **snippets,
        )

    async def invite(self, request: Request) -> Response:
        """MMP §9.2: whether an invite can still be used, and how."""
        code = request.path_params["code"]
        invitation = await look_up(self._invitations, code)
        return self._invite_page(request, code, invitation)

    async def accept(self, request: Request) -> Response:
        """The form of an invite, filled in: an account, or why there is none."""
        code = request.path_params["code"]
        invitation = await look_up(self._invitations, code)
        if self._join is None or not invitation.opens:
            return self._invite_page(request, code, invitation)
        typed = await handle_in(request)
        handle = invitation.handle or typed
        joined = await self._join(request, self._base(request), handle, code)
        if joined.error:
            # Someone else may have been quicker.
            invitation = await look_up(self._invitations, code)
            return self._invite_page(request, code, invitation, joined, handle)
        body = _fill(
            self._bodies["invite_joined"],
            trusted={
                "clients": self._clients(f"{self._base(request)}/mcp", joined.token),
                "inbox": OWN_INBOX if joined.cookie else "",
            },
            handle=joined.handle,
            recovery_code=joined.recovery_code,
        )
        headers = {**HEADERS, **joined.cookie}
        return self._page(f"@{joined.handle} · Folkmoot", body, headers=headers)

    def _invite_page(
        self,
        request: Request,
        code: str,
        invitation: Invitation,
        joined: Joined | None = None,
        typed: str = "",
    ) -> Response:
        """The page of an invite; after a form that was refused, with what was typed and why."""
        invite = INVITES[invitation.state]
        if invite.advice:
            how = _fill(self._bodies["invite_other"], advice=invite.advice)
            return self._framed(invite.label, invite.text, how, invite.status, HEADERS)
        status = invite.status if joined is None else joined.status
        base, form, headers = self._base(request), "", HEADERS
        if self._join is not None and invitation.opens:
            wrong = _fill(WRONG, error=joined.error) if joined is not None else ""
            form = _fill(
                self._bodies["invite_form"],
                trusted={"wrong": wrong, "fixed": "readonly" if invitation.handle else ""},
                handle=invitation.handle or typed,
            )
            policy = self._headers[POLICY].replace(FORMS_NOWHERE, "form-action 'self'")
            headers = {**FORM_HEADERS, POLICY: policy}
        words = words_of(invitation)
        name = invitation.handle or YOUR_NAME
        command = ["register", name, "--invite", f"{base}/invite/{code}"]
        how = _fill(
            self._bodies["invite_valid"],
            trusted={
                "choice": GIVEN_HANDLE if invitation.handle else FREE_HANDLE,
                "words": _fill(WORDS, words=words) if words else "",
                "form": form,
            },
            who=who_invites(invitation),
            closed=closed_note(invitation),
            endpoint=f"{base}/mcp",
            code=code,
            handle=name,
            command=_typed([command]),
        )
        return self._framed(invite.label, invite.text, how, status, headers)

    def _framed(
        self, label: str, text: str, how: str, status: int, headers: Mapping[str, str]
    ) -> Response:
        body = _fill(self._bodies["invite"], trusted={"how": how}, label=label, text=text)
        return self._page(f"{label} · Folkmoot", body, status, headers)

    def _base(self, request: Request) -> str:
        """What the reader reached the hub at."""
        return self._public_url or f"{request.url.scheme}://{request.headers.get('host', '')}"

    def error_page(self, status: int, phrase: str, sentence: str) -> Response:
        """What went wrong, for someone with a browser."""
        body = _fill(self._bodies["error"], status=str(status), phrase=phrase, sentence=sentence)
        return self._page(f"{phrase} · Folkmoot", body, status)

    def _page(
        self, title: str, body: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        page = self._drawn(title, body)
        return HTMLResponse(page, status, {**self._headers, **(headers or {})})

    def _drawn(self, title: str, body: str) -> bytes:
        return _fill(self._frame, trusted={**self._own, "body": body}, title=title).encode()

    @staticmethod
    def _links(places: Iterable[tuple[str, str]]) -> str:
        link = '<li><a href="$path"><code>$path</code><span>$question</span></a></li>'
        return "\n".join(_fill(link, path=path, question=text) for path, text in places)
