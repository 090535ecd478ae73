"""The query files run, on every engine, and mean what their titles say."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import duckdb
import networkx
import numpy as np
import pytest

import einsql as es
from einsql.query_file import QueryFile, read_query_file
from einsql.verification import scaled_extents, verify
from planner.einsum import Einsum, Input, Tensor
from planner.node import postorder
from planner.optimizer import optimize_graph
from planner.scalar import substitute

QUERIES = Path(__file__).parent.parent / "queries"
FILES = sorted(QUERIES.glob("*.sql"))
ENGINES = ("host:1", "host:2", "host:4", "duckdb")
MACROS = ("silu(x) AS x / (1 + EXP(-x))", "sigmoid(x) AS 1 / (1 + EXP(-x))", "rsqrt(x) AS 1 / SQRT(x)")

by_name = pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)


@lru_cache(maxsize=1)
def opened(path: Path) -> tuple[QueryFile, es.Session]:
    file, session = read_query_file(path), es.connect()
    file.make_inputs(session)
    return file, session


@lru_cache(maxsize=1)
def scaled(path: Path) -> tuple[QueryFile, es.Session]:
    """A file over inputs that fit the reference interpreter."""
    file, full = opened(path)
    session = es.connect()
    file.make_inputs(session, scaled_extents(file.query(full).graph, file.fixed_extents()))
    return file, session


def arrays(session: es.Session) -> dict[str, np.ndarray]:
    return {name: session.relation(name).numpy() for name in session.relations()}


# ---------------------------------------------------------------------------------------------------------- all files


@pytest.mark.parametrize("engine", ENGINES)
@by_name
def test_file_equals_the_reference(path: Path, engine: str) -> None:
    file, session = opened(path)
    found = verify(file, file.query(session, engine=engine), engine=engine)
    assert found.passed, str(found)


@pytest.mark.parametrize("engine", ("host:3", "duckdb"))
@by_name
def test_answer_does_not_depend_on_the_cut(path: Path, engine: str) -> None:
    file, session = opened(path)
    labels = {label for spec in file.relations if not spec.is_graph for label in spec.labels}
    options = {"engine": engine, "parts": dict.fromkeys(sorted(labels), 2)}
    found = verify(file, file.query(session, **options), **options)
    assert found.passed, str(found)


@pytest.mark.parametrize("path", [p for p in FILES if "c128[" not in p.read_text()], ids=lambda p: p.stem)
def test_text_is_sql_that_duckdb_runs_over_scalar_tables(path: Path) -> None:
    """All texts but those over complex numbers, which DuckDB lacks."""
    file, session = scaled(path)
    with duckdb.connect() as connection:
        for macro in MACROS:
            connection.execute(f"CREATE MACRO {macro}")
        for name in session.relations():
            connection.register(name, session.relation(name).arrow())
        rows = connection.execute(file.sql).fetchall()
    ours = file.query(session).arrow().to_pylist()
    want = {row[:-1]: row[-1] for row in rows}
    assert {tuple(row.values())[:-1] for row in ours} == want.keys()
    got = {tuple(row.values())[:-1]: row["val"] for row in ours}
    np.testing.assert_allclose([got[cell] for cell in want], list(want.values()), rtol=1e-4, atol=1e-5)


# ------------------------------------------------------------------------------------------------------------ meaning


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "triangles"), [("triangles", 45), ("triangles_les_miserables", 467)])
def test_triangles(name: str, triangles: int, engine: str) -> None:
    file, session = opened(QUERIES / f"{name}.sql")
    assert file.query(session, engine=engine).numpy() == triangles


def test_gcn_is_two_normalised_convolutions() -> None:
    file, session = opened(QUERIES / "gcn.sql")
    a = {name: session.relation(name).numpy(fill=0).astype(float) for name in session.relations()}
    loops = a["edges"] + np.eye(34)
    root = 1 / np.sqrt(loops.sum(axis=1))
    normal = root[:, None] * loops * root
    want = normal @ np.maximum(normal @ a["X"] @ a["W1"], 0) @ a["W2"]
    np.testing.assert_allclose(file.query(session).numpy(), want, rtol=1e-4, atol=1e-5)


def inputs(name: str) -> tuple[QueryFile, es.Session, dict[str, np.ndarray]]:
    file, session = opened(QUERIES / f"{name}.sql")
    return file, session, {n: session.relation(n).numpy(fill=0) for n in session.relations()}


@pytest.mark.parametrize("engine", ENGINES)
def test_chain_and_sddmm_are_products(engine: str) -> None:
    file, session, a = inputs("chain")
    np.testing.assert_allclose(file.query(session, engine=engine).numpy(), a["A"] @ a["B"] @ a["C"] @ a["D"])
    file, session, a = inputs("sddmm")
    want = a["edges"] * (a["Q"] @ a["K"].T)
    np.testing.assert_allclose(file.query(session, engine=engine).numpy(fill=0), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_shortest_paths_are_those_of_networkx(engine: str) -> None:
    """No shortest path of that graph has more than eight edges."""
    file, session = opened(QUERIES / "shortest_paths.sql")
    want = networkx.floyd_warshall_numpy(networkx.les_miserables_graph())
    np.testing.assert_array_equal(file.query(session, engine=engine).numpy(), want)


@pytest.mark.parametrize("engine", ENGINES)
def test_conv1d_slides_its_window(engine: str) -> None:
    file, session, a = inputs("conv1d")
    windows = np.lib.stride_tricks.sliding_window_view(a["X"], 3, axis=0)
    want = np.einsum("tck,kco->to", windows, a["W"])
    got = file.query(session, engine=engine).numpy(fill=0)
    np.testing.assert_allclose(got[:126], want, rtol=1e-4, atol=1e-4)
    assert not got[126:].any()


@pytest.mark.parametrize("engine", ENGINES)
def test_embedding_takes_rows(engine: str) -> None:
    file, session, a = inputs("embedding")
    want = a["E"][a["ids"]] @ a["W"]
    np.testing.assert_allclose(file.query(session, engine=engine).numpy(), want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("engine", ENGINES)
def test_quantum_circuit_is_its_unitary(engine: str) -> None:
    file, session, a = inputs("quantum_circuit")
    first = np.kron(a["H"] @ a["T"] @ a["H"], np.eye(4))
    cx = a["CX"].reshape(4, 4)
    state = np.kron(np.eye(2), cx) @ np.kron(cx, np.eye(2)) @ first @ np.eye(8)[0]
    query = file.query(session, engine=engine)
    np.testing.assert_allclose(query.numpy(fill=0).reshape(8), state, atol=1e-15)
    assert query.numpy(fill=0).dtype == np.complex128


@pytest.mark.parametrize("engine", ENGINES)
def test_bayesian_network_is_bayes_rule(engine: str) -> None:
    file, session, a = inputs("bayesian_network")
    joint = np.einsum("c,cs,cr,sr->sr", a["cloudy"], a["sprinkler"], a["rain"], a["wet"][..., 1])
    np.testing.assert_allclose(file.query(session, engine=engine).numpy(fill=0), joint / joint.sum())


# ------------------------------------------------------------------------------------------------- the same as builder


def chain_of_four(db: es.Session) -> es.Tensor:
    a, b, c, d = (db.tensor(name) for name in "ABCD")
    return (a * b * c * d).sum("b c d")


def scores_on_edges(db: es.Session) -> es.Tensor:
    edges, q, k = db.tensor("edges"), db.tensor("Q", "src d"), db.tensor("K", "dst d")
    return (edges * q * k).sum("d")


def eight_steps(db: es.Session) -> es.Tensor:
    paths = db.tensor("d1")
    for _ in range(3):
        paths = (paths.rename(dst="mid") + paths.rename(src="mid")).min("mid")
    return paths


def look_up(db: es.Session) -> es.Tensor:
    return (db.tensor("E").gather(v=db.tensor("ids")) * db.tensor("W")).sum("d")


def three_qubits(db: es.Session) -> es.Tensor:
    h, t, cx = db.tensor("H", "u v"), db.tensor("T", "u v"), db.tensor("CX", "u w v x")
    return es.einsum("ji,kj,lk,albm,cdme->acdibe", h, t, h, cx.transpose("u v w x"), cx)


def wet_grass(db: es.Session) -> es.Tensor:
    cloudy, sprinkler, rain, wet = (db.tensor(name) for name in ("cloudy", "sprinkler", "rain", "wet"))
    joint = (cloudy * sprinkler * rain * wet.slice(w=(1, 2)).sum("w")).sum("c")
    return joint / joint.sum()


def says(graph: Tensor) -> list[object]:
    """A graph as a value: nodes in order without their names, labels by where they first occur."""
    order = postorder(optimize_graph(graph))
    number = {node: i for i, node in enumerate(order)}
    return [_says(node, number) for node in order]


def _says(node: Tensor, number: dict[Tensor, int]) -> object:
    if isinstance(node, Input):
        return node.name
    args = [number[arg] for arg in node.args]
    if not isinstance(node, Einsum):
        return type(node).__name__, args, getattr(node, "expr", None), getattr(node, "value", None)
    labels = [label for side in node.subscripts.inputs for label in side]
    place = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    sides = [[place[label] for label in side] for side in (*node.subscripts.inputs, node.subscripts.output)]
    renamed = {label: f"l{i}" for label, i in place.items()}
    where = None if node.where is None else substitute(node.where, labels=renamed)
    return args, sides, node.combine, node.reduce, where


@pytest.mark.parametrize(
    ("name", "build"),
    [("chain", chain_of_four), ("sddmm", scores_on_edges), ("shortest_paths", eight_steps), ("embedding", look_up)],
)
def test_builder_calls_say_the_same_as_the_text(name: str, build: Callable[[es.Session], es.Tensor]) -> None:
    """Law 4: the fill annihilates, or nothing is absent, so the front ends give equal graphs."""
    file, session = opened(QUERIES / f"{name}.sql")
    text, built = file.query(session), build(session)
    assert says(text.graph) == says(built.query().graph)
    np.testing.assert_allclose(text.numpy(fill=0), built.query(engine="duckdb").numpy(), rtol=1e-4, atol=1e-4)


def test_builder_calls_give_the_answer_of_the_text() -> None:
    """Where SQL filters coordinates and the builder slices, the graphs differ, and the values are the same."""
    file, session = opened(QUERIES / "conv1d.sql")
    conv = (session.tensor("X").unfold("t", "k", 3) * session.tensor("W")).sum("k c")
    np.testing.assert_allclose(conv.numpy(), file.query(session).numpy(fill=0)[:126], rtol=1e-4, atol=1e-4)
    file, session = opened(QUERIES / "bayesian_network.sql")
    np.testing.assert_allclose(wet_grass(session).numpy(), file.query(session).numpy(fill=0))
    file, session = opened(QUERIES / "quantum_circuit.sql")
    amplitudes = three_qubits(session).numpy()[..., 0, 0, 0]
    np.testing.assert_allclose(amplitudes, file.query(session).numpy(fill=0), atol=1e-15)


# -------------------------------------------------------------------------------------------------- language models


def softmax_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Causal attention of [t, h, e] arrays."""
    score = np.einsum("the,she->hts", q, k) / np.sqrt(q.shape[-1])
    score = np.where(np.tri(len(q), dtype=bool), score, -np.inf)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    return np.einsum("hts,she->the", weight / weight.sum(axis=-1, keepdims=True), v)


