"""Dense contractions through `db.sql`, text to array: parsing, planning and the result's copy are all in the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.runner import Case, Contender, Work


@dataclass(frozen=True)
class Matmul:
    """C[i, k] = sum over j of A[i, j] * B[j, k], float64, every extent `n`."""

    n: int

    SQL = "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A AS a JOIN B AS b ON a.j = b.j GROUP BY a.i, b.k"

    def inputs(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        return rng.standard_normal((self.n, self.n)), rng.standard_normal((self.n, self.n))

    def numpy(self) -> Work:
        a, b = self.inputs()
        return lambda: a @ b

    def einsql(self, engine: str) -> Work:
        import einsql as es

        a, b = self.inputs()
        db = es.connect(engine=engine)
        db.create("A", a, labels="i j")
        db.create("B", b, labels="j k")
        np.testing.assert_allclose(db.sql(self.SQL).numpy(), a @ b, atol=1e-10 * self.n)
        return lambda: db.sql(self.SQL).numpy()

    def duckdb_rows(self) -> Work:
        """The same text over one row per element."""
        import duckdb
        import pyarrow as pa

        a, b = self.inputs()
        first, second = (axis.ravel() for axis in np.indices((self.n, self.n)))
        connection = duckdb.connect()
        connection.register("A", pa.table({"i": first, "j": second, "val": a.ravel()}))
        connection.register("B", pa.table({"j": first, "k": second, "val": b.ravel()}))
        return lambda: connection.sql(self.SQL).to_arrow_table()


SQUARE = Matmul(1000)

CONTENDERS: dict[str, Contender] = {
    "numpy": SQUARE.numpy,
    "host": lambda: SQUARE.einsql("host"),
    "duckdb engine": lambda: SQUARE.einsql("duckdb"),
    "duckdb rows": SQUARE.duckdb_rows,
}

CASES = [
    Case("matmul 1000^3 float64 host", "host", "numpy", 1.5),
    Case("matmul 1000^3 float64 duckdb engine", "duckdb engine", "numpy", 4.0),
    Case("matmul 1000^3 float64 duckdb engine vs rows", "duckdb engine", "duckdb rows", 1.0, rounds=1),
]
