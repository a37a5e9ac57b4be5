"""VideoX-Fun's audit: each item on, advised, inapplicable, by script, checkout and Python."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

import pytest
from audit_cases import NA, OFF, ON, PARTLY, script
from audit_cases_videox_fun import (
    ALWAYS_APPLIES,
    CASES,
    EIGHT,
    FSDP,
    FULL,
    INPAINT,
    NEVER_ADVISED,
    NEVER_OFF,
    NEVER_ON,
    ONE,
    WAN_1B,
    ZERO2,
    Case,
)
from audits_support import adds_up, audit_named, changes_of, scores_of
from checks_support import runs_of

from flake8_gpu_training.checks._videox import UNREAD
from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import Verdict, judge
from flake8_gpu_training.weights import weights_type
from report_builder.report import Options, build
from report_builder.scenarios import scenarios
from report_builder.scoring import ScoredAudit, score

AUDIT = audit_named("videox-fun")
ITEMS = [item for category in AUDIT.categories for item, _ in category.items]
Front = Callable[[Case], Mapping[str, str]]


def flags_of(case: Case) -> dict[str, Any]:
    given: dict[str, Any] = {
        "pretrained_model_name_or_path": case.model,
        "train_data_meta": "data/metadata.json",
        "train_batch_size": 1,
        "video_sample_size": 640,
        "video_sample_n_frames": 81,
        "mixed_precision": "bf16",
    }
    if case.script.startswith("flux"):
        given = {name: value for name, value in given.items() if not name.startswith("video_")}
        given["image_sample_size"] = 1024
    if "reward" in case.script:
        dropped = ("video_sample_size", "video_sample_n_frames", "train_data_meta")
        given = {name: value for name, value in given.items() if name not in dropped}
        given |= {"prompt_path": "prompts.txt", "reward_fn": "HPSReward"}
    return {name: value for name, value in {**given, **case.flags}.items() if value is not None}


def words_of(case: Case) -> list[str]:
    words: list[str] = []
    for name, value in flags_of(case).items():
        if value is True:
            words.append(f"--{name}")
        elif name == "fix_sample_size":
            words += [f"--{name}", *str(value).split()]
        else:
            words.append(f"--{name}={value}")
    return words


def command_of(case: Case) -> list[str]:
    launch = ["accelerate", "launch", *case.launcher.split(), f"scripts/{case.script}.py"]
    return [*launch, *words_of(case)]


def by_script(case: Case) -> Mapping[str, str]:
    """A shell script; VideoX-Fun is somewhere else."""
    return {
        **case.files,
        "train.sh": script(case.before + shlex.join(command_of(case)), *case.directives),
    }


def by_variables(case: Case) -> Mapping[str, str]:
    """A shell script as the bundled ones are: names in variables, a flag a line."""
    flags = " \\\n  ".join(shlex.quote(word) for word in words_of(case))
    flags = flags.replace(f"={case.model}", "=$MODEL_NAME")
    launch = f"accelerate launch {case.launcher} \\\n  scripts/{case.script}.py \\\n  {flags}"
    body = f'export MODEL_NAME="{case.model}"\n{case.before}{launch}'
    return {**case.files, "train.sh": script(body, *case.directives)}


_PROGRAM = """\
import argparse
import os

import bitsandbytes as bnb
import torch
from accelerate import Accelerator
from deepspeed.sequence.layer import DistributedAttention
from torchao.float8 import convert_to_float8_training
from videox_fun.data import ImageVideoDataset, ImageVideoSafetensorsDataset, ReasoningDataset
from videox_fun.models import AutoencoderKLWan, WanTransformer3DModel
from videox_fun.utils.checkpoints import apply_checkpointing
from videox_fun.utils.fp8_optimization import convert_model_weight_to_float8
from videox_fun.utils.lora_utils import create_network
{imports}

def parse_args():
    parser = argparse.ArgumentParser()
{options}
    return parser.parse_args()


def main():
    args = parse_args()
    print({reads})
    accelerator = Accelerator(mixed_precision=args.mixed_precision)
    vae = AutoencoderKLWan.from_pretrained(args.pretrained_model_name_or_path)
    transformer3d = WanTransformer3DModel.from_pretrained(args.pretrained_model_name_or_path)
    {code}
    for batch in batches():
        with accelerator.accumulate(transformer3d):
            loss = transformer3d(batch)
            accelerator.backward(loss)


if __name__ == "__main__":
    main()
