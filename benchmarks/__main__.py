"""`python -m benchmarks [GROUP] [--json FILE]`: prints a table, exits 1 when a ratio exceeds its limit."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import dense
from benchmarks.runner import Row, best_seconds, compare

GROUPS = {"dense": dense}


def main(
    group: Annotated[str, typer.Argument(help="One group, or all of them.")] = "",
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the rows as JSON.")] = None,
    contender: Annotated[str, typer.Option(help="Time one contender in this process and print its seconds.")] = "",
) -> None:
    """Time einsql against its peers; a ratio above 1 means that the peer is faster."""
    if group and group not in GROUPS:
        raise typer.BadParameter(f"no group {group!r}; groups are {', '.join(GROUPS)}")
    if contender:
        print(best_seconds(GROUPS[group].CONTENDERS[contender]()))
        return
    libraries = " ".join(f"{name} {version(name)}" for name in ("numpy", "duckdb", "pyarrow", "sqlglot"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}")
    rows: list[Row] = []
    for name in [group] if group else GROUPS:
        rows += compare(name, GROUPS[name].CASES, GROUPS[name].CONTENDERS)
    print(_table(rows))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if any(row.ratio > row.limit for row in rows):
        sys.exit(1)


def _table(rows: list[Row]) -> str:
    width = max(len(row.name) for row in rows)
    lines = [f"{'case':{width}}  {'ours ms':>9}  {'peer ms':>9}  {'ratio':>7}  {'limit':>5}  peer"]
    for row in rows:
        verdict = "" if row.ratio <= row.limit else "   ABOVE ITS LIMIT"
        times = f"{row.ours_s * 1e3:9.1f}  {row.peer_s * 1e3:9.1f}  {row.ratio:7.3f}  {row.limit:5.2f}"
        lines.append(f"{row.name:{width}}  {times}  {row.peer}{verdict}")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
