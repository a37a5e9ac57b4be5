"""Data checks: when workers, pinning, prefetch, packing and preprocessing are advised."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from checks_support import findings, hand_made, items_of, judged, runs_alone, runs_of, status

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.hardware import GPUS
from flake8_gpu_training.runs.model import Hardware, Model, Run
from flake8_gpu_training.verdicts import judge
from report_builder.audits import AUDITS
from report_builder.recommendations import recommend

VISION = Model("Qwen/Qwen2.5-VL-7B-Instruct", "MLLM", 8_292_166_656, is_hf_family=True)


def maximum(audit: str, category: str) -> float:
    items = items_of(audit, category)
    groups: dict[str, float] = {}
    for item in items:
        if item.group:
            groups[item.group] = max(groups.get(item.group, 0), item.points)
    return sum(item.points for item in items if not item.group) + sum(groups.values())


@pytest.mark.parametrize(
    ("audit", "category"),
    [("general", letter) for letter in "FGHI"] + [("swift", letter) for letter in "AHIJ"],
)
def test_the_best_run_earns_exactly_the_maximum(audit: str, category: str) -> None:
    described = next(a for a in AUDITS if a.id == audit)
    expected = next(c for c in described.categories if c.id == category)
    assert maximum(audit, category) == expected.maximum
    assert {item.id for item in items_of(audit, category)} == {name for name, _ in expected.items}


LOOP = """
import argparse, torch
from torch.utils.data import DataLoader, TensorDataset, IterableDataset

{before}
{loader}
for epoch in range(3):
    for inputs, targets in loader:
        loss = model(inputs.to({device})).sum()
        loss.backward()
        optimizer.step()
"""


def program(loader: str, device: str = '"cuda"', before: str = "") -> tuple[Run, ...]:
    return runs_alone(LOOP.format(loader=loader, device=device, before=before))


def test_a_loader_without_workers_is_told_how_many() -> None:
    (found,) = findings(
        program("loader = DataLoader(dataset, batch_size=8, shuffle=True)"), "GPU501"
    )
    assert "num_workers=4 (4 to 8 per GPU process)" in found.message
    assert found.location.line == 6
    assert found.change is not None
    assert found.change.text.splitlines() == [
        "num_workers=4,",
        "pin_memory=True,",
        "persistent_workers=True,",
    ]


def test_explicit_zero_workers_are_reported_where_they_stand() -> None:
    (found,) = findings(program("loader = DataLoader(data, 8, True, num_workers=0)"), "GPU501")
    assert (found.location.line, found.location.column) == (6, 36)


@pytest.mark.parametrize(
    "loader",
    [
        "loader = DataLoader(dataset, shuffle=True, num_workers=args.workers)",
        "loader = DataLoader(dataset, shuffle=True, **options)",
        "loader = DataLoader(TensorDataset(x, y), shuffle=True)",
        "tensors = TensorDataset(x, y)\nloader = DataLoader(tensors, shuffle=True)",
        "loader = DataLoader(dataset, shuffle=True, num_workers=4)",
        "loader = make_loader(dataset)",
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--workers', type=int, default=0)\n"
        "args = parser.parse_args()\n"
        "loader = DataLoader(dataset, shuffle=True, num_workers=args.workers)",
    ],
)
def test_silence_when_workers_are_set_unknown_or_useless(loader: str) -> None:
    assert findings(program(loader), "GPU501") == []


def test_a_data_module_is_reported_for_its_training_loader_alone() -> None:
    text = """\
import lightning
from torch.utils.data import DataLoader

