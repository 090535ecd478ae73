"""Every query file gives the plans it records; `pytest --update-plans` rewrites them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

import einsql as es
from einsql.query import Query
from einsql.query_file import FORMS, read_query_file

FILES = sorted((Path(__file__).parent.parent / "queries").glob("*.sql"))


@lru_cache(maxsize=1)
def planned(path: Path) -> Query:
    """The query of a file over its inputs, kept for the next form."""
    file, session = read_query_file(path), es.connect()
    file.make_inputs(session)
    return file.query(session)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_plan_is_as_recorded(path: Path, form: str, update_plans: bool) -> None:
    file = read_query_file(path)
    plan = str(planned(path).explain(form))
    if update_plans:
        plans = {**file.plans, form: plan}
        path.write_text(file.text({name: plans[name] for name in FORMS if name in plans}), encoding="utf-8")
        return
    assert form in file.plans, f"{path.name} has no section {form}; pytest --update-plans writes it"
    assert plan.rstrip() == file.plans[form].rstrip(), "the plan changed; pytest --update-plans accepts it"


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_file_has_each_form_once_and_in_order(path: Path) -> None:
    file = read_query_file(path)
    assert tuple(file.plans) == FORMS
    assert file.text(file.plans) == path.read_text(encoding="utf-8")


def test_there_are_query_files() -> None:
    assert len(FILES) >= 8
