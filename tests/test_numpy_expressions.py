"""Einsum strings mean what NumPy says they mean: every kind of expression of NumPy's own tests, over small integers.

The judge is a plain loop over the whole label space, and NumPy judges the judge. One policy is einsql's own: dotted
dimensions that the output drops are summed, with and without a path, where NumPy refuses them without one.
"""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import einsql as es

Array = np.ndarray

# `subscripts`, or `subscripts | shapes` with one digit per axis and `-` for a scalar.
EXPRESSIONS = {
    "views": """
        i | ij | ji | ijk | kji | jik | ii->i | iii->i | jii->ij | iij->ij | iji->ij | iij->ji | ijij->ij | iijj->ij
        iijj->ji | ijji->ij | iiij->ji | ijk->jik | ijk->kij | ijkl->lkji | ijkl->ikjl | abcab->cba
    """,
    "sums": """
        i-> | ij-> | ij->i | ij->j | ijk-> | ijk->k | ijk->ik | ijk->ki | ii-> | ii | iii-> | iij->j | iij->i | iij->
        ijij-> | ijji-> | iijj-> | ijik->jk | ijik->kj | iijkk->j | bbcdc->d | aabb->ab | abcdef->fb
    """,
    "products of two": """
        i,i-> | i,i->i | i,i | i,j->ij | i,j->ji | i,j | i,j-> | i,j->i | i,j->j | ij,j->i | ij,j | ji,j->i | i,ij->j
        ij,jk->ik | ij,jk->ki | ij,jk | ij,kj->ik | ji,jk->ik | ji,kj->ki | ij,jk-> | ij,jk->i | ij,jk->k | ij,jk->j
        ij,jk->ijk | ij,ij-> | ij,ij->ij | ij,ij->ji | ij,ji-> | ij,ji->ij | ij,ij->i | ij,ij->j | ij,kl->ijkl
        ij,kl->ljki | ij,kl->il | ij,kl-> | abc,abc | abc,bca | abc,cab->b | abc,cba->ca | ijk,jil->kl | ijk,kl->ijl
        ijk,kl->lji | ijk,ikl->ijl | bij,bjk->bik | bij,bjk->ikb | bij,bkj->bik | ijk,k->ij | ijk,j->ik | ijk,j->ijk
        ijkl,k->ijl | abcd,ad | abcd,cdef->abef | abcd,dcef->efba | abcd,abef->cdfe | ijklm,ijn-> | cl,cpx->lpx
        cl,cpxy->lpxy | pbk,ijk->ipj | obk,ijk->ioj | ii,i->i | ii,ij->j | ii,jj->ij | ii,jj-> | iij,jk->ik
        iij,jjk->ik | ii,ii-> | ij,kk->ij | ij,kk-> | abb,bcc->ca
    """,
    "implicit output, capitals first": """
        ba | bA | aBc | BaC | cb,ba | cb,bA | Ab,bC | zA,Ay | bca,ab | xx,xY | bB | Zz,zZ | i,J,k
    """,
    "dots": """
        ... | 234   i... | 234   ...i | 234   ...->... | 234   ...i->... | 234   i...->... | 234   ...ij->...ji | 234
        i...j->j...i | 2345   ...ii->...i | 233   ii...->...i | 334   ii...->i... | 334   i...i->i... | 343
        i...i->...i | 343   ...ii->i... | 233   ...ii->... | 233   ...ii | 233   ij...->ji... | 2342   ...,... | 23 23
        ...,... | - -   ...,... | 23 3   ...,... | 3 23   ...,...->... | 234 34   ...,i->i... | 23 4
        ...i,...i | 23 23   ...i,...i | 34 34   ...i,...i->... | 23 3   i...,i... | 32 32   i...,i...->... | 32 3
        ...i,...j->...ij | 23 24   ...ij,...jk->...ik | 23 34   ...ij,...jk->...ik | 423 434
        ...ij,...jk->...ik | 2423 34   ...ij,...jk->...ik | 23 2434   ...ij,...jk->ik... | 423 34
        ...ij,...jk | 423 34   ij...,jk...->ik... | 232 342   ij...,j...->i... | 124 24   ij...,j...->ij... | 23 3
        ij...,...j->ij... | 23 3   ij...,j->ij... | 23 3   ik...,k...->i... | 23 34   ik...,...kj->i...j | 23 34
        ...k,kj | 23 34   ik,k...->i... | 23 34   ...kl,k | 2342 4   ...kl,k... | 2342 4   ...lmn,lmno->...o | 2324 3243
        ...lmn,...lmno->...o | 2324 3242   ...ft,mf->...mt | 234 53   ...a,a...,a->... | 32 23 2
        ...,ij,jk->ik | - 23 34   ...,ij,jk->ik... | 4 23 34   a...b,b...c->a...c | 243 342
        a...b,bc->a...c | 243 32   ...i,i->...i | 2343 3
        ...,...,... | 2 2 2   ...,...,...->... | 432 32 2   ...i,...i,...i->...i | 23 3 13
        ...ij,jk...->i...k | 223 342   i...,...->i... | 234 34   i...,...->...i | 234 34   ...b,...b->b... | 243 243
        i...j,j...->i... | 243 34   ...A,...B->B...A | 23 24
    """,
    "dots dropped": """
        i...->i | 232   ...i->i | 232   ...-> | 23   i...-> | 23   ii...->i | 332   ...i,...i->i | 43 43
        i...,i->i | 23 2   ...ij,...jk->ik | 423 434   i...,ij->j | 23 24   ...,...-> | 23 23   ...,...-> | 23 3
        i...,j...->ij | 23 43   a...b,bc->ac | 243 32
    """,
    "an extent of 1 stretches": """
        i,i-> | 3 1   i,i-> | 1 3   i,i->i | 3 1   i,i | 1 1   ij,ij->ij | 31 14   ij,ij-> | 31 14   ij,jk->ik | 21 34
        ij,jk->ik | 23 14   ij,jk->ik | 13 34   ij,j->i | 21 4   ij,j->ij | 21 4   ji,i-> | 41 3   i,i,i-> | 1 3 1
        i,i,i->i | 3 1 3   ii,i->i | 11 3   ij,ji->ij | 13 14   ijp,ipq,ikq->ijk | 311 313 133
        bij,bjk->bik | 123 434   bij,bjk->bik | 423 134   ...,... | 31 14   ...i,...i->... | 213 143
        ...ij,...jk->...ik | 2123 1434   ...i,i | 21 3   i...,i...->i... | 12 32   ab,bc,ca-> | 21 34 42
        ab,bc,ca->b | 12 23 31   abc,abc->ca | 214 231   gah,cdbcghefg->ef | 232 131112141   cacc,bcb-> | 1111 141
        baeg,hdgge->dhg | 2141 11334   a,ab,abc->abc | 1 12 314   ab,cb,db->acd | 21 33 21   ij,kj->ik | 11 11
    """,
    "scalars": """
        -> | -   ,-> | - -   ,,-> | - - -   ,i-> | - 3   i,-> | 3 -   ,i->i | - 3   i,->i | 3 -   ,ij->ij | - 23
        ,ij->ji | - 23   ij,->ji | 23 -   ij,,jk->ik | 23 - 34   ,ij,jk | - 23 34   ,ii->i | - 33   ii,-> | 33 -
        ,i,-> | - 3 -   ,i,,i-> | - 3 - 3
    """,
    "empty extents": """
        i-> | 0   i->i | 0   ij->i | 20   ij->j | 20   ij-> | 02   i,i-> | 0 0   i,j->ij | 0 3   i,j-> | 3 0
        ij,jk->ik | 20 03   ij,jk->ik | 02 23   ij,jk->ik | 23 30   ij,jk-> | 20 03   ii-> | 00   ii->i | 00
        i,i->i | 0 1   ...i->... | 230   ...i->... | 203   ,i-> | - 0   i,j,k->ik | 2 0 3
    """,
    "Hadamard products": """
        a,ab,abc->abc | a,b,ab->ab | abc,ab,a->cba | i,i,i->i | i,i,i-> | i,i,i,i-> | mi,mi,mi->m | im,im,im->m
        ab,ab,ab->ba | ab,ba,ab->a | abc,c,b,a->abc | ab,b,ab,a-> | abc,bc,c->ac
    """,
    "index transformations": """
        ea,fb,gc,hd,abcd->efgh | ea,fb,abcd,gc,hd->efgh | abcd,ea,fb,gc,hd->efgh | ai,bj,ijk,ck->abc
        ijk,ai,bj,ck->cba | ai,bi,ijj->abj
    """,
    "products of many": """
        ij,jk,kl | ij,jk,kl->il | ij,jk,kl->li | ij,jk,kl-> | ij,jk,kl,lm->im | ab,bc,cd,de,ef->af | ab,bc,cd,da->
        ab,bc,ca-> | ab,bc,ac->abc | ab,ac,ad->bcd | ab,ac,ad->a | ab,ac,ad-> | xgk,xkd,xk->xgd | a,b,c,d->dbca
        a,b,c,d,e,f->fe | ijk,kl,jl | ijk,kl,jl,i->i | abjk,kl,jl | abjk,kl,jl,ab->ab | z,mz,zm-> | x,yx,zx->xzy
        ijklm,ijn,ijn-> | ia,jb,kc,ld,ijkl->abcd | ab,bcd,dce,ef->af | aij,bjk,ckl,dli->abcd
        acdf,jbje,gihb,hfac,gfac,gifabc,hfac | cd,bdhe,aidb,hgca,gc,hgibcd,hgac | bde,cdh,agdb,hica,ibd,hgicd,hiac
        abhe,hidj,jgba,hiab,gab | chd,bde,agbc,hiad,bdi,cgh,agdb | bdhe,acad,hiab,agac,hibd
    """,
    "collapse": """
        ab,ab,c-> | ab,ab,c->c | ab,ab,cd,cd-> | ab,ab,cd,cd->ac | ab,ab,cd,cd->cd | ab,ab,cd,cd,ef,ef-> | ab,ab,cd->dc
        a,a,bb->b | ab,cd,cd,ab->
    """,
    "expand": """
        ab,cd,ef->abcdef | ab,cd,ef->acdf | ab,cd,de->abcde | ab,cd,de->be | ab,bcd,cd->abcd | ab,bcd,cd->abd
        a,b,c->cab | ab,c,de->edcba | a,ab,c->cba
    """,
    "edge cases": """
        eb,cb,fb->cef | dd,fb,be,cdb->cef | bca,cdb,dbf,afc-> | dcc,fce,ea,dbf->ab | fdf,cdd,ccd,afe->ae
        ed,fcd,ff,bcf->be | baa,dcf,af,cde->be | bd,db,eac->ace | fff,fae,bef,def->abd | efc,dbc,acf,fd->abe
        ba,ac,da->bcd | aa,bb,cc->abc | aab,bbc,cca-> | abab,cbcb->ca
    """,
    "random cases": """
        aab,fa,df,ecc->bde | ecb,fef,bad,ed->ac | bcf,bbb,fbf,fc-> | bb,ff,be->e | bcb,bb,fc,fff-> | fbb,dfd,fc,fc->
        afd,ba,cc,dc->bf | adb,bc,fa,cfc->d | bbd,bda,fc,db->acf | dba,ead,cad->bce | aef,fbc,dca->bde
        gcc,ag,bgd,dd->ba | ebe,bf,fga,cg->c | hb,bhb,ah,ccf->fa | dcd,fa,ebf,aec->b | gfg,ea,caf,dd->cg
    """,
    "other alphabets": """
        αβ,βγ->αγ | βα | äö,öü->üä | αΑ->Αα | жi,iж
    """,
    "spaces": """
        ij , jk->ik | 23 34   i j,j k -> i k | 23 34   ...  , ... | 23 3
    """,
}


