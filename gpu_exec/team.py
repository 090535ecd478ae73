"""The threads of one host device: a pass over a large array is shared between them.

BLAS has threads of its own; element-wise NumPy has none, and one core does not reach the bandwidth of the memory.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import numpy as np

T = TypeVar("T")
FEWEST_PIECES = 8  # worth sharing: handing over costs about as much as one cache-sized piece

_device = threading.local()


@contextmanager
def device_threads(count: int) -> Iterator[None]:
    """What this thread runs may use `count` threads, itself among them."""
    before = getattr(_device, "count", 1)
    _device.count = count
    try:
        yield
    finally:
        _device.count = before


def share(work: Callable[[T], None], pieces: Sequence[T]) -> None:
    """Do every piece; the first error of any is raised when all threads are done."""
    count = min(getattr(_device, "count", 1), len(pieces)) if len(pieces) >= FEWEST_PIECES else 1

    def part(i: int) -> None:
        with np.errstate(all="ignore"):
            for piece in pieces[len(pieces) * i // count : len(pieces) * (i + 1) // count]:
                work(piece)

    others = [_pool().submit(part, i) for i in range(1, count)]
    try:
        part(0)
    finally:
        for other in others:
            other.exception()
    for other in others:
        other.result()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="einsql-team")
