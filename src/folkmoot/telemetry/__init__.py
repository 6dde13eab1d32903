"""Logs, metrics and traces, none of which ever contain a secret.

`redaction` finds secrets in text; `logs` passes every record of every logger through it; `metrics`
counts into a registry of the hub's own; `traces` sends spans to a collector when one is configured.
"""
