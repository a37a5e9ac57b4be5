"""Options that a script declares and that no code of it reads."""

from __future__ import annotations

import pytest

from flake8_gpu_training.sources.python import read_python

_SCRIPT = """\
import argparse

from helpers import train


def parse_args():
    parser = argparse.ArgumentParser()
    for_all = ("--lr", "--seed", "--steps", "--use_ema")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--use_ema", action="store_true")
    return parser.parse_args()


def log(args):
    print(args.seed)


def main():
    args = parse_args()
    log(args)
    print(vars(args))
    for _ in range(args.steps):
        step(args.lr)
    {more}
"""


@pytest.mark.parametrize(
    ("more", "unread"),
    [
        ("pass", {"use_ema"}),
        ("if args.use_ema: average()", set()),
        ("average(getattr(args, 'use_ema'))", set()),
        ("train(args)", set()),
        ("train(options=args)", set()),
        ("trainer.args = args", set()),
        ("other = args", {"use_ema"}),
        ("model.use_ema = True", {"use_ema"}),
    ],
)
def test_an_option_is_unread_where_nothing_reads_it(more: str, unread: set[str]) -> None:
    assert read_python(_SCRIPT.format(more=more), "train.py").unread == unread


def test_options_of_a_file_that_reads_none_are_not_called_unread() -> None:
    text = (
        "import argparse\nfrom a import main\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr')\nparser.add_argument('--seed')\nmain(parser.parse_args())\n"
    )
    assert not read_python(text, "train.py").unread
