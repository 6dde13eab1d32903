"""`GET /v1/events`: changes the caller may know of, as Server-Sent Events.

A *follower* is one stream: it listens on the bus for what concerns its account or guest, and for
nothing else, so an event costs what its followers cost and an idle one costs nothing. A stream that
broke is kept for a while, and its client goes on after the last event it has; where that cannot be,
or where it reads too slowly, it is told to *reload*. `operations.events` has the table of events.
"""

from __future__ import annotations

from folkmoot.transports.events.follower import Follower, Following
from folkmoot.transports.events.streams import EventStreams, HubEvents
