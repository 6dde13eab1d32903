"""The computer's own keyring, where there is one that can be trusted with a key."""

from __future__ import annotations

from typing import Any, Final

from folkmoot.core.errors import DeviceKeyUnusable

SERVICE: Final = "folkmoot device key"
LEAST_PRIORITY: Final = 1
"""What `keyring` recommends; below it are those that keep nothing or keep it readable."""


def backend() -> Any:
    """The keyring of this computer; an error that says what to do where there is none."""
    try:
        # A fifth of a second to import, which only those who keep their key there pay.
        import keyring
    except ImportError:
        raise DeviceKeyUnusable(
            "The keyring needs the package 'keyring': install folkmoot[keyring], or leave "
            "--keyring out to keep the key in a file."
        ) from None
    found = keyring.get_keyring()
    if found.priority < LEAST_PRIORITY:
        raise DeviceKeyUnusable(
            "This computer has no keyring to keep a key in; leave --keyring out to keep it in a "
            "file."
        )
    return found


def put(public: str, private: str) -> None:
    """Keep a private key under its public one."""
    ring = backend()
    try:
        ring.set_password(SERVICE, public, private)
    except Exception as error:
        raise failed(error) from error


def get(public: str) -> str | None:
    """The private key that belongs to a public one, if it is kept."""
    ring = backend()
    try:
        found: str | None = ring.get_password(SERVICE, public)
    except Exception as error:
        raise failed(error) from error
    return found


def failed(error: Exception) -> DeviceKeyUnusable:
    """What a keyring of whatever kind said; its own words may hold anything."""
    return DeviceKeyUnusable(f"The keyring refused ({type(error).__name__}): is it unlocked?")