class Images(lightning.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(self.training, batch_size=32, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.validation, batch_size=32)

lightning.Trainer(precision="bf16-mixed").fit(model, Images())
"""
    (found,) = findings(runs_alone(text), "GPU501")
    assert found.location.line == 6


def test_evaluation_loaders_are_left_alone() -> None:
    loaders = "val_loader = DataLoader(val_set, 8)\nloader = DataLoader(data, 8, num_workers=4)"
    assert findings(program(loaders), "GPU501") == []


def test_a_program_that_trains_on_the_cpu_is_left_alone() -> None:
    runs = program("loader = DataLoader(dataset, shuffle=True)", device='"cpu"')
    for code in ("GPU501", "GPU502"):
        assert findings(runs, code) == []


def test_an_iterable_dataset_may_not_share_its_samples_among_workers() -> None:
    before = "class Rows(IterableDataset):\n    pass\n"
    runs = program("rows = Rows()\nloader = DataLoader(rows, batch_size=8)", before=before)
    assert findings(runs, "GPU501") == []


def test_missing_workers_and_pinning_make_one_diagnostic() -> None:
    runs = program("loader = DataLoader(dataset, shuffle=True)")
    assert len(findings(runs, "GPU501")) == 1
    assert findings(runs, "GPU502") == []
    assert status(runs[0], "GPU502") is Status.RECOMMENDED
    assert findings(runs, "GPU503") == []
    assert findings(runs, "GPU504") == []


def test_pinning_is_advised_beside_workers() -> None:
    runs = program("loader = DataLoader(dataset, shuffle=True, num_workers=8)")
    (found,) = findings(runs, "GPU502")
    assert "pin_memory=True" in found.message


def test_persistent_workers_are_advised_where_epochs_repeat() -> None:
    runs = program("loader = DataLoader(dataset, shuffle=True, num_workers=8, pin_memory=True)")
    (found,) = findings(runs, "GPU503")
    assert "persistent_workers=True" in found.message
    assert judged(runs[0], "GPU504").status is Status.ENABLED


TRAINER = """
from transformers import Trainer, TrainingArguments

arguments = TrainingArguments({arguments})
Trainer(model=model, args=arguments, train_dataset=dataset).train()
"""


def trainer(arguments: str) -> tuple[Run, ...]:
    return runs_alone(TRAINER.format(arguments=arguments))


def test_training_arguments_load_in_the_main_process_by_default() -> None:
    (found,) = findings(trainer('"out", bf16=True'), "GPU501")
    assert "dataloader_num_workers=4" in found.message
    assert found.location.line == 4


def test_training_arguments_with_open_ends_prove_nothing() -> None:
    assert findings(trainer("**options"), "GPU501") == []


def test_an_options_default_is_not_the_value() -> None:
    text = TRAINER.replace("from", "import argparse\nfrom", 1).replace(
        "arguments =",
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('--workers', type=int, default=0)\n"
        "options = parser.parse_args()\narguments =",
    )
    runs = runs_alone(text.format(arguments='"out", dataloader_num_workers=options.workers'))
    assert findings(runs, "GPU501") == []


def test_pinning_is_on_by_default_in_transformers() -> None:
    (run,) = trainer('"out"')
    assert status(run, "GPU502") is Status.ENABLED
    (found,) = findings(trainer('"out", dataloader_pin_memory=False'), "GPU502")
    assert "dataloader_pin_memory=True" in found.message


def test_missing_workers_are_told_once_and_not_as_missing_prefetch_too() -> None:
    (without,) = trainer('"out"')
    assert status(without, "GPU501") is Status.RECOMMENDED
    assert status(without, "GPU504") is Status.DISABLED
    (with_workers,) = trainer('"out", dataloader_num_workers=4')
    assert status(with_workers, "GPU504") is Status.ENABLED


def test_trials_and_tests_are_not_advised() -> None:
    text = TRAINER.format(arguments='"out"')
    assert findings(runs_alone(text, "tests/test_trainer.py"), "GPU501") == []


SWIFT = """\
swift {command} \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --torch_dtype bfloat16 \\
    --dataset data/train.jsonl {flags}
"""


def swift(root: Path, flags: str = "", command: str = "sft") -> Run:
    text = SWIFT.format(command=command, flags=flags)
    (run,) = runs_of(root, {"train.sh": dedent(text), "data/train.jsonl": "{}\n"})
    return run


def test_one_worker_is_ms_swifts_default_and_half_of_the_points(tmp_path: Path) -> None:
    judgement = judged(swift(tmp_path), "GPU501")
    assert judgement.status is Status.PARTIAL
    assert judgement.share == 0.5
    assert judgement.priority is Priority.LOW
    assert "--dataloader_num_workers 4" in judgement.findings[0].message


def test_a_streamed_dataset_keeps_its_one_worker(tmp_path: Path) -> None:
    assert status(swift(tmp_path, "--streaming true --max_steps 1000"), "GPU501") is Status.DISABLED


def test_packing_names_the_flash_kernel_it_needs(tmp_path: Path) -> None:
    judgement = judged(swift(tmp_path), "GPU507")
    assert judgement.variant == "packing"
    assert "--packing true --attn_impl flash_attn" in judgement.findings[0].message


def test_packing_alone_is_advised_beside_a_flash_kernel(tmp_path: Path) -> None:
    (found,) = judged(swift(tmp_path, "--attn_impl flash_attn"), "GPU507").findings
    assert found.message.startswith("set --packing true:")


@pytest.mark.parametrize(
    ("flags", "variant"), [("--packing true", "packing"), ("--padding_free true", "padding_free")]
)
def test_packing_and_padding_free_are_alternatives(
    tmp_path: Path, flags: str, variant: str
) -> None:
    judgement = judged(swift(tmp_path, f"--attn_impl flash_attn {flags}"), "GPU507")
    assert (judgement.status, judgement.variant) == (Status.ENABLED, variant)


def test_packing_is_no_advice_for_cards_without_a_flash_kernel() -> None:
    assert "V100-32G" in GPUS
    run = hand_made(
        practices={"packing": False, "padding_free": False, "algorithm": "sft"},
        hardware=Hardware("V100-32G", 1),
    )
    assert status(run, "GPU507") is Status.NOT_APPLICABLE


def test_packing_in_preference_tuning(tmp_path: Path) -> None:
    pairs = judged(swift(tmp_path, "--rlhf_type dpo", "rlhf"), "GPU507")
    assert (pairs.status, pairs.variant) == (Status.RECOMMENDED, "padding_free")
    assert "--padding_free true" in pairs.findings[0].message
    for number, (how, expected) in enumerate(
        (
            ("kto", Status.DISABLED),
            ("orpo", Status.NOT_APPLICABLE),
            ("dpo --use_liger_kernel true", Status.DISABLED),
        )
    ):
        run = swift(tmp_path / str(number), f"--rlhf_type {how}", "rlhf")
        assert status(run, "GPU507") is expected, how


def test_text_that_is_tokenised_late_is_reported(tmp_path: Path) -> None:
    judgement = judged(swift(tmp_path, "--lazy_tokenize true"), "GPU508")
    assert judgement.status is Status.RECOMMENDED
    assert "--lazy_tokenize false" in judgement.findings[0].message


def test_ms_swift_tokenises_ahead_by_default(tmp_path: Path) -> None:
    assert status(swift(tmp_path), "GPU508") is Status.ENABLED


@pytest.mark.parametrize("flags", ["", "--lazy_tokenize true"])
def test_when_an_unknown_model_s_samples_are_tokenised_is_not_known(
    flags: str, tmp_path: Path
) -> None:
    launch = f"swift sft --model /data/stage1 --dataset a.jsonl {flags}\n"
    (run,) = runs_of(tmp_path, {"train.sh": launch})
    assert status(run, "GPU508") is Status.UNKNOWN


def test_preprocessing_in_one_process_is_reported(tmp_path: Path) -> None:
    (found,) = judged(swift(tmp_path), "GPU509").findings
    assert "--dataset_num_proc 8" in found.message
    assert status(swift(tmp_path, "--dataset_num_proc 16"), "GPU509") is Status.ENABLED


def test_lazy_and_streamed_reading_are_alternatives(tmp_path: Path) -> None:
    ahead = ("streaming", "packing", "group_by_length", "pretokenized")
    multimodal = hand_made(model=VISION, practices=dict.fromkeys(ahead, False))
    assert judged(multimodal, "GPU512").variant == "lazy"
    streamed = swift(tmp_path, "--streaming true --max_steps 1000")
    assert judged(streamed, "GPU512").variant == "streaming"
    assert judged(streamed, "GPU510").variant == "streaming"


def test_arrow_tables_are_memory_mapped(tmp_path: Path) -> None:
    assert judged(swift(tmp_path), "GPU510").variant == "mapped"


def test_the_whole_dataset_as_one_batch_is_reported() -> None:
    runs = program("loader = DataLoader(data, batch_size=len(data), shuffle=True, num_workers=4)")
    assert len(findings(runs, "GPU506")) == 1


def test_small_files_are_reported_on_network_storage_only() -> None:
    text = LOOP.replace("{before}", "from torchvision.datasets import ImageFolder")
    fill = {"device": '"cuda"', "loader": ""}
    local = text.replace("{loader}", 'data = ImageFolder("/data/train")\n{loader}').format(**fill)
    shared = local.replace("/data/train", "/mnt/nfs/train")
    assert findings(runs_alone(local), "GPU505") == []
    assert len(findings(runs_alone(shared), "GPU505")) == 1


PADDED = """\
from transformers import AutoModelForCausalLM, DataCollatorForSeq2Seq, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained(
    "Qwen/Qwen2.5-7B", dtype="bfloat16", attn_implementation={attention}
)
args = TrainingArguments("out", bf16=True{arguments})
collator = {collator}(tokenizer)
Trainer(model=model, args=args, train_dataset=rows, data_collator=collator).train()
"""


@pytest.mark.parametrize(
    ("attention", "arguments", "collator", "expected"),
    [
        ("flash_attention_2", "", "DataCollatorForSeq2Seq", [7]),
        ("sdpa", "", "DataCollatorForSeq2Seq", []),
        ("flash_attention_2", ", per_device_train_batch_size=1", "DataCollatorForSeq2Seq", []),
        ("flash_attention_2", ", group_by_length=True", "DataCollatorForSeq2Seq", []),
        ("flash_attention_2", "", "DataCollatorForLanguageModeling", []),
        ("flash_attention_2", "", "make_collator", []),
    ],
)
def test_a_collator_that_pads_for_a_flash_kernel_is_advised_flattening(
    attention: str, arguments: str, collator: str, expected: list[int]
) -> None:
    text = PADDED.format(attention=repr(attention), arguments=arguments, collator=collator)
    runs = runs_alone(text, transformers="4.57.1")
    assert [found.location.line for found in findings(runs, "GPU507")] == expected


DIRECT = """\
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in DataLoader(open("rows"), batch_size=8{more}):
    loss = model(batch.cuda()).sum()
    loss.backward()
    optimizer.step()
"""
HELPER = """\
import torch
from torch.utils.data import DataLoader

def make(rows, workers):
    options = dict(num_workers=workers, pin_memory=True)
    return DataLoader(rows, batch_size=8, **options)

model = torch.nn.Linear(4, 4).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for batch in make(open("rows"), {workers}):
    loss = model(batch.cuda()).sum()
    loss.backward()
    optimizer.step()
"""
FITTED = """\
import torch
import lightning as L

class Net(L.LightningModule):
    def training_step(self, batch, index):
        return self(batch).sum()

rows = torch.utils.data.DataLoader(open("rows"), batch_size=8{more})
L.Trainer(accelerator="gpu", devices=2).fit(Net(), {given})
"""


@pytest.mark.parametrize(
    ("program", "line"),
    [
        (DIRECT.format(more=""), 6),
        (HELPER.format(workers=0), 6),
        (FITTED.format(more="", given="rows"), 8),
        (FITTED.format(more="", given="train_dataloaders=rows"), 8),
    ],
)
def test_a_loader_is_found_wherever_it_is_made(tmp_path: Path, program: str, line: int) -> None:
    (run,) = runs_of(tmp_path, {"train.py": program, "train.sh": "python train.py\n"})
    answer = judged(run, "GPU501")
    assert answer.status is Status.RECOMMENDED
    assert [e.location.line for e in answer.evidence if e.location is not None] == [line]


@pytest.mark.parametrize(
    "program",
    [
        DIRECT.format(more=", num_workers=4"),
        HELPER.format(workers=4),
        FITTED.format(more=", num_workers=4", given="rows"),
    ],
)
def test_its_workers_count_too(tmp_path: Path, program: str) -> None:
    (run,) = runs_of(tmp_path, {"train.py": program, "train.sh": "python train.py\n"})
    assert status(run, "GPU501") is Status.ENABLED


def test_a_loader_given_for_validation_is_none_of_training(tmp_path: Path) -> None:
    program = FITTED.format(more="", given="val_dataloaders=rows")
    (run,) = runs_of(tmp_path, {"train.py": program, "train.sh": "python train.py\n"})
    assert status(run, "GPU501") is Status.UNKNOWN


def test_workers_that_a_file_sets_to_none_are_told_where_they_are_read(tmp_path: Path) -> None:
    program = "import yaml\n" + DIRECT.format(more=', num_workers=cfg["workers"]').replace(
        "model =", 'cfg = yaml.safe_load(open("conf.yaml"))\nmodel =', 1
    )
    files = {"train.py": program, "conf.yaml": "workers: 0\n", "train.sh": "python train.py\n"}
    (run,) = runs_of(tmp_path, files)
    workers, pinned = judged(run, "GPU501"), judged(run, "GPU502")
    assert (workers.status, workers.findings[0].location.line) == (Status.RECOMMENDED, 8)
    assert 'cfg["workers"] is 0' in workers.findings[0].message
    assert (pinned.status, len(pinned.findings)) == (Status.RECOMMENDED, 1)


def test_pinning_that_goes_with_the_workers_names_the_loader(tmp_path: Path) -> None:
    files = {"train.py": DIRECT.format(more=""), "train.sh": "python train.py\n"}
    (run,) = runs_of(tmp_path, files)
    advice = recommend(judge(run, all_checks()))
    places = {entry.code: [str(place) for place in entry.places] for entry in advice}
    assert places["GPU501"] == places.get("GPU502", places["GPU501"]) == ["train.py:6"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import datasets\nrows = datasets.Dataset.from_list(read())", Status.ENABLED),
        ("class Rows(torch.utils.data.Dataset):\n    pass\nrows = Rows()", Status.UNKNOWN),
    ],
)
def test_a_trainer_has_arrow_tables_only_where_datasets_makes_them(
    tmp_path: Path, source: str, expected: Status
) -> None:
    program = (
        "import torch\nfrom transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n"
        f"{source}\nmodel = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-3B')\n"
        "args = TrainingArguments('out', bf16=True)\n"
        "Trainer(model=model, args=args, train_dataset=rows).train()\n"
    )
    (run,) = runs_of(tmp_path, {"train.py": program, "train.sh": "python train.py\n"})
    assert status(run, "GPU505") is expected