"""


def is_unread(script: str, name: str) -> bool:
    """Whether the release's script declares a flag and never reads it."""
    return name in UNREAD and UNREAD[name].fullmatch(script) is not None


_TYPES = {"int": "int", "float": "float", "str": "str"}


def option_of(name: str, facts: Any) -> str:
    if facts.types == ("bool",):
        return f'    parser.add_argument("--{name}", action="store_true")'
    kind = next((_TYPES[one] for one in facts.types if one in _TYPES), "str")
    default = facts.default if facts.has_default else None
    more = ", nargs=2" if name == "fix_sample_size" else ""
    return f'    parser.add_argument("--{name}", type={kind}, default={default!r}{more})'


def by_checkout(case: Case) -> Mapping[str, str]:
    """The same beside a script of the project's own, with the flags that the release has."""
    table = table_of("videox-fun")
    assert table is not None
    declared = {**table.parameters("common"), **table.parameters(case.script)}
    code = case.code
    imports = f"{code}\n" if code.startswith("from ") else ""
    program = _PROGRAM.format(
        imports=imports,
        options="\n".join(option_of(name, facts) for name, facts in declared.items()),
        reads=", ".join(f"args.{name}" for name in declared if not is_unread(case.script, name)),
        code="pass" if imports or not code else code,
    )
    return {**by_script(case), f"scripts/{case.script}.py": program}


def by_python(case: Case) -> Mapping[str, str]:
    """A Python launcher."""
    words = ",\n    ".join(json.dumps(word) for word in command_of(case))
    return {**case.files, "launch.py": f"import subprocess\n\nsubprocess.run([\n    {words},\n])\n"}


FRONTS: tuple[Front, ...] = (by_script, by_variables, by_checkout, by_python)


def allows(front: Front, case: Case) -> bool:
    """Whether a front end can say all of a case."""
    if case.code:
        return front is by_checkout
    return front is not by_python or not (case.before or case.directives)


def run_of(root: Path, files: Mapping[str, str]) -> Run:
    return next(run for run in runs_of(root, files) if run.framework == "videox_fun")


def scored_of(verdicts: tuple[Verdict, ...]) -> ScoredAudit:
    return score(AUDIT, verdicts)


PAIRS = [
    pytest.param(case, front, id=f"{case.id}-{front.__name__}")
    for case in CASES
    for front in FRONTS
    if allows(front, case)
]


@pytest.mark.parametrize(("case", "front"), PAIRS)
def test_status_of_the_item(case: Case, front: Front, tmp_path: Path) -> None:
    verdicts = judge(run_of(tmp_path, front(case)), all_checks())
    scored = scored_of(verdicts)
    items = {item.id: item for category in scored.categories for item in category.items}
    item = items[case.item]
    assert item.status is case.status, item.current.en
    if item.status is ON:
        assert item.evidence
    if case.shows:
        assert case.shows in str([evidence.text for evidence in item.evidence])
    if case.writes:
        changes = changes_of(case.item, verdicts)
        assert any(case.writes in text for text in changes), changes


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable(name: str) -> None:
    found = {case.status for case in CASES if case.item == name}
    assert ON in found or name in NEVER_ON
    assert (NA in found) is (name not in ALWAYS_APPLIES)
    if name not in NEVER_ADVISED:
        assert found & {Status.RECOMMENDED, PARTLY}
    else:
        assert Status.RECOMMENDED not in found
        assert OFF in found or name in NEVER_OFF


def test_points_of_a_category_add_up_to_its_maximum() -> None:
    assert adds_up(AUDIT)


# --- totals worked out by hand ----------------------------------------------------------------


TUNED = {
    "gradient_checkpointing": True,
    "vae_mini_batch": 1,
    "dataloader_num_workers": 8,
    "enable_bucket": True,
    "random_hw_adapt": True,
    "training_with_video_token_length": True,
    "video_sample_stride": 2,
    "lr_scheduler": "constant_with_warmup",
    "lr_warmup_steps": 100,
    "uniform_sampling": True,
}


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_adapters_that_leave_nothing_to_gain(front: Front, tmp_path: Path) -> None:
    adapters = {"use_peft_lora": True, "target_name": "q,k,v,ffn.0,ffn.2", "allow_tf32": True}
    scored = scored_of(
        judge(run_of(tmp_path, front(Case("", ON, {**TUNED, **adapters}))), all_checks())
    )
    assert scores_of(scored) == {
        "A": 4,  # BF16 3, TF32 1
        "B": 2,  # checkpointing
        "C": 1,  # the VAE's batch
        "D": 0,  # one GPU
        "E": 4,  # PEFT 3, its layers 1
        "F": 0,  # which kernel is installed is not known
        "G": 7.5,  # workers 2 + 1, buckets 1.5, resolutions .5, lengths 1, stride .5, prompts 1
        "H": 5.5,  # schedule, warm-up and clipping 1.5 each, time steps 1
        "I": 1,  # prefetching
    }
    assert (scored.score, scored.maximum, scored.attainment) == (25, 61, 1.0)


