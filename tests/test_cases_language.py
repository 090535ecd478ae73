"""Public faults of einsum strings, paths and error texts, as cases: syntax, shapes, orders of contraction, messages."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import einsql as es
from planner.einsum import Einsum
from planner.node import postorder
from planner.optimizer import optimize_graph
from tests.engines import Run, everywhere, everywhere_but_reference, on_every_engine


def counted(*shape: int) -> np.ndarray:
    """0, 1, 2, ... in row-major order."""
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


# -------------------------------------------------------------------------------------------------- syntax and shapes


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "shape", "expected"),
    [
        ("i...->i", (2, 3, 2), [15, 51]),
        ("...i->i", (2, 3, 2), [30, 36]),
        ("...->", (2, 3), 15),
        ("i...i->i", (2, 3, 2), [6, 27]),
    ],
)
def test_g01_dropped_dots_are_summed(
    db: es.Session, run: Run, subscripts: str, shape: tuple[int, ...], expected: Any
) -> None:
    """With and without a path. Dotted dimensions have no name to cut, so only i is cut."""
    labels = "i" if "i" in subscripts else ""
    for path in (None, ["einsum_path", (0,)], [(0,)], ["ssa", (0,)]):
        assert db.einsum(subscripts, counted(*shape), path=path, **run(labels)).numpy().tolist() == expected, path


@everywhere
def test_g01_dropped_dots_are_summed_in_any_order(db: es.Session, run: Run) -> None:
    """Three operands, the middle one without some of the dots, under every path."""
    a, b, c = counted(2, 3, 2), counted(2, 2), counted(2, 2, 2)
    expected = np.einsum("ixy,yj,jxy->i", a, b, np.stack([c[:, 0]] * 3, 1))
    for path in (None, [(0, 1), (0, 1)], [(1, 2), (0, 1)], ["ssa", (0, 2), (1, 3)], [(0, 1, 2)]):
        got = db.einsum("i...,...j,j...->i", a, b, c[:, :1], path=path, **run("i j"))
        assert got.numpy().tolist() == expected.tolist(), path


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "shape", "output"),
    [("bA", (2, 3), "Ab"), ("ba", (2, 3), "ab"), ("aBc", (2, 3, 2), "Bac"), ("zZaA", (2, 3, 1, 2), "AZaz")],
)
def test_g02_implicit_output_is_sorted_capitals_first(
    db: es.Session, run: Run, subscripts: str, shape: tuple[int, ...], output: str
) -> None:
    """The values, the order of the result's labels, and that explain shows the order."""
    a = counted(*shape)
    query = db.einsum(subscripts, a, **run(" ".join(subscripts)))
    expected = a.transpose([subscripts.index(label) for label in output])
    assert query.numpy().tolist() == expected.tolist()
    assert query.labels == tuple(output)
    assert f"->{output}" in str(query.explain("logical")) or f"->[{' '.join(output)}]" in str(query.explain("logical"))


