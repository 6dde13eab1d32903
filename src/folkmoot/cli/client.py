"""The hub as the command line uses it: one request of a route for each thing asked.

What has no route is a `tools/call`, on the stateless wire of MCP 2026-07-28: one request, one
answer, nothing to open or to close.
"""

from __future__ import annotations

from typing import Any

from folkmoot.cli.credentials import ACCOUNT_UNKNOWN, GUEST_UNKNOWN
from folkmoot.cli.limits import MAX_REASON
from folkmoot.cli.output import one_line
from folkmoot.client.http import REQUEST_ID, tool_request, tool_result
from folkmoot.client.hub import UNAUTHORISED, Hub
from folkmoot.client.limits import ANSWER_SECONDS
from folkmoot.client.transports import HubAnswer, HubRequest, decoded
from folkmoot.core import errors as e

NO_ACCOUNT = "Authentication required."
SUSPENDED = "This account is suspended. Ask the operator of the hub."


class ToolAnswer(HubAnswer):
    """The answer to a call of a tool; a hub streams it when it has to keep us waiting."""

    def read_event(self, name: str, data: bytes) -> None:  # noqa: ARG002 - MCP names none
        message = decoded(data)
        if not isinstance(message, dict):
            return
        if message.get("id") == REQUEST_ID:
            self.body, self.ended = bytearray(data), True
        else:
            self.tell(message.get("params"))


class HubClient(Hub):
    """One hub, with a token or without: its routes, and tools that have none."""

    def __init__(self, url: str, token: str = "", *, guest: bool = False) -> None:
        super().__init__(url, token)
        self._guest = guest

    def call(self, tool: str, arguments: dict[str, Any], *, wait: float = 0) -> dict[str, Any]:
        """The result of a tool; arguments that are None are left out.

        `wait` is how long the hub was asked to wait before it answers.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        body, headers = tool_request("folkmoot-cli", tool, given, self.token, progress=self.is_told)
        request = HubRequest("POST", "/mcp", headers, body)
        answer = self.send(request, ANSWER_SECONDS + wait, ToolAnswer)
        try:
            payload, reason = tool_result(self.read(answer))
        except ValueError:
            raise self.not_understood() from None
        if reason is not None:
            raise refusal(reason, unauthorised=answer.status == UNAUTHORISED)
        return payload

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
