"""LlamaFactory's route USE_V1=1: judged by its own arguments, never by the first route's."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY
from audits_support import audit_named, items_of
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.verdicts import diagnostics, judge
from report_builder.scenarios import scenarios
from report_builder.scoring import ScoredItem, score
from report_builder.trees.base import draw
from report_builder.trees.registry import tree_of

AUDIT = audit_named("llamafactory")
PLAIN = """\
model: Qwen/Qwen3-4B
train_dataset: data/mine.yaml
micro_batch_size: 2
cutoff_len: 4096
"""
FSDP2 = "dist_config:\n  name: fsdp2\n"
LORA = "peft_config:\n  name: lora\n  r: 16\n"
BITS = "quant_config:\n  name: bnb\n  quantization_bit: 4\n"


def run_of(
    root: Path, recipe: str, before: str = "USE_V1=1 ", after: str = "", word: str = "train"
) -> Run:
    launch = f"{before}FORCE_TORCHRUN=1 NPROC_PER_NODE=8 llamafactory-cli {word} a.yaml{after}\n"
    (run,) = (
        run
        for run in runs_of(root, {"a.yaml": PLAIN + recipe, "train.sh": launch})
        if run.command is not None
    )
    return run


def items(run: Run) -> dict[str, ScoredItem]:
    return items_of(score(AUDIT, judge(run, all_checks())))


@pytest.mark.parametrize(
    ("recipe", "practices"),
    [
        ("", {"tuning": "full", "fsdp": "none", "zero_stage": 0, "precision": "fp32"}),
        (FSDP2, {"fsdp": "full_shard", "fsdp_version": 2, "precision": "bf16"}),
        (f"{FSDP2}bf16: false\n", {"precision": "fp32"}),
        (f"{FSDP2}  offload_params: true\n", {"fsdp_offload": True}),
        (LORA, {"tuning": "lora", "lora_rank": 16, "quantization_method": "none"}),
        ("peft_config:\n  name: freeze\n", {"tuning": "freeze"}),
        (f"{LORA}{BITS}", {"quantization_bits": 4, "quantization_method": "bnb"}),
        ("kernel_config:\n  name: liger_kernel\n", {"liger_kernel": True}),
        ("kernel_config:\n  name: auto\n", {"liger_kernel": False}),
        ("optim_config:\n  name: muon\n", {"optimizer": "muon"}),
        ("batching_strategy: padding_free\n", {"padding_free": True, "packing": False}),
        ("batching_strategy: dynamic_batching\n", {"padding_free": False, "packing": None}),
        ("global_batch_size: 32\n", {"gradient_accumulation_steps": 2}),
        ("global_batch_size: 32\ncp_size: 2\n", {"gradient_accumulation_steps": None}),
        ("cp_size: 2\n", {"sequence_parallel": 2}),
        ("", {"micro_batch_size": 2, "max_length": 4096, "gradient_accumulation_steps": 1}),
        ("", {"attention": "sdpa", "gradient_checkpointing": True, "algorithm": "sft"}),
        ("", {"dataloader_workers": 16, "logging_steps": 1, "model": "Qwen/Qwen3-4B"}),
    ],
)
def test_practices_are_those_of_its_own_arguments(
    recipe: str, practices: dict[str, Any], tmp_path: Path
) -> None:
    run = run_of(tmp_path, recipe)
    assert {name: run.value(name) for name in practices} == practices


@pytest.mark.parametrize(
    ("after", "tuning"),
    [
        (" peft_config.name=lora", "lora"),
        (" peft_config.name=freeze", "freeze"),
        (" cutoff_len=8192", "full"),
    ],
)
def test_overrides_reach_into_the_configurations(after: str, tuning: str, tmp_path: Path) -> None:
    assert run_of(tmp_path, "", after=after).value("tuning") == tuning


@pytest.mark.parametrize(("word", "algorithm"), [("dpo", "dpo"), ("rm", "rm"), ("sft", "sft")])
def test_the_stage_is_the_commands(word: str, algorithm: str, tmp_path: Path) -> None:
    assert run_of(tmp_path, "", word=word).value("algorithm") == algorithm


def test_deepspeeds_file_is_read(tmp_path: Path) -> None:
    recipe = f"{PLAIN}dist_config:\n  name: deepspeed\n  config_file: z3.json\n"
    files = {
        "a.yaml": recipe,
        "z3.json": '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"}',
        "train.sh": "USE_V1=1 FORCE_TORCHRUN=1 llamafactory-cli train a.yaml\n",
    }
    run = next(run for run in runs_of(tmp_path, files) if run.command is not None)
    assert run.value("zero_stage") == 3
    lost = tmp_path / "lost"
    del files["z3.json"]
    run = next(run for run in runs_of(lost, files) if run.command is not None)
    assert run.value("zero_stage") is None


@pytest.mark.parametrize(
    ("recipe", "item", "status"),
    [
        (FSDP2, "pissa", NA),
        (FSDP2, "lora", OFF),
        (FSDP2, "fsdp", ON),
        (FSDP2, "megatron-core", NA),
        (FSDP2, "preprocessing-batch-size", NA),
        (FSDP2, "train-on-prompt-off", ON),
        (FSDP2, "unsloth", NA),
        (FSDP2, "dora", NA),
        (LORA, "lora", ON),
        (LORA, "oft", NA),
        (LORA, "dora", OFF),
        (f"{LORA}  use_dora: true\n", "dora", ON),
        (f"{LORA}  use_rslora: true\n", "rslora", ON),
        (f"{LORA}{BITS}", "qlora", ON),
        (LORA, "loraplus", NA),
        ("optim_config:\n  name: muon\n", "muon", ON),
        ("optim_config:\n  name: muon\n", "galore", NA),
        ("", "muon", OFF),
        ("kernel_config:\n  name: liger_kernel\n", "liger-kernel", ON),
        ("", "liger-kernel", OFF),
        ("", "fp8", NA),
        ("", "ray", NA),
        ("", "fused-adam", NA),
        ("", "auto", NA),
        ("", "sdpa", PARTLY),
        (f"{FSDP2}max_steps: 5\n", "sdpa", ON),
        (FSDP2, "bf16", ON),
        (FSDP2, "fp16", NA),
        (FSDP2, "pure-bf16", NA),
        ("", "streaming", OFF),
        ("", "packing", NA),
        ("", "neat-packing", ADVISED),
        ("micro_batch_size: 1\n", "neat-packing", OFF),
        ("max_steps: 5\n", "neat-packing", OFF),
        ("batching_strategy: dynamic_batching\n", "neat-packing", OFF),
        ("max_steps: 5\n", "gradient-accumulation", OFF),
        ("kernel_config:\n  name: auto\n", "v1-kernels", NA),
        ("kernel_config:\n  name: auto, flash-linear-attention\n", "v1-kernels", ON),
        ("kernel_config:\n  name: cuda_fused_moe\n", "v1-kernels", ON),
    ],
)
def test_items_of_the_audit(recipe: str, item: str, status: Status, tmp_path: Path) -> None:
    assert items(run_of(tmp_path, recipe))[item].status is status


@pytest.mark.parametrize("switch", ["USE_V1=0 ", "", None])
def test_the_first_route_is_judged_as_before(switch: Optional[str], tmp_path: Path) -> None:
    recipe = "model_name_or_path: Qwen/Qwen3-4B\nstage: sft\ntemplate: qwen3\ndataset: a\n"
    run = run_of(tmp_path, recipe, before="USE_V1=1 " if switch is None else switch)
    found = items(run)
    is_new = switch is None
    assert (found["pissa"].status is NA) is is_new
    assert (found["preprocessing-batch-size"].status is ON) is not is_new
    assert run.value("tuning") == ("full" if is_new else "lora")


def test_nothing_is_advised_in_arguments_that_it_refuses(tmp_path: Path) -> None:
    run = run_of(tmp_path, FSDP2)
    found = diagnostics(judge(run, all_checks()))
    assert {one.code for one in found} <= {"GPU301", "GPU507", "GPU804"}
    for one in found:
        assert one.change is None or "flash_attn" in one.change.text
    (padded,) = (one for one in found if one.code == "GPU507")
    assert padded.change is not None
    assert "batching_strategy: padding_free" in padded.change.text


@pytest.mark.parametrize(
    ("model", "status"),
    [
        ("Qwen/Qwen3-4B", ON),
        ("Qwen/Qwen3.5-9B", ON),
        ("Qwen/Qwen2.5-7B", NA),
        ("a/Qwen3-VL-8B", NA),
    ],
)
def test_liger_of_the_route_knows_few_models(model: str, status: Status, tmp_path: Path) -> None:
    recipe = f"model: {model}\nkernel_config:\n  name: liger_kernel\n"
    assert items(run_of(tmp_path, recipe))["liger-kernel"].status is status


def test_what_merges_adapters_does_not_train(tmp_path: Path) -> None:
    run = run_of(tmp_path, f"{LORA}  adapter_name_or_path: a\n  export_dir: b\n", word="merge")
    assert run.framework == "llamafactory"
    assert items(run)["lora"].current.en == "this job does not train"


@pytest.mark.parametrize(
    ("switches", "precision"),
    [
        ('"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}', "bf16"),
        ('"bf16": {"enabled": true}', "bf16"),
        ('"gradient_clipping": 1.0', "bf16"),
        ('"bf16": {"enabled": false}', None),
        ('"fp16": {"enabled": false}', None),
    ],
)
def test_the_file_of_deepspeed_decides_the_precision(
    switches: str, precision: Optional[str], tmp_path: Path
) -> None:
    engine = f'{{"zero_optimization": {{"stage": 3}}, {switches}}}'
    (tmp_path / "ds.json").write_text(engine, encoding="utf-8")
    run = run_of(tmp_path, "dist_config:\n  name: deepspeed\n  config_file: ds.json\n")
    assert run.value("zero_stage") == 3
    assert run.value("precision") == precision


def test_reasons_are_those_of_the_route_and_of_the_tuning(tmp_path: Path) -> None:
    found = items(run_of(tmp_path, "peft_config:\n  name: freeze\n"))
    assert found["oft"].current.en == "the v1 route does not have it"
    assert found["qlora"].current.en == "freeze tuning trains weights of the base model"


@pytest.mark.parametrize(
    ("name", "recipe", "tuning", "algorithm"),
    [
        ("full.yaml", PLAIN + FSDP2, "full", "sft"),
        ("lora.yaml", PLAIN + LORA, "lora", "sft"),
        ("lora_dpo.yaml", PLAIN + LORA, "lora", None),
        ("other.yaml", PLAIN, None, None),
    ],
)
def test_recipes_that_no_command_names_are_runs(
    name: str, recipe: str, tuning: Optional[str], algorithm: Optional[str], tmp_path: Path
) -> None:
    found = runs_of(tmp_path, {name: recipe})
    assert [run.value("tuning") for run in found] == ([tuning] if tuning is not None else [])
    assert [run.value("algorithm") for run in found] == ([algorithm] if tuning is not None else [])


def test_recipes_of_chats_are_runs_that_generate(tmp_path: Path) -> None:
    recipe = "model_name_or_path: a/b\ntemplate: qwen3\ninfer_backend: huggingface\n"
    (run,) = runs_of(tmp_path, {"chat.yaml": recipe, "merge.yaml": recipe[:40]})
    assert (run.framework, run.kind) == ("llamafactory", RunKind.INFER)
    assert items(run)["kv-cache"].status is ON
    assert items(run)["vllm-backend"].status is OFF


def test_a_recipe_that_does_not_parse_is_told(tmp_path: Path) -> None:
    conflict = f"{PLAIN}<<<<<<< HEAD\nseed: 1\n=======\nseed: 2\n>>>>>>> other\n"
    for name, recipe in (("a", conflict), ("b", PLAIN)):
        files = {"a.yaml": recipe, "train.sh": "llamafactory-cli train a.yaml\n"}
        (run,) = (run for run in runs_of(tmp_path / name, files) if run.command is not None)
        told = {one.code: one.location for one in diagnostics(judge(run, all_checks()))}
        assert ("GPU001" in told) is (recipe is conflict)
        if recipe is conflict:
            assert told["GPU001"].path == "a.yaml"


def test_the_frameworks_own_script_is_no_run_beside_recipes(tmp_path: Path) -> None:
    script = "from llamafactory.train.tuner import run_exp\n\nrun_exp()\n"
    files = {"src/train.py": script, "a.yaml": PLAIN + FSDP2}
    assert [run.location.path for run in runs_of(tmp_path / "a", files)] == ["a.yaml"]
    assert [run.location.path for run in runs_of(tmp_path / "b", {"src/train.py": script})]


def test_the_tree_and_the_templates_are_the_routes(tmp_path: Path) -> None:
    run = run_of(tmp_path, FSDP2)
    drawn = draw(tree_of("llamafactory", run) or (), run, "en")
    assert "peft_config.name: lora ◀" in drawn
    assert "finetuning_type" not in drawn
    assert scenarios(run, "llamafactory") == ()
    other = run_of(tmp_path / "b", "model_name_or_path: a/b\n", before="")
    assert tree_of("llamafactory", other) is tree_of("llamafactory", None)
    assert scenarios(other, "llamafactory")
