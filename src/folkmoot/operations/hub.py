"""The hub itself: what it says of its own routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from folkmoot.operations.row import Absent, Nothing, Operation, Route

if TYPE_CHECKING:
    from folkmoot.operations.call import Call


class Document(Struct, frozen=True):
    """An OpenAPI document."""


async def openapi(call: Call[Nothing]) -> Any:
    """The document of all routes."""
    return call.services.document()


HUB: Final = (
    Operation(
        name="folkmoot/openapi",
        description="Read this document.",
        takes=Nothing,
        gives=Document,
        handler=openapi,
        scope="",
        who="anyone",
        effect="reads",
        tool=Absent("Tools describe themselves when they are listed."),
        routes=(
            Route(
                "GET",
                "/v1/openapi.json",
                id="describe",
                summary="Read this document",
                answer="The document, in OpenAPI 3.1.",
            ),
        ),
        commands=Absent("It is for programs that make clients from it."),
    ),
)
