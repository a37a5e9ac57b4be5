"""Codes are selected as flake8 selects them."""

from flake8_gpu_training.selection import Selection, codes


def test_everything_is_taken_by_default():
    assert Selection().takes("GPU501")


def test_the_longer_prefix_wins():
    selection = Selection(select=("GPU", "GPU501"), ignore=("GPU5",))
    assert selection.takes("GPU501")
    assert not selection.takes("GPU502")


def test_on_a_tie_ignore_wins():
    assert not Selection(select=("GPU501",), ignore=("GPU501",)).takes("GPU501")


def test_what_is_not_selected_is_not_taken():
    assert not Selection(select=("GPU2",)).takes("GPU501")


def test_codes_are_split_at_commas_and_blanks():
    assert codes("gpu501, GPU2 GPU3") == ("GPU501", "GPU2", "GPU3")
