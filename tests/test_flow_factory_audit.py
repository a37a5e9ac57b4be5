"""Flow-Factory's audit: each item on, advised, inapplicable, by script, YAML alone and Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

import pytest
import yaml
from audit_cases import NA, OFF, ON, PARTLY, UNKNOWN, script
from audit_cases_flow_factory import (
    ALWAYS_APPLIES,
    BY_CHECKOUT,
    CASES,
    FULL,
    NEVER_ADVISED,
    NEVER_OFF,
    NEVER_ON,
    ONE,
    WAN,
    Case,
    accelerate,
    fsdp,
    zero,
)
from audits_support import adds_up, audit_named, changes_of, scores_of
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.changes import write
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.python import read_python
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.scoring import ScoredAudit, ScoredItem, score

AUDIT = audit_named("flow-factory")
ITEMS = [item for category in AUDIT.categories for item, _ in category.items]
Front = Callable[[Case], Mapping[str, str]]

BASE: Mapping[str, Any] = {
    "launcher": "accelerate",
    "num_processes": 8,
    "mixed_precision": "bf16",
    "data.dataset_dir": "dataset/t2is",
    "data.dataloader_num_workers": 8,
    "data.force_reprocess": False,
    "model.model_name_or_path": "black-forest-labs/FLUX.1-dev",
    "model.model_type": "flux1",
    "model.finetune_type": "lora",
    "model.lora_rank": 64,
    "model.attn_backend": "flash",
    "train.trainer_type": "grpo",
    "train.resolution": 512,
    "train.group_size": 8,
    "rewards": ({"name": "pick", "reward_model": "PickScore"},),
}


def plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return dict(value) if isinstance(value, Mapping) else value


def recipe(case: Case) -> str:
    nested: dict[str, Any] = {}
    settings = {**BASE, **case.settings}
    if "acc.yaml" in case.files:
        settings["config_file"] = "acc.yaml"
    for name, value in settings.items():
        section, dot, key = name.partition(".")
        if value is None:
            continue
        if dot:
            nested.setdefault(section, {})[key] = plain(value)
        else:
            nested[section] = plain(value)
    return str(yaml.safe_dump(nested, sort_keys=False))


def by_script(case: Case) -> Mapping[str, str]:
    launch = script(f"{case.before}ff-train grpo.yaml", *case.directives)
    return {**case.files, "grpo.yaml": recipe(case), "train.sh": launch}


def by_yaml(case: Case) -> Mapping[str, str]:
    """The recipe alone: what starts it is nowhere."""
    return {**case.files, "grpo.yaml": recipe(case)}


def by_python(case: Case) -> Mapping[str, str]:
    launch = 'import subprocess\n\nsubprocess.run(["ff-train", "grpo.yaml"], check=True)\n'
    return {**case.files, "grpo.yaml": recipe(case), "launch.py": launch}


FRONTS: tuple[Front, ...] = (by_script, by_yaml, by_python)


def allows(front: Front, case: Case) -> bool:
    """Whether a front end can say all of a case."""
    return front is by_script or not (case.before or case.directives)


def run_of(root: Path, files: Mapping[str, str]) -> Run:
    return next(run for run in runs_of(root, files) if run.framework == "flow_factory")


def scored_of(verdicts: tuple[Verdict, ...]) -> ScoredAudit:
    return score(AUDIT, verdicts)


def items_of(verdicts: tuple[Verdict, ...]) -> dict[str, ScoredItem]:
    return {item.id: item for c in scored_of(verdicts).categories for item in c.items}


PAIRS = [
    pytest.param(case, front, id=f"{case.id}-{front.__name__}")
    for case in CASES
    for front in FRONTS
    if allows(front, case)
]


@pytest.mark.parametrize(("case", "front"), PAIRS)
def test_status_of_the_item(case: Case, front: Front, tmp_path: Path) -> None:
    verdicts = judge(run_of(tmp_path, front(case)), all_checks())
    item = items_of(verdicts)[case.item]
    assert item.status is case.status, item.current.en
    if item.status is ON:
        assert item.evidence
    if case.shows:
        assert case.shows in str([evidence.text for evidence in item.evidence])
    if case.writes:
        changes = changes_of(case.item, verdicts)
        assert any(case.writes in text for text in changes), changes


_CHANGED = """\
import bitsandbytes as bnb
import diffusers
import torch
from diffusers import BitsAndBytesConfig
from liger_kernel.transformers import LigerRMSNorm