def test_full_tuning_under_fsdp(tmp_path: Path) -> None:
    flags = {**TUNED, "train_mode": "inpaint", "low_vram": True}
    case = Case("", ON, flags, INPAINT, FSDP, files={"requirements.txt": "flash-attn\n"})
    scored = scored_of(judge(run_of(tmp_path, by_script(case)), all_checks()))
    assert scores_of(scored) == {
        "A": 3,  # BF16
        "B": 2,
        "C": 2,  # low memory and the VAE's batch
        "D": 5,  # FSDP 4, prefetching 1
        "E": 0,
        "F": 5,  # FlashAttention-2 4, lengths 1
        "G": 7.5,
        "H": 5.5,  # the clipping of abnormal norms is not for FSDP
        "I": 1,
    }
    assert (scored.score, scored.lost, scored.attainment) == (31, 0, 1.0)


def test_full_tuning_that_lacks_most(tmp_path: Path) -> None:
    flags = {"mixed_precision": None, "max_grad_norm": 0.05, "lr_warmup_steps": 100}
    scored = scored_of(
        judge(run_of(tmp_path, by_variables(Case("", ON, flags, FULL, ZERO2))), all_checks())
    )
    assert scores_of(scored) == {
        "A": 0,
        "B": 0,
        "C": 0,
        "D": 4,  # ZeRO-2
        "E": 0,
        "F": 0,
        "G": 1.5,  # the stride and the prompts by default
        "H": 0,  # DeepSpeed clips nothing, the constant schedule does not warm up
        "I": 0,
    }
    # To be gained: BF16 3, checkpointing 2, workers 2, warm-up 1.5 and clipping 1.5.
    assert (scored.earned, scored.lost, scored.attainment) == (5.5, 10, 0.35)


# --- what the audit rests on ------------------------------------------------------------------


def test_flags_of_launcher_and_script_are_both_read(tmp_path: Path) -> None:
    found = {}
    for ours, theirs in (("bf16", None), ("no", "bf16"), ("bf16", "fp16")):
        case = Case("", ON, {"mixed_precision": theirs}, launcher=f"{ONE} --mixed_precision {ours}")
        run = run_of(tmp_path / f"{ours}-{theirs}", by_script(case))
        found[ours, theirs] = run.value("precision")
    assert found == {("bf16", None): "bf16", ("no", "bf16"): "bf16", ("bf16", "fp16"): "fp16"}


def general_of(run: Run) -> dict[str, Status]:
    scored = score(audit_named("general"), judge(run, all_checks()))
    return {item.id: item.status for category in scored.categories for item in category.items}


def test_what_needs_buckets_earns_nothing_without_them(tmp_path: Path) -> None:
    found = {}
    for buckets in (True, False):
        flags = {"random_hw_adapt": True, "training_with_video_token_length": True}
        case = Case("", ON, {**flags, "enable_bucket": buckets or None})
        statuses = general_of(run_of(tmp_path / str(buckets), by_script(case)))
        found[buckets] = (statuses["dynamic-resolution"], statuses["vision-token-pruning"])
    assert found == {True: (ON, ON), False: (OFF, OFF)}


@pytest.mark.parametrize(
    ("model", "parameters"),
    [("models/Wan2.2-Fun-A14B-Control", 14e9), ("models/Wan2.1-T2V-14B", 14e9)],
)
def test_one_of_two_experts_is_trained(model: str, parameters: float, tmp_path: Path) -> None:
    run = run_of(tmp_path, by_script(Case("", ON, {}, FULL, ONE, model=model)))
    assert run.model.parameters == parameters


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("fixed_prompt", "prompts/fixed.pt", ON),
        ("fixed_prompt", "a cat", OFF),
        ("text_encoder_weights", "umt5.pt", OFF),
    ],
)
def test_a_flag_of_ones_own_that_names_embeddings_of_prompts(
    name: str, value: str, status: Status, tmp_path: Path
) -> None:
    files = dict(by_checkout(Case("", ON, {name: value}, FULL)))
    parsed, path = "    return parser.parse_args()", f"scripts/{FULL}.py"
    files[path] = files[path].replace(parsed, f'    parser.add_argument("--{name}")\n{parsed}')
    scored = scored_of(judge(run_of(tmp_path, files), all_checks()))
    items = {item.id: item for category in scored.categories for item in category.items}
    assert items["preencoded-text"].status is status


