"""What a plain request is: one the SDK would surely accept, and answer as we do.

Read strictly: whatever is unusual in the head or the body of a request makes it not plain, and
then it is the SDK's to judge, byte for byte as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from folkmoot.transports.mcp.heads import STATELESS_HEADER

if TYPE_CHECKING:
    from folkmoot.transports.mcp.heads import Head

Meta: TypeAlias = dict[str, Raw]
"""The `_meta` of a request, its members as they were written."""


class _Params(Struct, forbid_unknown_fields=True, kw_only=True):
    meta: Meta | UnsetType = msgspec.field(name="_meta", default=UNSET)


class _Repeatable(_Params, forbid_unknown_fields=True, kw_only=True):
    """The params of a request that may be made again with what its client was asked for."""

    responses: dict[str, Any] | UnsetType = msgspec.field(name="inputResponses", default=UNSET)
    state: str | UnsetType = msgspec.field(name="requestState", default=UNSET)


class CallParams(_Repeatable, forbid_unknown_fields=True, kw_only=True):
    """The params of a tool call."""

    name: str
    arguments: dict[str, Any] | None = None


class PromptParams(_Repeatable, forbid_unknown_fields=True, kw_only=True):
    """The params of a wish for a prompt."""

    name: str
    arguments: dict[str, str] | None = None


class ReadParams(_Repeatable, forbid_unknown_fields=True, kw_only=True):
    """The params of a wish to read a resource."""

    uri: str


class PromptRef(Struct, forbid_unknown_fields=True, tag_field="type", tag="ref/prompt"):
    """A prompt whose argument is to be completed."""

    name: str


class ResourceRef(Struct, forbid_unknown_fields=True, tag_field="type", tag="ref/resource"):
    """A template whose variable is to be completed."""

    uri: str


class Completed(Struct, forbid_unknown_fields=True):
    """The argument that is to be completed, as far as it was written."""

    name: str
    value: str


class Chosen(Struct, forbid_unknown_fields=True):
    """What was given for other arguments already."""

    arguments: dict[str, str] | None = None


class CompleteParams(_Params, forbid_unknown_fields=True, kw_only=True):
    """The params of a wish for what an argument could be."""

    ref: PromptRef | ResourceRef
    argument: Completed
    context: Chosen | UnsetType = UNSET


class ListParams(_Params, forbid_unknown_fields=True, kw_only=True):
    """The params of a listing."""

    cursor: str | UnsetType = UNSET


class CancelParams(_Params, forbid_unknown_fields=True, kw_only=True):
    """The params of a notice that an answer is not wanted any more."""

    request_id: str | int = msgspec.field(name="requestId")
    reason: str | UnsetType = UNSET


class _Message(Struct, forbid_unknown_fields=True, tag_field="method"):
    jsonrpc: Literal["2.0"]


class _Request(_Message, forbid_unknown_fields=True, tag_field="method"):
    id: str | int


class CallTool(_Request, forbid_unknown_fields=True, tag="tools/call"):
    """A tool call."""

    METHOD: ClassVar[str] = "tools/call"
    params: CallParams

    @property
    def named(self) -> str | None:
        """What the header `Mcp-Name` says too."""
        return self.params.name


class GetPrompt(_Request, forbid_unknown_fields=True, tag="prompts/get"):
    """A wish for a prompt."""

    METHOD: ClassVar[str] = "prompts/get"
    params: PromptParams

    @property
    def named(self) -> str | None:
        """What the header `Mcp-Name` says too."""
        return self.params.name


class ReadResource(_Request, forbid_unknown_fields=True, tag="resources/read"):
    """A wish to read a resource."""

    METHOD: ClassVar[str] = "resources/read"
    params: ReadParams

    @property
    def named(self) -> str | None:
        """What the header `Mcp-Name` says too."""
        return self.params.uri


class _Unnamed(_Request, forbid_unknown_fields=True, tag_field="method"):
    @property
    def named(self) -> str | None:
        """Nothing that the header `Mcp-Name` could say."""
        return None


class Complete(_Unnamed, forbid_unknown_fields=True, tag="completion/complete"):
    """A wish for what an argument could be."""

    METHOD: ClassVar[str] = "completion/complete"
    params: CompleteParams


class _List(_Unnamed, forbid_unknown_fields=True, tag_field="method"):
    params: ListParams = msgspec.field(default_factory=ListParams)


class ListTools(_List, forbid_unknown_fields=True, tag="tools/list"):
    """A listing of tools."""

    METHOD: ClassVar[str] = "tools/list"


class ListResources(_List, forbid_unknown_fields=True, tag="resources/list"):
    """A listing of resources."""

    METHOD: ClassVar[str] = "resources/list"


class ListTemplates(_List, forbid_unknown_fields=True, tag="resources/templates/list"):
    """A listing of templates of resources."""

    METHOD: ClassVar[str] = "resources/templates/list"


class ListPrompts(_List, forbid_unknown_fields=True, tag="prompts/list"):
    """A listing of prompts."""

    METHOD: ClassVar[str] = "prompts/list"


class Cancelled(_Message, forbid_unknown_fields=True, tag="notifications/cancelled"):
    """A notice that an answer is not wanted any more."""

    params: CancelParams


Listing: TypeAlias = ListTools | ListResources | ListTemplates | ListPrompts
Asking: TypeAlias = CallTool | GetPrompt | ReadResource | Complete
"""What a backend may be asked."""
Plain: TypeAlias = Asking | Listing

LISTINGS = (ListTools, ListResources, ListTemplates, ListPrompts)

_request: msgspec.json.Decoder[Plain | Cancelled] = msgspec.json.Decoder(Plain | Cancelled)


def read_stateless(head: Head, body: bytes) -> Plain | None:
    """A plain request of the stateless era, whose headers say what its body says."""
    if head.version != STATELESS_HEADER or head.method is None:
        return None
    try:
        request = _request.decode(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(request, Cancelled) or head.method.decode("latin-1") != request.METHOD:
        return None
    named = None if head.name is None else head.name.decode("latin-1")
    return request if named == request.named else None


def read_handshake(head: Head, version: str, body: bytes) -> Plain | Cancelled | None:
    """A plain message of a session, in the version that was agreed on when it was opened."""
    if head.version not in {None, version.encode()} or head.method or head.name:
        return None
    try:
        return _request.decode(body)
    except (ValueError, RecursionError):
        return None