def test_g02_the_example(db: es.Session) -> None:
    """In numbers: the transpose, and a product whose capital comes from the second operand."""
    assert db.einsum("bA", [[1, 2, 3], [4, 5, 6]]).numpy().tolist() == [[1, 4], [2, 5], [3, 6]]
    assert db.einsum("cb,bA", [[1, 2]], [[1, 0, 1], [0, 1, 1]]).numpy().tolist() == [[1], [2], [3]]


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "shape", "expected"),
    [
        ("iij->ij", (2, 2, 3), [[0, 1, 2], [110, 111, 112]]),
        ("iji->ij", (2, 3, 2), [[0, 10, 20], [101, 111, 121]]),
        ("iji->ji", (2, 3, 2), [[0, 101], [10, 111], [20, 121]]),
        ("jii->ij", (3, 2, 2), [[0, 100, 200], [11, 111, 211]]),
        ("ijij->ij", (2, 2, 2, 2), [[0, 101], [1010, 1111]]),
        ("iijj->ji", (2, 2, 3, 3), [[0, 1100], [11, 1111], [22, 1122]]),
    ],
)
def test_g03_a_repeated_letter_that_is_not_last(
    db: es.Session, run: Run, subscripts: str, shape: tuple[int, ...], expected: list[list[int]]
) -> None:
    """Each value spells its own index, so a transposed answer shows; also of a relation that is stored cut."""
    values = sum(at * 10 ** (len(shape) - 1 - axis) for axis, at in enumerate(np.indices(shape)))
    assert db.einsum(subscripts, values, **run("i j")).numpy().tolist() == expected
    axes = " ".join("pqrs"[: len(shape)])
    db.create("T", values, labels=axes, **run.cut(axes))
    assert db.einsum(subscripts, "T", engine=run.engine).numpy().tolist() == expected


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "arrays", "expected"),
    [
        ("i,i->", ([2, 3, 4], [5]), 45),
        ("i,i->", ([5], [2, 3, 4]), 45),
        ("i,i->i", ([2, 3, 4], [5]), [10, 15, 20]),
        ("ij,ij->ij", ([[1], [2]], [[3, 4, 5]]), [[3, 4, 5], [6, 8, 10]]),
        ("ij,jk->ik", ([[1], [2]], [[1, 2], [3, 4], [5, 6]]), [[9, 12], [18, 24]]),
        ("i,i->", ([1], [7]), 7),
    ],
)
def test_g04_size_one_axis_under_a_shared_letter(
    db: es.Session, run: Run, subscripts: str, arrays: tuple[Any, ...], expected: Any
) -> None:
    """An extent of 1 stretches to the other operand's, in either order, however the label is cut and stored."""
    labels = " ".join(sorted(set("ijk") & set(subscripts)))
    assert db.einsum(subscripts, *arrays, **run(labels)).numpy().tolist() == expected
    for name, array, side in zip("AB", arrays, subscripts.partition("->")[0].split(","), strict=True):
        db.create(name, np.asarray(array), labels=" ".join(side), **run.cut(" ".join(side)))
    assert db.einsum(subscripts, "A", "B", engine=run.engine).numpy().tolist() == expected


@everywhere
@pytest.mark.parametrize("path", [None, [(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 2), (0, 1)]], ids=str)
def test_g04_the_path_does_not_decide_what_stretches(db: es.Session, run: Run, path: list[Any] | None) -> None:
    """Three operands, two of them of one cell that may meet first."""
    for arrays in itertools.permutations([[2, 3, 4], [5], [2]]):
        assert db.einsum("i,i,i->", *arrays, path=path, **run("i")).numpy() == 90, arrays


@everywhere
def test_g04_a_stored_cell_stretches_though_others_are_absent(db: es.Session, run: Run) -> None:
    """A sparse relation of extent 1 has a value for every i; of extent 3 it has not."""
    db.create("one", {"i": [0], "val": [5]}, labels="i=1")
    db.create("three", {"i": [0], "val": [5]}, labels="i=3")
    assert db.einsum("i,i->", [2, 3, 4], "one", **run("i")).numpy() == 45
    assert db.einsum("i,i->", [2, 3, 4], "three", **run("i")).numpy() == 10


@pytest.mark.parametrize("path", [None, [(0, 1)]])
@pytest.mark.parametrize(
    ("subscripts", "arrays", "named"),
    [
        ("i,i->", ([2, 3, 4], [5, 6]), ("'i'", "3", "2")),
        ("ij,jk->ik", (np.ones((2, 3)), np.ones((2, 3))), ("'j'", "3", "2")),
        ("ii,i->i", (np.ones((1, 3)), np.ones(3)), ("'i'", "1", "3")),
        ("...i,...i->...", (np.ones((2, 3)), np.ones((4, 3))), ("2", "4")),
    ],
)
def test_g04_other_extents_do_not_stretch(
    db: es.Session, subscripts: str, arrays: tuple[Any, ...], named: tuple[str, ...], path: list[Any] | None
) -> None:
    """Refused with the label and both sizes, when the query is written; a diagonal doesn't stretch at all."""
    with pytest.raises(es.errors.ShapeError) as caught:
        db.einsum(subscripts, *arrays, path=path)
    assert all(word in str(caught.value) for word in named), caught.value