def test_weights_are_trained_in_the_precision_they_are_loaded_in(tmp_path: Path) -> None:
    items = general_of(run_of(tmp_path, by_script(Case("", ON, {}, FULL, EIGHT, model=WAN_1B))))
    assert items["deepspeed-zero"] is OFF
    run = run_of(tmp_path / "own", by_script(Case("", ON, {}, FULL, EIGHT, model=WAN_1B)))
    assert weights_type(run) == "bf16"


@pytest.mark.parametrize(
    ("name", "stage", "device"),
    [
        ("config/zero_stage2_config.json", 2, "none"),
        ("config/zero_stage3_config.json", 3, "none"),
        ("../VideoX-Fun/config/zero_stage3_config_cpu_offload.json", 3, "cpu"),
        ("my/zero_stage2.json", None, None),
    ],
)
def test_bundled_deepspeed_files_are_known_by_name(
    name: str, stage: Any, device: Any, tmp_path: Path
) -> None:
    launcher = f"{EIGHT} --use_deepspeed --deepspeed_config_file {name}"
    run = run_of(tmp_path, by_script(Case("", ON, {}, FULL, launcher)))
    assert run.value("zero_stage") == stage
    assert run.value("offload_param") == device
    assert run.value("zero_hpz_partition_size") == (None if stage is None else 1)


@pytest.mark.parametrize("number", range(5))
def test_a_run_made_from_a_template_has_no_finding_and_full_attainment(
    number: int, tmp_path: Path
) -> None:
    scenario = scenarios(None, "videox_fun")[number]
    for file in scenario.files:
        (tmp_path / file.name).write_text(file.text.en, encoding="utf-8")
    report = build(tmp_path, "x", Options(), lambda step, done, total: None)
    assert report.primary is not None
    assert report.primary.framework == "videox_fun"
    assert [(entry.code, entry.action.en) for entry in report.recommendations] == []
    for audit in report.audits:
        assert audit.attainment in (1.0, None), [
            (item.id, item.action.en) for c in audit.categories for item in c.items if item.lost
        ]


_MADE = "    accelerator = Accelerator(mixed_precision=args.mixed_precision)\n"
_PLUGIN = """\
    path = os.environ.get("ACCELERATE_DEEPSPEED_CONFIG_FILE", "config/zero_stage2_config.json")
    with open(path) as file:
        config = json.load(file)
    accelerator = Accelerator(deepspeed_plugin=DeepSpeedPlugin(hf_ds_config=config))
"""


def _with_plugin(tmp_path: Path, named: str) -> Run:
    """A script of the user's own that makes DeepSpeed's plugin, started with ``named``."""
    launcher = f"{EIGHT} --use_deepspeed --deepspeed_config_file {named}"
    case = Case("", ON, {"train_batch_size": 8, "max_grad_norm": 0.05}, FULL, launcher)
    files = dict(by_checkout(case))
    program = files[f"scripts/{FULL}.py"]
    assert _MADE in program
    program = program.replace(_MADE, _PLUGIN)
    stage = {"zero_optimization": {"stage": 2}, "train_batch_size": "auto"}
    files |= {
        f"scripts/{FULL}.py": f"import json\nfrom accelerate import DeepSpeedPlugin\n{program}",
        "config/zero_stage2_config.json": json.dumps(stage),
        "config/ours.json": json.dumps({**stage, "gradient_clipping": 0.05}),
    }
    return run_of(tmp_path, files)


@pytest.mark.parametrize(
    ("name", "status"),
    [("config/ours.json", ON), ("config/zero_stage2_config.json", Status.RECOMMENDED)],
)
def test_a_program_finds_the_deepspeed_file_that_its_launcher_names(
    name: str, status: Status, tmp_path: Path
) -> None:
    run = _with_plugin(tmp_path, name)
    assert run.deepspeed is not None
    assert run.deepspeed.path == name
    assert run.settings["train_batch_size"].value in (8, "8")
    scored = scored_of(judge(run, all_checks()))
    items = [item for category in scored.categories for item in category.items]
    clipping = next(item for item in items if item.id == "gradient-clipping")
    assert clipping.status is status
    if status is Status.RECOMMENDED:
        assert name in clipping.action.en
        assert name in clipping.action.zh
