"""The command line: what it prints, where, and its exit status."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from einsql.cli import app

QUERIES = Path(__file__).parent.parent / "queries"
TRIANGLES = str(QUERIES / "triangles.sql")
MLP = str(QUERIES / "llama_mlp.sql")

PRODUCT = """\
-- title: A small product
-- relation: A f32[i=4 j=3]
-- relation: B f32[j=3 k=2]
SELECT a.i, b.k, SUM(a.val * b.val) AS val
FROM A AS a JOIN B AS b ON a.j = b.j
GROUP BY a.i, b.k
"""


def einsql(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def write(folder: Path, text: str) -> str:
    path = folder / "query.sql"
    path.write_text(text, encoding="utf-8")
    return str(path)


# ---------------------------------------------------------------------------------------------------------------- run


def test_run_prints_the_answer_and_how_it_was_verified() -> None:
    result = einsql("run", TRIANGLES)
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = {line[:10].strip(): line[10:] for line in result.stdout.splitlines() if line[:10].strip()}
    assert lines["result"] == "45   i64"
    assert lines["engine"].startswith("host:1   chosen by auto")
    assert lines["verified"] == "equal to the reference interpreter"
    assert lines["inputs"] == "edges  i64[src=34 dst=34]  156 rows  1.2 KiB  networkx karate"


def test_run_says_that_a_large_query_was_verified_on_a_copy() -> None:
    result = einsql("run", MLP, "--devices", "2", "--parts", "t=2", "--parts", "f=2")
    assert result.exit_code == 0
    assert "host:2" in result.stdout
    assert "on a copy scaled down to t=64 d=128 f=86" in result.stdout


@pytest.mark.parametrize("engine", ["reference", "duckdb", "host", "host:3"])
def test_run_on_each_engine_names_it(tmp_path: Path, engine: str) -> None:
    result = einsql("run", write(tmp_path, PRODUCT), "--engine", engine)
    assert result.exit_code == 0, result.stderr
    asked = "host:1" if engine == "host" else engine
    assert f"engine    {asked}   asked for" in result.stdout


def test_output_has_no_colour_codes_when_piped() -> None:
    result = einsql("run", TRIANGLES)
    assert "\x1b" not in result.stdout


# ------------------------------------------------------------------------------------------------------------ explain


@pytest.mark.parametrize(
    ("form", "first"),
    [
        ("logical", "LOGICAL   4 einsums"),
        ("relational", "EXPLAIN   4 devices"),
        ("program", "program on host:0 host:1"),
        ("sql", "CREATE TEMPORARY TABLE gate"),
    ],
)
def test_explain_prints_the_form_alone(form: str, first: str) -> None:
    result = einsql("explain", MLP, "--form", form)
    assert result.exit_code == 0
    assert result.stdout.startswith(first)


def test_explain_is_relational_and_takes_devices_and_cuts() -> None:
    result = einsql("explain", MLP, "--devices", "2", "--tile", "t=16", "--parts", "f=2")
    assert result.stdout.startswith("EXPLAIN   2 devices")


def test_explain_sql_in_another_dialect() -> None:
    result = einsql("explain", TRIANGLES, "--form", "sql", "--dialect", "postgres")
    assert result.exit_code == 0
    assert "CREATE TEMPORARY TABLE" in result.stdout


# -------------------------------------------------------------------------------------------------------------- errors


def test_missing_file_is_one_message() -> None:
    result = einsql("run", "no_such.sql")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr == "error: No such file or directory: no_such.sql\n"


@pytest.mark.parametrize("command", ["run", "explain"])
def test_query_error_names_the_line_of_the_file(tmp_path: Path, command: str) -> None:
    result = einsql(command, write(tmp_path, PRODUCT.replace("a.j = b.j", "a.jj = b.j")))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: no column 'jj'")
    assert "line 5, column 28" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("-- relation: A f8[i=4]", "no dtype 'f8'; there are bool, u8, i8, i16"),
        ("-- relation: A f32(4)", "cannot read the relation 'A f32(4)'"),
        ("-- relation: A f32[i=x]", "cannot read 'x' as a number of labels"),
        ("-- relation: e i64[src=34 dst=34] from networkx petersen", "no graph 'petersen'"),
        ("-- relation: e i64[a=34 b=34 c=34] from networkx karate", "the edges of a graph have two labels, got 3"),
        ("-- relation: A f32[i=4 i=5]", "label 'i' is there twice in labels"),
        ("-- relation: A f32[i=4] scale 0.1.2", "cannot read the relation"),
        ("-- relation: A f32[i=2] values 1", "1 values for 2 cells"),
        ("-- relation: A f32[i=1] values one", "cannot read the values 'one'"),
        ("-- devices: many", "cannot read 'many' as a number of devices"),
    ],
)
def test_header_error_names_its_line(tmp_path: Path, header: str, message: str) -> None:
    result = einsql("run", write(tmp_path, f"-- title: x\n{header}\nSELECT i, val FROM A\n"))
    assert result.exit_code == 1
    assert message in result.stderr
    assert "line 2" in result.stderr


def test_other_bad_files(tmp_path: Path) -> None:
    twice = einsql("run", write(tmp_path, f"-- relation: A f32[i=4]\n{PRODUCT}"))
    assert "relation 'A' is there twice" in twice.stderr
    for sections in ("---- picture\n", "---- logical\n---- logical\n"):
        assert "is unknown or there twice" in einsql("run", write(tmp_path, PRODUCT + sections)).stderr
    assert einsql("run", str(tmp_path)).exit_code == 1
    (tmp_path / "query.sql").write_bytes(b"SELECT \xff")
    assert "no text in UTF-8: byte 7 is 0xff" in einsql("run", str(tmp_path / "query.sql")).stderr


def test_a_sum_over_nothing_is_null(tmp_path: Path) -> None:
    result = einsql("run", write(tmp_path, "-- relation: A f32[i=0]\nSELECT SUM(val) AS val FROM A\n"))
    assert result.exit_code == 0
    assert "result    NULL   f32" in result.stdout


def test_engine_error_and_debug(tmp_path: Path) -> None:
    path = write(tmp_path, PRODUCT)
    assert einsql("run", path, "--engine", "gpu").exit_code == 1
    assert "no engine 'gpu'" in einsql("run", path, "--engine", "gpu").stderr
    assert type(einsql("run", path, "--engine", "gpu", "--debug").exception).__name__ == "PlanError"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("fly", TRIANGLES),
        ("run", TRIANGLES, "--parts", "t"),
        ("run", TRIANGLES, "--no-such-option"),
        ("explain", TRIANGLES, "--tile", "t=-1"),
        ("explain", TRIANGLES, "--form", "picture"),
        ("explain", TRIANGLES, "--dialect", "postgres"),
        ("explain", TRIANGLES, "--form", "sql", "--dialect", "klingon"),
    ],
)
def test_wrong_usage_exits_with_2(arguments: tuple[str, ...]) -> None:
    result = einsql(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_help_begins_with_examples() -> None:
    result = einsql("--help")
    assert result.exit_code == 0
    assert result.stdout.startswith("Examples:\n  einsql run ")


def test_module_is_the_same_program() -> None:
    run = [sys.executable, "-m", "einsql"]
    done = subprocess.run([*run, "run", TRIANGLES], capture_output=True, text=True, cwd=QUERIES.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "45   i64" in done.stdout
    failed = subprocess.run([*run, "run", "no_such.sql"], capture_output=True, text=True, cwd=QUERIES.parent)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr.count("\n") == 1
