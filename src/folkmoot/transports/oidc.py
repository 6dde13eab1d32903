"""`/sign-in/oidc`: where people leave for their company's provider, and come back signed in.

They come back from another site, to which the browser shows no cookie of a session, and go on to
the page at `/sign-in`. That is the hub's own, so it is shown the new one, and leads to where they
were going.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode

from starlette.responses import RedirectResponse
from starlette.routing import Route

from folkmoot.core import errors as e
from folkmoot.core.entity import Entity
from folkmoot.core.limits import MAX_OAUTH_PARAMETERS
from folkmoot.operations.call import Bind, Caller

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from folkmoot.accounts.oidc import Oidc
    from folkmoot.ratelimits import RateLimits
    from folkmoot.transports.bodies import Locate
    from folkmoot.transports.browsers import BrowserCookies

PATH: Final = "/sign-in/oidc"
OWN_PATH: Final = re.compile(r"/(?!/)[!-\[\]-~]{0,2400}")
"""A path of the hub with its query. A browser takes `//host` and `/\\host` for another site."""
ANSWERS: Final = {"code", "state", "error"}
UNSTORED: Final = {"cache-control": "no-store"}


class OidcReturn(Entity):
    """The endpoint of a hub whose operator set a provider."""

    oidc: Oidc
    browsers: BrowserCookies
    limits: RateLimits
    locate: Locate

    def routes(self) -> list[Route]:
        return [Route(PATH, self.answer)]

    async def answer(self, request: Request) -> Response:
        """Send a browser to the provider, or sign one in that came back."""
        scope = request.scope
        self.browsers.check_secure(scope)
        here = f"{self.browsers.origin(scope)}{PATH}"
        try:
            query = scope["query_string"].decode("ascii")
            pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_OAUTH_PARAMETERS)
        except ValueError:
            raise e.CompanySignInRefused("This address cannot be read. Start again.") from None
        if not ANSWERS & dict(pairs).keys():
            then = dict(pairs).get("next", "")
            url, ticket = await self.oidc.begin(here, then if OWN_PATH.fullmatch(then) else "")
            return leading(url, self.browsers.keep_ticket(scope, ticket))
        caller = Caller(address=self.locate(scope))
        async with self.limits.guessing("sign_in", caller.address, e.CompanySignInRefused):
            try:
                found = await self.oidc.finish(here, self.browsers.ticket(scope), pairs)
            except e.SignInRefused as error:
                raise e.CompanySignInRefused(error.message) from None
        caller.session = await self.browsers.identity(self.browsers.quietly(scope))
        bind = Bind(found.account.id, "", otherwise=None, scope=found.scope)
        cookie = await self.browsers.sign_in(scope, bind, caller)
        if not cookie:
            raise e.AccountSuspended
        onward = f"?{urlencode({'next': found.then})}" if found.then else ""
        return leading(f"/sign-in{onward}", cookie)


def leading(url: str, cookie: dict[str, str]) -> Response:
    """Lead a browser on, with a cookie to keep."""
    return RedirectResponse(url, 302, {**UNSTORED, **cookie})
