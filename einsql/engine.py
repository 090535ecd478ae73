"""Which engine runs a query, on how many devices, and why."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from planner.errors import PlanError, UnsupportedError

ENGINES = ("auto", "reference", "duckdb", "host")
LATER = {"cuda": "CUDA devices", "sim": "simulated devices"}


@dataclass(frozen=True)
class Engine:
    """An engine by name with its device count; `why` is what a run reports."""

    name: str
    devices: int
    why: str

    def __str__(self) -> str:
        return f"{self.name}:{self.devices}" if self.name == "host" else self.name


def choose_engine(engine: str, devices: int | str | None) -> Engine:
    """Read `engine="host:4"`, `devices=4`, `devices="host:4"`; "auto" runs on one host device.

    Raises   UnsupportedError for engines that do not exist yet, PlanError for counts that contradict each other
    """
    if not isinstance(engine, str):
        raise PlanError(
            f"an engine is called by name, as in 'host:4', got {engine!r}; engines are {', '.join(ENGINES)}"
        )
    devices = int(devices) if isinstance(devices, Integral) and not isinstance(devices, bool) else devices
    if isinstance(devices, str) and devices.lstrip("-").isdecimal():
        devices = int(devices)
    if devices is not None and (isinstance(devices, bool) or not isinstance(devices, int | str)):
        raise PlanError(f"devices is a whole number or a text such as 'host:4', got {devices!r}")
    name, _, count = engine.partition(":")
    if isinstance(devices, str):
        named, _, listed = devices.partition(":")
        if not listed.isdecimal() or named not in (name, "host") or name not in ("auto", "host"):
            raise PlanError(f"cannot read devices={devices!r} for engine {engine!r}; written like 4 or 'host:4'")
        name, devices = named, int(listed)
    if name in LATER:
        raise UnsupportedError(
            f"engine {engine!r}: {LATER[name]} are not supported yet; engines are {', '.join(ENGINES)}"
        )
    if name not in ENGINES or (count and not count.isdecimal()):
        raise PlanError(
            f"no engine {engine!r}; engines are {', '.join(ENGINES)}, host also with a count as in 'host:4'"
        )
    if count and devices is not None and int(count) != devices:
        raise PlanError(f"engine {engine!r} and devices={devices} name different counts")
    number = int(count) if count else devices if devices is not None else 1
    if number < 1:
        raise PlanError(f"a query wants at least one device, got {number}")
    if name in ("reference", "duckdb") and number != 1:
        raise PlanError(f"engine {name!r} runs on one device, got {number}")
    if name == "auto":
        return Engine("host", number, "chosen by auto: host devices run every plan")
    return Engine(name, number, "asked for")
