"""What every table of the settings is, and the kinds of text a setting can take."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from folkmoot.settings.shapes import (
    file_path,
    folder_path,
    host,
    host_pattern,
    http_url,
    network,
    origin,
    path,
)

Host = Annotated[str, Meta(extra={"shape": host})]
FolderPath = Annotated[str, Meta(extra={"shape": path})]
OptionalFolder = Annotated[str, Meta(extra={"shape": folder_path})]
FilePath = Annotated[str, Meta(extra={"shape": file_path})]
HttpUrl = Annotated[str, Meta(extra={"shape": http_url})]
HostPattern = Annotated[str, Meta(extra={"shape": host_pattern})]
Origin = Annotated[str, Meta(extra={"shape": origin})]
Network = Annotated[str, Meta(extra={"shape": network})]


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""
