"""What devices and links do in a second."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Rates:
    """FLOP/s and bytes/s of a device, bytes/s of its link in one direction; seconds to launch a kernel, to send."""

    flops: float
    memory: float
    link: float
    launch: float
    message: float


DGX_A100 = Rates(312e12, 2.0e12, 300e9, 5e-6, 3e-6)
HOST = Rates(5e10, 1e10, 5e9, 2e-5, 2e-5)  # one x86 core with NumPy in float64, copies between two workers
