"""The arena: blocks by handle. Handles never leave the engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from planner.errors import InternalError, PlanError

EPOCH_SHIFT = 40  # a handle is (epoch << 40) + number, so a stale one is never taken for a fresh one


@dataclass(frozen=True)
class Block:
    """One sub-tensor. `origin` is the coordinate of its first cell; `mask` is None when every cell is present."""

    values: np.ndarray
    mask: np.ndarray | None
    origin: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.mask is None else self.mask.nbytes)


class Arena:
    """Blocks of one run. Locked, since DuckDB calls kernels from several threads.

    limit   bytes that live blocks may hold
    calls   block contractions, and blocks mapped, so far
    error   the first error of a kernel; DuckDB would pass on its text only, so it is parked here
    """

    _epochs = iter(range(1, 1 << 22))

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._epoch = next(Arena._epochs)
        self._blocks: dict[int, Block] = {}
        self._fresh: list[int] = []
        self._lock = threading.Lock()
        self._next = 0
        self.nbytes = self.peak = self.calls = 0
        self.error: BaseException | None = None

    def put(self, block: Block) -> int:
        """Keep a block; returns its handle. Raises PlanError beyond the limit."""
        with self._lock:
            if self.limit is not None and self.nbytes + block.nbytes > self.limit:
                total = self.nbytes + block.nbytes
                raise PlanError(
                    f"with a block of shape {block.values.shape} the live blocks would hold {total} bytes"
                    f", and the memory limit is {self.limit}"
                )
            self._next += 1
            handle = (self._epoch << EPOCH_SHIFT) + self._next
            self._blocks[handle] = block
            self._fresh.append(handle)
            self.nbytes += block.nbytes
            self.peak = max(self.peak, self.nbytes)
            return handle

    def get(self, handle: int) -> Block:
        """The block of a handle; a stale handle is our bug."""
        block = self._blocks.get(handle)
        if block is None:
            raise InternalError(
                f"handle {handle} names no live block (epoch {handle >> EPOCH_SHIFT}, now {self._epoch})"
            )
        return block

    def fresh(self) -> list[int]:
        """The handles given out since the last call: those of the table that a step has made."""
        with self._lock:
            handles, self._fresh = self._fresh, []
            return handles

    def free(self, handles: Iterable[int]) -> None:
        """Forget blocks."""
        with self._lock:
            for handle in handles:
                self.nbytes -= self._blocks.pop(handle).nbytes

    def called(self, blocks: int) -> None:
        with self._lock:
            self.calls += blocks

    def __len__(self) -> int:
        return len(self._blocks)
