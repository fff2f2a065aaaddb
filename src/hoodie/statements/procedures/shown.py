"""Procedures that show what a table is: its properties, and whether it is whole."""

from __future__ import annotations

from hoodie.statements.procedures.procedure import Called, Rows


def properties(called: Called) -> Rows:
    return sorted(called.state.config.properties.items())


def validate_table(called: Called) -> Rows:
    findings = called.table.check(rows=called.get("rows"))
    return [(one.severity.name, one.fault.name, one.where, one.problem, one.advice) for one in findings]
