"""LlamaFactory's audit: each item on, advised, inapplicable, by recipe, flags and overrides."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Callable

import pytest
from audit_cases import NA, OFF, ON, script
from audit_cases_llamafactory import (
    CASES,
    EIGHT,
    FULL,
    NEVER_ADVISED,
    ONE,
    QWEN,
    SHARDED,
    Case,
)
from audits_support import adds_up, audit_named, items_of, scores_of
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.runs.model import RunKind
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import ScoredAudit, score

AUDIT = audit_named("llamafactory")
ITEMS = [item for category in AUDIT.categories for item, _ in category.items]
Front = Callable[[Case], Mapping[str, str]]


def settings_of(case: Case) -> dict[str, Any]:
    given: dict[str, Any] = {"model_name_or_path": QWEN, "template": "qwen"}
    if case.command.endswith(("train", "train.py")):
        given |= {"stage": "sft", "do_train": True, "finetuning_type": "lora", "dataset": "mine"}
    return {**given, **case.settings}


def written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def recipe(settings: Mapping[str, Any]) -> str:
    return "".join(f"{name}: {written(value)}\n" for name, value in settings.items())


def by_recipe(case: Case) -> Mapping[str, str]:
    launch = script(f"{case.before}{case.command} sft.yaml", *case.directives)
    return {**case.files, "sft.yaml": recipe(settings_of(case)), "train.sh": launch}


def by_flags(case: Case) -> Mapping[str, str]:
    flags = " ".join(f"--{k} {shlex.quote(written(v))}" for k, v in settings_of(case).items())
    launch = script(f"{case.before}{case.command} \\\n    {flags}", *case.directives)
    return {**case.files, "train.sh": launch}


def by_overrides(case: Case) -> Mapping[str, str]:
    """A recipe of the defaults, and what the case sets behind its name."""
    pairs = " ".join(f"{k}={shlex.quote(written(v))}" for k, v in case.settings.items())
    plain = recipe(settings_of(Case("", ON, command=case.command)))
    launch = script(f"{case.before}{case.command} sft.yaml {pairs}", *case.directives)
    return {**case.files, "sft.yaml": plain, "train.sh": launch}


FRONTS: tuple[Front, ...] = (by_recipe, by_flags, by_overrides)


def audited(root: Path, files: Mapping[str, str]) -> ScoredAudit:
    run = next(run for run in runs_of(root, files) if run.framework == "llamafactory")
    return score(AUDIT, judge(run, all_checks()))


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_status_of_the_item(case: Case, front: Front, tmp_path: Path) -> None:
    scored = audited(tmp_path, front(case))
    items = {item.id: item for category in scored.categories for item in category.items}
    item = items[case.item]
    assert item.status is case.status, item.current.en
    if item.status is ON:
        assert item.evidence


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable(name: str) -> None:
    found = {case.status for case in CASES if case.item == name}
    assert {ON, NA} <= found
    if name not in NEVER_ADVISED:
        assert found & {Status.RECOMMENDED, Status.PARTIAL}
    elif name not in ("zero3-offload",):
        assert OFF in found or name in ("fsdp",)
        assert Status.RECOMMENDED not in found


def test_points_of_a_category_add_up_to_its_maximum() -> None:
    assert adds_up(AUDIT)


# --- totals worked out by hand ----------------------------------------------------------------

TUNED = {
    "bf16": True,
    "flash_attn": "fa2",
    "enable_liger_kernel": True,
    "neat_packing": True,
    "preprocessing_num_workers": 16,
    "dataloader_num_workers": 4,
    "gradient_accumulation_steps": 8,
    "optim": "adamw_torch_fused",
}


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_a_run_that_leaves_nothing_to_gain(front: Front, tmp_path: Path) -> None:
    scored = audited(tmp_path, front(Case("", ON, {**TUNED, "use_dora": True}, ONE)))
    assert scores_of(scored) == {
        "A": 4,  # LoRA 3, DoRA 1
        "B": 3,  # BF16
        "C": 3,  # checkpointing, its mode and accumulation; Unsloth's is another
        "D": 0,  # one GPU
        "E": 6,  # fused AdamW
        "F": 3,  # FlashAttention-2
        "G": 3,  # Liger
        "H": 5,  # neat packing 2, and 1 each: its workers, its batch, the loader's workers
        "I": 1,  # prompts are masked
        "J": None,
    }
    assert (scored.score, scored.maximum, scored.attainment) == (28, 55, 1.0)


def test_full_tuning_that_lacks_some(tmp_path: Path) -> None:
    settings = {
        **FULL,
        "bf16": True,
        "flash_attn": "sdpa",
        "neat_packing": True,
        "optim": "adafactor",
    }
    case = Case("", ON, {**settings, "deepspeed": "examples/deepspeed/ds_z3_config.json"}, EIGHT)
    scored = audited(tmp_path, by_recipe(case))
    assert scores_of(scored) == {
        "A": 0,
        "B": 3,  # BF16
        "C": 2,  # checkpointing and its mode; eight GPUs of 8 samples need no accumulation
        "D": 4,  # ZeRO-3
        "E": 0,  # Adafactor is none of the list
        "F": 1.5,  # half of 3: SDPA, where FlashAttention-2 is better
        "G": 0,
        "H": 3,  # neat packing 2, the default batch of preprocessing 1
        "I": 1,  # prompts are masked
        "J": None,
    }
    # To be gained: 1.5 of attention, 3 of Liger, 1 of each kind of workers.
    assert (scored.earned, scored.lost) == (14.5, 6.5)
    assert scored.attainment == 0.69  # 14.5 / 21


def test_a_bare_preference_run(tmp_path: Path) -> None:
    settings = {"stage": "dpo", "fp16": True, "optim": "adamw_torch", "flash_attn": "fa2"}
    case = Case("", ON, {**settings, "per_device_train_batch_size": 1}, ONE)
    scored = audited(tmp_path, by_flags(case))
    assert scores_of(scored) == {
        "A": 3,  # LoRA
        "B": 3,  # FP16, the GPU is not known
        "C": 2,  # checkpointing and its mode
        "D": 0,
        "E": 0,
        "F": 3,  # FlashAttention-2
        "G": 0,  # Liger is not advised for preferences
        "H": 1,  # the default batch of preprocessing
        "I": 0,  # all for supervised tuning, or off
        "J": None,
    }
    # To be gained: accumulation 1, fused AdamW 6, 1 of each kind of workers.
    assert (scored.earned, scored.lost, scored.attainment) == (12, 9, 0.57)


# --- what the audit rests on ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "stage", "optimizer", "parameters"),
    [
        ("examples/deepspeed/ds_z0_config.json", 0, "none", "none"),
        ("LLaMA-Factory/examples/deepspeed/ds_z2_config.json", 2, "none", "none"),
        ("/opt/lf/examples/deepspeed/ds_z2_offload_config.json", 2, "cpu", "none"),
        ("examples/deepspeed/ds_z3_fp8_config.json", 3, "cpu", "none"),
        ("examples/deepspeed/ds_z3_offload_config.json", 3, "cpu", "cpu"),
        ("my/deepspeed/ds_z3_config.json", None, None, None),
    ],
)
def test_bundled_deepspeed_files_are_known_by_name(
    path: str, stage: Any, optimizer: Any, parameters: Any, tmp_path: Path
) -> None:
    run = runs_of(tmp_path, by_recipe(Case("", ON, {"deepspeed": path}, EIGHT)))[0]
    assert run.value("zero_stage") == stage
    assert run.value("offload_optimizer") == optimizer
    assert run.value("offload_param") == parameters


def test_a_file_of_the_project_is_read_in_place_of_the_bundled_one(tmp_path: Path) -> None:
    path = "examples/deepspeed/ds_z3_config.json"
    files = {path: '{"zero_optimization": {"stage": 2}}'}
    case = Case("", ON, {"deepspeed": path}, EIGHT, files=files)
    assert runs_of(tmp_path, by_recipe(case))[0].value("zero_stage") == 2


def test_a_recipe_given_to_train_py_of_a_checkout_elsewhere(tmp_path: Path) -> None:
    launch = "torchrun --nproc_per_node 4 {} sft.yaml\n"
    body = recipe(settings_of(Case("", ON)))
    found = {}
    for script_path in ("../LLaMA-Factory/src/train.py", "src/main.py"):
        files = {"sft.yaml": body, "train.sh": launch.format(script_path)}
        run = runs_of(tmp_path / script_path.replace("/", "_"), files)[0]
        found[script_path] = run.launcher.world_size
    assert found == {"../LLaMA-Factory/src/train.py": 4, "src/main.py": None}


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"do_train": True, "do_eval": True}, RunKind.TRAIN),
        ({"do_train": False, "do_predict": True}, RunKind.INFER),
        ({"do_train": False}, RunKind.INFER),
    ],
)
def test_train_that_only_evaluates(
    settings: Mapping[str, Any], kind: RunKind, tmp_path: Path
) -> None:
    for number, front in enumerate(FRONTS):
        run = runs_of(tmp_path / str(number), front(Case("", ON, settings)))[0]
        assert run.kind is kind


@pytest.mark.parametrize(
    ("before", "command"), [("USE_MEGATRON_BRIDGE=true ", True), ("USE_MCA=0 ", False), ("", False)]
)
def test_megatron_is_switched_on_by_the_environment(
    before: str, command: bool, tmp_path: Path
) -> None:
    case = Case("", ON, {**FULL, "tensor_model_parallel_size": 4}, before)
    run = runs_of(tmp_path, by_recipe(case))[0]
    assert (run.value("megatron") is True) is command


def test_sizes_of_megatron_in_a_recipe_alone(tmp_path: Path) -> None:
    body = recipe({**settings_of(Case("", ON, FULL)), "tensor_model_parallel_size": 4})
    run = runs_of(tmp_path, {"sft.yaml": body})[0]
    assert (run.value("megatron"), run.value("tensor_parallel")) == (True, 4)


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("finetuning_type", ("lora", "dora", "loraplus", "pissa", "fsdp-qlora", "llama-pro")),
        ("stage", ("dft-loss", "eaft-loss", "asft-loss", "mask-history", "train-on-prompt-off")),
    ],
)
def test_what_a_value_that_is_not_known_decides_is_not_known(
    name: str, items: tuple[str, ...], tmp_path: Path
) -> None:
    body = recipe({**settings_of(Case("", ON)), name: "x"}).replace(f"{name}: x\n", "")
    launch = f'llamafactory-cli train sft.yaml {name}="$1"\n'
    scored = audited(tmp_path, {"sft.yaml": body, "train.sh": script(ONE + launch)})
    found = {item.id: item.status for category in scored.categories for item in category.items}
    assert {found[item] for item in items} == {Status.UNKNOWN}


@pytest.mark.parametrize(
    ("strategy", "offload", "item"),
    [
        ("SHARD_GRAD_OP", False, "fsdp"),
        ("HYBRID_SHARD", False, "fsdp"),
        ("FULL_SHARD", True, "fsdp-offload"),
        ("SHARD_GRAD_OP", True, "fsdp-offload"),
    ],
)
def test_every_way_of_fsdp_is_one_of_the_two(
    strategy: str, offload: bool, item: str, tmp_path: Path
) -> None:
    file = (
        "distributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\nfsdp_config:\n"
        f"  fsdp_sharding_strategy: {strategy}\n  fsdp_offload_params: {written(offload)}\n"
    )
    launch = "accelerate launch --config_file fsdp.yaml src/train.py"
    case = Case("", ON, FULL, "", (), launch, {"fsdp.yaml": file})
    scored = audited(tmp_path, by_recipe(case))
    found = {i.id: i.status for category in scored.categories for i in category.items}
    assert [name for name in ("fsdp", "fsdp-offload") if found[name] is ON] == [item]


def test_a_recipe_for_npus_is_none_for_cuda(tmp_path: Path) -> None:
    body = recipe(settings_of(Case("", ON)))
    launch = script(f"{ONE}llamafactory-cli train examples/ascend/sft.yaml")
    scored = audited(tmp_path, {"examples/ascend/sft.yaml": body, "train.sh": launch})
    found = {item.id: item.status for category in scored.categories for item in category.items}
    assert found["liger-kernel"] is found["flash-attention-2"] is NA
    assert found["v1-kernels"] is OFF


# --- what is said of items that are off or not known ------------------------------------------


def said_of(root: Path, files: Mapping[str, str]) -> dict[str, tuple[Status, str]]:
    return {
        name: (item.status, item.current.en)
        for name, item in items_of(audited(root, files)).items()
    }


SHARDING = ("zero2", "zero3", "fsdp", "zero3-offload")


@pytest.mark.parametrize(
    ("settings", "command", "status", "words"),
    [
        # 14 GiB of frozen weights: on one GPU or on eight, nothing has to be split
        ({}, "llamafactory-cli train sft.yaml", OFF, "GiB fit one GPU"),
        (FULL, "llamafactory-cli train sft.yaml", Status.UNKNOWN, "number of GPUs is not known"),
        ({}, "", Status.UNKNOWN, "the launch command is not in sight"),
    ],
)
def test_sharding_of_a_run_whose_gpus_are_not_counted(
    settings: Mapping[str, Any], command: str, status: Status, words: str, tmp_path: Path
) -> None:
    files = {"sft.yaml": recipe(settings_of(Case("", ON, settings)))}
    if command:
        files["train.sh"] = f"{command}\n"
    found = said_of(tmp_path, files)
    assert {found[name][0] for name in SHARDING} == {status}
    assert all(words in found[name][1] for name in SHARDING)


def test_what_is_never_advised_is_off_whatever_the_number_of_gpus(tmp_path: Path) -> None:
    body = recipe(settings_of(Case("", ON, FULL)))
    found = said_of(tmp_path, {"sft.yaml": body, "train.sh": "llamafactory-cli train sft.yaml\n"})
    assert found["fsdp-offload"] == found["megatron-core"] == (OFF, "off; optional")


def test_experts_in_the_hosts_memory_are_not_split(tmp_path: Path) -> None:
    settings = {"model_name_or_path": "deepseek-ai/DeepSeek-V3", "use_kt": True}
    body = recipe(settings_of(Case("", ON, settings)))
    found = said_of(tmp_path, {"sft.yaml": body, "train.sh": "llamafactory-cli train sft.yaml\n"})
    assert found["zero3"][0] is found["zero3-offload"][0] is found["pissa"][0] is NA
    assert found["zero2"][0] is found["fsdp"][0] is OFF
    assert "host's memory" in found["fsdp"][1]


OWN_SOURCE = """\
from dataclasses import dataclass, field


