"""Advice on flash attention and DeepSpeed, and the order of recommendations."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Optional

import pytest
from frameworks_support import json_document

from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.facts import Location, PythonFile, Setting
from flake8_gpu_training.hardware import gpu_named
from flake8_gpu_training.language import Text
from flake8_gpu_training.models import model_of
from flake8_gpu_training.runs.model import Hardware, Launcher, Model, Place, PlaceKind, Run, RunKind
from flake8_gpu_training.verdicts import Verdict
from report_builder.advice import deepspeed, flash_attention
from report_builder.recommendations import recommend

AT = Location("train.sh", 3)


def run_of(
    model: str = "Qwen/Qwen2.5-7B-Instruct",
    gpu: Optional[str] = None,
    gpus: int = 8,
    nodes: int = 1,
    framework: str = "swift",
    **practices: Any,
) -> Run:
    values = {"micro_batch_size": 1, "max_length": 2048, "gradient_checkpointing": True}
    values.update(practices)
    card = gpu_named(gpu) if gpu else None
    hardware = Hardware(gpu=card.name, memory_gib=card.memory_gib) if card else Hardware()
    return Run(
        "train.sh:3",
        RunKind.TRAIN,
        framework,
        AT,
        Place(PlaceKind.FLAGS, AT),
        launcher=Launcher("torchrun", Setting("processes", gpus), Setting("nodes", nodes)),
        model=model_of(model),
        hardware=replace(hardware, gpus_per_node=gpus, nodes=nodes),
        profile={name: Setting(name, value, AT) for name, value in values.items()},
    )


@pytest.mark.parametrize(
    ("gpu", "version", "written"),
    [
        ("A100-80G", "FA2", "--attn_impl flash_attn"),
        ("RTX4090", "FA2", "--attn_impl flash_attn"),
        ("H100", "FA3", "--attn_impl flash_attention_3"),
        ("H20", "FA3", "--attn_impl flash_attention_3"),
        ("B200", "FA4", "--attn_impl flash_attention_4"),
        ("V100-32G", "SDPA", "--attn_impl sdpa"),
        ("T4", "SDPA", "--attn_impl sdpa"),
        (None, "FA2", "--attn_impl flash_attn"),
    ],
)
def test_flash_attention_follows_the_gpu(gpu: Optional[str], version: str, written: str) -> None:
    advice = flash_attention(run_of(gpu=gpu, tuning="lora"))
    assert advice.version == version
    assert advice.integration.text == written
    assert ("需根据实际硬件调整" in advice.reason.zh) == (gpu is None)


def test_engines_bring_their_own_kernels() -> None:
    run = replace(run_of(gpu="H100", framework="sglang"), kind=RunKind.SERVE)
    assert flash_attention(run).integration.text == "--attention-backend fa3"
    unknown = flash_attention(replace(run_of(framework="vllm"), kind=RunKind.SERVE))
    assert "vLLM 自行选择" in unknown.reason.zh
    assert "SDPA" not in unknown.reason.zh


@pytest.mark.parametrize(
    ("model", "gpu", "gpus", "tuning", "stage", "offload"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", "A100-80G", 1, "lora", 0, False),
        ("Qwen/Qwen2.5-7B-Instruct", "A100-80G", 8, "lora", 2, False),
        ("Qwen/Qwen2.5-7B-Instruct", "A100-80G", 8, "full", 2, False),
        ("Qwen/Qwen2.5-14B-Instruct", "A100-80G", 4, "full", 2, True),
        ("Qwen/Qwen2.5-14B-Instruct", "A100-40G", 16, "full", 3, False),
        ("Qwen/Qwen2.5-32B-Instruct", "A100-40G", 32, "full", 3, False),
        ("Qwen/Qwen2.5-72B-Instruct", "A100-80G", 8, "lora", 3, False),
        ("Qwen/Qwen2.5-7B-Instruct", "RTX4090", 8, "full", 3, True),
        ("Qwen/Qwen2.5-72B-Instruct", "A100-80G", 8, "full", 3, True),
    ],
)
def test_the_lowest_stage_that_fits_is_advised(
    model: str, gpu: str, gpus: int, tuning: str, stage: int, offload: bool
) -> None:
    advice = deepspeed(run_of(model, gpu, gpus, tuning=tuning))
    assert (advice.stage, advice.offload) == (stage, offload)
    if stage == 0:
        assert advice.config == {}
        return
    assert advice.config["zero_optimization"]["stage"] == stage
    assert ("offload_optimizer" in advice.config["zero_optimization"]) == offload
    assert advice.hardware_known


@pytest.mark.parametrize(("tuning", "stage"), [("lora", 2), ("full", 3)])
def test_without_hardware_it_says_so_and_shows_a_table(tuning: str, stage: int) -> None:
    advice = deepspeed(run_of(tuning=tuning))
    assert advice.stage == stage
    assert "需根据实际硬件调整" in advice.reason.zh
    assert [row.gpus for row in advice.table] == [1, 2, 4, 8, 16]
    eight = advice.table[3].stages
    assert list(eight) == sorted(eight, reverse=True)
    if tuning == "full":
        assert eight[3] == pytest.approx(7615616512 * 2 / 1024**3, rel=0.01)


def test_a_figure_beside_an_engine_says_that_it_leaves_the_engine_out() -> None:
    beside = deepspeed(run_of(gpu="A100-80G", gpus=1, tuning="lora", rollout_engine="vllm"))
    assert beside.stage == 0
    assert "不含推理引擎" in beside.reason.zh
    assert "inference engine" in beside.reason.en
    assert "推理引擎" not in deepspeed(run_of(gpu="A100-80G", gpus=1, tuning="lora")).reason.zh


def test_advice_follows_the_check_of_sharding() -> None:
    run = run_of(tuning="full")
    asked = Judgement(
        Status.RECOMMENDED, "zero2", current=Text("仅用 DDP", "DDP"), action=Text("用", "use")
    )
    assert deepspeed(run, asked).stage == 2
    assert deepspeed(run, Judgement(Status.ENABLED, "zero3")).stage == 3
    assert deepspeed(run, Judgement(Status.ENABLED, "fsdp")).stage == 3


def test_offload_that_is_not_needed_is_not_kept() -> None:
    run = run_of(gpu="A100-80G", tuning="lora", zero_stage=3, offload_optimizer="cpu")
    advice = deepspeed(run, Judgement(Status.ENABLED, "zero3-offload"))
    assert (advice.stage, advice.offload) == (2, False)


def test_serving_and_megatron_have_no_zero_stage() -> None:
    assert deepspeed(None).stage is None
    assert deepspeed(replace(run_of(), kind=RunKind.SERVE)).stage is None
    assert deepspeed(run_of(megatron=True)).config == {}


def test_auto_stands_only_where_the_trainer_fills_it_in() -> None:
    ours = json.dumps(dict(deepspeed(run_of(framework="generic", tuning="full")).config))
    theirs = json.dumps(dict(deepspeed(run_of(framework="hf_trainer", tuning="full")).config))
    assert '"auto"' not in ours
    assert '"auto"' in theirs


def test_several_nodes_get_a_secondary_partition() -> None:
    advice = deepspeed(run_of(gpus=8, nodes=2, tuning="full"))
    assert advice.config["zero_optimization"]["zero_hpz_partition_size"] == 8


def verdict(
    code: str,
    priority: Priority,
    impact: Impact,
    status: Status = Status.RECOMMENDED,
    findings: tuple[Finding, ...] = (),
) -> Verdict:
    change = Change("bash", "--x 1")
    judgement = Judgement(status, findings=findings, change=None if findings else change)
    title = Text(f"题 {code}", f"Title {code}")
    check = Check(code, code, title, priority, lambda _: judgement, "", "", impact=impact)
    return Verdict(run_of(), check, judgement)


FAST, LEAN = Impact(throughput=(10, 50)), Impact(memory=(-60, -10))
RANKED = [
    verdict("GPU501", Priority.LOW, Impact(throughput=(1, 90))),
    verdict("GPU305", Priority.HIGH, LEAN),
    verdict("GPU301", Priority.HIGH, FAST),
    verdict("GPU201", Priority.HIGH, FAST),
    verdict("GPU507", Priority.MEDIUM, Impact()),
]


@pytest.mark.parametrize(
    ("goal", "codes"),
    [
        ("balanced", ["GPU305", "GPU201", "GPU301", "GPU507", "GPU501"]),
        ("throughput", ["GPU201", "GPU301", "GPU305", "GPU507", "GPU501"]),
        ("memory", ["GPU305", "GPU201", "GPU301", "GPU507", "GPU501"]),
    ],
)
def test_order_is_priority_then_gain_for_the_goal_then_code(goal: str, codes: list[str]) -> None:
    found = recommend(RANKED, goal)
    assert [entry.code for entry in found] == codes
    assert [entry.rank for entry in found] == [1, 2, 3, 4, 5]


def test_what_fails_comes_first_among_the_high_ones() -> None:
    fails = verdict("GPU018", Priority.HIGH, Impact(note=Text("启动失败", "fails at start")))
    ignored = verdict("GPU012", Priority.MEDIUM, Impact())
    codes = [entry.code for entry in recommend([*RANKED, ignored, fails])]
    assert codes == ["GPU018", "GPU305", "GPU201", "GPU301", "GPU012", "GPU507", "GPU501"]


@pytest.mark.parametrize(
    ("goal", "fits", "priority"),
    [
        ("balanced", True, Priority.LOW),
        ("throughput", True, Priority.LOW),
        ("memory", True, Priority.HIGH),
        ("balanced", None, Priority.HIGH),
        ("throughput", False, Priority.HIGH),
    ],
)
def test_what_pays_throughput_for_memory_matters_little_where_the_run_fits(
    goal: str, fits: Optional[bool], priority: Priority
) -> None:
    costly = verdict("GPU203", Priority.HIGH, Impact((-30, -15), (-60, -30)))
    (entry,) = recommend([costly], goal, fits)
    assert entry.priority is priority
    assert entry.safety != "P0"


def test_what_takes_an_installation_is_not_called_free_of_risk() -> None:
    change = Change("bash", "--attn_impl flash_attn")
    judgement = Judgement(Status.RECOMMENDED, change=change)
    check = Check("GPU301", "x", Text("题", "t"), Priority.HIGH, lambda _: judgement, "", "")
    run = run_of()
    (missing,) = recommend([Verdict(run, check, judgement)])
    (pinned,) = recommend(
        [Verdict(replace(run, versions={"flash-attn": "2.8.3"}), check, judgement)]
    )
    assert (missing.safety, pinned.safety) == ("P1", "P0")


def test_findings_are_recommendations_whatever_the_status() -> None:
    places = tuple(Finding(Location("a.py", line), f"fault {line}") for line in (3, 7))
    (entry,) = recommend([verdict("GPU350", Priority.MEDIUM, FAST, Status.DISABLED, places)])
    assert [str(f.location) for f in entry.findings] == ["a.py:3", "a.py:7"]


@pytest.mark.parametrize(
    "status", [Status.ENABLED, Status.DISABLED, Status.NOT_APPLICABLE, Status.UNKNOWN]
)
def test_what_asks_for_nothing_is_no_recommendation(status: Status) -> None:
    assert recommend([verdict("GPU301", Priority.HIGH, FAST, status)]) == ()


def test_one_gpu_has_nothing_to_shard_over() -> None:
    advice = deepspeed(run_of(gpus=1, tuning="lora"))
    assert (advice.stage, advice.offload) == (0, False)
    assert "单卡训练" in advice.reason.zh


def test_a_small_model_needs_no_sharding_on_any_card() -> None:
    advice = deepspeed(run_of("facebook/opt-125m", tuning="full"))
    assert advice.stage == 0
    assert "plain DDP will do" in advice.reason.en


def test_a_model_of_unknown_size_is_not_sharded_unasked() -> None:
    run = replace(run_of(gpus=4), framework="generic", model=Model())
    advice = deepspeed(run)
    assert advice.stage == 0
    assert "需根据实际硬件调整" in advice.reason.zh
    assert advice.config["zero_optimization"]["stage"] == 2  # for when one GPU does not hold it


def test_offload_that_may_be_needless_is_kept_where_only_a_comment_names_the_gpu() -> None:
    settings: dict[str, Any] = {"zero_stage": 3, "offload_optimizer": "cpu", "offload_param": "cpu"}
    run = run_of("Qwen/Qwen2.5-7B-Instruct", "A100-80G", 4, tuning="lora", **settings)
    judged = Judgement(Status.ENABLED, "zero3-offload")
    sure = deepspeed(run, judged)
    assert (sure.stage, sure.offload) == (2, False)
    unsure = deepspeed(replace(run, hardware=replace(run.hardware, weak=True)), judged)
    assert (unsure.stage, unsure.offload) == (3, True)
    assert "Stage 2" in unsure.reason.zh


def test_a_lighter_stage_is_the_one_that_the_check_names() -> None:
    run = run_of("Qwen/Qwen2.5-7B-Instruct", "A100-80G", 4, tuning="lora", zero_stage=3)
    judged = Judgement(
        Status.PARTIAL,
        "zero3",
        0.7,
        current=Text("当前为 ZeRO-3", "ZeRO-3 now"),
        action=Text("改用 ZeRO-2 + offload", "use ZeRO-2 + offload"),
    )
    advice = deepspeed(run, judged)
    assert (advice.stage, advice.offload) == (2, True)
    assert "改用 ZeRO-2" in advice.reason.zh


def test_a_video_framework_gets_its_own_switch() -> None:
    run = replace(run_of(gpu="H100"), framework="videox_fun")
    advice = flash_attention(run)
    assert advice.integration.text == "export VIDEOX_ATTENTION_TYPE=FLASH_ATTENTION"
    assert "packing" not in advice.needs.en
    assert flash_attention(replace(run, framework="flow_factory")).install == "pip install kernels"


def test_zero_2_is_not_called_the_lowest_that_fits_where_plain_ddp_fits() -> None:
    small = deepspeed(run_of("Qwen/Qwen2.5-0.5B", gpu="A100-80G", gpus=2, tuning="full"))
    assert "plain DDP fits already" in small.reason.en
    assert "普通 DDP 已放得下" in small.reason.zh
    large = deepspeed(run_of(gpu="A100-80G", gpus=8, tuning="full"))
    assert "lowest that fits" in large.reason.en


@pytest.mark.parametrize(("status", "offloads"), [("RECOMMENDED", False), ("ENABLED", True)])
def test_offload_that_a_check_advises_to_drop_is_not_advised(status: str, offloads: bool) -> None:
    run = run_of(tuning="lora", zero_stage=3, offload_optimizer="cpu", offload_param="cpu")
    kept = Judgement(Status.ENABLED, "zero3-offload")
    said = Judgement(Status[status], action=Text("删除卸载配置", "delete the offload"))
    advice = deepspeed(run, kept, said)
    assert advice.offload is offloads
    assert ("offload_param" in advice.config["zero_optimization"]) is offloads


def test_a_script_without_the_argument_is_told_the_code() -> None:
    script = replace(run_of(framework="hf_trainer"), python=(PythonFile("train.py"),))
    change = flash_attention(script).integration
    assert change.language == "python"
    assert 'from_pretrained(\n    "Qwen/Qwen2.5-7B-Instruct",' in change.text
    taken = {"attn_implementation": Setting("attn_implementation", "sdpa", AT)}
    flag = flash_attention(replace(script, settings=taken)).integration
    assert flag.text == "--attn_implementation flash_attention_2"


OWN = """{
  "train_micro_batch_size_per_gpu": 4,
  "bf16": {"enabled": true},
  "optimizer": {"type": "AdamW", "params": {"lr": 3e-4}},
  "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto"}},
  "zero_optimization": {"stage": STAGE, "reduce_bucket_size": 500000000, "overlap_comm": false}
}"""


@pytest.mark.parametrize(("stage", "bucket"), [(2, 500_000_000), (3, 200_000_000)])
def test_the_configuration_keeps_what_the_runs_own_file_says(stage: int, bucket: int) -> None:
    document = json_document(OWN.replace("STAGE", str(stage)))
    run = run_of(gpu="A100-80G", framework="hf_trainer", tuning="lora")
    config = deepspeed(replace(run, deepspeed=document)).config
    assert config["optimizer"]["params"] == {"lr": 3e-4}
    assert config["scheduler"]["type"] == "WarmupDecayLR"
    assert config["train_micro_batch_size_per_gpu"] == 4
    assert "fp16" not in config
    zero = config["zero_optimization"]
    assert (zero["stage"], zero["reduce_bucket_size"]) == (2, bucket)
    assert zero["overlap_comm"] is True


def test_a_small_model_on_one_gpu_needs_no_configuration() -> None:
    run = run_of("google-bert/bert-base-uncased", gpus=1, framework="hf_trainer", tuning="full")
    advice = deepspeed(run)
    assert (advice.stage, advice.config, advice.table) == (0, {}, ())
    assert advice.reason.en.startswith("one GPU, and all model states together take about 1.6 GiB")


OPTIONAL = Judgement(Status.DISABLED, current=Text("不是解码器语言模型", "no decoder"))


@pytest.mark.parametrize(
    ("attention", "written", "installed"),
    [
        (Setting("attention", "sdpa", AT), 'attn_implementation="sdpa"', "torch>=2.2"),
        (
            Setting("attention", "eager"),
            "AutoModelForSequenceClassification",
            '-U "transformers>=4.41"',
        ),
    ],
)
def test_an_encoder_may_do_without_a_flash_kernel(
    attention: Setting, written: str, installed: str
) -> None:
    run = run_of("google-bert/bert-base-uncased", gpus=1, framework="hf_trainer", tuning="full")
    run = replace(run, profile={**run.profile, "attention": attention})
    advice = flash_attention(run, OPTIONAL)
    assert advice.version == "SDPA"
    assert written in advice.integration.text
    assert installed in advice.install
    assert ("newer one" in advice.reason.en) == (attention.value == "eager")


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("eval_strategy", '"transformers>=4.41"'),
        ("evaluation_strategy", '"transformers>=4.41,<=4.50.3"'),
    ],
)
def test_an_upgrade_keeps_to_releases_that_take_the_runs_arguments(
    written: str, asked: str
) -> None:
    run = run_of("bert-base-cased", gpus=1, framework="hf_trainer", tuning="full")
    late = {**run.profile, "attention": Setting("attention", "eager")}
    run = replace(run, profile=late, settings={written: Setting(written, "epoch", AT)})
    assert asked in flash_attention(run, OPTIONAL).install


def test_no_upgrade_is_asked_where_no_release_has_the_kernel() -> None:
    run = run_of("microsoft/mdeberta-v3-base", gpus=1, framework="hf_trainer", tuning="full")
    run = replace(run, profile={**run.profile, "attention": Setting("attention", "eager")})
    advice = flash_attention(run, OPTIONAL)
    assert (advice.version, advice.install) == ("eager", "")


def test_samples_that_are_generated_are_not_packed() -> None:
    run = run_of(gpu="A100-80G", framework="hf_trainer", tuning="lora")
    sampled = replace(run, profile={**run.profile, "algorithm": Setting("algorithm", "grpo", AT)})
    assert "padding-free" in flash_attention(run).needs.en
    assert "padding-free" not in flash_attention(sampled).needs.en


def test_states_are_counted_as_the_run_keeps_them() -> None:
    half = deepspeed(run_of(tuning="lora")).table[0].stages[0]
    quantized = deepspeed(run_of(tuning="lora", quantization_bits=4)).table[0].stages[0]
    frozen = 7615616512 * 2 / 1024**3
    assert half - quantized == pytest.approx(frozen * 3 / 4)
    pure = deepspeed(run_of(tuning="full", precision="pure-bf16"))
    mixed = deepspeed(run_of(tuning="full", precision="bf16"))
    assert mixed.table[0].stages[0] == pytest.approx(2 * pure.table[0].stages[0])
    assert mixed.table[0].stages[3] == pure.table[0].stages[3]  # with FP32 masters again
    assert (mixed.stage, pure.stage) == (3, 0)
    assert "pure_bf16" in pure.reason.zh
    large = run_of("Qwen/Qwen2.5-72B-Instruct", tuning="full", precision="pure-bf16")
    assert deepspeed(large).stage == 3


def test_packing_of_llamafactory_does_not_need_a_flash_kernel() -> None:
    assert "4-D mask" in flash_attention(run_of(framework="llamafactory")).needs.en
    assert "padding-free" in flash_attention(run_of()).needs.en
