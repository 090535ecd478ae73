"""Imports point one way, importing einsql costs the standard library only, and the wheel holds three packages."""

from __future__ import annotations

import ast
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PURE = {"sqlglot", "networkx", "opt_einsum", "planner"}
PASSES = ("planner.passes", "planner.optimizer", "planner.explain", "planner.contraction_path", "planner.cost")


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert len(found) > 3
    return found


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, anywhere in it; `from a.b import c` is both a.b and a.b.c."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            module = str(node.module)
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def offenders(package: str, allowed: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in modules(package)
        for line, name in imports(path)
        if name.partition(".")[0] not in allowed | sys.stdlib_module_names
    ]


def test_planner_is_pure() -> None:
    """The bottom: no arrays, no files, no devices."""
    assert offenders("planner", PURE) == []


def test_gpu_exec_knows_programs_and_no_passes() -> None:
    assert offenders("gpu_exec", {"numpy", "scipy", "ml_dtypes", "numba", "planner", "gpu_exec"}) == []
    names = [(path, line, name) for path in modules("gpu_exec") for line, name in imports(path)]
    assert [n for n in names if n[2].startswith(PASSES)] == []


def test_einsql_is_the_top() -> None:
    """Nothing below imports it, and it imports nothing that its distribution does not require."""
    for package in ("planner", "gpu_exec"):
        assert [name for path in modules(package) for _, name in imports(path) if name.split(".")[0] == "einsql"] == []
    data = {"duckdb", "pyarrow", "numpy", "ml_dtypes", "scipy", "numba"}
    tools = {"threadpoolctl", "sqlglot", "networkx", "typer", "rich"}
    assert offenders("einsql", data | tools | {"einsql", "gpu_exec", "planner"}) == []


def test_what_is_counted_does_not_read_what_is_predicted() -> None:
    """Law 7: the code that runs a program never sees its predictions; only the key phase makes them."""
    for path in modules("gpu_exec"):
        if path.name in ("executor.py", "pipeline.py", "operators.py", "exchange.py", "transport.py", "metrics.py"):
            assert "Counts" not in path.read_text(), path


# -------------------------------------------------------------------------------------------------- a fresh interpreter


def python(*arguments: str, cwd: Path = ROOT, path: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(path), "PATH": ""}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_importing_einsql_loads_the_standard_library_only() -> None:
    new = "set(sys.modules) - before"
    code = f"import sys; before = set(sys.modules); import einsql; print(*{{m.partition('.')[0] for m in {new}}})"
    run = python("-c", code)
    assert run.returncode == 0, run.stderr
    loaded = set(run.stdout.split())
    assert {"einsql", "planner", "gpu_exec"} <= loaded
    assert loaded - {"einsql", "planner", "gpu_exec"} <= set(sys.stdlib_module_names)


def test_importing_einsql_is_cheap() -> None:
    """Under 0.1 s more than a bare interpreter, best of five."""

    def best(code: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            assert python("-c", code).returncode == 0
            times.append(time.perf_counter() - start)
        return min(times)

    assert best("import einsql") - best("pass") < 0.1


def test_the_lazy_names_are_there() -> None:
    """Each under its own name, in any order of asking, however deep in the package it lives."""
    names = "[n for n in reversed(einsql.__all__) if getattr(einsql, n).__name__.rpartition('.')[2] != n]"
    run = python("-c", f"import einsql; print({names}, len(einsql.__all__) > 30); einsql.nothing")
    assert run.stdout == "[] True\n"
    assert run.stderr.endswith("AttributeError: module 'einsql' has no attribute 'nothing'\n")


@pytest.mark.parametrize("name", ["planner", "gpu_exec"])
def test_a_module_of_the_user_that_shadows_ours_is_named(name: str, tmp_path: Path) -> None:
    """The script's folder is searched first; the error says which file and what to do."""
    (tmp_path / f"{name}.py").write_text("plans = []\n")
    (tmp_path / "script.py").write_text("import einsql\n")
    run = python("script.py", cwd=tmp_path)
    assert run.returncode == 1
    words = " ".join(run.stderr.split())
    assert f"ImportError: einsql needs its own package '{name}', but Python imported another one from" in words
    assert str(tmp_path / f"{name}.py") in words
    assert "Rename that module, or start Python with -P" in words
    assert python("-P", "script.py", cwd=tmp_path).returncode == 0


def test_a_half_removed_package_is_named(tmp_path: Path) -> None:
    """A folder without __init__ is left when another distribution takes the name and is uninstalled."""
    (tmp_path / "einsql").mkdir()
    (tmp_path / "planner").mkdir()
    for name in ("__init__.py", "_siblings.py"):
        (tmp_path / "einsql" / name).write_text((ROOT / "einsql" / name).read_text())
    run = python("-c", "import einsql", cwd=tmp_path, path=tmp_path)
    words = " ".join(run.stderr.split())
    assert "einsql needs its own package 'planner', but Python imported another one from a folder" in words
    assert str(tmp_path / "planner") in words


# -------------------------------------------------------------------------------------------------------------- wheel


def test_the_wheel_holds_the_three_packages(tmp_path: Path) -> None:
    """Built from a copy, so that the checkout stays clean; no tests, queries or benchmarks inside."""
    source = tmp_path / "source"
    source.mkdir()
    for name in ("einsql", "planner", "gpu_exec", "tests", "queries", "benchmarks", "pyproject.toml", "README.md"):
        if (ROOT / name).is_dir():
            (source / name).mkdir()
            for path in (ROOT / name).rglob("*"):
                if path.suffix in (".py", ".sql") and path.is_file():
                    target = source / path.relative_to(ROOT)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(path.read_bytes())
        elif (ROOT / name).is_file():
            (source / name).write_bytes((ROOT / name).read_bytes())
    run = python(
        "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source), cwd=tmp_path, path=tmp_path
    )
    assert run.returncode == 0, run.stdout + run.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"einsql", "planner", "gpu_exec"}
    packaged = {name for name in names if name.endswith(".py")}
    assert packaged == {
        str(path.relative_to(ROOT)) for name in ("einsql", "planner", "gpu_exec") for path in modules(name)
    }
