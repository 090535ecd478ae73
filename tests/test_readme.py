"""The README is true: its example runs, and prints the EXPLAIN that it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]


def test_the_example_prints_the_plan_that_is_shown() -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    plan = re.search(r"```\n(EXPLAIN .*?)```", text, re.DOTALL)
    assert len(blocks) == 2 and plan is not None
    scope: dict[str, Any] = {}
    for code in blocks:
        exec(code, scope)
    assert str(scope["q"].explain()) == plan[1]
    x, w, v = (scope["db"].relation(name).numpy().astype(float) for name in "XWV")
    h = x @ w
    want = (h / (1 + np.exp(-h))) @ v
    np.testing.assert_allclose(scope["q"].numpy(), want, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(scope["y"].numpy(), want, rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose(scope["z"].numpy(), h, rtol=1e-3, atol=1e-2)
    weight = np.exp(h - h.max(axis=1, keepdims=True))
    np.testing.assert_allclose(scope["p"].numpy(), weight / weight.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-5)


def test_the_commands_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for command in re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE), command