@everywhere
@pytest.mark.parametrize("dtype", ["float64", "int64", "float32"])
@pytest.mark.parametrize(
    ("subscripts", "shapes", "reduce", "expected"),
    [
        ("ij,jk->ik", ((2, 0), (0, 3)), "sum", [[0, 0, 0], [0, 0, 0]]),
        ("ij,jk->", ((2, 0), (0, 3)), "sum", 0),
        ("ij,jk->", ((0, 2), (2, 3)), "sum", 0),
        ("ij->i", ((2, 0),), "prod", [1, 1]),
        ("ij,jk->ik", ((0, 2), (2, 3)), "sum", np.zeros((0, 3)).tolist()),
        ("i,j->ij", ((2,), (0,)), "sum", [[], []]),
        ("i,i->i", ((0,), (1,)), "sum", []),
    ],
)
def test_g05_an_axis_of_length_zero(
    db: es.Session, run: Run, dtype: str, subscripts: str, shapes: Any, reduce: str, expected: Any
) -> None:
    """The shape is right, a sum over nothing is 0, a product over nothing 1, and never NULL."""
    arrays = [np.zeros(shape, dtype) for shape in shapes]
    labels = " ".join(sorted(set("ijk") & set(subscripts)))
    query = db.einsum(subscripts, *arrays, reduce=reduce, **run(labels))
    assert (query.numpy().dtype, query.numpy().tolist()) == (dtype, expected)
    assert query.numpy().shape == np.asarray(expected).shape or 0 in query.numpy().shape
    if not query.labels:
        assert query.arrow().to_pylist() == [{"val": expected}]


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "expected"),
    [
        ("αβ,βγ->αγ", [[19, 22], [43, 50]]),
        ("äö,öü->üä", [[19, 43], [22, 50]]),
        ("жЖ,Жi", [[19, 43], [22, 50]]),
    ],
)
def test_g33_letters_of_any_alphabet(db: es.Session, run: Run, subscripts: str, expected: Any) -> None:
    """Ordinary matrix products; without an arrow the output is sorted by code point."""
    labels = " ".join(sorted({c for c in subscripts if c.isalpha()}))
    query = db.einsum(subscripts, [[1, 2], [3, 4]], [[5, 6], [7, 8]], **run(labels))
    assert query.numpy().tolist() == expected


@everywhere
@pytest.mark.parametrize("matrix", [[[1, 0], [0, 1]], [[1, 1], [0, 1]]])
def test_g33_more_than_52_labels_and_32_operands(db: es.Session, run: Run, matrix: list[list[int]]) -> None:
    """A chain over 61 labels, ends kept: in words, as whole numbers, and as letters beyond the Latin ones."""
    n, cut = 60, run("x0 x1 x30")
    words = ",".join(f"[x{i} x{i + 1}]" for i in range(n)) + f"->[x0 x{n}]"
    expected = [[1, n * matrix[0][1]], [0, 1]]
    assert db.einsum(words, *[matrix] * n, **cut).numpy().tolist() == expected
    listed = itertools.chain(*((matrix, [i, i + 1]) for i in range(n)))
    assert db.einsum(*listed, [0, n], engine=run.engine).numpy().tolist() == expected
    letters = [chr(ord("一") + i) for i in range(n + 1)]
    text = ",".join(a + b for a, b in itertools.pairwise(letters)) + f"->{letters[0]}{letters[-1]}"
    assert db.einsum(text, *[matrix] * n, engine=run.engine).numpy().tolist() == expected


@everywhere
def test_g33_many_labels_and_operands_in_a_small_label_space(db: es.Session, run: Run) -> None:
    """60 vectors over one label, and 60 cells over 61 labels of extent 1."""
    assert db.einsum(",".join(["i"] * 60) + "->i", *[[1, -1]] * 59, [3, 3], **run("i")).numpy().tolist() == [3, -3]
    listed = itertools.chain(*(([[2 if i < 5 else 1]], [i, i + 1]) for i in range(60)))
    assert db.einsum(*listed, [60, 0], engine=run.engine).numpy().tolist() == [[32]]


# ------------------------------------------------------------------------------------------------ paths and rewriting


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "shapes", "expected"),
    [
        ("pbk,ijk->ipj", ((2, 2, 2), (2, 2, 2)), [[[4, 16], [12, 56]], [[28, 40], [100, 144]]]),
        ("ab,cb->c", ((2, 2), (2, 2)), [4, 16]),
        ("ab,cd->", ((2, 2), (3, 1)), 18),
        ("ab,c->c", ((2, 3), (2,)), [0, 15]),
        ("abc,b->", ((2, 2, 2), (2,)), 18),
    ],
)
def test_g07_a_letter_that_occurs_once(db: es.Session, run: Run, subscripts: str, shapes: Any, expected: Any) -> None:
    """Summed away within its operand or with the product, with a path and without one."""
    arrays = [counted(*shape) for shape in shapes]
    labels = " ".join(sorted({c for c in subscripts if c.isalpha()}))
    for path in (None, [(0, 1)], np.einsum_path(subscripts, *arrays)[0]):
        assert db.einsum(subscripts, *arrays, path=path, **run(labels)).numpy().tolist() == expected, path


