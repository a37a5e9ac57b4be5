"""Garbage is collected in larger lots while a project is read, and as before after that."""

from __future__ import annotations

import gc

import pytest

from flake8_gpu_training.garbage import seldom_collected


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_lots_are_larger_within_and_as_before_after():
    before = gc.get_threshold()
    with seldom_collected():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_an_error_leaves_them_as_they_were():
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="broken"), seldom_collected():
        raise ValueError("broken")
    assert gc.get_threshold() == before


def test_who_collects_more_seldom_or_never_goes_on_so():
    gc.set_threshold(0)
    with seldom_collected():
        assert gc.get_threshold()[0] == 0
    gc.set_threshold(500_000, 50, 500)
    with seldom_collected():
        assert gc.get_threshold()[0] == 500_000