transformer = diffusers.WanTransformer3DModel.from_pretrained(
    "x", quantization_config=BitsAndBytesConfig(load_in_4bit=True)
)
optimizer = torch.optim.AdamW(transformer.parameters(), fused=True)
lean = bnb.optim.AdamW8bit(transformer.parameters())
scheduler = diffusers.optimization.get_scheduler("cosine", optimizer)
loader = torch.utils.data.DataLoader(data, persistent_workers=True, prefetch_factor=4)
"""


@pytest.mark.parametrize("name", sorted(BY_CHECKOUT))
def test_what_a_changed_trainer_does_is_on(name: str, tmp_path: Path) -> None:
    settings = FULL if name == "adam-8bit" else {}
    run = run_of(tmp_path, by_script(Case(name, ON, settings)))
    run = dataclasses.replace(run, python=(read_python(_CHANGED, "trainer.py"),))
    assert items_of(judge(run, all_checks()))[name].status is ON


@pytest.mark.parametrize(
    ("processes", "said"),
    [(8, "dynamo_config: {dynamo_backend: INDUCTOR}"), (1, "ACCELERATE_DYNAMO_BACKEND=INDUCTOR")],
)
def test_what_compiles_is_accelerate(processes: int, said: str, tmp_path: Path) -> None:
    run = run_of(tmp_path, by_script(Case("", ON, {"num_processes": processes})))
    assert said in items_of(judge(run, all_checks()))["torch-compile"].current.en


def test_half_of_a_practice_that_takes_code_is_not_to_be_gained(tmp_path: Path) -> None:
    item = items_of(judge(run_of(tmp_path, by_script(Case("", ON))), all_checks()))[
        "dataloader-tuning"
    ]
    assert (item.status, item.points, item.lost) == (PARTLY, 0.25, 0.0)
    assert item.change is not None
    assert "persistent_workers=True" in item.change.text


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable(name: str) -> None:
    found = {case.status for case in CASES if case.item == name}
    assert ON in found or name in BY_CHECKOUT or name in NEVER_ON
    assert (NA in found) is (name not in ALWAYS_APPLIES)
    if name not in NEVER_ADVISED:
        assert found & {Status.RECOMMENDED, PARTLY}
    else:
        assert Status.RECOMMENDED not in found
        assert OFF in found or name in NEVER_OFF


def test_points_of_a_category_add_up_to_its_maximum() -> None:
    assert adds_up(AUDIT)


# --- totals worked out by hand ----------------------------------------------------------------


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_adapters_that_leave_nothing_to_gain(front: Front, tmp_path: Path) -> None:
    settings = {"train.max_epochs": 100, "eval_rewards": ({"reward_model": "CLIP"},)}
    scored = scored_of(
        judge(run_of(tmp_path, front(Case("", ON, settings, zero(2)))), all_checks())
    )
    assert scores_of(scored) == {
        "A": 5,  # BF16 2.5, weights and latents 1 each, sampling 0.5: all but the first by default
        "B": 1,  # accumulation is worked out; the others are not needed for images of 512 pixels
        "C": 5,  # LoRA 2, rank 1, alpha .5, all layers 1, the transformer .5
        "D": 4,  # ZeRO-2 3, eight processes 1
        "E": 4,
        "F": 4.5,  # rate 1, Adam .5, clipping 1, group 1, epochs 1; no schedule
        "G": 4.5,  # workers, batch, sampler and cache 1 each, a node .5
        "H": 3,  # batch, device, type and evaluation .5 each, GDPO 1
        "I": 3,  # average 1, interval, device and schedule .5 each, SDE .5
        "J": 0.25,  # pinned memory and workers, half of the loader's tuning
    }
    assert (scored.score, scored.maximum, scored.attainment) == (34.25, 49, 1.0)


def test_full_tuning_of_videos_that_lacks_some(tmp_path: Path) -> None:
    settings = {
        **FULL,
        **WAN,
        "model.attn_backend": None,
        "data.force_reprocess": True,
        "train.resolution": [480, 832],
        "train.num_frames": 33,
        "scheduler.flow_shift": 5.0,
        "scheduler.sde_steps": [1, 2],
    }
    scored = scored_of(
        judge(run_of(tmp_path, by_script(Case("", ON, settings, fsdp(2)))), all_checks())
    )
    assert scores_of(scored) == {
        "A": 5,
        "B": 1,
        "C": 1.5,  # layers and component
        "D": 4,  # FSDP2 3, processes 1
        "E": 2,  # half: SDPA
        "F": 3.5,  # no limit of epochs
        "G": 3.5,  # no cache
        "H": 2.5,
        "I": 3.5,  # the shift is that of 720P
        "J": 0.75,  # no sync while accumulating, half of the loader's tuning
    }
    # To be gained: checkpointing and samples 1.5 each, attention 2, cache 1, shift .5.
    assert (scored.earned, scored.lost, scored.attainment) == (27.25, 6.5, 0.81)


def test_a_bare_preference_run_on_one_gpu(tmp_path: Path) -> None:
    settings = {
        "num_processes": 1,
        "train.trainer_type": "dpo",
        "train.group_size": None,
        "model.lora_rank": None,
        "model.attn_backend": None,
        "mixed_precision": "no",
        "data.dataloader_num_workers": 0,
    }
    scored = scored_of(judge(run_of(tmp_path, by_script(Case("", ON, settings))), all_checks()))
    assert scores_of(scored) == {
        "A": 2,  # weights and latents by default
        "B": 1,
        "C": 4,  # LoRA 2, alpha .5, layers 1, component .5
        "D": 1,
        "E": 2,
        "F": 2.5,  # rate, clipping 1 each, Adam .5
        "G": 3,  # batch, sampler and cache
        "H": 2.5,
        "I": 2.5,  # the average; DPO noises its samples itself
        "J": 0,
    }
    # To be gained: BF16 2.5, rank 1, attention 2, groups 1, workers 1.
    assert (scored.earned, scored.lost, scored.attainment) == (20.5, 7.5, 0.73)


# --- what the audit rests on ------------------------------------------------------------------


def test_the_file_that_config_file_names_is_read(tmp_path: Path) -> None:
    found = {}
    for name, files in (("zero", zero(3)), ("fsdp", fsdp(2)), ("none", {})):
        run = run_of(tmp_path / name, by_script(Case("", ON, {}, files)))
        found[name] = (run.value("zero_stage"), run.value("fsdp"), run.value("fsdp_version"))
    assert found["zero"][:2] == (3, "none")
    assert found["fsdp"] == (0, "full_shard", 2)
    assert found["none"][:2] == (0, "none")


@pytest.mark.parametrize(
    ("name", "stage", "fsdp", "version"),
    [
        ("config/deepspeed/deepspeed_zero1.yaml", 1, "none", None),
        ("config/deepspeed/deepspeed_zero2.yaml", 2, "none", None),
        ("../Flow-Factory/config/deepspeed/deepspeed_zero2_offparam.yaml", 2, "none", None),
        ("config/deepspeed/deepspeed_zero3.yaml", 3, "none", None),
        ("config/accelerate_configs/fsdp2.yaml", 0, "full_shard", 2),
        ("config/accelerate_configs/fsdp_full_shard.yaml", 0, "full_shard", 1),
        ("config/accelerate_configs/fsdp_grad_op_shard.yaml", 0, "shard_grad_op", 1),
        ("config/accelerate_configs/multi_gpu.yaml", 0, "none", None),
        ("config/accelerate_configs/multi_node.yaml", None, None, None),
        ("config/mine.yaml", None, None, None),
    ],
)
def test_bundled_accelerate_files_are_known_by_name(
    name: str, stage: Any, fsdp: Any, version: Any, tmp_path: Path
) -> None:
    run = run_of(tmp_path, by_yaml(Case("", ON, {"config_file": name})))
    assert (run.value("zero_stage"), run.value("fsdp"), run.value("fsdp_version")) == (
        stage,
        fsdp,
        version,
    )
    assert run.value("offload_param") == (
        None if "zero" not in name else "cpu" if "offparam" in name else "none"
    )


def test_a_bundled_file_in_the_project_is_read_itself(tmp_path: Path) -> None:
    name = "config/deepspeed/deepspeed_zero2.yaml"
    files = {name: zero(3)["acc.yaml"]}
    run = run_of(tmp_path, by_yaml(Case("", ON, {"config_file": name}, files)))
    assert run.value("zero_stage") == 3


def test_an_accelerate_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    case = Case("", ON, {"config_file": "config/mine.yaml"})
    items = items_of(judge(run_of(tmp_path, by_yaml(case)), all_checks()))
    text = items["zero2"].current
    assert "`config_file=config/mine.yaml` (grpo.yaml:" in text.en
    assert "`config_file=config/mine.yaml`（grpo.yaml:" in text.zh


def test_plain_data_parallelism_of_a_bundled_file_needs_no_sync(tmp_path: Path) -> None:
    settings = {"config_file": "config/accelerate_configs/multi_gpu.yaml", "num_processes": 8}
    items = items_of(judge(run_of(tmp_path, by_yaml(Case("", ON, settings))), all_checks()))
    assert items["no-sync"].status is ON


def general_of(run: Run) -> dict[str, ScoredItem]:
    scored = score(audit_named("general"), judge(run, all_checks()))
    return {item.id: item for category in scored.categories for item in category.items}


def test_the_general_audit_knows_what_the_framework_does_itself(tmp_path: Path) -> None:
    items = general_of(run_of(tmp_path, by_yaml(Case("", ON, WAN))))
    done = ("pin-memory", "offline-preprocessing", "vision-encoder-frozen")
    assert [items[name].status for name in done] == [ON, ON, ON]


def test_prompts_that_are_not_preprocessed_are_encoded_at_every_step(tmp_path: Path) -> None:
    settings = {**WAN, "data.enable_preprocess": False}
    items = general_of(run_of(tmp_path, by_yaml(Case("", ON, settings))))
    assert items["offline-preprocessing"].status is OFF


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model.model_name_or_path": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"}, "about 2.4 GiB"),
        (WAN, "the GPU's memory is not known"),
        ({"model.model_name_or_path": "mine/unnamed"}, "the model's size is not known"),
    ],
)
def test_why_nothing_is_offloaded(settings: Mapping[str, Any], said: str, tmp_path: Path) -> None:
    items = general_of(run_of(tmp_path, by_yaml(Case("", ON, {**WAN, **settings, **ONE}))))
    assert said in items["cpu-nvme-offload"].current.en


def test_a_default_is_not_shown_as_written_in_the_file(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.id.startswith("offload-samples-") and case.writes)
    shown = items_of(judge(run_of(tmp_path, by_yaml(case)), all_checks()))[case.item].evidence
    assert [e.text for e in shown] == ["train.offload_samples_to_cpu False unless set"]


@pytest.mark.parametrize(
    ("name", "written"),
    [("train.offload_samples_to_cpu", "offload_samples_to_cpu: true\n  "), ("other.key", "")],
)
def test_a_key_is_written_into_the_section_that_the_file_has(
    name: str, written: str, tmp_path: Path
) -> None:
    edits = write(run_of(tmp_path, by_yaml(Case("", ON, WAN))), {name: True}).edits
    assert [edit.new for edit in edits] == ([written] if written else [])
    lines = recipe(Case("", ON, WAN)).split("\n")
    assert all(lines[edit.location.line - 1].startswith("  ") for edit in edits)


_BY_ARGUMENT = """\
#!/bin/bash
# Usage: bash launch.sh <config.yaml>
{}
CONFIG=${{1:?a configuration}}
ff-train "$CONFIG"
"""


@pytest.mark.parametrize(
    ("comments", "is_open"),
    [
        ("#   bash launch.sh grpo.yaml", False),
        ("#   ./launch.sh grpo.yaml\n#   bash launch.sh grpo.yaml", False),
        ("#   bash launch.sh <grpo.yaml>", True),
        ("#   bash launch.sh absent.yaml", True),
        ("#   bash launch.sh grpo.yaml\n#   bash launch.sh other.yaml", True),
        ("#   bash other.sh grpo.yaml", True),
    ],
)
def test_a_script_is_given_what_its_example_names(
    comments: str, is_open: bool, tmp_path: Path
) -> None:
    text = recipe(Case("", ON))
    files = {
        "launch.sh": _BY_ARGUMENT.format(comments),
        "grpo.yaml": text,
        "other.yaml": text,
    }
    found = [run for run in runs_of(tmp_path, files) if run.location.path == "launch.sh"]
    assert [run.is_open for run in found] == [is_open]
    assert (found[0].value("model") is None) is is_open


@pytest.mark.parametrize(("machines", "status"), [(4, UNKNOWN), (1, OFF)])
def test_a_file_for_several_machines_does_not_say_how_many_the_platform_gives(
    machines: int, status: Status, tmp_path: Path
) -> None:
    files = {"acc.yaml": accelerate("MULTI_GPU", machines=machines, processes=32)}
    case = Case("multi-node", status, {"num_processes": None}, files)
    items = items_of(judge(run_of(tmp_path, by_script(case)), all_checks()))
    assert items["multi-node"].status is status


# --- the checkout's own source ----------------------------------------------------------------

_HPARAMS = "src/flow_factory/hparams"
_CHECKOUT = {
    f"{_HPARAMS}/args.py": "",
    f"{_HPARAMS}/training_args.py": """\