BATCHES = [
    ("xgk,xkd,xk->xgd", {"x": 2, "g": 2, "k": 64, "d": 32}, 16_640),
    ("xkd,xk,xgk->xgd", {"x": 2, "g": 2, "k": 64, "d": 32}, 16_640),
    ("xk,xgk,xkd->xdg", {"x": 2, "g": 32, "k": 64, "d": 2}, 16_640),
    ("bhqk,bhkd,bk->bhqd", {"b": 2, "h": 3, "q": 2, "k": 8, "d": 16}, 96 + 3072),
]


@pytest.mark.parametrize(("subscripts", "extents", "cost"), BATCHES)
def test_g08_a_letter_that_is_batch_for_one_pair_and_summed_later(
    db: es.Session, subscripts: str, extents: dict[str, int], cost: int
) -> None:
    """The vector meets the smaller operand first. Cost as opt_einsum counts it: multiplications, plus additions."""
    arrays = [np.ones([extents[label] for label in side]) for side in subscripts.partition("->")[0].split(",")]
    query = db.einsum(subscripts, *arrays)
    first, second = (n for n in postorder(optimize_graph(query.graph)) if isinstance(n, Einsum))
    assert first.flops + second.flops == cost
    assert second.cells == np.prod(list(extents.values())) > first.cells


@everywhere
@pytest.mark.parametrize(("subscripts", "extents", "cost"), BATCHES)
def test_g08_the_cheaper_order_gives_the_same(
    db: es.Session, run: Run, subscripts: str, extents: dict[str, int], cost: int
) -> None:
    """The same expressions over small extents, against NumPy without a path."""
    small = {label: min(n, 4) for label, n in extents.items()}
    arrays = [counted(*(small[label] for label in side)) for side in subscripts.partition("->")[0].split(",")]
    got = db.einsum(subscripts, *arrays, **run(" ".join(extents))).numpy()
    assert got.tolist() == np.einsum(subscripts, *arrays, optimize=False).tolist()


def refused_for_memory(subscripts: str, shapes: Any, path: Any, options: dict[str, Any]) -> str:
    """What an einsum over ones is refused with under a limit of 100,000 doubles, without separators of thousands."""
    with es.connect(memory_limit="800KB") as db, pytest.raises(es.errors.PlanError) as caught:
        db.einsum(subscripts, *map(np.ones, shapes), path=path, **options).numpy()
    return str(caught.value).replace(",", "")


@everywhere
@pytest.mark.parametrize(
    ("subscripts", "shapes", "path", "cells"),
    [
        ("ia,ib,ic,id->abcd", ((10, 30),) * 4, None, 810_000),
        ("ia,ib,ic,id->abcd", ((10, 30),) * 4, [(0, 1), (0, 1), (0, 1)], 810_000),
        ("a,b->ab", ((400,), (300,)), None, 120_000),
    ],
)
def test_g09_a_memory_limit_is_kept(run: Run, subscripts: str, shapes: Any, path: Any, cells: int) -> None:
    """100,000 doubles at most: an output that is larger is refused with both sizes."""
    labels = " ".join(sorted({c for c in subscripts if c.isalpha()}))
    message = refused_for_memory(subscripts, shapes, path, run.by(10)(labels))
    assert all(str(n) in message for n in (cells, 8 * cells, 800_000)), message


@everywhere_but_reference
def test_g09_a_step_of_a_given_path_counts(run: Run) -> None:
    """Two small matrices without a common label first: 810,000 cells on the way. The reference follows no path."""
    message = refused_for_memory("ab,cd,bc->ad", ((30, 30),) * 3, [(0, 1), (0, 1)], run.by(10)("a b c d"))
    assert all(str(n) in message for n in (810_000, 6_480_000, 800_000)), message


