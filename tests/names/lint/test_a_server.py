"""A server as people write them is read whole."""

from __future__ import annotations

from pathlib import Path

from folkmoot.names.lint.runner import LintRun

FILE = Path(__file__).parent / "servers/weather.py"


def test_everything_that_a_usual_server_registers_is_found_and_judged() -> None:
    linting = LintRun([FILE])
    project = linting.project
    lines = FILE.read_text().splitlines()
    assert [(each.kind, each.name, each.description) for each in project.declared] == [
        ("tool", "get_alerts", "Get weather alerts for a US state."),
        ("tool", "getForecast", "The forecast for a place."),
        ("tool", "get", "Deprecated: use get_alerts."),
        ("template", "weather://stations/{station_id}", "One station."),
        ("resource", "config://app", ""),
        ("resource", "weather://readme.md", ""),
        ("prompt", "plan_trip", "Plan a trip."),
        ("tool", "weather:convert_temperature", "Celsius as Fahrenheit."),
    ]
    assert [lines[note.place.line - 1].strip() for note in project.notes] == [
        '@mcp.tool(name=f"to_{unit}")',
        'mcp.mount(admin, prefix="admin")',
    ]
    assert project.namespace == "weather"
    assert sorted((each.rule, each.name) for each in linting.findings) == [
        ("generic-name", "get"),
        ("id-empty", "config://app"),
        ("missing-namespace", "get"),
        ("missing-namespace", "getForecast"),
        ("missing-namespace", "get_alerts"),
        ("missing-namespace", "plan_trip"),
        ("removal-missing", "get"),
        ("tool-characters", "getForecast"),
        ("type-characters", "weather://readme.md"),
    ]