def test_attention_is_causal_softmax_attention() -> None:
    file, session = opened(QUERIES / "llama_attention.sql")
    a = arrays(session)
    np.testing.assert_allclose(file.query(session).numpy(), softmax_attention(a["Q"], a["K"], a["V"]), atol=1e-5)


def rms_norm(x: np.ndarray, gain: np.ndarray) -> np.ndarray:
    return x * gain / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)


def turned(x: np.ndarray) -> np.ndarray:
    """Rotary embedding of [t, h, e, 2]: pair e of position t turns as a complex number."""
    angle = np.arange(len(x))[:, None, None] * 10000.0 ** (-2 * np.arange(x.shape[2]) / 64)
    pair = (x[..., 0] + 1j * x[..., 1]) * np.exp(1j * angle)
    return np.stack([pair.real, pair.imag], axis=-1)


def llama_block(a: dict[str, np.ndarray]) -> np.ndarray:
    x1 = rms_norm(a["X"], a["G_attention"])
    q, k, v = (np.einsum("td,dhec->thec", x1, a[f"W_{w}"]) for w in "qkv")
    flat = (*q.shape[:2], -1)
    scale = np.sqrt(q.shape[2] * 2 / 64)  # the query divides by the root of 64, whatever the extents are
    head = softmax_attention(turned(q).reshape(flat) * scale, turned(k).reshape(flat), v.reshape(flat))
    y = a["X"] + np.einsum("thec,hecd->td", head.reshape(q.shape), a["W_o"])
    y1 = rms_norm(y, a["G_mlp"])
    gate = y1 @ a["W_gate"]
    return y + (gate / (1 + np.exp(-gate)) * (y1 @ a["W_up"])) @ a["W_down"]


