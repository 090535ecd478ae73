"""Dense contractions, text to array: parsing, planning and the result's copy are all in the time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.runner import Case, Work


@dataclass(frozen=True)
class Matmul:
    """C[i, k] = sum over j of A[i, j] * B[j, k] through `db.sql`, float64, every extent `n`."""

    n: int

    SQL = "SELECT a.i, b.k, SUM(a.val * b.val) AS val FROM A AS a JOIN B AS b ON a.j = b.j GROUP BY a.i, b.k"

    def prepare(self, contender: str) -> Work:
        rng = np.random.default_rng(0)
        a, b = rng.standard_normal((self.n, self.n)), rng.standard_normal((self.n, self.n))
        if contender == "numpy":
            return lambda: a @ b
        return self._duckdb_rows(a, b) if contender == "duckdb rows" else self._einsql(contender, a, b)

    def _einsql(self, engine: str, a: np.ndarray, b: np.ndarray) -> Work:
        import einsql as es

        db = es.connect(engine=engine)
        db.create("A", a, labels="i j")
        db.create("B", b, labels="j k")
        np.testing.assert_allclose(db.sql(self.SQL).numpy(), a @ b, atol=1e-10 * self.n)
        return lambda: db.sql(self.SQL).numpy()

    def _duckdb_rows(self, a: np.ndarray, b: np.ndarray) -> Work:
        """The same text over one row per element."""
        import duckdb
        import pyarrow as pa

        first, second = (axis.ravel() for axis in np.indices((self.n, self.n)))
        connection = duckdb.connect()
        connection.register("A", pa.table({"i": first, "j": second, "val": a.ravel()}))
        connection.register("B", pa.table({"j": first, "k": second, "val": b.ravel()}))
        return lambda: connection.sql(self.SQL).to_arrow_table()


@dataclass(frozen=True)
class Einsum:
    """An einsum through `db.einsum`, a fresh query every time. `extents` of its labels as in "i=4 j=5"."""

    subscripts: str
    extents: str
    dtype: str = "float64"

    def case(self, name: str) -> Case:
        return Case(f"{name} {self.dtype}", self.prepare, "host", ("numpy", "opt_einsum", "torch"), 1.2)

    def prepare(self, contender: str) -> Work:
        arrays = self._arrays()
        match contender:
            case "numpy":
                return lambda: np.einsum(self.subscripts, *arrays, optimize=True)
            case "opt_einsum":
                import opt_einsum

                return lambda: opt_einsum.contract(self.subscripts, *arrays)
            case "torch":
                import torch

                tensors = [torch.from_numpy(array) for array in arrays]
                return lambda: torch.einsum(self.subscripts, *tensors)
        return self._einsql(contender, arrays)

    def _einsql(self, engine: str, arrays: list[np.ndarray]) -> Work:
        import einsql as es

        db = es.connect(engine=engine)
        names = [f"T{i}" for i in range(len(arrays))]
        for name, array, labels in zip(names, arrays, self._inputs, strict=True):
            db.create(name, array, labels=" ".join(labels))

        def query() -> np.ndarray:
            return db.einsum(self.subscripts, *names).numpy()

        self._check(query(), arrays)
        return query

    @property
    def _inputs(self) -> list[str]:
        return self.subscripts.split("->")[0].split(",")

    def _arrays(self) -> list[np.ndarray]:
        extents = {label: int(extent) for label, extent in (pair.split("=") for pair in self.extents.split())}
        rng = np.random.default_rng(0)
        shapes = [[extents[label] for label in labels] for labels in self._inputs]
        return [rng.standard_normal(shape).astype(self.dtype) for shape in shapes]

    def _check(self, result: np.ndarray, arrays: list[np.ndarray]) -> None:
        """Against NumPy, in float64 and with the absolute tolerance that the largest result allows."""
        expected = np.einsum(self.subscripts, *(array.astype("float64") for array in arrays), optimize=True)
        assert result.dtype == self.dtype and result.shape == expected.shape
        tolerance = 64 * np.finfo(self.dtype).eps * np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=0, atol=tolerance)


SQUARE = Matmul(1000).prepare
MIXED = "a=32 b=28 c=24 d=32 e=28 f=24"  # 0.9 GFLOP, whichever labels are contracted

CASES = [
    Case("matmul 1000^3 float64 host", SQUARE, "host", ("numpy",), 1.5),
    Case("matmul 1000^3 float64 duckdb engine", SQUARE, "duckdb", ("numpy",), 4.0),
    Case("matmul 1000^3 float64 duckdb engine vs rows", SQUARE, "duckdb", ("duckdb rows",), 1.0, rounds=1),
    Einsum("ij,jk->ik", "i=2000 j=2000 k=2000").case("matmul 2000^3"),
    Einsum("ij,jk->ik", "i=2000 j=2000 k=2000", "float32").case("matmul 2000^3"),
    Einsum("bij,bjk->bik", "b=64 i=256 j=256 k=256", "float32").case("batched matmul 64x256^3"),
    *(
        Einsum(text, MIXED, dtype).case(f"contraction {text}")
        for text, dtype in (
            ("abcd,dcef->abef", "float64"),  # inner labels in another order
            ("abcd,cebf->adef", "float64"),  # and apart
            ("aebf,dfce->abcd", "float64"),  # no operand is a matrix as it lies
            ("eafb,fdec->abcd", "float32"),
            ("adbc,ecbf->aedf", "float64"),  # rows and columns interleaved in the output
            ("cadb,ecfd->bfae", "float32"),
        )
    ),
    Einsum("ab,bc,cd,de->ae", "a=1000 b=2000 c=100 d=2000 e=1500").case("chain ab,bc,cd,de->ae"),
    Einsum("ij,ij,jk,ik->ik", "i=2000 j=2000 k=50").case("hadamard ij,ij,jk,ik->ik"),
    Einsum("ij,ij,ij->ij", "i=2000 j=2000").case("hadamard ij,ij,ij->ij"),
]
