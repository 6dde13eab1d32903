"""Commands made of operations: arguments become options, and a function draws the answer.

    contacts = View(lambda: ops.people.contacts, "List your contacts.", contacts_table)

What must be given is a word of the command line, what need not be is an option; types, bounds and
descriptions are those of the operation. `typed` has those that people type in a way of their own.
The operation is loaded when the command is run, or its help is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Generic, ParamSpec, TypeVar

from folkmoot.cli.commands import (
    OWN,
    PLAIN,
    Command,
    Output,
    account_command,
    operator_command,
    plain_answer,
)
from folkmoot.cli.options import argument, choice, flag, number, option

if TYPE_CHECKING:
    from folkmoot.operations.declare import Served

P = ParamSpec("P")
T = TypeVar("T")
MOST = 999_999_999
TYPES = {"integer": int, "boolean": bool, "array": list[str]}


class View(Generic[P, T]):
    """A command that asks one operation and shows its answer."""

    def __init__(
        self,
        finds: Callable[[], Served[P, T]],
        says: str,
        shows: Callable[[T], Output] = plain_answer,
        **typed: Any,
    ) -> None:
        self.__doc__ = says
        self._finds, self._shows, self._typed = finds, shows, typed

    def __call__(self, **given: Any) -> None:
        self._command(**given)

    @property
    def __signature__(self) -> Signature:
        """What the command takes."""
        return signature(self._command)

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        known = self._command.__annotations__
        return {name: known[name] for name in known if name != "return"}

    @cached_property
    def _command(self) -> Command:
        served = self._finds()
        row = served.as_routed()
        schema = row.schema
        known = signature(served.function).parameters

        def run(hub: Any, **given: Any) -> Output:
            members = {name: it for name, it in given.items() if it is not None}
            return self._shows(hub.perform(served, (), members))

        taken = [
            self._parameter(name, schema["properties"][name], known[name].default)
            for name in schema["properties"]
            if name in known
        ]
        hub = Parameter("hub", PLAIN)
        run.__signature__ = Signature([hub, *sorted(taken, key=lambda it: it.kind)])  # type: ignore[attr-defined]
        run.__annotations__["return"] = "Output"
        run.__doc__ = self.__doc__
        return operator_command(run) if row.who == "operator" else account_command(run)

    def _parameter(self, name: str, schema: dict[str, Any], default: Any) -> Parameter:
        required = default is Parameter.empty
        if name in self._typed:
            hint = self._typed[name]
        else:
            hint = Annotated[
                TYPES.get(schema.get("type", ""), str), spelled(name, schema, required)
            ]
        if required:
            return Parameter(name, PLAIN, annotation=hint)
        if not isinstance(default, bool | int | str):
            default, hint = None, hint if name in self._typed else hint | None
        return Parameter(name, OWN, default=default, annotation=hint)


def spelled(name: str, schema: dict[str, Any], required: bool) -> Any:  # noqa: FBT001
    """How an argument is typed in a terminal, as its schema says."""
    dashed, word = f"--{name.replace('_', '-')}", name.upper()
    says = schema.get("description", "")
    if required:
        return argument(word, says)
    if schema.get("type") == "boolean":
        return flag(dashed, says)
    if "enum" in schema:
        return choice(dashed, word, tuple(schema["enum"]), says)
    if schema.get("type") == "integer":
        return number(dashed, schema.get("minimum", 0), schema.get("maximum", MOST), says)
    return option(dashed, word, says)
