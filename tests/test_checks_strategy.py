"""Strategy and rollout checks: schedules, adapters, ms-swift's options, RLHF engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import pytest
from checks_support import LLM_7B, findings, hand_made, judged, runs_alone, runs_of, status

from flake8_gpu_training.checks.base import Priority, Status
from flake8_gpu_training.runs.model import Hardware, Model, Run

LLM_72B = Model("Qwen/Qwen2.5-72B-Instruct", "LLM", 72_706_203_648, is_hf_family=True)
VISION = Model("Qwen/Qwen2.5-VL-7B-Instruct", "MLLM", 8_292_166_656, is_hf_family=True)
EIGHT_H100 = Hardware("H100-80G", 8, 1, 80.0)
ONE_4090 = Hardware("RTX4090", 1, 1, 24.0)

SCRIPT = """\
swift {command} \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --torch_dtype bfloat16 \\
    --dataset data.jsonl {flags}
"""


def swift(root: Path, flags: str = "", command: str = "sft") -> Run:
    (run,) = runs_of(root, {"train.sh": SCRIPT.format(command=command, flags=flags)})
    return run


def rlhf(root: Path, flags: str) -> Run:
    return swift(root, f"--rlhf_type grpo {flags}", "rlhf")


# --- Schedule ---


def test_decay_without_warm_up_earns_half(tmp_path: Path) -> None:
    judgement = judged(swift(tmp_path), "GPU601")
    assert (judgement.status, judgement.share) == (Status.PARTIAL, 0.5)
    assert "--warmup_ratio 0.05" in judgement.findings[0].message
    assert status(swift(tmp_path, "--warmup_ratio 0.1"), "GPU601") is Status.ENABLED


def test_a_constant_rate_is_a_choice(tmp_path: Path) -> None:
    assert status(swift(tmp_path, "--lr_scheduler_type constant"), "GPU601") is Status.DISABLED


def test_transformers_takes_warm_up_in_steps() -> None:
    runs = runs_alone(
        "from transformers import TrainingArguments\narguments = TrainingArguments('out')\n"
    )
    (found,) = findings(runs, "GPU601")
    assert "warmup_steps=100" in found.message


def test_a_schedule_in_the_code_counts() -> None:
    runs = runs_alone(
        """
