"""What goes wrong with names, and between the hub and the servers behind it."""

from __future__ import annotations

from typing import Any

from folkmoot.core.errors.base import INVALID_PARAMS, FolkmootError

SERVER_ERROR = -32000
METHOD_NOT_FOUND = -32601
CAPABILITY_MISSING = -32021


class InvalidName(FolkmootError, ValueError, code="invalid_name", jsonrpc=INVALID_PARAMS, http=400):
    """A namespace, a tool name or a resource URI breaks a rule of the conventions.

    `rule` is the rule's name in the linter, `position` where in the name it is broken, and
    `nearest` a valid name close to it, where there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str,
        rule: str,
        position: int | None = None,
        nearest: str | None = None,
        **data: Any,
    ) -> None:
        told = {"name": name, "rule": rule, "position": position, "nearest": nearest, **data}
        super().__init__(
            message, **{key: value for key, value in told.items() if value is not None}
        )
        self.name = name
        self.rule = rule
        self.position = position
        self.nearest = nearest


class ProjectUnusable(FolkmootError, code="project_unusable", http=400):
    """A project's files cannot be read, or cannot be changed as was asked."""


class GatewayError(FolkmootError, jsonrpc=SERVER_ERROR, http=502):
    """A server behind the hub cannot be used for what was asked."""


class BackendUnavailable(GatewayError, code="backend_unavailable", http=503):
    """The backend is down; `retry_after` says in how many seconds it will be tried again."""


class BackendFailed(GatewayError, code="backend_failed"):
    """The backend broke the connection or gave no valid answer; it may have done what was asked."""


class BackendTimeout(GatewayError, code="backend_timeout", http=504):
    """The backend did not answer in time."""


class BackendBusy(GatewayError, code="backend_busy", http=503):
    """The backend already has as many open requests as allowed."""


class BackendUnknown(GatewayError, code="backend_unknown", http=404):
    """No backend has this namespace."""


class ToolQuarantined(GatewayError, code="tool_quarantined", http=409):
    """The tool or prompt changed, or was added, and an operator has not accepted that yet."""


class InputStateInvalid(GatewayError, code="input_state_invalid", jsonrpc=INVALID_PARAMS, http=400):
    """The `requestState` of a repeated call is not one that this caller was given for it."""


class ResourceUnknown(GatewayError, code="resource_unknown", jsonrpc=-32002, http=404):
    """No resource is known by this URI, or none that the caller may see."""


class PromptUnknown(GatewayError, code="prompt_unknown", jsonrpc=INVALID_PARAMS, http=404):
    """No prompt has this name, or none that the caller may see."""


class TaskUnknown(GatewayError, code="task_unknown", jsonrpc=INVALID_PARAMS, http=404):
    """No task has this id, or none of the caller's; or it has ended and is forgotten."""

    def __init__(self) -> None:
        super().__init__("Task not found.")


class TaskUnsupported(GatewayError, code="task_unsupported", jsonrpc=METHOD_NOT_FOUND, http=404):
    """The tool cannot be run as a task, or only as one, or not for this client."""


class TooManyTasks(GatewayError, code="too_many_tasks", http=429):
    """The account has as many unfinished tasks as allowed."""


class CapabilityMissing(
    GatewayError, code="capability_missing", jsonrpc=CAPABILITY_MISSING, http=400
):
    """The client has not declared a capability that the request needs."""


class SettingsUnwritable(FolkmootError, code="settings_unwritable"):
    """The settings file cannot be edited without the risk of harming it, or not at all."""
