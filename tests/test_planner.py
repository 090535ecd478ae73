"""The planner alone: cuts, placements, subscripts, scalar expressions, paths, programs and what `verify` rejects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import einsql as es
from planner import relational as rel
from planner.contraction_path import find_path
from planner.cuts import Cut, cut_points, parse_cut
from planner.dtypes import BOOL, DTYPES, FLOAT32, FLOAT64, INT64, DType, identity, promote
from planner.einsum import Einsum, Filter, Input, Map, Tensor
from planner.errors import InternalError, PlanError, ShapeError, UnsupportedError
from planner.node import postorder
from planner.optimizer import GRAPH_PASSES, optimize, optimize_graph
from planner.passes.common_subexpressions import common_subexpressions
from planner.passes.insert_exchanges import insert_exchanges
from planner.passes.order_contractions import order_contractions
from planner.passes.push_predicates import push_predicates
from planner.placement import Listed, Placement, describe, digits_of, group_number, parse_placement, radices, replicated
from planner.program_text import parse_program
from planner.relation_type import RelationType, parse_type
from planner.request import Request
from planner.scalar import OPS, Arg, Call, Cast, Const, Expr, LabelValue
from planner.scalar_text import parse, text
from planner.scalar_types import typed
from planner.subscripts import Subscripts, parse_subscripts
from planner.verify import verify

# -------------------------------------------------------------------------------------------------------------- cuts


@pytest.mark.parametrize(
    ("options", "points"),
    [
        ({"parts": 3}, (0, 4, 7, 10)),
        ({"parts": 20}, tuple(range(11))),
        ({"tile": 4}, (0, 4, 8, 10)),
        ({"tile": 5}, (0, 5, 10)),
        ({"tile": 99}, (0, 10)),
        ({"points": (0, 1, 10)}, (0, 1, 10)),
    ],
)
def test_cut_points(options: dict[str, Any], points: tuple[int, ...]) -> None:
    """Balanced parts, larger first; a tile leaves a short last one; never an empty part."""
    assert cut_points(10, **options) == points
    cut = Cut(10, **options)
    assert parse_cut(str(cut)) == cut
    assert [cut.part_of(c) for c in range(10)] == [p for p in range(cut.count) for _ in range(cut.size(p))]
    assert cut.largest == max(b - a for a, b in pairwise(points))


@given(extent=st.integers(0, 60), parts=st.integers(1, 70))
def test_balanced_parts_differ_by_at_most_one(extent: int, parts: int) -> None:
    cut = Cut(extent, parts=parts)
    sizes = [cut.size(p) for p in range(cut.count)]
    assert sum(sizes) == extent and len(sizes) == min(parts, extent)
    assert sizes == sorted(sizes, reverse=True)
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_one_cut_is_said_in_one_way() -> None:
    assert Cut(10, tile=5) == Cut(10, parts=2)
    assert Cut(10, tile=1) == Cut(10, parts=10)
    assert Cut(0, parts=3) == Cut(0, tile=2)
    assert Cut(10, tile=4) != Cut(10, parts=3)


@pytest.mark.parametrize(
    "options",
    [{}, {"parts": 2, "tile": 3}, {"parts": -1}, {"points": (0, 5)}, {"points": (0, 5, 5, 10)}, {"points": (1, 10)}],
)
def test_cuts_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(PlanError):
        Cut(10, **options)


@pytest.mark.parametrize(
    "written",
    [
        "f32[t=4096/4 d=64]",
        "i64[]",
        "bool[i=7@3] cells",
        "i64[src=34/34 dst=34/34] scalar blocks",
        "f64[i=10:0.3.10 j=0] cells",
    ],
)
def test_relation_types_read_back(written: str) -> None:
    assert str(parse_type(written)) == written


# -------------------------------------------------------------------------------------------------------- placements


def test_digits() -> None:
    """A device is the mixed-radix number of its digits, most significant first."""
    assert radices(12) == (2, 2, 3) and radices(1) == () and radices(7) == (7,)
    assert digits_of(11, 12) == (1, 1, 2)
    assert digits_of(5, 12) == (0, 1, 2)
    assert [group_number(d, 12, (0, 1, 2)) for d in range(12)] == list(range(12))
    assert [group_number(d, 4, (1,)) for d in range(4)] == [0, 1, 0, 1]


def test_holders_of_blocks() -> None:
    rows_and_columns = Placement(4, ((0,), (1,)))
    assert rows_and_columns.holders((0, 0), (2, 2)) == {0}
    assert rows_and_columns.holders((1, 0), (2, 2)) == {2}
    assert Placement(4, ((0,), ())).holders((1, 5), (2, 8)) == {2, 3}
    assert replicated(3, 1).holders((0,), (4,)) == {0, 1, 2}
    uneven = Placement(2, ((0,),))
    assert [sorted(uneven.holders((k,), (5,))) for k in range(5)] == [[0], [0], [0], [1], [1]]
    assert Placement(4, ((),), (0, 1), "sum").replicas == 1
    assert Placement(4, ((0,),)).replicas == 2


@pytest.mark.parametrize(
    ("devices", "written"),
    [
        (1, "Single"),
        (4, "Replicated"),
        (4, "Sharded(t)"),
        (4, "Sharded(t:0 f:1)"),
        (6, "Sharded(f:1)"),
        (4, "Partial(sum)"),
        (4, "Partial(max:1 t:0)"),
        (3, "Listed(0|1,2|0,1,2)"),
    ],
)
def test_placements_read_back(devices: int, written: str) -> None:
    placement = parse_placement(written, devices, ["t", "f"])
    assert describe(placement, ["t", "f"]) == written
    assert placement.devices == devices


@pytest.mark.parametrize(
    "build",
    [
        lambda: Placement(4, ((0,), (0,))),
        lambda: Placement(4, ((2,),)),
        lambda: Placement(4, ((),), (0,)),
        lambda: Listed(2, (frozenset(),)),
        lambda: Listed(2, (frozenset([2]),)),
        lambda: parse_placement("Sharded(q)", 2, ["t"]),
        lambda: parse_placement("sharded(t)", 2, ["t"]),
    ],
)
def test_placements_that_are_none(build: Any) -> None:
    with pytest.raises(PlanError):
        build()


# -------------------------------------------------------------------------------------------------------- subscripts


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("ij,jk->ik", "ij,jk->ik"),
        (" ij , jk -> ik ", "ij,jk->ik"),
        ("ij,jk", "ij,jk->ik"),
        ("bA", "bA->Ab"),
        ("ii", "ii->"),
        ("->", "->"),
        (",i->i", ",i->i"),
        ("[src dst],[dst c]->[src c]", "[src dst],[dst c]->[src c]"),
        ("[x],[y]->[]", "x,y->"),
        ("αβ,βγ->αγ", "αβ,βγ->αγ"),
    ],
)
def test_subscripts_read_back(written: str, printed: str) -> None:
    read = parse_subscripts(written)
    assert str(read) == printed
    assert parse_subscripts(printed) == read


def test_single_characters_that_are_no_letters_are_bracketed() -> None:
    subscripts = Subscripts((("1", "_"),), ("1",))
    assert parse_subscripts(str(subscripts)) == subscripts


@pytest.mark.parametrize(
    ("written", "error", "message"),
    [
        ("ij->ik", ShapeError, "output label 'k' appears in no operand"),
        ("ij->I", ShapeError, "did you mean 'i'"),
        ("ij->ii", ShapeError, "an output names each label once"),
        ("ij->->i", ShapeError, "one '->' at most"),
        ("i1->i", ShapeError, "'1' is no label"),
        ("[i j->i", ShapeError, "unbalanced bracket"),
        ("...i->i", ShapeError, "the axes it stands for are not known"),
        ("...i...->i", ShapeError, "two ellipses in one operand"),
    ],
)
def test_subscripts_that_are_none(written: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_subscripts(written)


# ------------------------------------------------------------------------------------------------ scalar expressions

LEAVES = st.one_of(
    st.integers(0, 12).map(Arg),
    st.sampled_from(
        [
            "i",
            "t",
            "I",
            "x0",
            "xy",
            "inf",
            "not",
            "from",
            "where",
            "over",
            "f32",
            "exp",
            "label",
            "True",
            "None",
            "µ",
            "1",
        ]
    ).map(LabelValue),
    st.integers(-(2**70), 2**70).map(Const),
    st.booleans().map(Const),
    st.floats().map(Const),
)


def _calls(below: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    calls = st.sampled_from(sorted(OPS)).flatmap(
        lambda op: st.tuples(*[below] * OPS[op].arity).map(lambda args: Call(op, args))
    )
    return st.one_of(calls, st.builds(Cast, below, st.sampled_from(DTYPES)))


EXPRESSIONS: st.SearchStrategy[Expr] = st.recursive(LEAVES, _calls, max_leaves=12)


@given(EXPRESSIONS)
def test_expressions_read_back(expr: Expr) -> None:
    """parse(text(e)) == e, typed or not, whatever labels are called."""
    assert parse(text(expr)) == expr


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("x0+x1*2", "x0 + x1 * 2"),
        ("(x0 + x1) * 2", "(x0 + x1) * 2"),
        ("x0 - (x1 - x2)", "x0 - (x1 - x2)"),
        ("x0 - x1 - x2", "x0 - x1 - x2"),
        ("x0 ** x1 ** 2", "x0 ** (x1 ** 2)"),
        ("-x0", "neg(x0)"),
        ("not x0 and x1", "not(x0) and x1"),
        ("(not x0) == x1", "(not(x0)) == x1"),
        ("x0 if s < t else -inf", "case(s < t, x0, -inf)"),
        ("where(x0 > 0, x0, 0)", "case(x0 > 0, x0, 0)"),
        ("float32(x0)", "f32(x0)"),
    ],
)
def test_texts_of_expressions(written: str, printed: str) -> None:
    assert text(parse(written)) == printed
    assert parse(printed) == parse(written)


@pytest.mark.parametrize(
    ("written", "error"),
    [
        ("x0 +", ShapeError),
        ("", ShapeError),
        ("+".join(["x0"] * 5000), ShapeError),
        ("max(x0)", ShapeError),
        ("foo(x0)", UnsupportedError),
        ("x0[1]", UnsupportedError),
        ("x0 < x1 < x2", UnsupportedError),
        ("__import__('os')", UnsupportedError),
        ("(lambda: 1)()", UnsupportedError),
        ("'text'", UnsupportedError),
    ],
)
def test_expressions_that_are_none(written: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(written)


# ------------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    ("written", "dtypes", "result", "printed"),
    [
        ("x0 * x1", [FLOAT32, FLOAT32], FLOAT32, "x0 * x1"),
        ("x0 * x1", [INT64, FLOAT32], FLOAT64, "f64(x0) * f64(x1)"),
        ("x0 * x1", [BOOL, BOOL], BOOL, "x0 and x1"),
        ("x0 + x1", [BOOL, BOOL], INT64, "i64(x0) + i64(x1)"),
        ("x0 * 2.5", [FLOAT32], FLOAT32, "x0 * f32(2.5)"),
        ("x0 * 2.5", [INT64], FLOAT64, "f64(x0) * 2.5"),
        ("x0 * 2", [INT64], INT64, "x0 * 2"),
        ("x0 + i", [FLOAT32], FLOAT32, "x0 + f32(i)"),
        ("x0 / x1", [INT64, INT64], FLOAT64, "f64(x0) / f64(x1)"),
        ("x0 // x1", [INT64, INT64], INT64, "x0 // x1"),
        ("exp(x0)", [FLOAT32], FLOAT32, "exp(x0)"),
        ("exp(x0)", [BOOL], FLOAT64, "exp(f64(x0))"),
        ("x0 < x1", [INT64, FLOAT64], BOOL, "f64(x0) < x1"),
        ("case(i < 2, x0, 0)", [FLOAT32], FLOAT32, "case(i < 2, x0, f32(0))"),
        ("min(x0, x1)", [BOOL, BOOL], BOOL, "min(x0, x1)"),
        ("i + 1", [], INT64, "i + 1"),
        ("2 / 4", [], FLOAT64, "f64(2) / f64(4)"),
    ],
)
def test_the_type_table(written: str, dtypes: Sequence[DType], result: DType, printed: str) -> None:
    """Literals and label values take the dtype of the tensor they meet; every conversion is written out."""
    checked, dtype = typed(parse(written), dtypes)
    assert (text(checked), dtype) == (printed, result)
    assert typed(checked, dtypes) == (checked, dtype)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("x0 and x1", "and wants a condition, got x0 of dtype float64"),
        ("case(x0, 1, 2)", "case wants a condition"),
        ("x0 // 2", "intdiv wants integers, got float64"),
        ("x2", "the expression reads x2, but there are only 2 operands"),
    ],
)
def test_types_that_disagree(written: str, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        typed(parse(written), [FLOAT64, FLOAT64])


def test_promotion_and_identities() -> None:
    assert promote(BOOL, INT64) == INT64
    assert promote(INT64, FLOAT32) == FLOAT64  # float32 would lose integers
    assert promote(BOOL, FLOAT32) == FLOAT32
    assert identity("max", FLOAT64) == -math.inf and identity("min", INT64) == 2**63 - 1
    assert identity("prod", FLOAT32) == 1.0 and identity("any", BOOL) is False


# ------------------------------------------------------------------------------------------------------------- paths


def dense(name: str, labels: str, extents: dict[str, int], dtype: DType = FLOAT64) -> Input:
    cuts = tuple(Cut(extents[label], parts=1) for label in labels)
    return Input(RelationType(tuple(labels), cuts, dtype), name=name)


def einsum(
    subscripts: str,
    extents: dict[str, int],
    combine: str = "",
    reduce: str = "sum",
    where: str = "",
    dtype: DType = FLOAT64,
) -> Einsum:
    read = parse_subscripts(subscripts)
    operands = tuple(dense("ABCDEF"[i], "".join(labels), extents, dtype) for i, labels in enumerate(read.inputs))
    product = " * ".join(f"x{i}" for i in range(len(operands)))
    return Einsum(
        operands, read, parse(combine or product), reduce if read.contracted else None, parse(where) if where else None
    )


def test_the_published_path() -> None:
    """xgk,xkd,xk->xgd: operands 1 and 3 first, since that scales a matrix instead of a product."""
    sides = [frozenset("xgk"), frozenset("xkd"), frozenset("xk")]
    assert find_path(sides, frozenset("xgd"), {"x": 2, "g": 2, "k": 64, "d": 32}) == [(0, 2), (0, 1)]


def test_paths_of_a_chain() -> None:
    """A tall and a thin matrix: the order of least FLOP, and ties go to the earlier operands."""
    chain = [frozenset("ij"), frozenset("jk"), frozenset("kl")]
    assert find_path(chain, frozenset("il"), {"i": 100, "j": 2, "k": 100, "l": 2}) == [(1, 2), (0, 1)]
    assert find_path(chain, frozenset("il"), {"i": 2, "j": 100, "k": 2, "l": 100}) == [(0, 1), (0, 1)]
    assert find_path(chain, frozenset("il"), dict.fromkeys("ijkl", 3)) == [(0, 1), (0, 1)]
    assert find_path([frozenset("i")], frozenset("i"), {"i": 3}) == []


def test_paths_of_many_operands_are_valid() -> None:
    """Beyond ten operands a greedy search takes over; every operand is used once."""
    labels = "abcdefghijklmno"
    chain = [frozenset(labels[n : n + 2]) for n in range(14)]
    path = find_path(chain, frozenset("ao"), dict.fromkeys(labels, 4))
    left = len(chain)
    for i, j in path:
        assert 0 <= i < j < left
        left -= 1
    assert left == 1


# ------------------------------------------------------------------------------------------------------------ passes


def equations(graph: Tensor) -> list[str]:
    return [str(node.subscripts) for node in postorder(graph) if isinstance(node, Einsum)]


def test_order_contractions_makes_binary_products() -> None:
    graph = order_contractions(einsum("ij,jk,kl->il", {"i": 100, "j": 2, "k": 100, "l": 2}))
    assert equations(graph) == ["jk,kl->jl", "ij,jl->il"]
    assert all(node.is_contraction for node in postorder(graph) if isinstance(node, Einsum))


def test_factors_of_one_operand_become_its_map() -> None:
    graph = order_contractions(einsum("ij,jk->ik", {"i": 2, "j": 3, "k": 4}, "2 * x0 * exp(x1) * j"))
    top = postorder(graph)[-1]
    assert isinstance(top, Einsum) and top.is_contraction
    maps = sorted(text(node.expr) for node in postorder(graph) if isinstance(node, Map))
    assert maps == ["exp(x0)", "f64(2) * x0 * f64(j)"]


@pytest.mark.parametrize(
    ("combine", "reduce"),
    [
        ("abs(x0 - x1) * x2", "sum"),
        ("x0 * x1 * x2", "prod"),
        ("x0 * x1 * x2", "max"),
        ("x0 + x1 * x2", "sum"),
        ("min(x0, x1) + x2", "min"),
    ],
)
def test_what_does_not_distribute_stays_whole(combine: str, reduce: str) -> None:
    node = einsum("ij,jk,kl->il", dict.fromkeys("ijkl", 2), combine, reduce)
    assert order_contractions(node) is node


def test_max_plus_distributes() -> None:
    graph = order_contractions(einsum("ij,jk,kl->il", dict.fromkeys("ijkl", 2), "x0 + x1 + x2", "max"))
    assert equations(graph) == ["ij,jk->ik", "kl,ik->il"]


def test_predicates_go_down_and_the_rest_waits_for_its_labels() -> None:
    node = einsum("ij,jk,kl->il", dict.fromkeys("ijkl", 3), where="i < 2 and i < l and k != 1")
    pushed = push_predicates(node)
    filters = [(text(f.where), f.arg.name) for f in postorder(pushed) if isinstance(f, Filter)]
    assert filters == [("i < 2", "A"), ("k != 1", "B")]
    ordered = order_contractions(pushed)
    top = postorder(ordered)[-1]
    assert isinstance(top, Einsum) and top.where is not None and text(top.where) == "i < l"


def test_common_subexpressions_and_idempotence() -> None:
    a = dense("A", "ij", {"i": 2, "j": 3})
    twice = Einsum(
        (Map(a, parse("exp(x0)")), Map(a, parse("exp(x0)"))), parse_subscripts("ij,ij->i"), parse("x0 * x1"), "sum"
    )
    merged = common_subexpressions(twice)
    assert len([node for node in postorder(merged) if isinstance(node, Map)]) == 1
    for graph_pass in GRAPH_PASSES:
        once = graph_pass(merged)
        assert graph_pass(once) is once
    assert optimize_graph(merged) is merged


@pytest.mark.parametrize("devices", [1, 2, 4, 6])
def test_exchanges_are_inserted_once(devices: int) -> None:
    request = Request(devices=devices, parts={"j": 4, "i": 2})
    plan = optimize(einsum("ij,jk,kl->il", dict.fromkeys("ijkl", 8)), request)
    again = insert_exchanges(plan, request)
    assert [type(n) for n in postorder(again)] == [type(n) for n in postorder(plan)]
    assert [n.placement for n in postorder(again)] == [n.placement for n in postorder(plan)]


# ----------------------------------------------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda: Request(devices=0), "at least one device"),
        (lambda: Request(parts={"i": 0}), "parts of label 'i' must be at least 1"),
        (lambda: Request(parts={"i": 2}, tile={"i": 2}), "label 'i' is given both parts and a tile"),
        (lambda: optimize(einsum("ij->i", {"i": 2, "j": 2}), Request(parts={"z": 2})), "the query has no label 'z'"),
    ],
)
def test_requests_that_cannot_be(request_: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        request_()


@pytest.mark.parametrize("engine", ["host:4:2", "host:x", "gpu", "duckdb:2", "host:0"])
def test_engines_that_are_none(engine: str) -> None:
    with pytest.raises(PlanError):
        es.connect(engine=engine)


@pytest.mark.parametrize("engine", ["cuda", "sim"])
def test_engines_of_later(engine: str) -> None:
    with pytest.raises(UnsupportedError, match="not supported yet"):
        es.connect(engine=engine)


# ------------------------------------------------------------------------------------------------------ program text


@pytest.mark.parametrize(
    ("subscripts", "combine", "labels"),
    [
        ("[from where],[where to]->[from to]", "x0 * x1 + label('from')", ("from where", "where to")),
        ("[1 _],[_ µ]->[1 µ]", "case(label('µ') < label('1'), x0, -inf) * x1", ("1 _", "_ µ")),
        ("[a/b x0],[x0 c|d]->[a/b c|d]", "x0 * x1 * label('x0')", ("a/b x0", "x0 c|d")),
        ("[over sum],[sum i]->[over i]", "x0 + over + x1", ("over sum", "sum i")),
    ],
)
def test_programs_read_back_whatever_labels_are_called(subscripts: str, combine: str, labels: tuple[str, str]) -> None:
    with es.connect(engine="host:4") as db:
        db.create("a table", np.arange(6.0).reshape(2, 3), labels=labels[0])
        db.create('the "second"', np.arange(6.0).reshape(3, 2), labels=labels[1])
        query = db.einsum(subscripts, "a table", 'the "second"', combine=combine)
        program = query.host.program
        assert parse_program(str(query.explain("program"))) == program
        reference = db.einsum(subscripts, "a table", 'the "second"', combine=combine, engine="reference")
        np.testing.assert_allclose(query.numpy(), reference.numpy())


def test_programs_free_every_value_after_its_last_use() -> None:
    with es.connect(engine="host:2") as db:
        db.create("A", np.ones((4, 4)))
        program = db.sql(
            "WITH b AS (SELECT i, j, val + 1 AS val FROM A)"
            " SELECT x.i, y.j, SUM(x.val * y.val) AS val FROM b x JOIN b y ON x.j = y.i GROUP BY x.i, y.j"
        ).host.program
        freed = [r for step in program.steps for r in step.free]
        assert sorted(freed) == list(range(len(program.steps) - 1))
        last = {a: step.register for step in program.steps for a in step.args}
        assert all(last[r] == step.register for step in program.steps for r in step.free)


@pytest.mark.parametrize(
    "source", ["", "plan on host:0", "program on host:0\n  %0  = jump", "program on host:0\n  %0 = scan"]
)
def test_texts_that_are_no_program(source: str) -> None:
    with pytest.raises(ShapeError):
        parse_program(source)


# ------------------------------------------------------------------------------------------------------------ verify


def placed_plan() -> rel.Rel:
    return optimize(einsum("ij,jk->ik", {"i": 8, "j": 8, "k": 8}), Request(devices=2, parts={"i": 2}))


def join_of(plan: rel.Rel) -> rel.Join:
    return next(node for node in postorder(plan) if isinstance(node, rel.Join))


def test_verify_accepts_the_plan_and_rejects_broken_ones() -> None:
    """An operand in the wrong place, a partial result, a list of other blocks, a node without a placement."""
    plan = placed_plan()
    verify(plan, after="the test", placed=True)
    join = join_of(plan)
    elsewhere = replace(join.operands[0], placed=replicated(2, 2)) if isinstance(join.operands[0], rel.Scan) else None
    assert elsewhere is not None
    broken = [
        (replace(join, operands=(elsewhere, join.operands[1])), "operand A is not where it is needed"),
        (replace(join, work=None), "it has no placement"),
        (
            rel.Exchange(join, join.type.cuts, Listed(2, (frozenset([0]),)), name="C"),
            "its placement lists other blocks",
        ),
    ]
    for wrong, message in broken:
        with pytest.raises(InternalError, match=f"after the test, .*: {message}"):
            verify(wrong, after="the test", placed=True)


def test_verify_rejects_partial_results() -> None:
    request = Request(devices=2, parts={"j": 2}, placement={"e1": "Sharded(j)"})
    split = optimize(einsum("ij,jk->ik", {"i": 1, "j": 64, "k": 1}), request)
    join = join_of(split)
    assert isinstance(join.placement, Placement) and join.placement.partial
    with pytest.raises(InternalError, match="the result is partial"):
        verify(join, after="the test", placed=True)
    with pytest.raises(InternalError, match="it reads partial results"):
        verify(rel.Map(join, parse("exp(x0)"), name="m"), after="the test", placed=True)


def test_a_join_refuses_operands_that_are_cut_otherwise() -> None:
    join = join_of(placed_plan())
    with pytest.raises(PlanError, match="wants its operand cut"):
        replace(join, cuts=tuple(Cut(8, parts=8) for _ in join.cuts))


# ---------------------------------------------------------------------------------------------------------- overflow

BIG = 2**62
ENGINES = ("reference", "host:1", "host:2", "host:4")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parts", [{}, {"i": 2}, {"i": 4}])
@pytest.mark.parametrize(
    "text_",
    [
        "SELECT SUM(val) AS val FROM A",
        "SELECT PRODUCT(val) AS val FROM A",
        "SELECT SUM(a.val * b.val) AS val FROM A a JOIN A b ON a.i = b.i",
        "SELECT i, val * 4 AS val FROM A",
        "SELECT i, -(val * 2) - 1 AS val FROM A",
        "SELECT MAX(val + val) AS val FROM A",
        "SELECT SUM(val * i * i) AS val FROM A",
        "SELECT i, CAST(val * 1e10 AS BIGINT) AS val FROM A",
    ],
)
def test_integers_never_wrap(text_: str, parts: dict[str, int], engine: str) -> None:
    """Sum, product, map, cast and the merge of partial results raise, on whichever device they meet the limit."""
    with es.connect(engine=engine) as db:
        db.create("A", np.full(4, BIG), labels="i")
        with pytest.raises(OverflowError, match=r"which int64 cannot hold|leaves int64"):
            db.sql(text_, parts=parts).numpy(fill=0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("parts", [{}, {"i": 2}, {"i": 4}])
def test_integers_at_the_limit_are_exact(parts: dict[str, int], engine: str) -> None:
    with es.connect(engine=engine) as db:
        db.create("A", np.array([2**63 - 1, 0, -(2**63), -1]), labels="i")
        assert db.sql("SELECT MAX(val) AS val FROM A", parts=parts).numpy() == 2**63 - 1
        assert db.sql("SELECT MIN(val) AS val FROM A", parts=parts).numpy() == -(2**63)
        assert db.sql("SELECT SUM(val % 10) AS val FROM A", parts=parts).numpy() == 7 - 8 - 1
        assert db.sql("SELECT SUM(val // 4) AS val FROM A", parts=parts).numpy() == (2**63 - 1) // 4 - 2**61
        assert db.sql("SELECT i, val AS val FROM A WHERE i < 3", parts=parts).numpy(fill=0).tolist() == [
            2**63 - 1,
            0,
            -(2**63),
            0,
        ]


@pytest.mark.parametrize("engine", ENGINES)
def test_casts_round_half_to_even_under_a_mask_too(engine: str) -> None:
    with es.connect(engine=engine) as db:
        db.create("Z", {"i": [0, 1, 2, 4], "val": [1.5, 2.5, -0.5, -1.5]}, labels="i=5", parts={"i": 2})
        assert db.sql("SELECT i, CAST(val AS BIGINT) AS val FROM Z").numpy(fill=9).tolist() == [2, 2, 0, 9, -2]


def test_label_arithmetic_does_not_wrap() -> None:
    """Labels have no bound but their extent."""
    with es.connect() as db:
        db.create("E", {"src": [4_000_000_000], "val": [1.5]}, labels="src=4000000001")
        counted = "SELECT COUNT(*) AS val FROM E WHERE src * src * 2 > 0"
        assert db.sql(counted).numpy() == 1
        with pytest.raises(PlanError, match="the reference interpreter refuses E: 4000000001 cells"):
            db.sql(counted, engine="reference").numpy()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"parts": {"i": 4}},
        {"devices": 2, "parts": {"i": 4}, "placement": {"e1": "Sharded(i)"}},
        {"devices": 4, "parts": {"i": 4}, "placement": {"e1": "Sharded(i)"}},
        {"engine": "duckdb"},
        {"engine": "duckdb", "parts": {"i": 2}},
        {"engine": "reference"},
    ],
)
@pytest.mark.parametrize("wide", [1, 80])
@pytest.mark.parametrize("dense", [True, False])
def test_partial_sums_may_leave_int64_and_come_back(options: dict[str, Any], wide: int, dense: bool) -> None:
    """Law 1: whether an integer sum fits does not depend on how it is cut; only a final result must fit."""
    column = np.array([2**62, 2**62, -(2**62), 0])
    with es.connect() as db:
        db.create("A", np.repeat(column[:, None], wide, axis=1), labels="i k", dense=dense)
        text = "SELECT k, SUM(val) AS val FROM A GROUP BY k"
        np.testing.assert_array_equal(db.sql(text, **options).numpy(), [2**62] * wide)
        db.create("A", np.repeat(np.abs(column)[:, None], wide, axis=1), labels="i k", dense=dense, replace=True)
        with pytest.raises(OverflowError):
            db.sql(text, **options).run()


@pytest.mark.parametrize("engine", ["host:1", "host:2", "duckdb", "reference"])
@pytest.mark.parametrize("reduce", ["min", "max"])
def test_least_and_largest_values_beyond_int64_are_no_identity(engine: str, reduce: str) -> None:
    a = np.array([[2**40, 2**41]])
    with es.connect(engine=engine) as db:
        with pytest.raises(OverflowError):
            db.einsum("ab,ab->a", a, a, reduce=reduce).run()
        with pytest.raises(OverflowError):
            db.einsum("ab,ab->a", a, -a, reduce=reduce).run()
        mixed = np.array([[2**40, 3]])
        if reduce == "min":
            assert db.einsum("ab,ab->a", mixed, mixed, reduce=reduce).numpy().tolist() == [9]
