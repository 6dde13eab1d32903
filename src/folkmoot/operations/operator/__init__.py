"""The operations of operators: the hub, people and grants, servers, held messages.

Each module has its rows. They are served on the operator's socket, and by commands where no hub
runs; a hub, a stopped hub and a proxy have those whose services they have.
"""

from __future__ import annotations

from folkmoot.operations.operator.data import DATA
from folkmoot.operations.operator.grants import GRANTS
from folkmoot.operations.operator.groups import GROUPS
from folkmoot.operations.operator.held import HELD
from folkmoot.operations.operator.hub import HUB
from folkmoot.operations.operator.people import PEOPLE
from folkmoot.operations.operator.server_edits import SERVER_EDITS
from folkmoot.operations.operator.server_views import SERVER_VIEWS
from folkmoot.operations.operator.servers import SERVERS
from folkmoot.operations.operator.settings_edits import SETTINGS_EDITS

OPERATOR = (
    *HUB,
    *PEOPLE,
    *GRANTS,
    *GROUPS,
    *SERVERS,
    *SERVER_VIEWS,
    *SERVER_EDITS,
    *SETTINGS_EDITS,
    *HELD,
    *DATA,
)