from dataclasses import dataclass, field


@dataclass
class TrainingArguments(ArgABC):
    ema_decay: float = field(default=0.5, metadata={"help": "x"})
    group_size: int = field(default=1)


@dataclass
class GRPOTrainingArguments(TrainingArguments):
    latent_storage_dtype: str = field(default="bf16")


@dataclass
class NFTTrainingArguments(TrainingArguments):
    ema_device: str = field(default="cuda")
""",
    f"{_HPARAMS}/model_args.py": """\
from dataclasses import dataclass, field


@dataclass
class ModelArguments(ArgABC):
    attn_backend: str = field(default=None)
    target_modules: str = field(default="all")
""",
    "src/flow_factory/models/registry.py": """\
_MODEL_ADAPTER_REGISTRY: Dict[str, str] = {
    'wan2_vace': 'flow_factory.models.vace.VaceAdapter',
    'bagel': 'flow_factory.models.bagel.BagelAdapter',
}
""",
    "src/flow_factory/models/vace.py": "from diffusers import WanVACEPipeline\n",
    "src/flow_factory/models/bagel.py": "from diffusers import DiffusionPipeline\n",
}


def of_checkout(root: Path, settings: Mapping[str, Any]) -> dict[str, ScoredItem]:
    case = Case("", ON, settings)
    run = run_of(root, {**_CHECKOUT, **by_yaml(case)})
    return items_of(judge(run, all_checks()))


def test_defaults_are_those_of_the_checkout(tmp_path: Path) -> None:
    items = of_checkout(tmp_path, {})
    shown = items["ema-decay"].evidence[0].text
    assert shown == f"train.ema_decay=0.5 ({_HPARAMS}/training_args.py:6)"
    assert "bf16" in items["latent-storage-dtype"].current.en


def test_what_the_checkout_lacks_does_not_apply(tmp_path: Path) -> None:
    items = of_checkout(tmp_path, {**WAN, "train.offload_samples_to_cpu": None})
    for name in ("offload-samples", "ema-device", "epochs", "async-reward", "sampler-strategy"):
        assert items[name].status is NA
        assert "this checkout of Flow-Factory has no" in items[name].current.en
    of_nft = of_checkout(tmp_path / "nft", {"train.trainer_type": "nft"})
    assert of_nft["ema-device"].status is ON
    assert of_nft["latent-storage-dtype"].status is NA


@pytest.mark.parametrize(
    ("model", "status"), [("wan2_vace", PARTLY), ("bagel", UNKNOWN), ("other", UNKNOWN)]
)
def test_whose_transformer_a_forks_adapter_takes(
    model: str, status: Status, tmp_path: Path
) -> None:
    settings = {"model.model_type": model, "model.attn_backend": None}
    assert of_checkout(tmp_path, settings)["default-sdpa"].status is status


def test_noisy_steps_had_another_name_at_first(tmp_path: Path) -> None:
    settings = {"scheduler.train_steps": [1, 2, 3]}
    assert of_checkout(tmp_path, settings)["sde-steps"].status is ON


@pytest.mark.parametrize(("modules", "status"), [("all", Status.RECOMMENDED), ("default", OFF)])
def test_a_copy_is_of_what_is_trained(modules: str, status: Status, tmp_path: Path) -> None:
    settings = {**FULL, "model.target_modules": modules}
    run = run_of(tmp_path, by_yaml(Case("", ON, settings, zero(2))))
    assert items_of(judge(run, all_checks()))["ema-device-cpu"].status is status


@pytest.mark.parametrize(("stage", "status"), [(2, OFF), (3, ON)])
def test_accelerates_plugin_leaves_the_overlap_to_deepspeed(
    stage: int, status: Status, tmp_path: Path
) -> None:
    items = general_of(run_of(tmp_path, by_yaml(Case("", ON, {}, zero(stage)))))
    assert items["comm-overlap"].status is status


@pytest.mark.parametrize(("modules", "status"), [("all", OFF), ("default", ON), (["to_q"], ON)])
def test_full_tuning_freezes_what_target_modules_does_not_name(
    modules: Any, status: Status, tmp_path: Path
) -> None:
    settings = {**FULL, "model.target_modules": modules}
    items = general_of(run_of(tmp_path, by_yaml(Case("", ON, settings))))
    assert items["layer-freezing"].status is status


@pytest.mark.parametrize(("count", "is_short"), [(5, True), (None, False)])
def test_a_video_whose_length_is_nowhere_is_not_called_short(
    count: Any, is_short: bool, tmp_path: Path
) -> None:
    settings = {**WAN, "train.resolution": 256, "train.num_frames": count}
    files = by_script(Case("gradient-checkpointing", OFF, settings))
    item = items_of(judge(run_of(tmp_path, files), all_checks()))["gradient-checkpointing"]
    assert item.status is OFF
    assert ("short samples" in item.current.en) is is_short