def read(text: str) -> Iterator[tuple[str, tuple[tuple[int, ...], ...]]]:
    """The expressions of one entry with the shapes of their operands."""
    for line in text.strip().splitlines():
        if any(character.isdigit() or character == "-" for character in line.replace("->", "")):
            for item in line.split("   "):
                if item.strip():
                    subscripts, _, shapes = item.strip().partition(" | ")
                    yield subscripts, tuple(tuple(map(int, shape.strip("-"))) for shape in shapes.split())
        else:
            for item in line.strip().split(" | "):
                sides = item.partition("->")[0].split(",")
                yield item, tuple(tuple(2 + ord(label) % 2 for label in side) for side in sides)


CASES = [(kind, *case) for kind, text in EXPRESSIONS.items() for case in read(text)]
IDS = [f"{subscripts} {' '.join(''.join(map(str, s)) or '-' for s in shapes)}" for _, subscripts, shapes in CASES]
every_expression = pytest.mark.parametrize(("kind", "subscripts", "shapes"), CASES, ids=IDS)


def operands(subscripts: str, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
    """Integers from -2 to 3, zero left out, drawn once per expression."""
    rng = np.random.default_rng([ord(c) for c in subscripts])
    return [np.asarray(rng.choice([-2, -1, 1, 2, 3], shape)) for shape in shapes]


# --------------------------------------------------------------------------------------------------------- the judge


def lists(subscripts: str, arrays: Sequence[Array]) -> tuple[list[list[Any]], list[Any]]:
    """The labels of every operand and of the output; dotted dimensions are numbers, counted from the right."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    sides = []
    for side, array in zip(left.split(","), arrays, strict=True):
        before, dots, after = side.partition("...")
        count = array.ndim - len(before) - len(after)
        assert count == 0 or (dots and count > 0)
        sides.append([*before, *range(count - 1, -1, -1), *after])
    every = [label for side in sides for label in side]
    dotted = sorted({label for label in every if isinstance(label, int)}, reverse=True)
    if not arrow:
        return sides, dotted + sorted(c for c in set(every) - set(dotted) if every.count(c) == 1)
    before, dots, after = right.partition("...")
    return sides, [*before, *(dotted if dots else []), *after]


def brute_force(subscripts: str, arrays: Sequence[Array], zero: Any = 0) -> Array:
    """One product per point of the label space, added up in Python's own numbers."""
    sides, output = lists(subscripts, arrays)
    extents: dict[Any, int] = {}
    for side, array in zip(sides, arrays, strict=True):
        for label, extent in zip(side, array.shape, strict=True):
            extents[label] = extent if extents.get(label, 1) == 1 else extents[label]
            assert extent in (1, extents[label])
    result = np.full([extents[label] for label in output], zero, object)
    for point in itertools.product(*map(range, extents.values())):
        at = dict(zip(extents, point, strict=True))
        product = 1
        for side, array in zip(sides, arrays, strict=True):
            index = tuple(at[label] if n > 1 else 0 for label, n in zip(side, array.shape, strict=True))
            product = product * array[index].item()
        result[tuple(at[label] for label in output)] += product
    return result


def letters(subscripts: str) -> list[str]:
    return sorted({c for c in subscripts if c.isalpha()})


@every_expression
def test_numpy_agrees_with_the_judge(kind: str, subscripts: str, shapes: Sequence[tuple[int, ...]]) -> None:
    """NumPy gives what the loop gives; dots dropped only with a path, and other alphabets once they are Latin."""
    arrays = operands(subscripts, shapes)
    if kind == "dots dropped":
        with pytest.raises(ValueError, match="more dimensions than subscripts"):
            np.einsum(subscripts, *arrays)
    standing = dict(zip(letters(subscripts), string.ascii_letters, strict=False)) if kind == "other alphabets" else {}
    latin = subscripts.translate({ord(letter): other for letter, other in standing.items()})
    by_numpy = np.einsum(latin, *arrays, optimize=kind == "dots dropped")
    np.testing.assert_array_equal(by_numpy, brute_force(subscripts, arrays).astype(np.int64))


# ----------------------------------------------------------------------------------------------------------- einsql


@pytest.fixture(scope="module")
def db() -> Iterator[es.Session]:
    with es.connect() as session:
        yield session


@every_expression
def test_every_engine_and_cut_gives_the_judges_answer(
    db: es.Session, kind: str, subscripts: str, shapes: Sequence[tuple[int, ...]]
) -> None:
    """Host devices and DuckDB, whole, with every label halved, and cut to single cells."""
    arrays = operands(subscripts, shapes)
    expected = brute_force(subscripts, arrays).astype(np.int64)
    halves, cells = dict.fromkeys(letters(subscripts), 2), dict.fromkeys(letters(subscripts), 1)
    for options in (
        {"engine": "host:1"},
        {"engine": "host:4", "parts": halves},
        {"engine": "host:1", "tile": cells},
        {"engine": "duckdb"},
        {"engine": "duckdb", "parts": halves},
    ):
        got = db.einsum(subscripts, *arrays, **options).numpy()
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), options
        np.testing.assert_array_equal(got, expected, err_msg=str(options))


