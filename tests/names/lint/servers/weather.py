"""A server as people write them with FastMCP: read by the linter, never run."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import httpx
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.resources import TextResource
from fastmcp.tools import Tool
from pydantic import BaseModel, Field

API = "https://api.weather.gov"
READ_ONLY = {"readOnlyHint": True, "openWorldHint": True}


class Place(BaseModel):
    """Somewhere on the earth."""

    latitude: float = Field(ge=-90, le=90)
    longitude: float = Field(ge=-180, le=180)


@dataclass
class State:
    """What lives as long as the server does."""

    client: httpx.AsyncClient


@asynccontextmanager
async def lifespan(server: FastMCP) -> AsyncIterator[State]:
    async with httpx.AsyncClient(headers={"User-Agent": f"{server.name}/1.0"}) as client:
        yield State(client)


mcp = FastMCP("Weather", lifespan=lifespan, instructions="Ask before you go out.")


@mcp.tool(annotations=READ_ONLY, tags={"public"})
async def get_alerts(
    state: Annotated[str, Field(description="Two letters, such as CA", min_length=2)], ctx: Context
) -> str:
    """Get weather alerts for a US state.

    Args:
        state: Two-letter code.
    """
    await ctx.info(f"alerts of {state}")
    answer = await ctx.request_context.lifespan_context.client.get(f"{API}/alerts/{state}")
    if answer.status_code != 200:
        raise ToolError("No alerts can be had.")
    return answer.text


@mcp.tool(
    name="getForecast",
    description="The forecast for a place.",
    annotations=READ_ONLY,
)
async def forecast(place: Place, ctx: Context) -> dict[str, Any]:
    raise NotImplementedError


@mcp.tool()
def get(url: str) -> str:
    """Deprecated: use get_alerts."""
    return url


@mcp.resource("weather://stations/{station_id}", mime_type="application/json")
def station(station_id: str) -> str:
    """One station."""
    return json.dumps({"id": station_id})


@mcp.resource("config://app")
def config() -> dict[str, str]:
    return dict(os.environ)


mcp.add_resource(TextResource(uri="weather://readme.md", name="readme", text="Hello."))


@mcp.prompt
def plan_trip(city: str) -> str:
    """Plan a trip."""
    return f"Will it rain in {city}?"


def convert(celsius: float) -> float:
    """Celsius as Fahrenheit."""
    return celsius * 9 / 5 + 32


mcp.add_tool(Tool.from_function(convert, name="weather:convert_temperature"))

for unit in ("celsius", "kelvin"):

    @mcp.tool(name=f"to_{unit}")
    def to(value: float) -> float:
        return value


if os.environ.get("WEATHER_ADMIN"):
    from weather.admin import admin

    mcp.mount(admin, prefix="admin")

if __name__ == "__main__":
    mcp.run(transport="http", port=int(os.environ.get("PORT", "8000")))