@dataclass
class Arguments:
    model_name_or_path: str = field(default=None)
    finetuning_type: str = field(default="lora")
    cutoff_len: int = field(default=2048)
{}"""


@pytest.mark.parametrize(
    ("more", "status"), [("", NA), ("    use_mca: bool = field(default=False)\n", OFF)]
)
def test_the_source_at_hand_says_what_it_takes(more: str, status: Status, tmp_path: Path) -> None:
    files = {
        "src/llamafactory/extras/env.py": 'VERSION = "0.9.4.dev0"\n',
        "src/llamafactory/hparams/parser.py": "",
        "src/llamafactory/hparams/own_args.py": OWN_SOURCE.format(more),
        "sft.yaml": recipe(settings_of(Case("", ON, FULL))),
        "train.sh": "llamafactory-cli train sft.yaml\n",
    }
    assert said_of(tmp_path, files)["megatron-core"][0] is status


def test_starts_of_adapters_are_offered_as_far_as_they_go(tmp_path: Path) -> None:
    found = said_of(tmp_path, by_recipe(Case("", ON, {"quantization_bit": 4})))
    assert "LoftQ by scripts" in found["loftq"][1]
    assert "PiSSA" not in found["loftq"][1]
    assert "scripts/pissa_init.py" in found["pissa"][1]


def test_no_item_that_is_off_is_without_a_word(tmp_path: Path) -> None:
    found = said_of(tmp_path, by_recipe(Case("", ON)))
    assert [name for name, (_, words) in found.items() if not words] == []
    assert "memory-maps its Arrow tables" in found["streaming"][1]


def test_names_are_llamafactorys_own(tmp_path: Path) -> None:
    entry = "from llamafactory.train.tuner import run_exp\nrun_exp()\n"
    found = said_of(tmp_path, {"train.py": entry})
    assert found["loraplus"] == (Status.UNKNOWN, "loraplus_lr_ratio: not known")
    held = {
        "src/llamafactory/extras/env.py": 'VERSION = "0.8.4.dev0"\n',
        "src/llamafactory/hparams/parser.py": "",
        "sft.yaml": recipe(settings_of(Case("", ON))),
    }
    found = said_of(tmp_path / "old", held)
    lacking = ("asft-loss", "dft-loss", "muon", "adam-mini", "liger-kernel", "fp8", "oft")
    for name in lacking:
        assert found[name] == (NA, "this release does not have the parameter")
    assert found["mask-history"][0] is OFF  # 0.8.3 has it
    assert found["neftune"][0] is found["dora"][0] is OFF
    assert found["preprocessing-batch-size"] == (
        ON,
        "datasets.map takes 1000 samples at a time by default",
    )
    assert found["train-on-prompt-off"][1].endswith("(llamafactory 0.8.3, hparams/data_args.py)")


def test_nothing_is_told_of_arguments_from_the_command_line(tmp_path: Path) -> None:
    entry = "from llamafactory.train.tuner import run_exp\nrun_exp()\n"
    found = said_of(tmp_path, {"train.py": entry})
    assert found["streaming"][0] is found["fp8"][0] is Status.UNKNOWN


@pytest.mark.parametrize(
    ("template", "kind", "liger"),
    [
        ("qwen3", "LLM", Status.RECOMMENDED),
        ("llama3", "LLM", Status.RECOMMENDED),
        ("intern2", "LLM", Status.UNKNOWN),
        ("qwen2_vl", "MLLM", Status.RECOMMENDED),
        ("default", "unknown", Status.UNKNOWN),  # it formats any model
    ],
)
def test_the_template_tells_the_kind_of_a_model_that_no_name_does(
    template: str, kind: str, liger: Status, tmp_path: Path
) -> None:
    settings = {"model_name_or_path": "saves/merged", "template": template}
    files = by_recipe(Case("", ON, settings))
    assert runs_of(tmp_path / "run", files)[0].model.kind == kind
    assert said_of(tmp_path, files)["liger-kernel"][0] is liger


@pytest.mark.parametrize(
    ("model", "release", "status"),
    [
        ("Qwen/Qwen3-8B", "0.9.3", Status.RECOMMENDED),
        ("Qwen/Qwen3-8B", "0.9.2", NA),
        ("Qwen/Qwen2.5-7B-Instruct", "0.9.0", Status.RECOMMENDED),
        ("Qwen/Qwen2.5-VL-7B-Instruct", "0.9.1", NA),
        ("Qwen/Qwen3.5-2B", "0.9.5", Status.RECOMMENDED),
        ("Qwen/Qwen3.5-2B", "0.9.4", NA),
        ("Qwen/Qwen3-VL-8B-Instruct", "", NA),  # Liger has it, LLaMA-Factory does not ask
        ("Qwen/Qwen3.5-35B-A3B", "", NA),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "", Status.RECOMMENDED),
    ],
)
def test_liger_for_the_models_that_the_release_patches(
    model: str, release: str, status: Status, tmp_path: Path
) -> None:
    files = dict(by_recipe(Case("", ON, {"model_name_or_path": model})))
    if release:
        files["requirements.txt"] = f"llamafactory=={release}\n"
    assert said_of(tmp_path, files)["liger-kernel"][0] is status


UNNAMED = 'llamafactory-cli train "$CONFIG"\n'
BY_ACCELERATE = "accelerate launch --config_file $FSDP src/train.py $CONFIG\n"


@pytest.mark.parametrize(
    ("script_text", "status"),
    [
        (f"CONFIG=$1\n{UNNAMED}", OFF),
        (f"CONFIG=$1\n{UNNAMED}{BY_ACCELERATE}", Status.UNKNOWN),
        ("llamafactory-cli train other.yaml\n", Status.UNKNOWN),
    ],
)
def test_recipes_that_no_command_names_are_started_as_the_project_starts_such(
    script_text: str, status: Status, tmp_path: Path
) -> None:
    body = recipe(settings_of(Case("", ON)))
    files = {"configs/sft.yaml": body, "other.yaml": body, "run.sh": script_text}
    run = next(r for r in runs_of(tmp_path, files) if r.location.path == "configs/sft.yaml")
    scored = score(AUDIT, judge(run, all_checks()))
    assert items_of(scored)["fsdp"].status is status
    assert (run.started_like is not None) is (status is OFF)


@pytest.mark.parametrize(
    ("pin", "method", "status"),
    [
        ("==0.9.5", "bnb", ON),
        ("==0.9.5", "bitsandbytes", Status.RECOMMENDED),
        ("==0.9.3", "bitsandbytes", Status.RECOMMENDED),
        ("==0.9.2", "bitsandbytes", ON),
        ("==0.9.2", "bnb", Status.RECOMMENDED),
        ("", "bitsandbytes", Status.RECOMMENDED),
        ("", "hqq", ON),
    ],
)
def test_a_quantizer_is_called_as_the_release_calls_it(
    pin: str, method: str, status: Status, tmp_path: Path
) -> None:
    told = {"quantization_bit": 4, "quantization_method": method}
    files = {
        "sft.yaml": recipe(settings_of(Case("", ON, told))),
        "run.sh": "llamafactory-cli train sft.yaml\n",
        "requirements.txt": f"llamafactory{pin}\n",
    }
    (run,) = runs_of(tmp_path, files)
    verdict = next(v for v in judge(run, all_checks()) if v.check.code == "GPU605")
    assert verdict.judgement.status is status
    mended = "bitsandbytes" if pin == "==0.9.2" else "bnb"
    messages = [finding.message for finding in verdict.judgement.findings]
    assert all(f"set quantization_method: {mended}: " in one for one in messages)
    is_lost = status is Status.RECOMMENDED and bool(pin)
    assert run.value("quantization_bits") == (None if is_lost else 4)


def test_an_optimizer_of_a_forks_own_is_named(tmp_path: Path) -> None:
    found = said_of(tmp_path, by_recipe(Case("", ON, {"use_fisher": True})))
    assert found["fused-adam"][1] == "optimizer: not known: `use_fisher=true` (sft.yaml:7)"


AT_HAND = {
    "src/llamafactory/extras/env.py": 'VERSION = "0.9.6.dev0"\n',
    "src/llamafactory/cli.py": "def main():\n    pass\n",
}


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("kt", [True, False])
def test_ktransformers_of_the_newest_source_checkpoints_in_its_own_way(
    kt: bool, is_new: bool, tmp_path: Path
) -> None:
    settings = {"use_kt": kt, "model_name_or_path": "Qwen/Qwen3-30B-A3B"}
    files = by_recipe(Case("", ON, settings, files=AT_HAND if is_new else {}))
    items = items_of(audited(tmp_path, files))
    assert (items["unsloth-gc"].status is NA) is (kt and is_new)
    shown = items["reentrant-mode"].evidence[0].text
    assert ("use_kt" in shown) is (kt and is_new)


@pytest.mark.parametrize(("device", "status"), [("NPU", NA), ("GPU", OFF)])
def test_what_is_for_cuda_is_not_for_npus_that_ray_places(
    device: str, status: Status, tmp_path: Path
) -> None:
    files = dict(by_recipe(Case("", ON, before="USE_RAY=1 ")))
    files["sft.yaml"] += f"ray_num_workers: 4\nresources_per_worker:\n  {device}: 1\n"
    items = items_of(audited(tmp_path, files))
    assert {items[name].status for name in ("unsloth", "unsloth-gc")} == {status}


# --- a recipe that branches of the script choose ---

_EITHER = """\
if [ "$DATA" = long ]; then
  RECIPE=configs/long.yaml
