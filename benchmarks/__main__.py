"""`python -m benchmarks [GROUP] [--json FILE]`: prints a table, exits 1 when a ratio exceeds its limit."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import dense
from benchmarks.runner import Row, compare, serve

GROUPS = {"dense": dense}
LIBRARIES = ("numpy", "opt_einsum", "torch", "duckdb", "pyarrow", "sqlglot")


def main(
    group: Annotated[str, typer.Argument(help="One group, or all of them.")] = "",
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the rows as JSON.")] = None,
    contender: Annotated[str, typer.Option(help="Time one contender here, the cases that the input names.")] = "",
) -> None:
    """Time einsql against its peers; a ratio above 1 means that the peer is faster."""
    if group and group not in GROUPS:
        raise typer.BadParameter(f"no group {group!r}; groups are {', '.join(GROUPS)}")
    if contender:
        serve(GROUPS[group].CASES, contender)
        return
    libraries = " ".join(f"{name} {version(name)}" for name in LIBRARIES if find_spec(name))
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, {libraries}")
    rows: list[Row] = []
    for name in [group] if group else GROUPS:
        rows += compare(name, GROUPS[name].CASES)
    print(_table(rows))
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")
    if any(row.ratio > row.limit for row in rows):
        sys.exit(1)


def _table(rows: list[Row]) -> str:
    width = max(len(row.name) for row in rows)
    lines = [f"{'case':{width}}  {'ours ms':>9}  {'peer ms':>9}  {'ratio':>7}  {'limit':>5}  fastest peer (others, ms)"]
    for row in rows:
        verdict = "" if row.ratio <= row.limit else "   ABOVE ITS LIMIT"
        times = f"{row.ours_s * 1e3:9.1f}  {row.peer_s * 1e3:9.1f}  {row.ratio:7.3f}  {row.limit:5.2f}"
        others = ", ".join(f"{n} {s if isinstance(s, str) else f'{s * 1e3:.1f}'}" for n, s in row.others.items())
        lines.append(f"{row.name:{width}}  {times}  {row.peer}{f' ({others})' if others else ''}{verdict}")
    return "\n".join(lines)


if __name__ == "__main__":
    typer.run(main)