import torch
from transformers import get_cosine_schedule_with_warmup
schedule = get_cosine_schedule_with_warmup(optimizer, 100, 1000)
for batch in train_loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
"""
    )
    assert status(runs[0], "GPU601") is Status.ENABLED


def test_large_batch_optimizers_are_for_large_batches() -> None:
    small = hand_made(
        practices={
            "micro_batch_size": 8,
            "gradient_accumulation_steps": 1,
            "optimizer": "adamw_torch",
        },
        processes=8,
    )
    assert status(small, "GPU602") is Status.NOT_APPLICABLE
    lamb = hand_made(practices={"optimizer": "lamb"})
    assert status(lamb, "GPU602") is Status.ENABLED


# --- Adapters ---


def tuned(
    tuning: str, model: Model = LLM_72B, hardware: Optional[Hardware] = None, **practices: Any
) -> Run:
    stated = {"tuning": tuning, "quantization_method": "none", **practices}
    return hand_made(practices=stated, model=model, hardware=hardware)


def test_full_tuning_that_no_sharding_can_fit_calls_for_lora() -> None:
    judgement = judged(tuned("full", hardware=EIGHT_H100), "GPU604")
    assert (judgement.status, judgement.variant) == (Status.RECOMMENDED, "lora")
    assert "135 GiB per GPU" in judgement.findings[0].message
    assert "lora" in judgement.findings[0].message


@pytest.mark.parametrize(
    "run",
    [
        tuned("full"),
        tuned("full", LLM_7B, EIGHT_H100),
        tuned("full", hardware=EIGHT_H100, offload_optimizer="cpu"),
        tuned("full", hardware=EIGHT_H100, optimizer="galore"),
    ],
    ids=["hardware unknown", "fits", "offloaded", "lean optimizer"],
)
def test_full_tuning_is_otherwise_a_choice(run: Run) -> None:
    assert status(run, "GPU604") is Status.DISABLED


@pytest.mark.parametrize(
    ("flags", "variant"),
    [
        ("", "lora"),
        ("--tuner_type lora", "lora"),
        ("--tuner_type adalora", "adalora"),
        ("--tuner_type full --lisa_activated_layers 4", "lisa"),
    ],
)
def test_tuners_are_alternatives(tmp_path: Path, flags: str, variant: str) -> None:
    judgement = judged(swift(tmp_path, flags), "GPU604")
    assert (judgement.status, judgement.variant) == (Status.ENABLED, variant)


def test_quantizing_is_advised_only_where_weights_do_not_fit() -> None:
    needed = judged(tuned("lora", hardware=ONE_4090), "GPU605")
    assert (needed.status, needed.variant) == (Status.RECOMMENDED, "bnb")
    assert "quant_method bnb" in needed.findings[0].message
    assert status(tuned("lora", LLM_7B, ONE_4090), "GPU605") is Status.DISABLED
    assert status(tuned("lora"), "GPU605") is Status.DISABLED
    assert status(tuned("full", hardware=ONE_4090), "GPU605") is Status.NOT_APPLICABLE


def test_sharded_weights_need_no_quantizing() -> None:
    run = tuned("lora", hardware=EIGHT_H100, zero_stage=3)
    assert status(run, "GPU605") is Status.DISABLED


@pytest.mark.parametrize("method", ["bnb", "hqq", "eetq", "fp8"])
def test_quantization_methods_are_alternatives(tmp_path: Path, method: str) -> None:
    bits = "" if method == "fp8" else "--quant_bits 8"
    judgement = judged(swift(tmp_path, f"--quant_method {method} {bits}"), "GPU605")
    variant = "bnb-8bit" if method == "bnb" else method
    assert (judgement.status, judgement.variant) == (Status.ENABLED, variant)


@pytest.mark.parametrize(
    ("code", "flag"),
    [
        ("GPU608", "--use_dora true"),
        ("GPU609", "--lorap_lr_ratio 16"),
        ("GPU610", "--use_rslora true"),
        ("GPU611", "--init_weights pissa"),
        ("GPU613", "--neftune_noise_alpha 5"),
        ("GPU614", "--rope_scaling yarn"),
        ("GPU615", "--enable_dft_loss true"),
    ],
)
def test_options_of_ms_swift_cost_nothing_when_off(tmp_path: Path, code: str, flag: str) -> None:
    off, on = judged(swift(tmp_path), code), judged(swift(tmp_path, flag), code)
    assert off.status in (Status.DISABLED, Status.NOT_APPLICABLE)
    assert off.findings == ()
    assert on.status is Status.ENABLED


@pytest.mark.parametrize("code", ["GPU608", "GPU609", "GPU610", "GPU611"])
def test_options_of_lora_cannot_apply_to_full_tuning(tmp_path: Path, code: str) -> None:
    assert status(swift(tmp_path, "--tuner_type full"), code) is Status.NOT_APPLICABLE


def test_initialisations_are_alternatives(tmp_path: Path) -> None:
    assert judged(swift(tmp_path, "--init_weights pissa_niter_4"), "GPU611").variant == "pissa"
    assert judged(swift(tmp_path, "--init_weights lora-ga"), "GPU611").variant == "lora-ga"


def test_loss_scale_is_on_by_default(tmp_path: Path) -> None:
    assert status(swift(tmp_path), "GPU612") is Status.ENABLED
    assert status(swift(tmp_path, "--loss_scale all"), "GPU612") is Status.ENABLED
    assert status(swift(tmp_path, command="pt"), "GPU612") is Status.NOT_APPLICABLE


def test_rates_by_module_are_for_multimodal_models() -> None:
    assert status(hand_made(), "GPU616") is Status.NOT_APPLICABLE
    assert status(hand_made(model=VISION), "GPU616") is Status.NOT_APPLICABLE
    trained = hand_made(model=VISION, settings={"freeze_vit": False})
    assert status(trained, "GPU616") is Status.DISABLED
    layered = hand_made(model=VISION, settings={"vit_lr": 1e-6})
    assert status(layered, "GPU616") is Status.ENABLED


def test_freezing_in_code_counts() -> None:
    text = """
import torch
model.backbone.requires_grad_(False)
for batch in train_loader:
    loss = model(batch.cuda())
    loss.backward()
    optimizer.step()
