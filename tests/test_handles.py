"""Block handles inside DuckDB: when kernels run, how often, on which threads, and that memory comes back."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from einsql.duckdb.arena import Arena, Block
from einsql.duckdb.functions import Kernels
from planner.errors import InternalError

PRODUCT = """
    SELECT a.k0, b.k1, CONTRACT_SUM('ij,jk->ik', LIST(a.block ORDER BY a.k1), LIST(b.block ORDER BY a.k1)) AS block
    FROM a JOIN b ON a.k1 = b.k0 GROUP BY a.k0, b.k1"""


class Database:
    """A connection with kernels, and two 6 x 6 matrices in 2 x 2 blocks of 3 x 3."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 2})
        self.kernels = Kernels(ThreadPoolExecutor(2))
        self.kernels.register(self.connection)
        self.a, self.b = np.arange(36.0).reshape(6, 6), np.eye(6) + 1
        for name, array in (("a", self.a), ("b", self.b)):
            self.connection.register(name, self.table(array))

    @property
    def arena(self) -> Arena:
        return self.kernels.arena

    def table(self, array: np.ndarray) -> pa.Table:
        keys = [(i, j) for i in range(2) for j in range(2)]
        blocks = [Block(array[3 * i : 3 * i + 3, 3 * j : 3 * j + 3], None, (3 * i, 3 * j)) for i, j in keys]
        handles = [self.arena.put(block) for block in blocks]
        return pa.table(
            {"k0": [i for i, _ in keys], "k1": [j for _, j in keys], "block": pa.array(handles, pa.int64())}
        )

    def array(self, rows: list[tuple[int, int, int]]) -> np.ndarray:
        out = np.zeros((6, 6))
        for i, j, handle in rows:
            out[3 * i : 3 * i + 3, 3 * j : 3 * j + 3] = self.arena.get(handle).values
        return out


@pytest.fixture
def db() -> Database:
    return Database()


def test_explain_runs_no_kernel(db: Database) -> None:
    before = len(db.arena)
    db.connection.execute("EXPLAIN " + PRODUCT).fetchall()
    db.connection.execute("EXPLAIN SELECT BLOCK_MAP('', 'exp(x0)', 7::BIGINT)").fetchall()
    assert db.arena.calls == 0
    assert len(db.arena) == before


def test_prepared_statement_runs_its_kernels_each_time(db: Database) -> None:
    db.connection.execute("PREPARE product AS " + PRODUCT)
    assert db.arena.calls == 0
    first = db.connection.execute("EXECUTE product").fetchall()
    assert db.arena.calls == 8
    second = db.connection.execute("EXECUTE product").fetchall()
    assert db.arena.calls == 16
    assert {row[2] for row in first}.isdisjoint({row[2] for row in second})
    np.testing.assert_array_equal(db.array(first), db.a @ db.b)
    np.testing.assert_array_equal(db.array(second), db.a @ db.b)


def test_materialized_cte_used_twice_runs_once(db: Database) -> None:
    rows = db.connection.execute(
        f"WITH p AS MATERIALIZED ({PRODUCT})"
        " SELECT l.k0, l.k1, BLOCK_COMBINE('ij,ij->ij', 'x0 + x1', '', '', l.block, r.block)"
        " FROM p AS l JOIN p AS r ON l.k0 = r.k0 AND l.k1 = r.k1"
    ).fetchall()
    assert db.arena.calls == 8 + 4
    np.testing.assert_array_equal(db.array(rows), 2 * (db.a @ db.b))


def test_create_table_as_keeps_handles(db: Database) -> None:
    db.connection.execute("CREATE TEMP TABLE p AS " + PRODUCT)
    assert db.arena.calls == 8
    for _ in range(2):
        np.testing.assert_array_equal(db.array(db.connection.execute("SELECT * FROM p").fetchall()), db.a @ db.b)
    assert db.arena.calls == 8


def test_two_threads_give_the_same_bits(db: Database) -> None:
    rng = np.random.default_rng(0)
    db.connection.unregister("a")
    db.connection.register("a", db.table(rng.standard_normal((6, 6))))
    for name in ("a", "b"):  # real tables, which every cursor sees
        db.connection.execute(f"CREATE TABLE m{name} AS SELECT * FROM {name}")
    text = PRODUCT.replace("FROM a JOIN b", "FROM ma AS a JOIN mb AS b")
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: db.connection.cursor().execute(text).fetchall(), range(20)))
    assert len({db.array(rows).tobytes() for rows in found}) == 1


def test_an_error_keeps_its_type(db: Database) -> None:
    with pytest.raises(duckdb.Error):
        db.connection.execute("SELECT BLOCK_MAP('', 'exp(x0)', 12345::BIGINT)").fetchall()
    assert isinstance(db.arena.error, InternalError)
    assert "names no live block" in str(db.arena.error)


def test_memory_is_given_back(db: Database) -> None:
    before = db.arena.nbytes
    rows = db.connection.execute(PRODUCT).fetchall()
    assert db.arena.nbytes == before + 6 * 6 * 8
    db.arena.free(row[2] for row in rows)
    assert db.arena.nbytes == before
    assert db.arena.peak == before + 6 * 6 * 8
    with pytest.raises(InternalError, match="no live block"):
        db.arena.get(rows[0][2])


def test_a_handle_of_another_arena_is_stale(db: Database) -> None:
    other = Arena()
    handle = other.put(Block(np.zeros(1), None, (0,)))
    with pytest.raises(InternalError, match="names no live block"):
        db.arena.get(handle)