@everywhere
def test_g09_what_fits_the_limit_runs(run: Run) -> None:
    """The same three matrices without a path, and an output of 90,000 cells; what was held is what is allowed."""
    cut = run.by(10)
    with es.connect(memory_limit="800KB") as db:
        chain = db.einsum("ab,cd,bc->ad", *[np.ones((30, 30))] * 3, **cut("a b c d"))
        assert (chain.numpy() == 900).all()
        outer = db.einsum("a,b->ab", np.ones(300), np.ones(300), **cut("a b"))
        assert outer.numpy().sum() == 90_000
        for query in (chain, outer):
            assert query.stats is not None and sum(query.stats.peak_bytes) <= 800_000


@everywhere
def test_g36_a_relation_is_replaced_by_a_product_of_itself(db: es.Session, run: Run) -> None:
    """Three ways to write it, twice each; a query written before keeps what it read."""
    first, second = [[7, 10], [15, 22]], [[199, 290], [435, 634]]
    text = "SELECT a.i, b.j, SUM(a.val * b.val) AS val FROM A a JOIN A b ON a.j = b.i GROUP BY a.i, b.j"
    db.create("A", [[1, 2], [3, 4]], labels="i j", **run.cut("i j"))
    before = db.einsum("ij->ij", "A", **run("i j"))
    for expected in (first, second):
        db.einsum("ij,jk->ik", "A", "A", **run("i j k")).to_table("A", replace=True)
        assert db.relation("A").numpy().tolist() == expected
        assert db.einsum("ij->ij", "A", **run("i j")).numpy().tolist() == expected
    assert before.numpy().tolist() == [[1, 2], [3, 4]]
    db.create("A", [[1, 2], [3, 4]], labels="i j", replace=True, **run.cut("i j"))
    for expected in (first, second):
        db.sql(f"CREATE OR REPLACE TABLE A AS {text}", **run("i j"))
        assert db.relation("A").numpy().tolist() == expected
    db.create("A", [[1, 2], [3, 4]], labels="i j", replace=True, **run.cut("i j"))
    for expected in (first, second):
        db.create("A", db.einsum("ij,jk->ik", "A", "A", **run("i j")).numpy(), labels="i j", replace=True)
        assert db.relation("A").numpy().tolist() == expected


CHAIN = [[[1, 2], [3, 4]], [[0, 1], [1, 1]], [[2, 0], [1, 1]]]
# What each library returns for `ab,bc,cd->ad`, written down as it prints: NumPy 2.4, opt_einsum 3.4, cotengra 0.7.
PATHS: list[Any] = [
    ["einsum_path", (0, 1), (0, 1)],
    ["einsum_path", (0, 1, 2)],
    [(0, 1), (0, 1)],
    [(1, 2), (0, 1)],
    [(0, 2), (0, 1)],
    ((0, 1), (0, 1)),
    [[0, 1], [0, 1]],
    ["ssa", (0, 1), (2, 3)],
    ["ssa", (1, 2), (0, 3)],
    ["ssa", (1, 2), (3, 0)],
    [np.array([0, 1]), np.array([0, 1])],
]


@everywhere
def test_g38_paths_of_other_libraries(db: es.Session, run: Run) -> None:
    """Lists of index pairs, with and without NumPy's leading word; SSA when it says so."""
    for path in PATHS:
        got = db.einsum("ab,bc,cd->ad", *CHAIN, path=path, **run("a b c d"))
        assert got.numpy().tolist() == [[7, 3], [15, 7]], path


def test_g38_paths_that_the_libraries_make(db: es.Session) -> None:
    """The installed NumPy and opt_einsum, with everything they offer that is deterministic."""
    import opt_einsum

    arrays = [np.asarray(a) for a in CHAIN]
    expected = [[7, 3], [15, 7]]
    for optimize in (True, False, "greedy", "optimal"):
        path = np.einsum_path("ab,bc,cd->ad", *arrays, optimize=optimize)[0]
        assert db.einsum("ab,bc,cd->ad", *arrays, path=path).numpy().tolist() == expected
    for optimize in ("greedy", "optimal", "dp", "branch-all", "auto"):
        path, _ = opt_einsum.contract_path("ab,bc,cd->ad", *arrays, optimize=optimize)
        assert db.einsum("ab,bc,cd->ad", *arrays, path=path).numpy().tolist() == expected
        ssa = opt_einsum.paths.linear_to_ssa(path)
        assert db.einsum("ab,bc,cd->ad", *arrays, path=["ssa", *ssa]).numpy().tolist() == expected


