"""ms-swift's audit: each item on, advised, inapplicable, by flags and files, swift and megatron."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable

import pytest
from audit_cases import NA, OFF, ON, script
from audit_cases_swift import (
    BF16,
    CASES,
    COLOCATE,
    EIGHT,
    FLASH,
    FULL,
    INFER,
    LORA,
    MEGATRON,
    MOE,
    NEVER_ADVISED,
    ONE,
    QWEN,
    RLHF,
    VISION,
    Case,
    pinned,
)
from audits_support import adds_up, audit_named, items_of, scores_of
from checks_support import judged, runs_of

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import ScoredAudit, score

AUDIT = audit_named("swift")
ITEMS = [item for category in AUDIT.categories for item, _ in category.items]
Front = Callable[[Case], Mapping[str, str]]


def settings_of(case: Case) -> dict[str, Any]:
    given: dict[str, Any] = {"model": QWEN}
    if case.command != INFER:
        given["dataset"] = "mine.jsonl"
    return {**given, **case.settings}


def written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def by_flags(case: Case) -> Mapping[str, str]:
    flags = " ".join(f"--{k} {shlex.quote(written(v))}" for k, v in settings_of(case).items())
    launch = script(f"{case.before}{case.command} \\\n    {flags}", *case.directives)
    return {**case.files, "train.sh": launch}


def by_yaml(case: Case) -> Mapping[str, str]:
    body = "".join(f"{name}: {written(value)}\n" for name, value in settings_of(case).items())
    launch = script(f"{case.before}{case.command} args.yaml", *case.directives)
    return {**case.files, "args.yaml": body, "train.sh": launch}


def by_json(case: Case) -> Mapping[str, str]:
    launch = script(f"{case.before}{case.command} args.json", *case.directives)
    return {**case.files, "args.json": json.dumps(settings_of(case)), "train.sh": launch}


FRONTS: tuple[Front, ...] = (by_flags, by_yaml, by_json)


def audited(root: Path, files: Mapping[str, str]) -> ScoredAudit:
    run = next(run for run in runs_of(root, files) if run.framework == "swift")
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
    if item.status is NA:
        assert item.current.zh
        assert item.current.en


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable(name: str) -> None:
    found = {case.status for case in CASES if case.item == name}
    assert {ON, NA} <= found or name in ("adalora",)
    if name not in NEVER_ADVISED:
        assert found & {Status.RECOMMENDED, Status.PARTIAL}
    else:
        assert OFF in found or name in ("loss-scale",)
        assert Status.RECOMMENDED not in found


def test_points_of_a_category_add_up_to_its_maximum() -> None:
    assert adds_up(AUDIT)


# --- totals worked out by hand ----------------------------------------------------------------


ADAPTED = {
    **BF16,
    **FLASH,
    "tuner_type": "lora",
    "lora_rank": 64,
    "use_rslora": True,
    "packing": True,
    "use_liger_kernel": True,
    "max_length": 4096,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 8,
    "dataloader_num_workers": 4,
    "dataset_num_proc": 8,
    "neftune_noise_alpha": 5,
}


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_lora_on_one_gpu_that_leaves_nothing_to_gain(front: Front, tmp_path: Path) -> None:
    scored = audited(tmp_path, front(Case("", ON, ADAPTED, ONE, ("gres=gpu:a100-80g:1",))))
    assert scores_of(scored) == {
        "A": 4,  # LoRA 3, RS-LoRA 1
        "B": 3,  # BF16
        "C": 3,  # checkpointing and logits by default, accumulation
        "D": 0,  # one GPU
        "E": 0,  # for full tuning
        "F": 4,  # FlashAttention-2
        "G": 3,  # Liger
        "H": 6,  # packing 2; preprocessing, workers, kept and ahead 1 each
        "I": 2,  # the answers alone by default, NEFTune
        "J": None,
    }
    assert (scored.score, scored.maximum, scored.attainment) == (25, 54, 1.0)


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_full_tuning_under_zero3_that_lacks_some(front: Front, tmp_path: Path) -> None:
    settings = {
        **FULL,
        **BF16,
        "deepspeed": "zero3",
        "attn_impl": "sdpa",
        "gradient_accumulation_steps": 2,
        "max_length": 8192,
    }
    scored = audited(tmp_path, front(Case("", ON, settings, EIGHT, ("gres=gpu:a100-80g:8",))))
    assert scores_of(scored) == {
        "A": 0,
        "B": 3,  # BF16
        "C": 3,  # checkpointing and logits by default, accumulation
        "D": 4.2,  # 0.7 of 6: 7B fits eight GPUs with ZeRO-2, which moves less data
        "E": 0,
        "F": 2,  # half of 4: SDPA, where FlashAttention-2 is better
        "G": 0,
        "H": 2.5,  # one worker is half of a point; kept and ahead by default
        "I": 1,  # the answers alone by default
        "J": None,
    }
    # To be gained: 1.8 of ZeRO, 2 of attention, 3 of Liger, 2 of packing, 1 of preprocessing
    # and 0.5 of workers.
    assert scored.earned == pytest.approx(15.7)
    assert scored.lost == pytest.approx(10.3)
    assert scored.attainment == 0.6  # 15.7 / 26


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_grpo_whose_engine_shares_the_gpus(front: Front, tmp_path: Path) -> None:
    settings = {
        **COLOCATE,
        **BF16,
        **FLASH,
        "deepspeed": "zero2",
        "per_device_train_batch_size": 4,
        "sleep_level": 1,
        "offload_optimizer": True,
        "offload_model": True,
        "dataloader_num_workers": 4,
    }
    case = Case("", ON, settings, EIGHT, ("gres=gpu:a100-80g:8",), RLHF)
    scored = audited(tmp_path, front(case))
    assert scores_of(scored) == {
        "A": 3,  # LoRA by default
        "B": 3,  # BF16
        "C": 2,  # checkpointing and logits by default; the samples make the batch
        "D": 6,  # ZeRO-2
        "E": 0,
        "F": 4,  # FlashAttention-2
        "G": 0,  # Liger has conditions of its own in GRPO
        "H": 3,  # workers, kept and ahead; prompts are tokenised when they are answered
        "I": 1,  # the last answer alone by default
        "J": 5.5,  # vLLM 2, sleeping 1, groups of 8 by default 1, half a point of each: both
        # offloads and the cache of prefixes
    }
    assert (scored.score, scored.maximum, scored.attainment) == (27.5, 60, 1.0)


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__)
def test_a_mixture_of_experts_by_megatron(front: Front, tmp_path: Path) -> None:
    settings = {
        **BF16,
        "model": MOE.settings["model"],
        "tensor_model_parallel_size": 2,
        "expert_model_parallel_size": 4,
        "global_batch_size": 64,
        "max_length": 8192,
        "packing": True,
        "recompute_granularity": "full",
        "recompute_method": "uniform",
        "recompute_num_layers": 1,
        "dataset_num_proc": 8,
    }
    case = Case("", ON, settings, EIGHT, ("gres=gpu:h100:8",), MEGATRON)
    scored = audited(tmp_path, front(case))
    assert scores_of(scored) == {
        "A": 0,  # full tuning is Megatron's default
        "B": 3,  # BF16
        "C": 2,  # recomputation; 64 samples over four data-parallel ranks of 1
        "D": 6,  # Megatron
        "E": 0,
        "F": 4,  # FlashAttention by default
        "G": 0,  # kernels of its own
        "H": 6,  # packing 2; preprocessing, and by default workers, kept and ahead 1 each
        "I": 1,  # the answers alone by default
        "J": None,
    }
    # To be gained: FP8 on Hopper, and sequence_parallel beside tensor parallelism.
    assert (scored.earned, scored.lost, scored.attainment) == (22, 2, 0.92)


# --- what the audit rests on ------------------------------------------------------------------


def test_experts_and_tensor_parallelism_need_sequence_parallel(tmp_path: Path) -> None:
    case = replace(MOE, command=MEGATRON)
    (run,) = runs_of(tmp_path, by_flags(case))
    found = {v.check.code: v for v in judge(run, all_checks())}["GPU112"]
    assert found.priority is Priority.HIGH
    assert "refuses" in found.judgement.findings[0].message


@pytest.mark.parametrize(("version", "name"), [("3.12.6", "train_type"), ("4.0.4", "tuner_type")])
def test_a_file_behind_config_of_the_releases_that_take_it(
    version: str, name: str, tmp_path: Path
) -> None:
    body = f"model: {QWEN}\ndataset: mine.jsonl\n{name}: full\nattn_impl: flash_attn\n"
    launch = script("NPROC_PER_NODE=8 swift sft --config args.yaml --deepspeed zero2")
    files = {**pinned(version), "args.yaml": body, "train.sh": launch}
    scored = audited(tmp_path, files)
    found = {item.id: item.status for c in scored.categories for item in c.items}
    assert found["zero2"] is found["flash-attention-2"] is ON
    assert found["lora"] is OFF


def test_a_file_of_megatrons_parameters_alone(tmp_path: Path) -> None:
    body = f"model: {QWEN}\ndataset: [mine.jsonl]\ntensor_model_parallel_size: 2\n"
    scored = audited(tmp_path, {"args.yaml": f"{body}micro_batch_size: 1\ntuner_type: lora\n"})
    found = {item.id: item.status for c in scored.categories for item in c.items}
    assert found["megatron"] is found["lora"] is found["padding-free"] is ON
    assert found["zero3"] is found["dora"] is NA


@pytest.mark.parametrize(
    ("command", "version", "expected"),
    [
        ("swift sft", "4.6.0", {"tuning": "lora", "persistent_workers": True}),
        ("swift sft", "4.4.2", {"tuning": "lora", "persistent_workers": False}),
        ("swift sft", "3.12.6", {"tuning": "lora", "persistent_workers": False}),
        ("megatron sft", "4.6.0", {"tuning": "full", "persistent_workers": True}),
        ("megatron sft", "4.4.2", {"persistent_workers": False}),
        ("megatron sft", "3.12.6", {"tuning": "full", "padding_free": True}),
        ("megatron sft", "3.6.4", {"tuning": "full", "padding_free": False, "attention": "auto"}),
    ],
)
def test_defaults_are_those_of_the_release(
    command: str, version: str, expected: Mapping[str, Any], tmp_path: Path
) -> None:
    (run,) = runs_of(tmp_path, by_flags(Case("", ON, command=command, files=pinned(version))))
    assert {name: run.value(name) for name in expected} == dict(expected)


def test_what_is_written_has_the_names_of_the_release(tmp_path: Path) -> None:
    for number, (version, name) in enumerate((("3.12.6", "num_workers"), ("4.6.0", ""))):
        settings = {f"{'num_workers' if name else 'dataloader_num_workers'}": 0}
        case = Case("", ON, settings, EIGHT, (), MEGATRON, pinned(version))
        (run,) = runs_of(tmp_path / str(number), by_flags(case))
        found = {v.check.code: v for v in judge(run, all_checks())}["GPU501"]
        wanted = f"--{name or 'dataloader_num_workers'} 4"
        assert wanted in found.judgement.findings[0].message


@pytest.mark.parametrize(
    ("settings", "code", "line"),
    [
        ({"quant_bits": 4}, "GPU605", "--quant_bits"),
        ({**FULL, "deepspeed": "zero3", "deepspeed_autotp_size": 2}, "GPU109", "autotp_size"),
        ({"rlhf_type": "dpo"}, "GPU507", "swift rlhf"),
        ({"attn_impl": "eager"}, "GPU301", "--attn_impl"),
    ],
)
def test_diagnostics_stand_at_the_flag_or_at_the_command(
    settings: Mapping[str, Any], code: str, line: str, tmp_path: Path
) -> None:
    before = EIGHT if "deepspeed" in settings else ONE
    command = RLHF if "rlhf_type" in settings else "swift sft"
    flags = "".join(
        f" \\\n    --{name} {written(value)}"
        for name, value in settings_of(Case("", ON, settings)).items()
    )
    text = f"{before}{command}{flags}\n"
    (run,) = runs_of(tmp_path, {"train.sh": text})
    found = {v.check.code: v for v in judge(run, all_checks())}[code]
    at = found.judgement.findings[0].location
    assert line in text.splitlines()[at.line - 1]


def test_recomputation_by_megatron_is_written_whole(tmp_path: Path) -> None:
    settings = {"recompute_granularity": "none", "max_length": 16384, "padding_free": False}
    (run,) = runs_of(tmp_path, by_flags(Case("", ON, settings, EIGHT, (), MEGATRON)))
    found = {v.check.code: v.judgement for v in judge(run, all_checks())}
    message = found["GPU203"].findings[0].message
    for flag in ("granularity full", "method uniform", "num_layers 1"):
        assert f"--recompute_{flag}" in message
    assert "--padding_free true" in found["GPU507"].findings[0].message


@pytest.mark.parametrize("name", ["num_workers", "tuner"])
def test_what_is_not_known_is_not_told(name: str, tmp_path: Path) -> None:
    flag = {"num_workers": "--dataloader_num_workers", "tuner": "--tuner_type"}[name]
    text = f'{EIGHT}swift sft --model {QWEN} --dataset mine.jsonl {flag} "$1"\n'
    scored = audited(tmp_path, {"train.sh": text})
    found = {item.id: item.status for c in scored.categories for item in c.items}
    names = {"num_workers": ("dataloader-workers",), "tuner": ("lora", "dora", "galore")}[name]
    assert {found[one] for one in names} == {Status.UNKNOWN}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_steps": 10, "num_train_epochs": 3}, "max_steps ends it: epochs are not known"),
        ({"num_train_epochs": 1}, "the run takes one epoch"),
    ],
)
def test_why_workers_need_not_be_kept(
    settings: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    case = Case("persistent-workers", OFF, settings, files=pinned("3.12.6"))
    item = items_of(audited(tmp_path, by_flags(case)))["persistent-workers"]
    assert (item.status, item.current.en) == (OFF, reason)


def test_padding_that_is_written_is_shown_with_what_it_does_not_go_with(tmp_path: Path) -> None:
    settings = {"padding_free": False, "group_by_length": True, "model": VISION}
    case = Case("padding-free", OFF, settings, EIGHT, (), MEGATRON)
    item = items_of(audited(tmp_path, by_flags(case)))["padding-free"]
    assert item.current.en == "not with group_by_length"
    assert "padding_free" in item.evidence[0].text


def test_the_attention_that_runs_by_default_earns_its_part(tmp_path: Path) -> None:
    case = Case("sdpa", Status.PARTIAL, {"max_length": 8192})
    items = items_of(audited(tmp_path, by_flags(case)))
    sdpa, flash = items["sdpa"], items["flash-attention-2"]
    assert (sdpa.status, sdpa.points, sdpa.lost) == (Status.PARTIAL, 2, 2)
    assert "sdpa" in sdpa.evidence[0].text
    assert flash.status is Status.RECOMMENDED
    assert flash.action.en
    alone = Case("sdpa", OFF, {"model": "bigscience/bloom-7b1"})
    sdpa = items_of(audited(tmp_path / "eager", by_flags(alone)))["sdpa"]
    assert (sdpa.status, sdpa.current.en) == (OFF, "the model's default is eager attention")


def test_sequence_parallel_of_layers_that_are_not_split_has_no_effect(tmp_path: Path) -> None:
    found = {}
    for size in (1, 2):
        settings = {"sequence_parallel": True, "tensor_model_parallel_size": size}
        case = Case("sequence-parallel", OFF, settings, EIGHT, (), MEGATRON)
        found[size] = items_of(audited(tmp_path / str(size), by_flags(case)))["sequence-parallel"]
    assert (found[1].status, found[2].status) == (OFF, ON)
    assert found[1].current.en == "no effect while tensor parallelism is 1"
    assert "sequence_parallel" in found[1].evidence[0].text


def test_what_is_read_before_training_is_said_of_streaming_and_lazy_tokens(tmp_path: Path) -> None:
    items = items_of(audited(tmp_path, by_flags(Case("lazy-tokenize", OFF))))
    assert items["streaming"].current == items["lazy-tokenize"].current
    assert "tokenised when fetched" in items["lazy-tokenize"].current.en


def test_the_source_of_a_fork_says_the_release(tmp_path: Path) -> None:
    launch = f"swift sft --model {QWEN} --dataset mine.jsonl\n"
    told = {}
    for name, more in (("fork", {"swift/cli/main.py": ""}), ("own", {})):
        files = {"swift/version.py": "__version__ = '3.9.0.dev0'\n", "a.sh": launch, **more}
        (run,) = [r for r in runs_of(tmp_path / name, files) if r.framework == "swift"]
        told[name] = (run.held.get("ms-swift"), run.practice("prefetch_factor").value)
    assert told == {"fork": ("3.9.0.dev0", 10), "own": (None, 2)}


OWN_PIPELINE = """\
import argparse

