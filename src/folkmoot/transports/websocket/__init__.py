"""WebSockets on the hub's own port; nothing here knows what the messages mean.

A request that asks for an upgrade takes the way of every other request, through `http` and
`guard`, to the `endpoint` of its path. That asks its `Door` who may come in, and has `protocol`
hand the connection over to a `WebSocketConnection`. What a client sends passes the `reader`, which
makes whole messages of frames; `picowsport` is how the reader uses picows. What a client is sent is
a `Frame`, encoded once for all; an `Audience` is the connections that hear the same. `Pulse` finds
those that are gone.
"""

from __future__ import annotations

from folkmoot.transports.websocket.delivery import Audience, Tally
from folkmoot.transports.websocket.endpoint import (
    Door,
    Handler,
    Refusal,
    UpgradeRequest,
    WebSocketEndpoint,
)
from folkmoot.transports.websocket.frames import Frame, text_frame, text_frames
from folkmoot.transports.websocket.limits import ConnectionRate, LinkLimits
from folkmoot.transports.websocket.link import WebSocketConnection