def test_g38_the_path_is_followed(db: es.Session) -> None:
    """Outer operands first: the product of four labels that no planner would choose stands in the plan."""
    query = db.einsum("ab,bc,cd->ad", *CHAIN, path=[(0, 2), (0, 1)])
    einsums = [n for n in postorder(optimize_graph(query.graph)) if isinstance(n, Einsum)]
    assert [len(n.subscripts.output) for n in einsums] == [4, 2]


@pytest.mark.parametrize(
    ("path", "position"),
    [
        ([(0, 7)], 1),
        ([(0, 1), (0, 2)], 2),
        ([(0, 1), (0, 1), (0, 1)], 3),
        ([(0, 0), (0, 1)], 1),
        ([(0, 1), (-3, 0)], 2),
        ([(0, 1), "ab"], 2),
        ([(0, 1), 1], 2),
        ([(0, 1), (0.5, 1)], 2),
        (["ssa", (0, 1), (0, 3)], 2),
        (["ssa", (0, 1), (2, 4)], 2),
        (["einsum_path", (0, 1), (1, 2)], 2),
        ([(0, 1), ()], 2),
    ],
    ids=str,
)
def test_g38_a_malformed_path_is_refused_with_its_position(db: es.Session, path: list[Any], position: int) -> None:
    """Counted from 1, before anything runs."""
    with pytest.raises(es.errors.ShapeError, match=rf"\b{position}\b"):
        db.einsum("ab,bc,cd->ad", *CHAIN, path=path)


@pytest.mark.parametrize("path", [5, "abc", {0: 1}, ["tree", (0, 1), (0, 1)]], ids=str)
def test_g38_what_is_no_path_is_refused(db: es.Session, path: Any) -> None:
    """A number, a word of no meaning, a mapping."""
    with pytest.raises(es.errors.ShapeError, match="path"):
        db.einsum("ab,bc,cd->ad", *CHAIN, path=path)


# -------------------------------------------------------------------------------------------------------- error texts


@on_every_engine
@pytest.mark.parametrize(
    ("subscripts", "shapes", "words"),
    [
        ("ij,jk->ik", ((2, 3), (4, 5)), ("'j'", "operand 1 axis 2 size 3", "operand 2 axis 1 size 4")),
        ("ij,jk,kl->il", ((2, 3), (3, 5), (4, 2)), ("'k'", "operand 2 axis 2 size 5", "operand 3 axis 1 size 4")),
        ("aabcb,abc", ((3, 3, 4, 5, 6), (3, 4, 5)), ("'b'", "operand 1 axis 3 size 4", "operand 1 axis 5 size 6")),
        ("ii->i", ((2, 3),), ("'i'", "operand 1 axis 1 size 2", "operand 1 axis 2 size 3")),
        ("zj,jZ->zZ", ((2, 3), (4, 5)), ("'j'", "operand 1 axis 2 size 3", "operand 2 axis 1 size 4")),
    ],
)
def test_g28_the_message_names_the_right_letter(
    db: es.Session, subscripts: str, shapes: Any, words: tuple[str, ...], engine: str
) -> None:
    """The label, both operands, axes and sizes, from 1. Nothing to cut: the query is refused when it is written."""
    with pytest.raises(es.errors.ShapeError) as caught:
        db.einsum(subscripts, *map(np.ones, shapes), engine=engine)
    assert all(word in str(caught.value) for word in words), caught.value


@on_every_engine
@pytest.mark.parametrize(
    ("subscripts", "shapes", "missing", "meant"),
    [
        ("ij,jk->iK", ((2, 3), (3, 5)), "'K'", "'k'"),
        ("Ij,jk->ik", ((2, 3), (3, 5)), "'i'", "'I'"),
        ("[src dst],[dst node]->[src nod]", ((2, 3), (3, 5)), "'nod'", "'node'"),
        ("ij->ijz", ((2, 3),), "'z'", ""),
    ],
)
def test_g29_a_mistyped_letter_is_refused(
    db: es.Session, subscripts: str, shapes: Any, missing: str, meant: str, engine: str
) -> None:
    """The letter that appears in no operand is named, and the closest one that does. Nothing to cut."""
    with pytest.raises(es.errors.ShapeError) as caught:
        db.einsum(subscripts, *map(np.ones, shapes), engine=engine)
    message = str(caught.value)
    assert missing in message and (f"did you mean {meant}" in message if meant else "did you mean" not in message)