@pytest.mark.parametrize("engine", ENGINES)
def test_llama_block_equals_numpy(engine: str) -> None:
    file, session = opened(QUERIES / "llama_block.sql")
    want = llama_block({name: array.astype(float) for name, array in arrays(session).items()})
    np.testing.assert_allclose(file.query(session, engine=engine).numpy(), want, rtol=1e-3, atol=1e-4)


MASKED = "CASE WHEN k.t <= q.t THEN SUM(q.val * k.val) ELSE CAST('-infinity' AS FLOAT) END"
JOINED = "FROM Q AS q JOIN K AS k ON q.e = k.e"
CAUSAL = (
    f"SELECT q.t, k.t AS s, SUM(q.val * k.val) AS val {JOINED} WHERE k.t <= q.t GROUP BY q.t, k.t",
    f"SELECT q.t, k.t AS s, {MASKED} AS val {JOINED} GROUP BY q.t, k.t",
)


@pytest.mark.parametrize("engine", ENGINES)
def test_causal_softmax_by_where_and_by_case_agree(engine: str) -> None:
    random = np.random.default_rng(0)
    with es.connect(engine=engine) as db:
        for name in ("Q", "K"):
            db.create(name, random.standard_normal((12, 5)).astype(np.float32), labels="t e")
        where, case = (
            db.sql(
                f"WITH score AS ({score}), top AS (SELECT t, MAX(val) AS val FROM score GROUP BY t), "
                "weight AS (SELECT s.t, s.s, EXP(s.val - m.val) AS val FROM score AS s JOIN top AS m ON s.t = m.t), "
                "total AS (SELECT t, SUM(val) AS val FROM weight GROUP BY t) "
                "SELECT w.t, w.s, w.val / n.val AS val FROM weight AS w JOIN total AS n ON w.t = n.t",
                parts={"t": 3, "s": 2},
            )
            for score in CAUSAL
        )
        assert where.arrow().num_rows == 12 * 13 // 2
        assert case.arrow().num_rows == 12 * 12
        np.testing.assert_allclose(where.numpy(fill=0), case.numpy(), rtol=1e-5)
