"""The hub as the command line uses it: one request of a route for each thing asked.

What has no route is a `tools/call`, on the stateless wire of MCP 2026-07-28: one request, one
answer, nothing to open or to close.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from folkmoot.cli.credentials import ACCOUNT_UNKNOWN, GUEST_UNKNOWN
from folkmoot.cli.limits import MAX_REASON
from folkmoot.cli.output import one_line
from folkmoot.client.http import REQUEST_ID, tool_request, tool_result
from folkmoot.client.limits import ANSWER_SECONDS, MAX_ANSWER
from folkmoot.client.methods import Hub
from folkmoot.core import errors as e
from folkmoot.mcp.wire import EVENT_STREAM

if TYPE_CHECKING:
    from http.client import HTTPResponse

OnProgress: TypeAlias = Callable[[dict[str, Any]], None]

NO_ACCOUNT = "Authentication required."
UNAUTHORISED = 401
SUSPENDED = "This account is suspended. Ask the operator of the hub."


class HubClient(Hub):
    """One hub, with a token or without: its routes, and tools that have none."""

    def __init__(self, url: str, token: str = "", *, guest: bool = False) -> None:
        super().__init__(url, token)
        self._guest = guest
        self._on_progress: OnProgress | None = None

    def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        wait: float = 0,
        on_progress: OnProgress | None = None,
    ) -> dict[str, Any]:
        """The result of a tool; arguments that are None are left out.

        `wait` is how long the hub was asked to wait before it answers.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        self._on_progress = on_progress
        body, headers = tool_request(
            "folkmoot-cli", tool, given, self.token, progress=on_progress is not None
        )
        status, answer = self.exchange("POST", "/mcp", body, headers, ANSWER_SECONDS + wait)
        try:
            payload, reason = tool_result(answer)
        except ValueError:
            raise self.not_understood() from None
        if reason is not None:
            raise refusal(reason, unauthorised=status == UNAUTHORISED)
        return payload

    def read(self, response: Any) -> Any:
        """What an answer holds; a hub streams when it has to keep us waiting."""
        kind = (response.getheader("content-type") or "").partition(";")[0].strip().lower()
        return self._stream(response) if kind == EVENT_STREAM else super().read(response)

    def _stream(self, response: HTTPResponse) -> Any:
        """The answer among the events of a stream; a hub streams when it has to keep us waiting."""
        data: list[bytes] = []
        size = 0
        while line := response.readline(MAX_ANSWER + 1):
            size += len(line)
            if size > MAX_ANSWER:
                break
            if line.startswith(b"data:"):
                data.append(line[5:].strip())
            elif not line.strip() and data:
                message = self.decode(b"\n".join(data), response.status)
                if isinstance(message, dict) and message.get("id") == REQUEST_ID:
                    return message
                params = message.get("params") if isinstance(message, dict) else None
                if self._on_progress is not None and isinstance(params, dict):
                    self._on_progress(params)
                data.clear()
        raise self.broke()

    def refused(self, status: int, answer: Any) -> e.FolkmootError:
        """The hub's reason, made safe to show; with what is allowed where rights were missing."""
        error = answer.get("error") if isinstance(answer, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            return self.not_understood()
        if error.get("code") == e.AccountSuspended.code:
            return e.NotSignedIn(SUSPENDED)
        if status == UNAUTHORISED and self.token:
            return e.NotSignedIn(GUEST_UNKNOWN if self._guest else ACCOUNT_UNKNOWN)
        problems = [one_line(error["message"][:MAX_REASON])]
        if "your_capabilities" in error:
            from folkmoot.cli.room.sentences import allowed

            problems.append(
                f"you can: {one_line(allowed(error['your_capabilities']))[:MAX_REASON]}"
            )
        return e.ToolRefused(problems[0], problems=problems, refused=error.get("code"))


def refusal(reason: str, *, unauthorised: bool = False) -> e.ToolRefused | e.NotSignedIn:
    """The hub's reason as an error: it may be anyone's text, so it is made safe to show."""
    if reason == e.AccountSuspended.sentence:
        return e.NotSignedIn(SUSPENDED)
    if unauthorised or reason.startswith(NO_ACCOUNT):
        return e.NotSignedIn(ACCOUNT_UNKNOWN)
    return e.ToolRefused(one_line(reason[:MAX_REASON]))
