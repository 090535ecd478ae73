"""The relation that is true everywhere: it gives a query a label that none of its operands has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from einsql.relation import Relation
from gpu_exec.batch import from_dense
from planner.cuts import Cut
from planner.dtypes import BOOL
from planner.relation_type import Label, RelationType


def ones(labels: Sequence[Label], extents: Sequence[int]) -> Relation:
    """A complete relation of booleans, all true, that takes no memory whatever its extents."""
    cuts = tuple(Cut(extent, parts=1) for extent in extents)
    type = RelationType(tuple(labels), cuts, BOOL)
    return Relation("ones", from_dense(np.broadcast_to(np.True_, tuple(extents)), type), None)