from swift.llm.argument import TrainArguments
from swift.llm.base import {base}

from parts import OurTrainer


class Ours({base}):
    args_class = TrainArguments


def sft_main(args=None):
    return Ours(args).main()


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", type=str, required=True)
    parser.add_argument("--train_type", type=str, required=True)
    parser.add_argument("--dataset", type=str)
    parser.add_argument("--max_length", type=int, default=2048)
    return parser.parse_args()


if __name__ == "__main__":
    args = parse_args()
    ours = TrainArguments(
        model=args.model, train_type=args.train_type, dataset=args.dataset.split(","),
        max_length=args.max_length,
    )
    ours.train_type = args.train_type
    sft_main(ours)
"""


@pytest.mark.parametrize("base", ["SwiftPipeline", "SwiftSft"])
@pytest.mark.parametrize("tuning", ["lora", "full"])
def test_a_pipeline_of_ones_own_is_given_the_command_line(
    base: str, tuning: str, tmp_path: Path
) -> None:
    launch = f"python train.py --model {QWEN} --train_type {tuning} --dataset a.json\n"
    parts = "from transformers import Trainer\n\n\nclass OurTrainer(Trainer):\n    pass\n"
    files = {
        "train.py": OWN_PIPELINE.replace("{base}", base),
        "parts.py": parts,
        "train.sh": launch,
        **pinned("3.5.2"),
    }
    (run,) = runs_of(tmp_path, files)
    assert run.framework == "swift"
    told = (run.value("tuning"), run.value("max_length"), run.value("algorithm"), run.model.name)
    assert told == (tuning, 2048, "sft", QWEN)


def test_rlhf_that_names_no_algorithm_is_dpo(tmp_path: Path) -> None:
    case = Case("grpo-sampling", NA, {}, EIGHT, (), RLHF)
    item = items_of(audited(tmp_path, by_flags(case)))["grpo-sampling"]
    assert item.status is NA


def test_the_initialization_that_is_written_is_shown(tmp_path: Path) -> None:
    case = Case("pissa", OFF, {"init_weights": "olora"})
    item = items_of(audited(tmp_path, by_flags(case)))["pissa"]
    assert (item.status, item.current.en) == (
        OFF,
        "init_weights=olora (PiSSA, LoRA-GA optional)",
    )


def test_megatron_is_not_told_that_megatron_has_fp8(tmp_path: Path) -> None:
    case = Case("fp8-training", OFF, BF16, EIGHT, ("gres=gpu:a100-80g:8",), MEGATRON)
    item = items_of(audited(tmp_path, by_flags(case)))["fp8-training"]
    assert "megatron sft" not in item.current.en


def test_what_a_script_installs_for_its_own_run_is_not_for_the_one_beside_it(
    tmp_path: Path,
) -> None:
    launch = f"CUDA_VISIBLE_DEVICES=0 swift sft --model {VISION} --dataset a.jsonl\n"
    wanted = 'pip install "transformers==4.48.*"\n'
    found = {}
    for name, files in {
        "beside": {"x/audio.sh": wanted + launch, "x/b.sh": launch},
        "shared": {"x/install.sh": wanted, "x/b.sh": launch},
    }.items():
        project = {"requirements.txt": "ms-swift==4.5.3\ntransformers<5.17\n", **files}
        (run,) = [r for r in runs_of(tmp_path / name, project) if r.location.path == "x/b.sh"]
        found[name] = status_of(run, "logits-to-keep")
    assert found == {"beside": ON, "shared": OFF}


def status_of(run: Any, item: str) -> Status:
    """The status of one item of a run."""
    return items_of(score(AUDIT, judge(run, all_checks())))[item].status


def said_of(root: Path, case: Case) -> str:
    """What is said of the item of a case."""
    return items_of(audited(root, by_flags(case)))[case.item].current.en


def test_one_process_that_sees_several_gpus_does_not_use_one(tmp_path: Path) -> None:
    one = Case("autotp", NA, LORA)
    several = replace(one, before="CUDA_VISIBLE_DEVICES=0,1,2,3 ")
    assert said_of(tmp_path / "one", one) == "the run uses one GPU"
    assert said_of(tmp_path / "several", several) == "the run starts one process"


def test_unsloth_is_for_one_gpu_where_one_is_seen(tmp_path: Path) -> None:
    case = Case("unsloth-backend", Status.RECOMMENDED, LORA)
    unseen = replace(case, before="")
    assert said_of(tmp_path / "one", case) == "LoRA on one GPU without Unsloth"
    assert said_of(tmp_path / "unseen", unseen) == "LoRA in one process without Unsloth"


def test_batches_without_padding_are_not_called_packed(tmp_path: Path) -> None:
    case = Case("gradient-accumulation", OFF, {**FLASH, "gradient_accumulation_steps": 1})
    packed = replace(case, settings={**case.settings, "packing": True})
    free = replace(case, settings={**case.settings, "padding_free": True})
    assert said_of(tmp_path / "packed", packed) == "packed samples fill the batch already"
    assert said_of(tmp_path / "free", free) == "optional: the batch holds no padding"


def test_ligers_loss_is_not_promised_where_labels_are_taken_out(tmp_path: Path) -> None:
    case = Case("liger-kernel", Status.RECOMMENDED, {**FULL, **FLASH, "max_length": 8192}, EIGHT)
    split = replace(case, settings={**case.settings, "sequence_parallel_size": 4})
    found = {}
    for name, one in (("whole", case), ("split", split)):
        (run,) = runs_of(tmp_path / name, by_flags(one))
        found[name] = judged(run, "GPU305")
        assert found[name].status is Status.RECOMMENDED
    assert found["whole"].impact is None
    assert "logits are then never stored" in str(found["whole"])
    assert found["split"].impact is not None
    assert found["split"].impact.memory is None
    assert "its cross entropy takes no effect" in str(found["split"])


def test_liger_is_not_advised_where_rays_driver_may_refuse_it(tmp_path: Path) -> None:
    case = Case("liger-kernel", Status.RECOMMENDED, {**FULL, "deepspeed": "zero3"}, EIGHT)
    rays = replace(case, settings={**case.settings, "use_ray": True})
    found = {}
    for name, one in (("plain", case), ("ray", rays)):
        found[name] = items_of(audited(tmp_path / name, by_flags(one)))["liger-kernel"].status
    assert found == {"plain": Status.RECOMMENDED, "ray": Status.UNKNOWN}
