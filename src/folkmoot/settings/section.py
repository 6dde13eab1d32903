"""What every table of the settings is, and the kinds of text a setting can take."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from folkmoot.settings.shapes import (
    argument,
    file_path,
    file_paths,
    folder_path,
    host,
    host_pattern,
    http_url,
    namespace,
    network,
    origin,
    path,
    server_url,
    tool_pattern,
)

Host = Annotated[str, Meta(extra={"shape": host})]
FolderPath = Annotated[str, Meta(extra={"shape": path})]
OptionalFolder = Annotated[str, Meta(extra={"shape": folder_path})]
FilePath = Annotated[str, Meta(extra={"shape": file_path})]
FilePaths = Annotated[str, Meta(extra={"shape": file_paths})]
HttpUrl = Annotated[str, Meta(extra={"shape": http_url})]
HostPattern = Annotated[str, Meta(extra={"shape": host_pattern})]
Origin = Annotated[str, Meta(extra={"shape": origin})]
Network = Annotated[str, Meta(extra={"shape": network})]
Argument = Annotated[str, Meta(extra={"shape": argument})]
NamespaceName = Annotated[str, Meta(extra={"shape": namespace})]
ServerUrl = Annotated[str, Meta(extra={"shape": server_url})]
ToolPattern = Annotated[str, Meta(extra={"shape": tool_pattern})]


SECRETS = frozenset({"master_key", "token"})
"""The settings whose value is shown nowhere."""


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table of the settings file."""

    def __repr__(self) -> str:
        # The settings may end up in a log or a traceback; their secrets must not.
        shown = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, "***" if name in SECRETS and value else value) for name, value in values]
