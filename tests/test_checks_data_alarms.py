"""Near misses of the data, schedule and storage checks: what looks like a fault and is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_alone, runs_of, status

from flake8_gpu_training.checks.base import Status

LOOP = """\
import torch
from torch.utils.data import DataLoader
{imports}

{code}
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for batch in train_loader:
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
GOOD = "train_loader = DataLoader(train_set, 8, num_workers=8, pin_memory=True)\n"


def found(code: str, check: str, imports: str = "") -> int:
    return len(findings(runs_alone(LOOP.format(code=code, imports=imports)), check))


def test_a_loader_that_only_statistics_read_is_left_alone() -> None:
    looked_at = (
        "loader = DataLoader(train_set, 8, shuffle=True)\n"
        "for images in loader:\n    mean += images.cuda().mean()\n"
    )
    assert found(looked_at + GOOD, "GPU501") == 0
    handed_on = looked_at.replace("for images", "fit(loader)\nfor images")
    assert found(handed_on + GOOD, "GPU501") == 1
    trained = GOOD.replace(", num_workers=8, pin_memory=True", "")
    assert found(trained, "GPU501") == 1


def test_a_trainer_makes_its_own_loader() -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader\n"
        "from transformers import Trainer, TrainingArguments\n\n"
        "peek = DataLoader(train_set, batch_size=8, shuffle=True)\n"
        "arguments = TrainingArguments('out', dataloader_num_workers=4)\n"
        "Trainer(model=model.cuda(), args=arguments, train_dataset=train_set).train()\n"
    )
    assert findings(runs_alone(text), "GPU501") == []
    own = text.replace(
        "peek = DataLoader(train_set, batch_size=8, shuffle=True)\n",
        "class Own(Trainer):\n    def get_train_dataloader(self):\n"
        "        return DataLoader(self.train_dataset, batch_size=8, shuffle=True)\n\n\n",
    ).replace("Trainer(model", "Own(model")
    assert len(findings(runs_alone(own), "GPU501")) == 1


TEXT = """\
from datasets import load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer
from transformers import TrainingArguments
{imports}
tokenizer = AutoTokenizer.from_pretrained("roberta-base")
model = AutoModelForSequenceClassification.from_pretrained("roberta-base")


def {name}(rows):
    return tokenizer(rows["text"], {arguments})


data = load_dataset("imdb", split="train").map({name}, batched=True)
Trainer(model=model, args=TrainingArguments("out"{more}), train_dataset=data).train()
"""
PADDED = 'padding="max_length", truncation=True, max_length=512'


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, 1),
        ({"arguments": "truncation=True, max_length=512"}, 0),
        ({"arguments": 'padding="longest", truncation=True, max_length=512'}, 0),
        ({"arguments": PADDED.replace("512", "64")}, 0),
        ({"arguments": PADDED.replace("512", "tokenizer.model_max_length")}, 0),
        ({"name": "tokenize_for_evaluation"}, 0),
        ({"more": ", torch_compile=True"}, 0),
        ({"imports": "import torch_xla.core.xla_model as xm"}, 0),
    ],
    ids=["padded", "none", "longest", "short", "unknown", "evaluation", "compiled", "TPU"],
)
def test_padding_to_a_fixed_length_is_told_where_it_costs(
    change: dict[str, str], expected: int
) -> None:
    fill = {"imports": "", "name": "tokenize", "arguments": PADDED, "more": "", **change}
    assert len(findings(runs_alone(TEXT.format(**fill)), "GPU513")) == expected


def test_captions_of_images_are_padded_and_tokenised_as_they_come() -> None:
    code = (
        "class Pairs:\n    def __getitem__(self, index):\n"
        "        ids = tokenizer(self.captions[index], padding='max_length', max_length=256)\n"
        "        return transform(Image.open(self.files[index])), ids\n\n\n" + GOOD
    )
    imports = "from PIL import Image"
    assert found(code, "GPU513", imports) == 0
    assert found(code, "GPU508", imports) == 0


