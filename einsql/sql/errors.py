"""Refusals that point at the place in the text."""

from __future__ import annotations

from sqlglot import exp

from planner.errors import ShapeError, SqlError


def position(node: exp.Expr) -> tuple[int, int]:
    """Line and column, 1-based, of the first token of `node` that sqlglot kept; (0, 0) when it kept none."""
    found = []
    for part in node.walk():
        meta = part.meta
        if "line" in meta and "start" in meta:
            found.append((meta["start"], meta["line"], meta["col"] - (meta["end"] - meta["start"])))
    return min(found)[1:] if found else (0, 0)


def located(text: str, node: exp.Expr, error: ShapeError) -> ShapeError:
    """The same error with the line of `node` under it."""
    return ShapeError(str(refuse(text, node, str(error))))


def refuse(text: str, node: exp.Expr, message: str, kind: type[SqlError] = SqlError) -> SqlError:
    """The error for `node`, with its line underlined."""
    line, column = position(node)
    while (line, column) == (0, 0) and node.parent is not None:  # sqlglot keeps no place for NULL and the like
        node = node.parent
        line, column = position(node)
    lines = text.splitlines()
    snippet = lines[line - 1] if 0 < line <= len(lines) else ""
    return kind(message, line, column, snippet)