@every_expression
def test_the_list_form_means_the_same(
    db: es.Session, kind: str, subscripts: str, shapes: Sequence[tuple[int, ...]]
) -> None:
    """Whole numbers in place of letters, in the letters' order, and Ellipsis in place of dots."""
    arrays = operands(subscripts, shapes)
    number = {label: n for n, label in enumerate(letters(subscripts))}

    def listed(side: str) -> list[Any]:
        before, dots, after = side.strip().partition("...")
        return [*(number[c] for c in before), *([Ellipsis] if dots else []), *(number[c] for c in after)]

    left, arrow, right = subscripts.replace(" ", "").partition("->")
    arguments: list[Any] = []
    for array, side in zip(arrays, left.split(","), strict=True):
        arguments += [array, listed(side)]
    got = db.einsum(*arguments, *([listed(right)] if arrow else [])).numpy()
    np.testing.assert_array_equal(got, brute_force(subscripts, arrays).astype(np.int64))


MANY = [(case, id) for case, id in zip(CASES, IDS, strict=True) if len(case[2]) > 2]


@pytest.mark.parametrize("how", ["greedy", "optimal", "left to right", "right to left", "all at once"])
@pytest.mark.parametrize(("kind", "subscripts", "shapes"), [case for case, _ in MANY], ids=[id for _, id in MANY])
def test_every_path_gives_the_judges_answer(
    db: es.Session, kind: str, subscripts: str, shapes: Sequence[tuple[int, ...]], how: str
) -> None:
    """NumPy's paths as NumPy gives them, and three written out."""
    arrays, n = operands(subscripts, shapes), len(shapes)
    path: list[Any] = [tuple(range(n))]
    if how in ("greedy", "optimal"):
        path = np.einsum_path(subscripts, *arrays, optimize=how)[0]
    elif how == "left to right":
        path = [(0, 1), *((0, i) for i in range(n - 2, 0, -1))]
    elif how == "right to left":
        path = [(i - 1, i) for i in range(n - 1, 0, -1)]
    got = db.einsum(subscripts, *arrays, path=path).numpy()
    np.testing.assert_array_equal(got, brute_force(subscripts, arrays).astype(np.int64))


