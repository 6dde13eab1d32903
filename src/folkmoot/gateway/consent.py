"""Consent in the flow: a call whose person has to sign in to the server asks them to, and goes on.

The client is asked to open a link. It makes the call again once its person agreed to, which waits
until they have signed in. The state that it gives back says since when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.message import Request
from folkmoot.mcp.eras.calls import offers
from folkmoot.mcp.wire import (
    COMPLETION,
    ELICIT,
    INPUT_REQUIRED,
    REQUEST_STATE,
    RESULT_TYPE,
    members_of,
)

if TYPE_CHECKING:
    from folkmoot.gateway.requests import Inputs, RoutedRequest

QUESTION: Final = "sign_in"
OURS: Final = "sign-in:"
"""Begins the states of ours; what they are marked for begins so too, so that no server's is one."""
WAIT_SECONDS: Final = 120.0
"""How long a call waits for its person to sign in."""


class SignIns(Protocol):
    """Who has signed in to which server."""

    def link(self, namespace: str, account_id: str, scope: str = "") -> str:
        """Where an account, and no other, signs in to a server."""

    async def version(self, namespace: str, account_id: str) -> int:
        """How often that has changed."""

    async def consented(
        self, namespace: str, account_id: str, version: int, seconds: float
    ) -> bool:
        """Wait until a person consents, since that version; whether they did in time."""


class ConsentFlow(Entity):
    """Asks people to sign in, and waits for them."""

    inputs: Inputs
    sign_ins: SignIns

    async def taken(
        self, params: dict[str, Any], person: str, asked: RoutedRequest
    ) -> tuple[dict[str, Any], bool]:
        """The params of a repeated call, once what it waits for came; whether to ask again."""
        state = str(params[REQUEST_STATE]).partition(".")[2]
        if not state.startswith(OURS):
            # What was answered the server could not be kept while its person is asked.
            return self.inputs.taken(params, person, asked.what), False
        self.inputs.taken(params, person, OURS + asked.what)
        answers = members_of(params.get("inputResponses"))
        version = int(state.removeprefix(OURS))
        came = members_of(answers.get(QUESTION)).get("action") == "accept" and (
            await self.sign_ins.consented(asked.namespace, person, version, WAIT_SECONDS)
        )
        own = (REQUEST_STATE, "inputResponses")
        return {name: each for name, each in params.items() if name not in own}, came

    async def wish(
        self,
        needed: e.ConsentNeeded,
        asked: RoutedRequest,
        person: str,
        request: Request,
        capabilities: dict[str, Any],
        *,
        may_ask: bool,
    ) -> dict[str, Any]:
        """The wish that a person signs in; raises it with the link where they cannot be asked."""
        if not person:
            raise needed
        link = self.sign_ins.link(asked.namespace, person, needed.scope)
        more = " once more: this needs more than you have allowed so far" if needed.scope else ""
        message = f"Sign in to the server {asked.namespace}{more}. The call goes on by itself then."
        params = {"mode": "url", "message": message, "url": link}
        question = Request(id=0, method=ELICIT, params=params)
        if not may_ask or request.method == COMPLETION or not offers(capabilities, question):
            raise e.ConsentNeeded(asked.namespace, needed.scope, link)
        version = await self.sign_ins.version(asked.namespace, person)
        wish = {
            RESULT_TYPE: INPUT_REQUIRED,
            "inputRequests": {QUESTION: {"method": ELICIT, "params": params}},
            REQUEST_STATE: f"{OURS}{version}",
        }
        return self.inputs.mark(wish, person, OURS + asked.what)
