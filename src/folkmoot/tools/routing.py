"""Whose a request is: the hub's own tools answer theirs, and a backend everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from folkmoot.core.message import Request
from folkmoot.tools.service import METHOD

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from folkmoot.core.envelope import MessageEnvelope
    from folkmoot.core.errors import FolkmootError, PolicyError
    from folkmoot.core.policy import Principal
    from folkmoot.core.ports import Admitted, Service
    from folkmoot.tools.catalogue import Catalogue


class HubService:
    """Two services as one, told apart by the canonical name that policy has judged."""

    def __init__(self, catalogue: Catalogue, tools: Service, gateway: Service) -> None:
        self._catalogue = catalogue
        self._tools = tools
        self._gateway = gateway

    def perform(self, admitted: Admitted) -> Awaitable[Any]:
        """Have it done by whoever's it is."""
        return self._of(admitted.envelope.message).perform(admitted)

    def refused(
        self, envelope: MessageEnvelope[Any], principal: Principal, error: PolicyError
    ) -> FolkmootError:
        """Have a refusal noted by whoever's it is."""
        return self._of(envelope.message).refused(envelope, principal, error)

    def _of(self, request: Any) -> Service:
        if type(request) is Request and request.method == METHOD:
            params = request.params
            if isinstance(params, dict) and params.get("name") in self._catalogue:
                return self._tools
        return self._gateway
