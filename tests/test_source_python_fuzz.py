"""The Python reader never raises, whatever the bytes."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from flake8_gpu_training.sources.python import read_python

SOURCE = '''\
import os, argparse
import torch
from torch.utils.data import DataLoader as DL
from trl import SFTConfig, SFTTrainer

KW = {"num_workers": 4, **dict(pin_memory=True)}
os.environ["X"] = f"{KW!r}"

class Job(SFTTrainer):
    lr: float = 1e-4

    @torch.no_grad()
    def compute_loss(self, model, inputs, *, n=2):
        if (k := n) > 1: return model(**inputs).loss.item()
        elif k: pass
        else:
            return None

async def main(args, *rest, **options):
    parser = argparse.ArgumentParser(); parser.add_argument("--lr", type=float, default=-1e-4)
    loader = DL(
        data, batch_size=args.bs or 8,  # note
        **KW,
    )
    for epoch, (a, *b) in enumerate(range(3)):
        for batch in loader:
            loss = model(batch); loss.backward()
            with torch.autocast("cuda", dtype=torch.bfloat16) as ctx, open("f") as f:
                print([x for x in loss if x], lambda q=1: q, loss[1:2, ...], sep="""
""")
    try:
        import deepspeed
    except (ImportError, ValueError) as error:
        raise SystemExit from error
    finally:
        del loader

if __name__ == "__main__":
    main(SFTConfig(bf16=True if a else False, x="a" "b"))
'''
TOKENS = ["(", ")", "[", "]", "{", "}", ":", ",", "\n", "    ", "\t", "\\", "#", "é", "\0", "\f"]
TOKENS += ["\r", "=", "**", "*", "if ", "elif ", "lambda ", "match x:\n", "await ", "f'{", "@", ";"]
TOKENS += ["...", '"""', "'", "-", ".", "not "]


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_random_bytes_are_read_or_are_a_problem(data: bytes) -> None:
    assert read_python(b"import torch\n" + data, "x.py").path == "x.py"


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_mutated_sources_are_read_or_are_a_problem(seed: int) -> None:
    chance = random.Random(seed)
    text = SOURCE
    for _ in range(chance.randint(1, 6)):
        start = chance.randrange(len(text))
        end = start + chance.choice([0, 0, 1, 3, 20])
        text = text[:start] + chance.choice(TOKENS) * chance.choice([1, 1, 2, 200]) + text[end:]
    facts = read_python(text, "x.py")
    assert facts.problems or facts.imports or "import" not in text
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for call in facts.calls:
        assert 1 <= call.location.line <= len(lines)
        assert call.location.column <= len(lines[call.location.line - 1])
