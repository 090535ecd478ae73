"""How bytes move between devices: one mailbox per step and pair, counted where they arrive."""

from __future__ import annotations

import queue
import threading
from collections import defaultdict
from dataclasses import dataclass

from gpu_exec.batch import Array
from gpu_exec.metrics import Metrics


@dataclass(frozen=True)
class Message:
    """The pieces of one exchange from one device to another: payloads, and masks where the source has them."""

    values: list[Array]
    masks: list[Array] | None

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in self.values) + sum(m.nbytes for m in self.masks or ())


class Stopped(Exception):
    """Another device failed; this one gives up waiting."""


class Transport:
    """Mailboxes of one run. A failure on any device wakes all that wait."""

    def __init__(self, metrics: Metrics) -> None:
        self._boxes: dict[tuple[int, int, int], queue.SimpleQueue[Message | None]] = defaultdict(queue.SimpleQueue)
        self._lock = threading.Lock()
        self._metrics = metrics
        self._stopped = False

    def _box(self, step: int, source: int, target: int) -> queue.SimpleQueue[Message | None]:
        with self._lock:
            box = self._boxes[step, source, target]
            if self._stopped:
                box.put(None)
            return box

    def send(self, step: int, source: int, target: int, message: Message) -> None:
        """Hand a message over; never waits."""
        self._box(step, source, target).put(message)

    def receive(self, step: int, source: int, target: int) -> Message:
        """Wait for a message; raises Stopped when another device failed."""
        message = self._box(step, source, target).get()
        if message is None:
            raise Stopped
        self._metrics.moved(message.nbytes)
        return message

    def stop(self) -> None:
        """Wake every waiting device."""
        with self._lock:
            self._stopped = True
            for box in self._boxes.values():
                box.put(None)
