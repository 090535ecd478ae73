"""A session: the relations of one database, and the queries over them."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from einsql import builder
from einsql.cells import Storage
from einsql.create import create_relation
from einsql.domains import Domain
from einsql.einsum_call import einsum_of, read_call
from einsql.engine import choose_engine
from einsql.graph_domains import GraphDomains
from einsql.joining import relabelled
from einsql.ones import ones
from einsql.query import Query
from einsql.readings import Reading, Readings
from einsql.relation import Relation
from einsql.sources import adopted, called
from einsql.sql.names import Table
from einsql.sql.reader import Catalog, read_sql
from einsql.total import Whole
from einsql.values import number
from planner.einsum import Input, Tensor
from planner.errors import CatalogError, DataError, PlanError, ShapeError, UnsupportedError
from planner.memory import read_bytes
from planner.request import Request, check_cuts
from planner.scalar import Value

if TYPE_CHECKING:
    from einsql.duckdb.engine import DuckDBEngine


def connect(
    path: str | None = None,
    *,
    engine: str = "auto",
    devices: int | str | None = None,
    memory_limit: int | str | None = None,
) -> Session:
    """Open an embedded database in this process.

    engine        "auto", "reference", "duckdb" or "host", the last also with a count of devices as in "host:4"
    devices       how many host devices, or "host:4"
    memory_limit  bytes that the values of a query may hold at a time, or a text such as "4 GiB"; a query that needs
                  more is refused before it runs
    """
    if path is not None:
        raise UnsupportedError("a database on disk is not supported yet; connect() keeps relations in memory")
    return Session(engine, devices, memory_limit)


class Session:
    """Relations by name. A context manager; closing drops everything."""

    def __init__(
        self, engine: str = "auto", devices: int | str | None = None, memory_limit: int | str | None = None
    ) -> None:
        choose_engine(engine, devices)  # refuse a bad default now, not with the first query
        self.memory_limit = None if memory_limit is None else read_bytes(memory_limit)
        self._engine, self._devices = engine, devices
        self._relations: dict[str, Relation] = {}
        self._domains: dict[str, Domain] = {}
        self._readings = Readings()
        self._closed = False
        self._operands = 0

    # -------------------------------------------------------------------------------------------------- relations

    def create(
        self,
        name: str,
        data: Any,
        labels: str | Sequence[str] | None = None,
        *,
        val: str | None = None,
        block_shape: Sequence[int] | None = None,
        parts: Mapping[str, int] | None = None,
        tile: Mapping[str, int] | None = None,
        fill: Value = 0,
        dense: bool | None = None,
        duplicates: str = "refuse",
        replace: bool = False,
    ) -> Relation:
        """Store a tensor relation.

        data         an array: NumPy, DLPack (torch, jax, cupy), a list, a number; cells that NumPy masks are absent
                     a scipy sparse matrix
                     a table: whatever gives Arrow's C stream (pyarrow, pandas, polars, DuckDB), a mapping of columns
                     a file name: .parquet, .csv, .npy, .npz
                     another relation, or a query
        labels       one per axis, or the label columns of a table; extents may be stated: "src=34 dst=34". Columns of
                     strings, dates, timestamps, UUIDs, booleans, and of integers that reach 2**31, have a dictionary:
                     the sorted distinct values are the coordinates 0, 1, ...
                     "src:person dst:person" gives all labels that name `person` one dictionary, which grows with every
                     relation
        val          the value column of a table; without one every row is worth 1
        block_shape  of a value column of lists, each of which is a block in row-major order
        parts, tile  how labels are cut in storage: {label: number of parts}, {label: tile extent}
        fill         what an absent cell is worth where the relation is read as a total array
        dense        True: every cell must be there; False: keep rows of single cells; None: dense when complete
        duplicates   "refuse" or "sum", for rows with equal coordinates; sums keep the dtype
        replace      overwrite a relation of that name

        A `val` column of fixed_shape_tensor, or of lists, holds a block per row. A label with a column is cut: it holds
        the numbers of the blocks. A label without one lies inside the blocks. A block has an axis per label, or one per
        label without a column, in the order of `labels`, or as the tensor's dim_names say; a label with a column but no
        axis is cut to single cells. A table that `arrow(blocks=True)` made needs no labels.

        Raises   EinsqlError, and the database is as it was
        """
        if duplicates not in ("refuse", "sum"):
            raise ShapeError(f"duplicates is 'refuse' or 'sum', got {duplicates!r}")
        fill = number(fill)
        if val is not None and not isinstance(val, str):
            raise DataError(f"val is the name of a column, got {val!r}")
        parts, tile = {} if parts is None else parts, {} if tile is None else tile
        check_cuts(parts, tile)
        storage = Storage(parts, tile, dense)
        shared = dict(self._domains)
        add_up = duplicates == "sum"
        data = data._result if isinstance(data, Query) else data
        relation = create_relation(name, data, labels, val, fill, storage, add_up, block_shape, shared)
        relation = self.store(relation, replace)
        self._domains = shared
        return relation

    def store(self, relation: Relation, replace: bool = False) -> Relation:
        """Put a finished relation into the catalog."""
        self._check_open()
        if not isinstance(relation.name, str) or not relation.name:
            raise CatalogError(f"a relation is called by a word, got {relation.name!r}")
        taken = next((n for n in self._relations if n == relation.name), None)
        if taken is not None and not replace:
            raise CatalogError(
                f"relation {relation.name!r} already exists; pass replace=True, or write CREATE OR REPLACE TABLE"
            )
        if relation.memory_limit != self.memory_limit:
            relation = dataclasses.replace(relation, memory_limit=self.memory_limit)
        self._readings.stored(self._relations.get(relation.name), relation)
        self._relations[relation.name] = relation
        return relation

    def relation(self, name: str) -> Relation:
        """The relation with exactly this name."""
        if not isinstance(name, str):
            raise CatalogError(f"a relation is called by a word, got {name!r}")
        if name not in self._relations:
            close = difflib.get_close_matches(name, self._relations, n=1)
            known = ", ".join(sorted(self._relations)) or "none"
            raise CatalogError(
                f"no relation {name!r}; " + (f"did you mean {close[0]!r}?" if close else f"there are {known}")
            )
        return self._relations[name]

    def relations(self) -> list[str]:
        """The names of all relations, sorted."""
        return sorted(self._relations)

    def drop(self, name: str) -> None:
        """Forget a relation."""
        self.relation(name)
        del self._relations[name]
        self._readings.forget()

    @cached_property
    def duckdb(self) -> DuckDBEngine:
        """The DuckDB engine of this session, opened on first use."""
        from einsql.duckdb.engine import DuckDBEngine

        return DuckDBEngine()

    def close(self) -> None:
        """Drop every relation and end DuckDB; what was queried before keeps its relations and can still be taken."""
        self._closed = True
        self._relations.clear()
        self._domains.clear()
        self._readings.forget()
        if "duckdb" in self.__dict__:
            self.duckdb.close()
            del self.__dict__["duckdb"]

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ---------------------------------------------------------------------------------------------------- queries

    def sql(self, text: str, **options: Any) -> Query:
        """A query over tensor relations. SELECT is lazy; CREATE TABLE name AS SELECT runs at once.

        options   engine, devices, parts, tile, placement: see `einsum`
        """
        self._check_open()
        known = self._readings.find(text, self._relations) if isinstance(text, str) else None
        if known is not None:
            return self._query(known, options)
        used: dict[str, Relation] = {}

        def find(name: str) -> Table:
            relation = self._relations[name]
            node = Input(relation.type, name=called(relation, used))
            return Table(node, node.type.labels, relation.value)

        def everywhere(label: str, extent: int) -> Tensor:
            relation = ones([label], [extent])
            return Input(relation.type, name=called(relation, used))

        statement = read_sql(text, Catalog(self.relations, find, everywhere, GraphDomains(used)))
        reading = Reading(statement.table.node, statement.table.labels, used, None, statement.table.value)
        query = self._query(reading, options)
        if statement.create is None:
            self._readings.keep(text, reading, self._relations)
        else:
            query.to_table(statement.create, statement.replace)
        return query

    def einsum(
        self,
        subscripts: Any,
        *operands: Any,
        reduce: str = "sum",
        combine: str | None = None,
        path: Any = None,
        **options: Any,
    ) -> Query:
        """An einsum over relations read as total arrays: an absent cell has its relation's fill.

        subscripts   "ij,jk->ik", "...ij,...jk->...ik", words in brackets "[src dst],[dst c]->[src c]", or NumPy's list
                     form: db.einsum(A, [0, 1], B, [1, 2], [0, 2])
        operands     names of relations, relations, queries, tensors, numbers, arrays, files as pathlib.Path, and what
                     else `create` takes without labels
        reduce       sum, prod, max, min, any, all, or fsum: the exactly rounded sum; sum over booleans is any, as in
                     NumPy
        combine      mul, add, sub, div, min, max, or an expression over x0, x1, ... and labels: "abs(x0 - x1)"
        path         in which order to contract: a list of index tuples as NumPy, opt_einsum and cotengra give it, or
                     SSA pairs after the word "ssa"
        options      engine "host:4", devices 4, parts {label: n}, tile {label: n}, placement {node: "Sharded(i)"}

        An axis of extent 1 is stretched as NumPy does it. An ellipsis that the output leaves out is summed over. Labels
        with dictionaries meet by their values; one whose coordinates stand for values meets no plain one.
        """
        self._check_open()
        text = (subscripts, *operands, reduce, combine) if path is None else ()
        by_name = bool(text) and all(word is None or isinstance(word, str) for word in text)
        known = self._readings.find(text, self._relations) if by_name else None
        if known is not None:
            return self._query(known, options)
        call = read_call(subscripts, operands, lambda name: name in self._relations)
        used: dict[str, Relation] = {}
        domains = GraphDomains(used)
        wholes = [self._whole(operand, used) for operand in call.operands]
        read = call.subscripts([domains.shape(w.node) for w in wholes])
        result = einsum_of(wholes, read, reduce, combine, path, domains)
        reading = Reading(result.node, read.output, used, result.fill)
        if by_name:
            self._readings.keep(text, reading, self._relations)
        return self._query(reading, options)

    def tensor(self, data: Any, labels: str | Sequence[str] | None = None) -> builder.Tensor:
        """A lazy tensor with named labels, read as a total array: see `einsql.builder`.

        data     the name of a relation, a relation, a query, a number, an array, or whatever else `create` takes
        labels   names for its axes, in order; by default those that the relation or the query has
        """
        self._check_open()
        used: dict[str, Relation] = {}
        if isinstance(data, str | Query | Relation):
            whole = self._whole(data, used)
            names = data.labels if isinstance(data, Query) else whole.node.type.labels
            return relabelled(builder.Tensor(self, whole, names, used), labels)
        self._operands += 1
        storage = Storage({}, {}, None)
        relation = create_relation(f"operand{self._operands}", data, labels, None, 0, storage, False)
        whole = Whole(Input(relation.type, name=called(relation, used)), relation.fill or 0)
        return builder.Tensor(self, whole, relation.labels, used)

    def _whole(self, operand: Any, used: dict[str, Relation]) -> Whole:
        if isinstance(operand, builder.Tensor):
            operand = operand.query()
        if isinstance(operand, Query):
            node = adopted(operand.graph, operand.relations, used)
            if operand.fill is None and not node.type.complete:
                raise DataError(
                    f"an einsum reads whole arrays, and absent cells of the operand {operand!r} have no value"
                    "\n  store it first, as in query.to_table('name'), where an absent cell is worth 0"
                )
            return Whole(node, 0 if operand.fill is None else operand.fill)
        if isinstance(operand, Relation):
            relation = operand
        elif isinstance(operand, str):
            relation = self.relation(operand)
        else:
            self._operands += 1
            storage = Storage({}, {}, None)
            relation = create_relation(f"operand{self._operands}", operand, None, None, 0, storage, False)
        name = called(relation, used)
        return Whole(Input(relation.type, name=name), 0 if relation.fill is None else relation.fill)

    def _check_open(self) -> None:
        if self._closed:
            raise CatalogError("the session is closed; es.connect() opens another one")

    def _query(self, reading: Reading, options: Mapping[str, Any]) -> Query:
        unknown = sorted(set(options) - {"engine", "devices", "parts", "tile", "placement"})
        if unknown:
            raise TypeError(f"no option {unknown[0]!r}; options are engine, devices, parts, tile, placement")
        default, devices = self._engine, None if "engine" in options else self._devices
        if "devices" in options:  # what the query says wins over what the session was opened with
            default, devices = self._engine.partition(":")[0], options["devices"]
        engine = choose_engine(options.get("engine", default), devices)
        if options.get("placement") and engine.name != "host":
            raise PlanError(f"placement= belongs to host devices; engine {engine.name!r} has none")
        request = Request(
            devices=engine.devices,
            parts=reading.in_graph(options.get("parts")),
            tile=reading.in_graph(options.get("tile")),
            placement={} if options.get("placement") is None else options["placement"],
        )
        relations = dict(reading.relations)
        return Query(self, reading.graph, reading.labels, relations, engine, request, reading.fill, reading.value)