@pytest.mark.parametrize(
    "line",
    [
        "for group in optimizer.param_groups:\n    group['lr'] = rate\n",
        "from training.utils import cosine_scheduler\n",
        "warmup = 500\n",
    ],
)
def test_a_schedule_of_ones_own_is_one(line: str) -> None:
    text = (
        "import torch\nfrom torchvision.models import resnet50\n"
        "model = resnet50().cuda()\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "{}for batch in loader:\n    loss = model(batch).mean()\n    loss.backward()\n"
        "    optimizer.step()\n"
    )
    assert len(findings(runs_alone(text.format("")), "GPU601")) == 1
    assert findings(runs_alone(text.format(line)), "GPU601") == []


def test_gans_and_toys_need_no_schedule() -> None:
    (run,) = runs_alone(LOOP.format(code=GOOD, imports=""))
    assert status(run, "GPU601") is Status.DISABLED


@pytest.mark.parametrize(
    "call",
    [
        'load_dataset("allenai/c4", "realnewslike", split="train")',
        'load_dataset("allenai/c4", data_files="en/c4-train.00000-of-01024.json.gz")',
        'load_dataset("HuggingFaceFW/fineweb", name="sample-10BT", split="train")',
        'load_dataset("allenai/c4", args.part, split="train")',
        'load_dataset("imdb", split="train")',
    ],
)
def test_parts_of_a_corpus_need_no_streaming(call: str) -> None:
    code = f"train_set = {call}\n{GOOD}"
    assert found(code, "GPU510", "from datasets import load_dataset") == 0


@pytest.mark.parametrize(
    ("path", "ranks", "expected"),
    [
        ("data/train_tokens.npy", 8, 1),
        ("data/train_tokens.npy", 1, 0),
        ("data/label_means.npy", 8, 0),
    ],
)
def test_files_that_ranks_read_whole(path: str, ranks: int, expected: int, tmp_path: Path) -> None:
    program = LOOP.format(
        code=f'train_set = np.load("{path}")\n{GOOD}', imports="import numpy as np"
    )
    files = {
        "train.py": program,
        "train.sh": f"torchrun --nproc_per_node={ranks} train.py\n",
    }
    assert len(findings(runs_of(tmp_path, files), "GPU510")) == expected


def test_paths_of_evaluation_and_output_are_no_training_data(tmp_path: Path) -> None:
    options = "".join(
        f'parser.add_argument("--{name}")\n'
        for name in ("data_dir", "eval_data_path", "output_dir", "log_file")
    )
    code = (
        "import argparse\n\nparser = argparse.ArgumentParser()\n"
        f"{options}args = parser.parse_args()\n{GOOD}"
    )
    flags = "--data_dir /scratch/x --eval_data_path /mnt/nfs/e --output_dir /mnt/nfs/o"
    files = {
        "train.py": LOOP.format(code=code, imports=""),
        "train.sh": f"python train.py {flags} --log_file /mnt/nfs/log\n",
    }
    assert findings(runs_of(tmp_path, files), "GPU802") == []
    files["train.sh"] = files["train.sh"].replace("/scratch/x", "/mnt/nfs/x")
    (finding,) = findings(runs_of(tmp_path, files), "GPU802")
    assert "/mnt/nfs/x" in finding.message


def test_what_a_framework_logs_by_itself_is_scored_and_not_told(tmp_path: Path) -> None:
    command = "swift sft --model Qwen/Qwen2.5-7B --dataset a.jsonl --gradient_accumulation_steps 1"
    (run,) = runs_of(tmp_path, {"train.sh": command + "\n"})
    assert status(run, "GPU804") is Status.PARTIAL
    assert findings((run,), "GPU804") == []


def test_a_log_line_among_many_micro_batches_costs_nothing(tmp_path: Path) -> None:
    command = "swift sft --model Qwen/Qwen2.5-7B --dataset a.jsonl --logging_steps 1"
    (run,) = runs_of(tmp_path, {"train.sh": f"{command} --gradient_accumulation_steps 32\n"})
    assert status(run, "GPU804") is Status.ENABLED
