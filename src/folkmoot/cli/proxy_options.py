"""What `folkmoot proxy` takes, and which of it goes together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import typer

from folkmoot.cli.asking import checked_handle, checked_url
from folkmoot.cli.options import choice, number
from folkmoot.cli.tape.options import places

TAPE: Final = ("--record", "--record-dir")
SEEING: Final = ("--rules", "--interceptor")
NEEDS: Final = {
    "--record-best-effort": (TAPE,),
    "--redact": (TAPE,),
    "--no-redact": (TAPE,),
    "--redaction-key": (TAPE,),
    "--hold-in": (SEEING,),
    "--url": (("--hold-in",),),
    "--as": (("--hold-in",),),
    "--header": (("--upstream",),),
    "--upstream-transport": (("--upstream",),),
    "--pass-header": (("--upstream",), ("--listen",)),
    "--allow-host": (("--listen",),),
}
"""Options that mean nothing alone, each with sets of options of which one must be given."""
EXCLUDES: Final = (
    ("--record", "--record-dir"),
    ("--no-redact", "--redact"),
    ("--no-redact", "--redaction-key"),
)


def check_together(given: Mapping[str, object]) -> None:
    """Refuse options that would be ignored, or that say two things."""
    for one, other in EXCLUDES:
        if given[one] and given[other]:
            raise typer.BadParameter(f"give either {one} or {other}")
    for name, needs in NEEDS.items():
        for needed in needs:
            if given[name] and not any(given[each] for each in needed):
                raise typer.BadParameter(f"{name} needs {' or '.join(needed)}")


def server_url(value: str | None) -> Any:
    """The server's address, checked before the command begins."""
    if value is None:
        return None
    try:
        parts = urlsplit(value)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        right = False
    if not right:
        raise typer.BadParameter("must be a URL such as https://example.org/mcp")
    return value


UpstreamOption = Annotated[
    str | None,
    typer.Option(
        "--upstream", metavar="URL", show_default=False, callback=server_url,
        help="The server's address; without it, the server is the COMMAND after --.",
    ),
]  # fmt: skip
TransportOption = Annotated[
    str,
    choice(
        "--upstream-transport", "KIND", ("auto", "http", "sse"),
        "The server's transport: Streamable HTTP (http) or the older HTTP+SSE (sse).  "
        "[default: auto, detected]",
    ),
]  # fmt: skip
ListenOption = Annotated[
    str | None,
    typer.Option(
        "--listen", metavar="HOST:PORT", show_default=False,
        help="Serve clients over HTTP at /mcp, and HTTP+SSE at /sse; port 0 takes a free one.  "
        "[default: one client on standard input and output]",
    ),
]  # fmt: skip
PassOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pass-header", metavar="NAME", show_default=False,
        help="Also pass on this header of clients. May be repeated.",
    ),
]  # fmt: skip
AllowHostOption = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host", metavar="NAME", show_default=False,
        help="Also answer requests for this host name; *.NAME matches all its subdomains. "
             "May be repeated.",
    ),
]  # fmt: skip
RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record", metavar="FILE", show_default=False,
        help="Record on a tape; if FILE exists, on a numbered one beside it. One named .zst is "
        "compressed.",
    ),
]  # fmt: skip
RecordDirOption = Annotated[
    Path | None,
    typer.Option(
        "--record-dir", metavar="DIR", show_default=False,
        help="Record on tapes in this folder, each under a new name.",
    ),
]  # fmt: skip
BestEffortOption = Annotated[
    bool,
    typer.Option(
        "--record-best-effort", show_default=False,
        help="Keep going when the tape cannot be written; otherwise the proxy stops passing "
             "messages.",
    ),
]  # fmt: skip
RedactOption = Annotated[
    list[str] | None,
    places(
        "--redact",
        "Also redact this path on the tape, such as $.params.arguments.ssn or $..pin. "
        "May be repeated.",
    ),
]  # fmt: skip
NoRedactOption = Annotated[
    bool,
    typer.Option(
        "--no-redact", show_default=False,
        help="Record secrets and mail unredacted: anyone with the tape can then use them.",
    ),
]  # fmt: skip
KeyOption = Annotated[
    Path | None,
    typer.Option(
        "--redaction-key", metavar="FILE", show_default=False,
        help="The key that placeholders are made with; created if it does not exist.  "
             "[default: one in the folder of tapes, or your own]",
    ),
]  # fmt: skip
RulesOption = Annotated[
    Path | None,
    typer.Option(
        "--rules", metavar="FILE", show_default=False,
        help="Apply these rules to every message; reloaded when the file changes.",
    ),
]  # fmt: skip
PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--interceptor", metavar="NAME", show_default=False,
        help="Apply this interceptor, an entry point of an installed package, to every "
             "message. May be repeated.",
    ),
]  # fmt: skip
HoldInOption = Annotated[
    str | None,
    typer.Option(
        "--hold-in", metavar="ROOM", show_default=False,
        help="Let people in this room of a hub decide about held messages; everyone in the "
             "room can read them.",
    ),
]  # fmt: skip
RoomHubOption = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", callback=checked_url, show_default=False,
        help="The hub of that room.  [default: that of your account]",
    ),
]  # fmt: skip
RoomAsOption = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="HANDLE", callback=checked_handle, show_default=False,
        help="Which of your accounts the proxy uses in that room.  [default: the first]",
    ),
]  # fmt: skip
ErasOption = Annotated[
    str,
    choice(
        "--eras", "HOW", ("bridge", "always", "pass"),
        "Translate between clients and servers of different MCP eras (bridge), also for clients "
        "that ask which era it is (always), or pass everything unchanged (pass).  "
        "[default: bridge]",
    ),
]  # fmt: skip
BytesOption = Annotated[
    int | None,
    number(
        "--max-message-bytes", 1024, 999_999_999,
        "Refuse larger messages.  [default: 67108864]",
    ),
]  # fmt: skip
