"""The text of a program, and back: `parse_program(print_program(p)) == p`.

    %2  = join %0, %1 sum ij,jk->ik x0 * x1 over (i=8/2 k=8 j=8) work Sharded(i)  ->  f64[i=8/2 k=8] Sharded(i)  "C"
          rows 2   calls 2   moved 0   held 256 256
          free %0 %1

Numbers are exact: a program is compared as a value.
"""

from __future__ import annotations

import json
import re

from planner.cuts import parse_cut
from planner.errors import ShapeError
from planner.placement import Placement, describe, parse_placement
from planner.program import Counts, Exchange, Fill, Filter, Join, Map, Op, Program, Scan, Step
from planner.relation_type import parse_type
from planner.scalar import Const
from planner.scalar_text import parse, text
from planner.subscripts import parse_subscripts


def print_program(program: Program) -> str:
    """The text of a program, in pipelines, totals first."""
    totals = [
        f"program on {' '.join(program.devices)}",
        f"{program.kernel_calls} kernel calls",
        f"{program.exchanges} exchanges",
        f"moves {program.moved_bytes} bytes",
        f"peak {max(program.peak_bytes, default=0)} bytes per device",
    ]
    lines = ["   ".join(totals)]
    for number, steps in enumerate(program.pipelines()):
        lines += ["", f"pipeline {number}"]
        for step in steps:
            lines += _print_step(step)
    lines += ["", f"emit %{program.result.register}"]
    return "\n".join(lines) + "\n"


def _print_step(step: Step) -> list[str]:
    labels = step.type.labels
    head = f"  %{step.register}".ljust(6) + f"= {_print_op(step.op)}"
    lines = [f"{head}  ->  {step.type} {describe(step.placement, labels)}  {json.dumps(step.name, ensure_ascii=False)}"]
    if step.counts:
        c = step.counts
        lines.append(f"        rows {c.rows}   calls {c.calls}   moved {c.moved}   held {' '.join(map(str, c.held))}")
    if step.free:
        lines.append(f"        free {' '.join(f'%{r}' for r in step.free)}")
    return lines


def _print_op(op: Op) -> str:
    match op:
        case Scan(table):
            return f"scan {json.dumps(table, ensure_ascii=False)}"
        case Join():
            labels = op.subscripts.labels
            cuts = " ".join(f"{label}={cut}" for label, cut in zip(labels, op.cuts, strict=True))
            where = f" where {text(op.where)}" if op.where is not None else ""
            args = ", ".join(f"%{a}" for a in op.args)
            return (
                f"join {args} {op.reduce or 'keep'} {op.subscripts} {text(op.combine)}{where}"
                f" over ({cuts}) work {describe(op.work, labels)}"
            )
        case Map((arg,), expr):
            return f"map %{arg} {text(expr)}"
        case Filter((arg,), where):
            return f"filter %{arg} where {text(where)}"
        case Fill((arg,), value):
            return f"fill %{arg} with {text(Const(value))}"
        case Exchange((arg,)):
            return f"exchange %{arg}"


_STEP = re.compile(
    r"  %(?P<register>\d+)\s+= (?P<op>.*)  ->  (?P<type>.*\](?: scalar| blocks| cells)*) "
    r'(?P<place>\S.*)  (?P<name>".*")$'
)
_JOIN = re.compile(
    r"(?P<args>%\d+(?:, %\d+)*) (?P<reduce>\w+) (?P<subscripts>[^\s\[]*->[^\s\[]*|.*?\]->\[.*?\]) "
    r"(?P<combine>.*?)(?: where (?P<where>.*?))? over \((?P<cuts>[^()]*)\) work (?P<work>.*)$"
)


def parse_program(source: str) -> Program:
    """Read the text of a program."""
    lines = source.splitlines()
    if not lines or not lines[0].startswith("program on "):
        raise ShapeError("a program starts with 'program on <devices>'")
    devices = tuple(lines[0].split("   ")[0].removeprefix("program on ").split())
    steps: list[Step] = []
    for line in lines[1:]:
        words = line.split()
        if not words or words[0] in ("pipeline", "emit"):
            continue
        if words[0] == "rows":
            steps[-1] = _with(steps[-1], counts=_counts(words))
        elif words[0] == "free":
            steps[-1] = _with(steps[-1], free=tuple(int(w[1:]) for w in words[1:]))
        else:
            steps.append(_parse_step(line, len(devices)))
    return Program(devices, tuple(steps))


def _with(step: Step, *, counts: Counts | None = None, free: tuple[int, ...] = ()) -> Step:
    return Step(step.register, step.name, step.op, step.type, step.placement, free or step.free, counts or step.counts)


def _counts(words: list[str]) -> Counts:
    return Counts(int(words[1]), int(words[3]), int(words[5]), tuple(map(int, words[7:])))


def _parse_step(line: str, devices: int) -> Step:
    match = _STEP.match(line)
    if match is None:
        raise ShapeError(f"cannot read the program line {line!r}")
    type_ = parse_type(match["type"])
    placement = parse_placement(match["place"], devices, type_.labels)
    return Step(int(match["register"]), json.loads(match["name"]), _parse_op(match["op"], devices), type_, placement)


def _parse_op(source: str, devices: int) -> Op:
    word, _, rest = source.partition(" ")
    if word == "scan":
        return Scan(json.loads(rest))
    if word == "join":
        return _parse_join(rest, devices)
    arg, _, rest = rest.partition(" ")
    register = (int(arg[1:]),)
    match word:
        case "map":
            return Map(register, parse(rest))
        case "filter":
            return Filter(register, parse(rest.removeprefix("where ")))
        case "fill":
            value = parse(rest.removeprefix("with "))
            assert isinstance(value, Const)
            return Fill(register, value.value)
        case "exchange":
            return Exchange(register)
    raise ShapeError(f"cannot read the program step {source!r}")


def _parse_join(source: str, devices: int) -> Join:
    match = _JOIN.match(source)
    if match is None:
        raise ShapeError(f"cannot read the join {source!r}")
    subscripts = parse_subscripts(match["subscripts"])
    cuts = tuple(parse_cut(part.rpartition("=")[2]) for part in match["cuts"].split())
    work = parse_placement(match["work"], devices, subscripts.labels)
    assert isinstance(work, Placement)
    return Join(
        args=tuple(int(a[1:]) for a in match["args"].split(", ")),
        subscripts=subscripts,
        combine=parse(match["combine"]),
        reduce=None if match["reduce"] == "keep" else match["reduce"],
        where=parse(match["where"]) if match["where"] else None,
        cuts=cuts,
        work=work,
    )