else
  RECIPE=configs/short.yaml
fi
"""
_ENTRY = """\
from llamafactory.train.tuner import run_exp

if __name__ == "__main__":
    run_exp()
"""
_SHARED = recipe(
    {
        "model_name_or_path": QWEN,
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "full",
        "flash_attn": "fa2",
    }
)
_RECIPES = {
    "configs/long.yaml": f"{_SHARED}cutoff_len: 8192\npacking: true\n",
    "configs/short.yaml": f"{_SHARED}cutoff_len: 2048\n",
}


@pytest.mark.parametrize(
    "launch",
    [
        'llamafactory-cli train "$RECIPE"\n',
        "llamafactory-cli train ${RECIPE} bf16=true\n",
        'accelerate launch --config_file fsdp.yaml src/train.py "${RECIPE}" dataset="${D}_x"\n',
    ],
)
def test_what_the_recipes_of_all_branches_say_is_known(launch: str, tmp_path: Path) -> None:
    files = {**_RECIPES, "fsdp.yaml": SHARDED, "src/train.py": _ENTRY}
    files["train.sh"] = _EITHER + launch
    (run,) = (run for run in runs_of(tmp_path, files) if run.command is not None)
    assert not run.is_open
    assert run.model.name == QWEN
    assert (run.value("tuning"), run.value("attention")) == ("full", "flash_attention_2")
    assert not run.practice("max_length").known
    assert set(run.practice("max_length").value.candidates) == {8192, 2048}
    assert not run.practice("packing").known


@pytest.mark.parametrize(
    "branch",
    [
        _EITHER.replace("configs/short", "/data/elsewhere"),
        'if [ "$DATA" = long ]; then\n  RECIPE="configs/long.yaml packing=false"\nfi\n',
        'RECIPE="$1"\n',
    ],
)
def test_a_recipe_that_is_not_all_in_the_project_stays_unread(branch: str, tmp_path: Path) -> None:
    files = {**_RECIPES, "train.sh": f"{branch}llamafactory-cli train $RECIPE\n"}
    (run,) = (run for run in runs_of(tmp_path, files) if run.command is not None)
    assert run.is_open
    assert not run.practice("attention").known
    items = items_of(score(AUDIT, judge(run, all_checks())))
    assert items["autotp"].status is Status.UNKNOWN


def test_fsdp_leaves_no_place_for_autotp_in_a_recipe_that_is_not_read(tmp_path: Path) -> None:
    launch = 'accelerate launch --config_file fsdp.yaml src/train.py "$1"\n'
    files = {"fsdp.yaml": SHARDED, "src/train.py": _ENTRY, "train.sh": launch}
    (run,) = (run for run in runs_of(tmp_path, files) if run.command is not None)
    items = items_of(score(AUDIT, judge(run, all_checks())))
    assert items["autotp"].status is NA
    assert items["fsdp"].status is ON
