"""An answer about a run is kept with it, and a changed run is asked anew."""

from __future__ import annotations

import dataclasses

from flake8_gpu_training.facts import Location
from flake8_gpu_training.runs.model import Place, PlaceKind, Run, RunKind, once_per_run

AT = Location("train.py")
RUN = Run("train.py:1", RunKind.TRAIN, "generic", AT, Place(PlaceKind.PYTHON, AT))


def test_a_run_is_asked_once_and_a_changed_one_anew():
    asked = []

    @once_per_run
    def name(run):
        asked.append(run.id)
        return run.id

    assert [name(RUN), name(RUN)] == ["train.py:1", "train.py:1"]
    changed = dataclasses.replace(RUN, id="other.py:2")
    assert name(changed) == "other.py:2"
    assert asked == ["train.py:1", "other.py:2"]


def test_what_was_asked_does_not_make_runs_differ():
    again = dataclasses.replace(RUN)
    once_per_run(lambda run: 1)(again)
    assert again == RUN
    assert repr(again) == repr(RUN)
