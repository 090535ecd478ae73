"""What a run counted: at the kernels, at the transport, and of live bytes on each device."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass
class Metrics:
    """Counters of one run, shared by the workers of all devices."""

    devices: int
    kernel_calls: int = 0
    moved_bytes: int = 0
    peak_bytes: list[int] = field(default_factory=list)
    _live: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.peak_bytes, self._live = [0] * self.devices, [0] * self.devices

    def called(self, blocks: int) -> None:
        """`blocks` block contractions, or blocks mapped."""
        with self._lock:
            self.kernel_calls += blocks

    def moved(self, nbytes: int) -> None:
        """Bytes that one device received from another."""
        with self._lock:
            self.moved_bytes += nbytes

    def hold(self, device: int, nbytes: int) -> None:
        """Bytes that a value takes on a device; negative when it is freed."""
        with self._lock:
            self._live[device] += nbytes
            self.peak_bytes[device] = max(self.peak_bytes[device], self._live[device])
