"""The exchange operator: the only code that sees two devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_exec.batch import Array, Batch, empty_batch, settled, widened
from gpu_exec.kernels.join import merge
from gpu_exec.structure import Structure, Transfer
from gpu_exec.transport import Message, Transport
from planner.placement import Placement
from planner.program import Step


def exchange(device: int, step: Step, structure: Structure, batch: Batch, source: Step, transport: Transport) -> Batch:
    """Send what other devices take of this one's rows, then build this device's rows from what arrives.

    Pieces of one target row are reduced in the order of their source devices, so the same program gives the same bits.
    """
    for (s, d), transfer in structure.transfers.items():
        if s == device and d != device:
            transport.send(step.register, s, d, _message(batch, transfer))
    incoming = {s: t for (s, d), t in structure.transfers.items() if d == device}
    keys = structure.keys[structure.local[device]]
    reduce = source.placement.reduce if isinstance(source.placement, Placement) else ""
    what = f"{reduce} of partial results of {step.name}"
    if list(incoming) == [device] and _is_whole(incoming[device], batch, step):
        return settled(Batch(step.type, keys, batch.layout, batch.stacks, batch.masks), what)
    target = _Target(step, keys, reduce)
    for s in sorted(incoming):
        message = _message(batch, incoming[s]) if s == device else transport.receive(step.register, s, device)
        target.add(incoming[s], message)
    return settled(target.batch, what)


def _is_whole(transfer: Transfer, batch: Batch, step: Step) -> bool:
    """The device keeps exactly what it has."""
    return transfer.boxes is None and batch.type.cuts == step.type.cuts and len(transfer.source) == batch.rows


def _message(batch: Batch, transfer: Transfer) -> Message:
    boxes: list[Any] = (
        [box for box, _ in transfer.boxes] if transfer.boxes is not None else [...] * len(transfer.source)
    )
    values = [batch.block(int(row))[box] for row, box in zip(transfer.source, boxes, strict=True)]
    masks = None
    if batch.masks is not None:
        masks = []
        for row, box in zip(transfer.source, boxes, strict=True):
            mask = batch.mask(int(row))
            assert mask is not None
            masks.append(mask[box])
    return Message(values, masks)


class _Target:
    """The rows of one device under construction; a cell that is written twice is reduced."""

    def __init__(self, step: Step, keys: Array, reduce: str) -> None:
        self.batch = empty_batch(step.type, keys)
        self.reduce = reduce
        self.written: list[set[object]] = [set() for _ in keys]  # per row, the boxes that have been

    def add(self, transfer: Transfer, message: Message) -> None:
        for i, row in enumerate(transfer.target):
            box = transfer.boxes[i][1] if transfer.boxes is not None else ...
            self._put(int(row), box, message.values[i], None if message.masks is None else message.masks[i])

    def _put(self, row: int, box: Any, values: Array, mask: Array | None) -> None:
        own = self.batch.mask(row)
        if own is not None and mask is None:
            mask = np.ones(values.shape, bool)
        if self.reduce and _key(box) in self.written[row]:
            seen = None if own is None else own[box]
            values, mask = merge(self.reduce, self.batch.block(row)[box], seen, values, mask)
        if values.dtype == object:
            self.batch = widened(self.batch)
        self.batch.block(row)[box] = values
        if own is not None:
            own[box] = mask
        self.written[row].add(_key(box))


def _key(box: Any) -> object:
    return "whole" if box is ... else tuple((s.start, s.stop) for s in box)