SUMS = [
    "i->", "ij->j", "ij->i", "ii->", "ijk->j", "i,i->", "ij,j->i", "ij,jk->ik", "ij,jk,kl->il", "i,->", "...i->...",
    "...i,...i->...", "...ij,...jk->...ik",
]  # fmt: skip
PRODUCTS = ["i,j->ij", "i,i,i->i", ",i->i", "ii,i->i", "...,...->..."]
HALVES = {"float16": "float32", "bfloat16": "float32"}
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")


@pytest.mark.parametrize("engine", ["reference", "host:1", "host:4", "duckdb"])
@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64",
     "complex128"],
)  # fmt: skip
def test_sums_and_products_of_every_dtype(db: es.Session, dtype: str, engine: str) -> None:
    """Small integers are exact in every dtype; integers and sums of halves give wide ones, booleans or their ands."""
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    for subscripts in SUMS + PRODUCTS:
        sides = subscripts.replace("...", "").partition("->")[0].split(",")
        shapes = [tuple(2 + ord(label) % 2 for label in side) for side in sides]
        exact = operands(subscripts, shapes)
        if dtype == "bool":
            exact = [(a > 1).astype(int) for a in exact]
        elif dtype == "uint8":
            exact = [abs(a) for a in exact]
        elif kind.kind == "c":
            exact = [a * (1 + 1j) for a in exact]
        got = db.einsum(subscripts, *(a.astype(kind) for a in exact), engine=engine).numpy()
        wide = "int64" if dtype in INTEGERS else HALVES.get(dtype, dtype) if subscripts in SUMS else dtype
        assert got.dtype == (ml_dtypes.bfloat16 if wide == "bfloat16" else wide), subscripts
        np.testing.assert_array_equal(got, brute_force(subscripts, exact).astype(got.dtype), subscripts)


