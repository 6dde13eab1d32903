"""Who may see the proxies that the hub's own user runs on its machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from folkmoot.datafolder.proxies import LocalProxies
    from folkmoot.operations.call import Call


def proxies_of(call: Call[Any]) -> LocalProxies | None:
    """The proxies, where an operator sees them: by the setting, and by where the request was made.

    What passes a proxy is nobody's at the hub: it belongs to whoever runs the proxy. Operators who
    are elsewhere see it only if the hub's own user says so.
    """
    services, caller = call.services, call.caller
    on_the_socket = caller.account is None and caller.operator
    here = on_the_socket or (caller.is_direct is not None and caller.is_direct())
    sees = {"this_machine": here, "operators": True, "nobody": False}[services.shows_proxies]
    return services.proxies if sees else None


def may_see_proxies(call: Call[Any]) -> bool:
    """Whether an operator sees the proxies."""
    return proxies_of(call) is not None
