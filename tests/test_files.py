"""Files and foreign objects as relations: the suffix decides, streams are read once, damaged ones leave no trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse

import einsql as es

TABLE = pa.table({"src": [0, 2], "dst": [1, 0], "weight": [0.5, 2.0]})
EDGES = {"src": [0, 2], "dst": [1, 0], "weight": [0.5, 2.0]}


def rows(relation: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = relation.arrow().to_pydict()
    return found


# -------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".CSV"])
@pytest.mark.parametrize("kind", [str, Path])
def test_a_table_in_a_file(db: es.Session, tmp_path: Path, suffix: str, kind: Any) -> None:
    path = tmp_path / f"edges{suffix}"
    (pa.parquet.write_table if suffix == ".parquet" else pa.csv.write_csv)(TABLE, path)
    assert rows(db.create("E", kind(path), labels="src dst")) == EDGES
    assert rows(db.create("F", kind(path), labels="dst src", val="weight"))["dst"] == [0, 1]


def test_a_relative_path(db: es.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.arange(3))
    assert db.create("A", "a.npy").numpy().tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "complex64"])
def test_an_array_in_a_file(db: es.Session, tmp_path: Path, dtype: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", weights=array)
    for name in ("a.npy", "a.npz"):
        back = db.create("A", tmp_path / name, labels="i j", replace=True).numpy()
        assert back.dtype == array.dtype
        np.testing.assert_array_equal(back, array)
    np.testing.assert_array_equal(db.einsum("ij->ij", tmp_path / "a.npy").numpy(), array)


def test_a_scipy_matrix_in_a_file(db: es.Session, tmp_path: Path) -> None:
    matrix = scipy.sparse.random_array((5, 4), density=0.3, rng=np.random.default_rng(0), format="csr")
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix)
    relation = db.create("M", tmp_path / "m.npz", labels="i j")
    assert len(relation.arrow()) == matrix.nnz
    np.testing.assert_array_equal(relation.numpy(), matrix.toarray())


def test_a_string_operand_of_an_einsum_is_a_relation(db: es.Session, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    with pytest.raises(es.errors.CatalogError, match="no relation"):
        db.einsum("i->", str(tmp_path / "a.npy"))


def test_suffixes_that_are_not_known(db: es.Session, tmp_path: Path) -> None:
    for name, what in (("a.txt", "the suffix '.txt'"), ("a", "a name without a suffix")):
        with pytest.raises(
            es.errors.UnsupportedError, match=rf"{what} says nothing; known are \.parquet, \.csv, \.npy"
        ):
            db.create("A", tmp_path / name)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "npy", "npz"])
@pytest.mark.parametrize("content", [None, b"", b"\x00\x01\x02 no such file\n"])
def test_files_that_cannot_be_read(db: es.Session, tmp_path: Path, suffix: str, content: bytes | None) -> None:
    path = tmp_path / f"a.{suffix}"
    if content is not None:
        path.write_bytes(content)
    if suffix == "csv" and content:
        with pytest.raises(es.errors.ShapeError, match="A has no column 'i'"):
            db.create("A", path, labels="i")
    else:
        with pytest.raises(es.errors.DataError, match=rf"cannot read {path}: "):
            db.create("A", path, labels="i")
    assert db.relations() == []


def test_an_npz_of_several_arrays(db: es.Session, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(1), y=np.ones(1))
    with pytest.raises(es.errors.DataError, match=r"a\.npz holds 2 arrays: x, y; load the one you mean"):
        db.create("A", tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i,val\n0,1\n\n1,2,3\n", "cannot read line 4 of {}: Expected 2 columns, got 3: 1,2,3"),
        ("i,val\n0,1\n1,x\n", "column 'val' of A holds 'x' in line 3 of {}, no number"),
        ('i,val\n0,1\n\n1,"two\nlines"\n', r"column 'val' of A holds 'two\nlines' in line 5 of {}, no number"),
        ("i,val\n0,1\n,2\n", "column 'i' of A holds 1 NULL, the first in line 3 of {}"),
        ("i,val\n0,1\n-1,2\n", "label 'i' of A holds -1 in line 3 of {}; coordinates start at 0"),
        ("i,val\n0,1\n0,2\n", "1 duplicate coordinates in A, the first (i=0) with values 1 and 2"),
    ],
)
def test_bad_lines_of_a_csv_file(db: es.Session, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(es.errors.DataError) as caught:
        db.create("A", path, labels="i")
    assert message.format(path) in str(caught.value)
    assert db.relations() == []


def test_a_bad_line_far_into_a_csv_file(db: es.Session, tmp_path: Path) -> None:
    """Past the first block that is read."""
    path = tmp_path / "long.csv"
    good = "i,val\n" + "".join(f"{i},1\n" for i in range(300_000))
    for line, what in (("300000,x\n", "holds 'x' in"), ("300000\n", "cannot read")):
        path.write_text(good + line)
        with pytest.raises(es.errors.DataError, match=rf"{what} line 300002 of {path}"):
            db.create("A", path, labels="i")


# ---------------------------------------------------------------------------------------------------------- protocols


class Stream:
    """Something that gives its rows once."""

    def __init__(self, table: pa.Table) -> None:
        self.reader, self.reads = table.to_reader(), 0

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        self.reads += 1
        return self.reader.__arrow_c_stream__(requested_schema)


def test_a_stream_is_read_once(db: es.Session) -> None:
    stream = Stream(TABLE)
    assert rows(db.create("E", stream, labels="src dst")) == EDGES
    assert stream.reads == 1
    assert rows(db.create("F", TABLE.to_reader(max_chunksize=1), labels="src dst")) == EDGES


class Batch:
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("data", [TABLE.to_batches()[0], Batch()])
def test_record_batches(db: es.Session, data: Any) -> None:
    assert rows(db.create("E", data, labels="src dst")) == EDGES


def test_a_stream_that_breaks(db: es.Session) -> None:
    def batches() -> Any:
        yield TABLE.to_batches()[0]
        raise ValueError("connection lost")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(es.errors.DataError, match=r"cannot make E from a RecordBatchReader: .*connection lost"):
        db.create("E", reader, labels="src dst")
    assert db.relations() == []


@pytest.mark.parametrize(
    "data", [pa.array([1, 2, 3], pa.int8()), pa.chunked_array([[1], [2, 3]], pa.int8())], ids=["array", "chunked"]
)
def test_one_column_is_a_vector(db: es.Session, data: Any) -> None:
    relation = db.create("V", data)
    assert (relation.numpy().tolist(), relation.type.dtype.name) == ([1, 2, 3], "int8")
    with pytest.raises(es.errors.DataError, match="W holds 1 NULL"):
        db.create("W", pa.array([1, None]))


def test_duckdb_relations(db: es.Session) -> None:
    """Literals and sums are DECIMAL in DuckDB."""
    relation = duckdb.sql("SELECT i, 0.5 AS val FROM range(3) t(i)")
    assert db.create("A", relation, labels="i").numpy().tolist() == [0.5, 0.5, 0.5]
    sums = duckdb.sql("SELECT i % 2 AS i, SUM(i) AS val FROM range(4) t(i) GROUP BY ALL")
    back = db.create("B", sums, labels="i").numpy()
    assert (back.tolist(), back.dtype) == ([2, 4], np.int64)


def test_duckdb_reads_results(db: es.Session) -> None:
    db.create("E", TABLE, labels="src dst")
    query = db.sql("SELECT src, SUM(val) AS val FROM E GROUP BY src")
    assert duckdb.sql("SELECT src, val FROM query ORDER BY src").fetchall() == [(0, 0.5), (2, 2.0)]
    assert duckdb.from_arrow(db.relation("E").arrow()).count("*").fetchall() == [(2,)]
    assert query.stats is not None


@pytest.mark.parametrize("value", [5, 2.5, True, 1 + 2j, np.float32(0.5), ml_dtypes.bfloat16(3)])
def test_a_number(db: es.Session, value: Any) -> None:
    relation = db.create("A", value)
    assert relation.labels == ()
    assert relation.numpy() == value


class Foreign:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


class Lent(Foreign):
    dtype = "float32"

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [Foreign, Lent])
def test_arrays_of_other_libraries(db: es.Session, kind: Any) -> None:
    array = np.arange(6, dtype="f4").reshape(2, 3)
    assert db.create("A", kind(array)).numpy().tolist() == array.tolist()
    assert db.einsum("ij->j", kind(array)).numpy().tolist() == [3, 5, 7]
    table = {"i": kind(np.array([1, 0], "f4")).array.astype(int), "val": kind(np.array([1, 2], "f4"))}
    assert db.create("T", table, labels="i").numpy().tolist() == [2, 1]


def test_torch_tensors(db: es.Session) -> None:
    torch = pytest.importorskip("torch")
    values = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    for tensor in (values, values.requires_grad_(), values.detach().T.contiguous().T):
        assert db.create("A", tensor, replace=True).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    half = db.create("H", torch.tensor([1.0, 2.5]).to(torch.bfloat16))
    assert (half.type.dtype.name, half.numpy().tolist()) == ("bfloat16", [1.0, 2.5])
    conjugate = torch.tensor([1 + 2j]).conj()
    assert db.create("C", conjugate).numpy().tolist() == [1 - 2j]
    with pytest.raises(es.errors.DataError, match="cannot make S from a Tensor: "):
        db.create("S", torch.eye(2).to_sparse())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(db: es.Session, library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"src": [0, 2], "dst": [1, 0], "weight": [0.5, 2.0]})
    assert rows(db.create("E", frame, labels="src dst")) == EDGES
    assert db.create("V", frame["weight"]).numpy().tolist() == [0.5, 2.0]
    named = frames.DataFrame({"city": ["Oslo", "Bern"], "val": [1.0, 2.0]})
    assert rows(db.create("C", named, labels="city")) == {"city": ["Bern", "Oslo"], "val": [2.0, 1.0]}
    holes = frames.DataFrame({"i": [0, 1], "val": [1.0, None]})
    with pytest.raises(es.errors.DataError, match="column 'val' of N holds 1 NULL, the first in row 1"):
        db.create("N", holes, labels="i")


def test_polars_and_pandas_read_results(db: es.Session) -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    db.create("E", {"city": ["Oslo", "Bern"], "val": [1.0, 2.0]}, labels="city")
    query = db.sql("SELECT city, val * 2 AS val FROM E")
    assert polars.DataFrame(query).to_dict(as_series=False) == {"city": ["Bern", "Oslo"], "val": [4.0, 2.0]}
    assert query.arrow().to_pandas().to_dict("list") == {"city": ["Bern", "Oslo"], "val": [4.0, 2.0]}
    assert pandas.DataFrame.from_arrow(db.relation("E")).to_dict("list") == {"city": ["Bern", "Oslo"], "val": [2, 1]}


def test_a_categorical_column(db: es.Session) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": pandas.Categorical(["Oslo", "Bern"]), "val": [1, 2]})
    assert rows(db.create("E", frame, labels="city"))["city"] == ["Bern", "Oslo"]
