"""Where the tests of public faults run: every engine, under several cuts of every label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

ENGINES = ("reference", "duckdb", "host:1", "host:4")
CUTS = (("", 0), ("parts", 2), ("tile", 1))


@dataclass(frozen=True)
class Run:
    """An engine, and how the labels are cut that a test names: `run("i j")` are the options of a query.

    how, n   "parts" 2 halves every label, "tile" 1 cuts to single cells, "" leaves the choice to the planner
    """

    engine: str
    how: str = ""
    n: int = 0

    def __str__(self) -> str:
        return f"{self.engine} {self.how}={self.n}" if self.how else self.engine

    def by(self, tile: int) -> Run:
        """The same with larger tiles, where single cells would be too many."""
        return replace(self, n=tile) if self.how == "tile" else self

    def __call__(self, labels: str = "") -> dict[str, Any]:
        return {"engine": self.engine, **self.cut(labels)}

    def cut(self, labels: str) -> dict[str, dict[str, int]]:
        """The cut alone, also an option of `create`."""
        return {self.how: dict.fromkeys(labels.split(), self.n)} if self.how else {}


RUNS = [Run(engine, how, n) for engine in ENGINES for how, n in CUTS]
everywhere = pytest.mark.parametrize("run", RUNS, ids=str)
everywhere_but_reference = pytest.mark.parametrize("run", [r for r in RUNS if r.engine != "reference"], ids=str)
on_every_engine = pytest.mark.parametrize("engine", ENGINES)