"""
    assert status(runs_alone(text)[0], "GPU606") is Status.ENABLED


# --- Preference losses ---


def preference(how: str, version: str, framework: str = "hf_trainer", **settings: Any) -> Run:
    return hand_made(
        framework,
        practices={"algorithm": how},
        settings=settings,
        versions={"trl": version},
    )


@pytest.mark.parametrize(
    ("version", "switch"), [("0.24.0", "use_liger_loss"), ("1.8.0", "use_liger_kernel")]
)
def test_the_fused_loss_is_advised_under_the_name_of_the_version(version: str, switch: str) -> None:
    (found,) = judged(preference("dpo", version), "GPU607").findings
    assert switch in found.message
    assert status(preference("dpo", version, **{switch: True}), "GPU607") is Status.ENABLED


def test_the_fused_loss_is_no_advice_where_the_trainer_has_none() -> None:
    for run in (
        preference("dpo", "1.16.0"),
        preference("dpo", "0.24.0", "llamafactory"),
        preference("sft", "0.24.0"),
    ):
        assert status(run, "GPU607") is Status.NOT_APPLICABLE


def test_the_fused_loss_does_not_go_with_a_reference_computed_ahead() -> None:
    run = preference("dpo", "0.24.0", precompute_ref_log_probs=True)
    assert status(run, "GPU607") is Status.DISABLED


# --- Rollouts ---


def test_grpo_without_an_engine_is_the_gravest(tmp_path: Path) -> None:
    run = rlhf(tmp_path, "")
    (found,) = judged(run, "GPU901").findings
    assert "--use_vllm true --vllm_mode colocate" in found.message
    assert status(run, "GPU903") is Status.NOT_APPLICABLE


def test_trl_generates_with_transformers_by_default() -> None:
    text = "from trl import GRPOConfig\narguments = GRPOConfig('out', {})\n"
    (found,) = findings(runs_alone(text.format("bf16=True")), "GPU901")
    assert 'use_vllm=True, vllm_mode="colocate"' in found.message
    assert findings(runs_alone(text.format("use_vllm=True")), "GPU901") == []
    assert findings(runs_alone(text.format("use_vllm=args.vllm")), "GPU901") == []


@pytest.mark.parametrize(
    ("version", "arguments", "expected"),
    [
        ("1.16.0", "use_vllm=True", 1),
        ("1.16.0", "use_vllm=True, vllm_mode='server'", 0),
        ("1.16.0", "use_vllm=True, vllm_enable_sleep_mode=True", 0),
        ("0.24.0", "use_vllm=True", 0),
        ("0.24.0", "use_vllm=True, vllm_mode='colocate'", 1),
        ("0.22.2", "use_vllm=True, vllm_mode='colocate'", 0),
    ],
)
def test_sleep_mode_is_advised_where_trl_has_it(
    version: str, arguments: str, expected: int
) -> None:
    text = f"from trl import GRPOConfig\narguments = GRPOConfig('out', {arguments})\n"
    found = findings(runs_alone(text, trl=version), "GPU903")
    assert len(found) == expected
    assert all("vllm_enable_sleep_mode=True" in finding.message for finding in found)


def test_rollout_checks_cannot_apply_elsewhere(tmp_path: Path) -> None:
    for code in [f"GPU90{number}" for number in range(1, 9)]:
        assert status(swift(tmp_path), code) is Status.NOT_APPLICABLE
        dpo = swift(tmp_path, "--rlhf_type dpo", "rlhf")
        assert status(dpo, code) is Status.NOT_APPLICABLE


@pytest.mark.parametrize(("address", "expected"), [("--vllm_server_host 10.0.0.2 ", 0), ("", 1)])
def test_a_servers_address_means_a_server(tmp_path: Path, address: str, expected: int) -> None:
    run = rlhf(tmp_path, f"{address}--use_vllm true")
    for code in ("GPU903", "GPU935"):
        assert len(judged(run, code).findings) == expected, code


def test_a_colocated_engine_should_sleep(tmp_path: Path) -> None:
    colocated = "--use_vllm true --vllm_mode colocate"
    (found,) = judged(rlhf(tmp_path, colocated), "GPU903").findings
    assert "--sleep_level 1" in found.message
    assert status(rlhf(tmp_path, f"{colocated} --sleep_level 2"), "GPU903") is Status.ENABLED
    assert status(rlhf(tmp_path, colocated), "GPU902") is Status.NOT_APPLICABLE


def test_a_server_neither_sleeps_nor_offloads(tmp_path: Path) -> None:
    run = rlhf(tmp_path, "--use_vllm true --vllm_mode server --vllm_server_host 10.0.0.2")
    for code in ("GPU903", "GPU904", "GPU905"):
        assert status(run, code) is Status.NOT_APPLICABLE
    assert status(run, "GPU902") is Status.DISABLED


@pytest.mark.parametrize(
    ("code", "flag"),
    [
        ("GPU904", "--offload_optimizer true"),
        ("GPU905", "--offload_model true"),
        ("GPU907", "--dynamic_sample true"),
    ],
)
def test_rollout_options_cost_nothing_when_off(tmp_path: Path, code: str, flag: str) -> None:
    colocated = "--use_vllm true --vllm_mode colocate"
    assert status(rlhf(tmp_path, colocated), code) is Status.DISABLED
    assert status(rlhf(tmp_path, f"{colocated} {flag}"), code) is Status.ENABLED


def test_group_size_is_8_by_default_and_too_small_below_4(tmp_path: Path) -> None:
    assert status(rlhf(tmp_path, ""), "GPU906") is Status.ENABLED
    (found,) = judged(rlhf(tmp_path, "--num_generations 2"), "GPU906").findings
    assert "--num_generations 8" in found.message
    assert judged(rlhf(tmp_path, "--num_generations 1"), "GPU906").findings == ()


def test_prefix_caching_is_on_by_default(tmp_path: Path) -> None:
    colocated = "--use_vllm true --vllm_mode colocate"
    assert status(rlhf(tmp_path, colocated), "GPU908") is Status.ENABLED
    off = judged(rlhf(tmp_path, f"{colocated} --vllm_enable_prefix_caching false"), "GPU908")
    assert off.status is Status.RECOMMENDED


def test_rollouts_outweigh_the_loading_of_prompts(tmp_path: Path) -> None:
    judgement = judged(rlhf(tmp_path, ""), "GPU501")
    assert judgement.status is Status.DISABLED
    assert judgement.priority in (None, Priority.LOW)
