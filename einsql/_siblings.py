"""Check that `planner` and `gpu_exec`, whose names are generic, are the packages of this distribution."""

from __future__ import annotations

import importlib


def check_siblings() -> None:
    """Import both and look for our mark; raises ImportError that names the file found instead."""
    for name in ("planner", "gpu_exec"):
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ImportError(
                f"einsql needs its own package {name!r}, which is not installed; reinstall einsql"
            ) from error
        if getattr(module, "part_of", None) != "einsql":
            found = getattr(module, "__file__", None) or f"a folder {list(getattr(module, '__path__', []))}"
            raise ImportError(
                f"einsql needs its own package {name!r}, but Python imported another one from\n{found}. Rename that "
                "module, or start Python with -P so that the script's\nfolder is not searched first."
            )


check_siblings()