def test_views_are_read_as_they_are(db: es.Session) -> None:
    """Transposed, reversed, strided, repeated and Fortran-ordered operands, none of which lies in row-major order."""
    a = np.arange(24).reshape(4, 6)
    views = [a.T, a[::-1], a[:, ::-1], a[::2, 1::2], np.asfortranarray(a), np.broadcast_to(a[1], (3, 6)), a[1:, 2:5]]
    views += [np.swapaxes(a.reshape(2, 2, 6), 0, 2)[:, 1], np.lib.stride_tricks.sliding_window_view(np.arange(6), 4)]
    for left, right in itertools.product(views, repeat=2):
        if left.shape[1] == right.shape[0]:
            np.testing.assert_array_equal(db.einsum("ij,jk->ik", left, right).numpy(), left @ right)
        outer = db.einsum("ij,kl->lkji", left, right).numpy()
        np.testing.assert_array_equal(outer, np.multiply.outer(left, right).T)


REFUSED: list[tuple[str, list[Any]]] = [
    ("", [0, 0]),
    (",", [0, [0], [0]]),
    (",", [[0]]),
    ("i", [0]),
    ("ij", [[0, 0]]),
    ("i", [[[0, 0]]]),
    ("...i", [0]),
    ("i...j", [[0, 0]]),
    ("i...", [0]),
    ("ij...", [[0, 0]]),
    ("i..", [[0, 0]]),
    (".i...", [[0, 0]]),
    ("......", [[0, 0]]),
    ("...i...", [[[0, 0]]]),
    ("j->..j", [[0, 0]]),
    ("j->.j...", [[0, 0]]),
    ("i%...", [[0, 0]]),
    ("...j$", [[0, 0]]),
    ("i->&", [[0, 0]]),
    ("i->i->i", [[0, 0]]),
    ("i>i", [[0, 0]]),
    ("i-i", [[0, 0]]),
    ("i->ij", [[0, 0]]),
    ("ij->jij", [[[0, 0], [0, 0]]]),
    ("ij->...ij...", [[[0, 0], [0, 0]]]),
    ("i->...i", [[0, 0]]),
    ("ii", [np.arange(6).reshape(2, 3)]),
    ("ii->i", [np.arange(6).reshape(2, 3)]),
    ("ii->i", [np.ones((1, 3))]),
    ("iji->j", [np.ones((3, 2, 1))]),
    ("i,i", [[0, 1, 2], [0, 1]]),
    ("ij,jk->ik", [np.ones((2, 3)), np.ones((2, 3))]),
    ("aabcb,abc", [np.ones((3, 3, 4, 5, 6)), np.ones((3, 4, 5))]),
    ("...,...", [np.ones((2, 3)), np.ones(2)]),
    ("...i,...i->...", [np.ones((2, 3)), np.ones((4, 3))]),
]


@pytest.mark.parametrize(("subscripts", "arrays"), REFUSED, ids=[s or "nothing" for s, _ in REFUSED])
def test_what_numpy_refuses_is_refused(db: es.Session, subscripts: str, arrays: list[Any]) -> None:
    """With the error for labels and shapes, when the query is written."""
    arrays = [np.asarray(a) for a in arrays]
    if subscripts != "i->...i":  # NumPy takes dots that stand for nothing in the output
        with pytest.raises(ValueError):
            np.einsum(subscripts, *arrays)
    with pytest.raises(es.errors.ShapeError):
        db.einsum(subscripts, *arrays)
