"""The limits in the settings, in the form that each part needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from folkmoot.core.policy import PrincipalType
from folkmoot.core.strict import Limits
from folkmoot.ratelimits import DAY, HOUR, MINUTE, Limit, Rate
from folkmoot.rooms import RoomOptions
from folkmoot.rooms.machine import Rates
from folkmoot.transports.bodies import BodyBounds
from folkmoot.transports.websocket import LinkLimits

if TYPE_CHECKING:
    from folkmoot.settings import Settings
    from folkmoot.settings.model import RateSettings

SECONDS: Final = {"minute": MINUTE, "hour": HOUR, "day": DAY}

DEVICES_PER_HOUR: Final = 100
"""Codes for devices from one address in an hour, and fetches for what one account signs in."""


def rate_limits(settings: Settings) -> dict[str, Limit]:
    """The limits that hold, by the names the tools count under."""
    rates = settings.rates
    if settings.rate_limits == "off":
        return {}
    return {
        "register": limit(rates, "register_per_hour"),
        "refused_handles": limit(rates, "refused_handles_per_hour"),
        "recover": limit(rates, "recover_per_hour"),
        "recover_address": limit(rates, "recover_address_per_hour"),
        "recover_handle": limit(rates, "recover_handle_per_day", slows=True),
        "sign_in": limit(rates, "sign_in_per_hour"),
        "device": Limit(DEVICES_PER_HOUR, 3_600),
        "missed_handles": limit(rates, "missed_handles_per_hour"),
        "send": limit(rates, "send_per_minute"),
        "search": limit(rates, "search_per_minute"),
        "invite": limit(rates, "invite_per_day"),
        "export": limit(rates, "export_per_hour"),
        "guest": limit(rates, "guest_per_hour"),
    }


def limit(rates: RateSettings, name: str, *, slows: bool = False) -> Limit:
    """The limit of a setting, whose name ends with the time it counts for."""
    seconds = SECONDS[name.rpartition("_")[2]]
    return Limit(getattr(rates, name), seconds, slows=slows, setting=f"rates.{name}")


def room_options(settings: Settings) -> RoomOptions:
    """What the settings say about all rooms."""
    rooms, rates, quotas = settings.rooms, settings.rates, settings.quotas
    chat: dict[PrincipalType, Limit | None] = {}
    limits = None
    if settings.rate_limits == "on":
        chat = {
            PrincipalType.PERSON: limit(rates, "chat_person_per_minute"),
            PrincipalType.AGENT: limit(rates, "chat_agent_per_minute"),
            PrincipalType.GUEST: limit(rates, "chat_guest_per_minute"),
        }
        limits = Rates(
            sent=Rate(
                rates.room_messages_per_second,
                rates.room_bytes_per_second,
                ("rates.room_messages_per_second", "rates.room_bytes_per_second"),
            ),
            answers=Rate(
                rates.answers_per_second,
                rates.answer_bytes_per_second,
                ("rates.answers_per_second", "rates.answer_bytes_per_second"),
            ),
        )
    return RoomOptions(
        limits=Limits(
            settings.limits.message_bytes,
            settings.limits.nesting,
            settings.http.max_body_values,
            ("limits.message_bytes", "limits.nesting", "http.max_body_values"),
        ),
        accept_old_spellings=settings.kinds.accept_old_spellings,
        chat=chat,
        rates=limits,
        request_seconds=rooms.request_seconds,
        progress_seconds=rooms.progress_seconds,
        proposal_seconds=rooms.proposal_seconds,
        keep_messages=rooms.keep_messages,
        keep_days=rooms.keep_days,
        memory_messages=rooms.memory_messages,
        room_bytes=quotas.room_bytes,
        memory_room_bytes=quotas.memory_room_bytes,
        memory_account_bytes=quotas.memory_bytes_per_account,
        memory_bytes=quotas.memory_bytes,
        max_rooms_each=rooms.max_rooms_each,
        tool_presence_seconds=rooms.tool_presence_seconds,
        return_seconds=rooms.return_seconds,
    )


def body_bounds(settings: Settings) -> BodyBounds:
    """What the settings say about the bodies of requests."""
    http = settings.http
    return BodyBounds(
        body_bytes=http.max_body_bytes,
        values=http.max_body_values,
        anonymous_bytes=http.max_anonymous_body_bytes,
        anonymous_values=min(http.max_anonymous_body_values, http.max_body_values),
        total_bytes=http.max_bodies_bytes,
        arriving=http.max_connections_per_address,
        rate=body_rate(settings.rates) if settings.rate_limits == "on" else None,
    )


def body_rate(rates: RateSettings) -> Rate:
    """How fast one account may send large bodies, in however many requests."""
    most = rates.body_bytes_per_second
    return Rate(most, most, ("", "rates.body_bytes_per_second"))


def link_limits(settings: Settings) -> LinkLimits:
    """What the settings say about every WebSocket."""
    limits = settings.limits
    return LinkLimits(
        max_message_bytes=limits.message_bytes,
        max_unfinished_bytes=limits.unfinished_bytes,
        max_unsent_bytes=limits.unsent_bytes,
        max_unsent_frames=limits.unsent_frames,
        ping_seconds=limits.ping_seconds,
        pong_seconds=limits.pong_seconds,
    )
