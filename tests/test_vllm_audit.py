"""Every item of vLLM's own audit, by flags, in YAML, in Python and in containers; whole scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Optional

import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, Case
from audit_cases_vllm import CASES, TRAINED
from audits_support import adds_up, audit_named, changes_of, items_of, shown
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.scoring import ScoredAudit, ScoredItem, score

AUDIT = audit_named("vllm")
ITEMS = tuple(item for category in AUDIT.categories for item, _ in category.items)
_OPTIONAL = "it depends on the load: whether it helps shows when it is measured"
_DEFAULT = "the engine chooses it, and chooses well"
NEVER_ADVISED = {
    **dict.fromkeys(
        """
        pipeline-parallel dp-tp-mix awq gptq bitsandbytes gguf mixed-quantization draft-model ngram
        partial-prefills fp8-attention draft-tp lora-serving api-server-count yaml-config
        disaggregated-prefill long-max-len worker-method kv-offload swap-space weight-transfer
        colocate server async-rl dynamic-lora layerwise-reload
        """.split(),  # noqa: SIM905
        _OPTIONAL,
    ),
    "block-size": _DEFAULT,
}
"""Items that are never recommended, and why; they are shown disabled instead."""
ALWAYS = {
    *("optimization-level", "cuda-graph", "torch-compile", "v1-engine", "gpu-memory-utilization"),
    *("max-model-len", "max-batched-tokens", "max-num-seqs", "chunked-prefill", "fast-tokenizer"),
    *("attention-backend", "block-size", "worker-method", "preemption-monitoring", "fp8-online"),
    *("awq", "gptq", "bitsandbytes", "gguf", "mixed-quantization", "eagle", "mtp", "ngram"),
    *("draft-model", "lora-serving", "prefix-caching", "cpu-cores"),
}
"""Items that concern every run that loads a model."""


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first engine."""
    runs = [run for run in runs_of(root, case.files) if engine_of(run) is not None]
    assert runs, "no engine was found"
    verdicts = judge(runs[0], all_checks())
    scored = score(AUDIT, verdicts)
    return items_of(scored)[case.item], verdicts


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{number}-{case.id}" for number, case in enumerate(CASES)]
)
def test_status_of_the_item(case: Case, tmp_path: Path) -> None:
    item, verdicts = judged(tmp_path, case)
    assert item.status is case.status, item.current.en
    assert item.evidence or case.status is not ON
    assert item.current.en or case.status is OFF  # an alternative of what is on
    if case.shows:
        assert case.shows in shown(case.files, item)
    if case.writes:
        changes = changes_of(case.item, verdicts)
        assert any(case.writes in text for text in changes)


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable_in_two_front_ends(name: str) -> None:
    fronts: dict[str, set[str]] = {}
    for case in CASES:
        if case.item == name:
            fronts.setdefault(case.status.value, set()).add(case.front)
    wanted = {ON: 2}
    if name not in ALWAYS:
        wanted[NA] = 2
    if name in NEVER_ADVISED:
        wanted[OFF] = 0 if name == "block-size" else 1 if name == "yaml-config" else 2
        assert ADVISED.value not in fronts
    else:
        found = fronts.get(ADVISED.value, set()) | fronts.get(PARTLY.value, set())
        assert len(found) >= 2, f"{name}: {fronts}"
    for status, count in wanted.items():
        assert len(fronts.get(status.value, ())) >= count, f"{name} {status.value}: {fronts}"


def test_every_item_has_cases_and_no_case_is_of_another() -> None:
    assert {case.item for case in CASES} == set(ITEMS)
    assert set(NEVER_ADVISED) <= set(ITEMS)


def test_points_of_a_category_add_up_to_its_maximum() -> None:
    assert adds_up(AUDIT)


def audited(root: Path, files: Mapping[str, str]) -> ScoredAudit:
    """vLLM's audit of a project's first engine."""
    run = next(run for run in runs_of(root, files) if engine_of(run) is not None)
    return score(AUDIT, judge(run, all_checks()))


def by_category(scored: ScoredAudit) -> dict[str, Optional[float]]:
    return {entry.category.id: entry.score for entry in scored.categories}


FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def test_the_total_of_a_server_with_much_switched_off(tmp_path: Path) -> None:
    files = {
        name: (FIXTURES / "vllm_serve" / name).read_text(encoding="utf-8")
        for name in ("Dockerfile", "serve.sh")
    }
    scored = audited(tmp_path, files)
    # A: V1 0.5, the rest lies behind enforce_eager; B: half of the share 0.75, length 1.5,
    # block 0.5 (A100: no FP8; 0.9.2 offloads nothing); C: TP 1.5; E: chunks 1.5, tokens 1,
    # sequences 1; F: 2; J: tokenizer 1, workers 0.5, statistics 1.
    points = {"A": 0.5, "B": 2.75, "C": 1.5, "D": 0, "E": 3.5, "F": 2, "G": 0, "H": None, "I": 0}
    assert by_category(scored) == {**points, "J": 2.5}
    # Level 1.5, graphs 1.5, compilation 1, share 0.75, prefixes 1.5.
    assert (scored.earned, scored.lost) == (12.75, 6.25)
    # 52 without the 7 of H; 12.75 / 19.
    assert (scored.score, scored.maximum, scored.attainment) == (12.75, 45, 0.67)


_EXPERTS = """\
#!/bin/bash
#SBATCH --gres=gpu:h200:8
vllm serve deepseek-ai/DeepSeek-R1 \\
    --data-parallel-size 8 \\
    --enable-expert-parallel \\
    --max-model-len 32768 \\
    --kv-cache-dtype fp8 \\
    --speculative-config '{"method": "mtp", "num_speculative_tokens": 1}'
"""


def test_the_total_of_experts_over_eight_gpus(tmp_path: Path) -> None:
    scored = audited(tmp_path, {"serve.sh": _EXPERTS, "requirements.txt": "vllm==0.33.0\n"})
    # A: all 5 by default; B: share, length, FP8 cache 1.5 each, block 0.5; C: copies 1, experts
    # 1; D: the checkpoint is in FP8, 4; E: all but the limits for long prompts, 5; F: all 4;
    # G: MTP 3; I: an API server a copy 1; J: 1 + 0.5 + 1.
    points = {"A": 5, "B": 5, "C": 2, "D": 4, "E": 5, "F": 4, "G": 3, "H": None, "I": 1, "J": 2.5}
    assert by_category(scored) == points
    assert (scored.score, scored.maximum, scored.attainment) == (31.5, 45, 1.0)


def test_the_total_of_an_engine_that_samples_for_trl(tmp_path: Path) -> None:
    scored = audited(tmp_path, TRAINED)
    # A: 5; B: TRL's share of 0.3 1.5, block 0.5; E: 5; F: 2; H: weights in process 1.5,
    # colocated 1; J: tokenizer 1.
    points = {"A": 5, "B": 2, "C": 0, "D": 0, "E": 5, "F": 2, "G": 0, "H": 2.5, "I": 0, "J": 1}
    assert by_category(scored) == points
    # The engine does not sleep: 2.
    assert (scored.score, scored.lost) == (17.5, 2)
    assert (scored.maximum, scored.attainment) == (52, 0.9)


_OPEN = Case(
    "",
    Status.UNKNOWN,
    "python",
    {
        "actor.py": "import sys\n\nfrom vllm import LLM\n\n"
        "def start(*args, **kwargs):\n    return LLM(*args, **kwargs)\n\n\n"
        "start(**options(sys.argv))\n",
        "run.sh": "python actor.py\n",
    },
)


@pytest.mark.parametrize("name", ["draft-tp", "marlin", "mixed-quantization", "capture-sizes"])
def test_what_may_be_given_out_of_sight_is_not_judged(name: str, tmp_path: Path) -> None:
    item, _ = judged(tmp_path, replace(_OPEN, item=name))
    assert item.status is Status.UNKNOWN


def test_a_flag_is_dropped_from_the_script_that_starts_a_framework(tmp_path: Path) -> None:
    script = (
        "python -m openrlhf.cli.train_ppo_ray \\\n"
        "    --actor.model_name_or_path Qwen/Qwen3-8B --vllm.num_engines 4 \\\n"
        "    --vllm.enforce_eager \\\n"
        "    --train.colocate_all\n"
    )
    case = Case("cuda-graph", ADVISED, "flags", {"train.sh": script})
    _, verdicts = judged(tmp_path, case)
    (change,) = [v.judgement.change for v in verdicts if v.check.code == "GPU931"]
    assert change is not None
    (edit,) = change.edits
    assert (edit.location.path, edit.location.line) == ("train.sh", 3)
    assert (edit.old, edit.new) == ("--vllm.enforce_eager", "")


def test_a_script_for_other_processors_is_not_advised(tmp_path: Path) -> None:
    script = "vllm serve Qwen/Qwen3-8B --enforce-eager\n"
    case = Case("cuda-graph", NA, "flags", {"scripts/serve_npu.sh": script})
    item, _ = judged(tmp_path, case)
    assert item.status is NA


def test_a_driver_of_ray_is_no_single_gpu(tmp_path: Path) -> None:
    script = (
        "python -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path Qwen/Qwen3-8B "
        "--vllm.num_engines 4 --vllm.tensor_parallel_size 2\n"
    )
    item, _ = judged(tmp_path, Case("pipeline-parallel", NA, "flags", {"train.sh": script}))
    assert item.status is NA
    assert item.current.en != "one GPU"


_ROLLOUT = (
    "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path OpenRLHF/Llama-3-8b-sft "
    "--vllm.num_engines 4 --vllm.tensor_parallel_size 2 --data.max_len 4096\n"
)


@pytest.mark.parametrize(
    ("item", "status", "said"),
    [
        ("gptq", NA, "16 bits"),
        ("fp8-online", NA, "16 bits"),
        ("marlin", NA, "16 bits"),
        ("mixed-quantization", NA, "16 bits"),
        ("max-model-len", ON, "data.max_len=4096"),
        ("expert-parallel", NA, "no experts"),
        ("mla-backend", NA, "no latent attention"),
        ("multimodal-limits", NA, "text only"),
        ("kv-cache-dtype", NA, "no parameter to hand kv_cache_dtype on"),
        ("swap-space", NA, "swaps nothing"),
        ("dynamic-lora", NA, "all weights are trained"),
    ],
)
def test_openrlhf_hands_on_what_it_has_parameters_for(
    tmp_path: Path, item: str, status: Status, said: str
) -> None:
    found, _ = judged(tmp_path, Case(item, status, "flags", {"train.sh": _ROLLOUT}))
    assert found.status is status
    assert said in found.current.en


_UNHANDED = (
    *("kv-offload", "kv-cache-dtype", "fp8-attention", "eagle", "draft-model", "ngram"),
    *("partial-prefills", "pipeline-parallel", "data-parallel", "dp-tp-mix"),
)


@pytest.mark.parametrize("pins", ["trl==1.16.0\nvllm==0.19.1\n", "vllm==0.19.1\n"])
@pytest.mark.parametrize("item", _UNHANDED)
def test_a_colocated_trl_lists_what_it_hands_on(tmp_path: Path, item: str, pins: str) -> None:
    script = TRAINED["train.sh"].replace("a100-80g", "h100")
    files = {**TRAINED, "train.sh": script, "requirements.txt": pins}
    found, _ = judged(tmp_path, Case(item, NA, "trl", files))
    assert found.status is NA
    assert "TRL has no parameter to hand" in found.current.en


@pytest.mark.parametrize("item", ["max-num-seqs", "gpu-memory-utilization"])
def test_what_trl_lists_is_handed_on(tmp_path: Path, item: str) -> None:
    files = {**TRAINED, "requirements.txt": "vllm==0.19.1\n"}
    found, _ = judged(tmp_path, Case(item, ON, "trl", files))
    assert "no parameter to hand" not in found.current.en
    assert found.status is not NA


@pytest.mark.parametrize("item", ["yaml-config", "api-server-count", "disaggregated-prefill"])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("swift rollout --model Qwen/Qwen3-4B", "ms-swift answers with a server of its own"),
        (
            "swift rlhf --rlhf_type grpo --model Qwen/Qwen3-4B --use_vllm true "
            "--vllm_mode colocate --dataset d.jsonl",
            "serves no requests over HTTP",
        ),
    ],
)
def test_a_server_of_the_host_is_called_one(
    tmp_path: Path, item: str, command: str, said: str
) -> None:
    found, _ = judged(tmp_path, Case(item, NA, "flags", {"serve.sh": f"{command}\n"}))
    assert found.status is NA
    assert said in found.current.en


@pytest.mark.parametrize(("limit", "status"), [("0", OFF), ("4", ON)])
def test_no_images_a_prompt_is_no_limit_of_openrlhf(
    tmp_path: Path, limit: str, status: Status
) -> None:
    script = (
        "python3 -m openrlhf.cli.train_ppo_ray --vllm.num_engines 4 "
        "--actor.model_name_or_path Qwen/Qwen2.5-VL-7B-Instruct "
        f"--data.max_images_per_prompt {limit}\n"
    )
    found, _ = judged(tmp_path, Case("multimodal-limits", status, "flags", {"train.sh": script}))
    assert found.status is status


def test_the_lengths_of_older_openrlhf_are_added_up(tmp_path: Path) -> None:
    script = (
        "python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen3-8B --vllm_num_engines 2 "
        "--generate_max_len 3072\n"
    )
    found, _ = judged(tmp_path, Case("max-model-len", ON, "flags", {"train.sh": script}))
    assert "max_model_len=4096 (prompt_max_len 1024 + generate_max_len 3072)" in found.current.en


@pytest.mark.parametrize(
    ("item", "model", "status", "said"),
    [
        ("gptq", "moonshotai/Kimi-K2-Thinking", ON, "INT4"),
        ("fp8-online", "moonshotai/Kimi-K2-Instruct", ON, "FP8"),
        ("fp8-online", "openai/gpt-oss-20b", OFF, "MXFP4"),
        ("mixed-quantization", "openai/gpt-oss-20b", ON, "MXFP4"),
        ("fp8-online", "RedHatAI/Qwen3-30B-A3B-NVFP4", OFF, "quantized as NVFP4"),
        ("kv-cache-dtype", "BAAI/bge-m3", NA, "both ways"),
        ("ngram", "BAAI/bge-m3", NA, "generates nothing"),
        ("prefix-caching", "BAAI/bge-m3", NA, "both ways"),
        ("prefix-caching", "Qwen/Qwen3-Embedding-4B", ON, "enable_prefix_caching=True"),
        ("chunked-prefill", "openai/whisper-large-v3", NA, "an encoder and a decoder"),
        ("multimodal-limits", "openai/whisper-large-v3", OFF, "recordings"),
    ],
)
def test_the_model_tells_what_it_takes(
    tmp_path: Path, item: str, model: str, status: Status, said: str
) -> None:
    files = {"serve.sh": f"vllm serve {model}\n"}
    found, _ = judged(tmp_path, Case(item, status, "flags", files))
    assert found.status is status
    assert said in found.current.en


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("vllm serve -cc.cudagraph_mode=NONE", NA, "text only"),
        ("vllm serve <model> --port 80", OFF, "no limit by default"),
        ("vllm serve --config other.yaml", Status.UNKNOWN, "could be read"),
        ("python3 src/vllm_router/app.py --port 80", NA, "a router loads no model"),
        ("python3 -m vllm.entrypoints.openai.api_server --port 80", NA, "text only"),
    ],
)
def test_what_is_served_where_nobody_names_a_model(
    tmp_path: Path, command: str, status: Status, said: str
) -> None:
    case = Case("multimodal-limits", status, "flags", {"serve.sh": f"{command}\n"})
    found, _ = judged(tmp_path, case)
    assert found.status is status
    assert said in found.current.en


def test_help_and_sweeps_start_no_engine_of_their_own(tmp_path: Path) -> None:
    script = "vllm serve --help=all\nvllm bench sweep plot results --var-x rate\n"
    runs = runs_of(tmp_path, {"serve.sh": script})
    assert [engine_of(run) for run in runs] == [None, None]


def test_a_build_of_the_repository_is_next_to_the_newest_release(tmp_path: Path) -> None:
    files = {
        "setup.sh": "pip install git+https://github.com/vllm-project/vllm\n",
        "serve.sh": "vllm serve Qwen/Qwen3-8B\n",
    }
    found, _ = judged(tmp_path, Case("optimization-level", ON, "flags", files))
    assert found.status is ON


def test_a_variable_that_is_gone_is_no_evidence(tmp_path: Path) -> None:
    files = {"requirements.txt": "vllm==0.19.1\n", "serve.sh": "VLLM_USE_V1=1 vllm serve a/b-7b\n"}
    found, _ = judged(tmp_path, Case("v1-engine", ON, "flags", files))
    assert [one.text for one in found.evidence] == ["vLLM 0.19.1: V1"]


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ("--enforce-eager --no-enforce-eager", ON),
        ("--no-enforce-eager --enforce-eager", ADVISED),
    ],
)
def test_of_a_flag_and_its_negation_the_later_one_holds(
    tmp_path: Path, flags: str, status: Status
) -> None:
    files = {"serve.sh": f"vllm serve Qwen/Qwen3-8B {flags}\n"}
    found, _ = judged(tmp_path, Case("cuda-graph", status, "flags", files))
    assert found.status is status


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("${HOME}/models/Qwen3-32B", NA),
        ("${HOME}/models/Qwen3-30B-A3B", OFF),
        ("${HOME}/models/best", OFF),
    ],
)
def test_the_end_of_a_path_names_the_model(tmp_path: Path, path: str, status: Status) -> None:
    script = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm "
        f"actor_rollout_ref.model.path={path}\n"
    )
    found, _ = judged(tmp_path, Case("expert-parallel", status, "flags", {"train.sh": script}))
    assert found.status is status


def test_a_method_is_told_beside_a_placeholder(tmp_path: Path) -> None:
    config = '{"model": <head>, "method": "eagle3", "num_speculative_tokens": 3}'
    files = {"s.sh": f"vllm serve moonshotai/Kimi-K2.5 --speculative-config '{config}'\n"}
    found, _ = judged(tmp_path, Case("eagle", ON, "flags", files))
    assert found.status is ON
    files = {"s.sh": "vllm serve moonshotai/Kimi-K2.5 --speculative-config '{<config>}'\n"}
    found, _ = judged(tmp_path / "open", Case("eagle", Status.UNKNOWN, "flags", files))
    assert found.status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("swift infer --infer_backend vllm", "vllm_max_num_seqs=256"),
        ("swift rlhf --rlhf_type grpo --use_vllm true --vllm_mode colocate", "training's batch"),
    ],
)
def test_only_in_training_are_sequences_by_its_batch(
    tmp_path: Path, command: str, told: str
) -> None:
    files = {"run.sh": f"{command} --model Qwen/Qwen3-8B --dataset a.jsonl\n"}
    found, _ = judged(tmp_path, Case("max-num-seqs", ON, "flags", files))
    assert told in found.evidence[0].text


@pytest.mark.parametrize(
    ("release", "tiers"),
    [
        ("0.8.5.post1", "2048, or 8192 from 70 GiB on"),
        ("0.19.1", "2048, or 8192 from 70 GiB on (not A100)"),
        ("0.33.0", "70 GiB on (not A100, GB10), 16384 from 160 GiB on"),
    ],
)
def test_sizes_of_a_step_by_the_gpu(tmp_path: Path, release: str, tiers: str) -> None:
    files = {"s.sh": "vllm serve Qwen/Qwen3-8B\n", "requirements.txt": f"vllm=={release}\n"}
    found, _ = judged(tmp_path, Case("max-batched-tokens", ON, "flags", files))
    assert found.evidence[0].text.endswith(tiers)


def test_small_steps_of_an_a100_are_no_fault(tmp_path: Path) -> None:
    for gpu, status in (("a100-80g", ON), ("h100", PARTLY)):
        command = "vllm serve Qwen/Qwen3-8B --max-num-batched-tokens 512"
        files = {"s.sh": f"#!/bin/bash\n#SBATCH --gres=gpu:{gpu}:1\n{command}\n"}
        found, _ = judged(tmp_path / gpu, Case("max-batched-tokens", status, "flags", files))
        assert found.status is status


_ONLINE = """\
from trl.experimental.online_dpo import OnlineDPOConfig, OnlineDPOTrainer

args = OnlineDPOConfig(output_dir="o", use_vllm=True, vllm_mode="{mode}")
OnlineDPOTrainer(model="Qwen/Qwen2.5-1.5B", reward_funcs=r, args=args, train_dataset=d).train()
"""


@pytest.mark.parametrize(
    ("mode", "pins", "status"),
    [
        ("colocate", "trl==1.16.0\n", ADVISED),
        ("colocate", "trl==0.24.0\n", NA),
        ("server", "trl==1.16.0\n", NA),
    ],
)
def test_online_dpo_generates_completions(
    tmp_path: Path, mode: str, pins: str, status: Status
) -> None:
    files = {"train.py": _ONLINE.format(mode=mode), "requirements.txt": pins}
    found, _ = judged(tmp_path, Case("sleep-mode", status, "python", files))
    assert found.status is status
    assert "no completions" not in found.current.en


def test_an_a100_had_large_steps_before_it_was_kept_small(tmp_path: Path) -> None:
    script = "#!/bin/bash\n#SBATCH --gres=gpu:a100-80g:1\nvllm serve Qwen/Qwen3-8B\n"
    for release, value in (("0.8.5.post1", 8192), ("0.10.2", 2048)):
        files = {"s.sh": script, "requirements.txt": f"vllm=={release}\n"}
        found, _ = judged(tmp_path / release, Case("max-batched-tokens", ON, "flags", files))
        assert f"max_num_batched_tokens={value}" in found.evidence[0].text


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("", OFF),
        (" trainer.v1.trainer_mode=colocate_async", ON),
        (" trainer.v1.trainer_mode=sync", OFF),
        (" trainer.use_v1=False", NA),
    ],
)
def test_verl_overlaps_sampling_by_another_trainer(
    tmp_path: Path, mode: str, expected: Status
) -> None:
    words = "actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.name=vllm"
    files = {
        "run.sh": f"python3 -m verl.trainer.main_ppo {words} trainer.n_gpus_per_node=8{mode}\n"
    }
    assert items_of(audited(tmp_path, files))["async-rl"].status is expected


def test_verls_fully_asynchronous_trainer_and_older_releases(tmp_path: Path) -> None:
    words = "actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.name=vllm"
    apart = "verl.experimental.fully_async_policy.fully_async_main"
    for name, program, pin, expected in (
        ("apart", apart, "", ON),
        ("older", "verl.trainer.main_ppo", "verl==0.7.0\n", NA),
    ):
        launch = f"python3 -m {program} {words} trainer.n_gpus_per_node=8\n"
        files = {"run.sh": launch, "requirements.txt": pin}
        assert items_of(audited(tmp_path / name, files))["async-rl"].status is expected


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_verl_takes_no_pipeline_of_gpus_for_a_rollout(tmp_path: Path, name: str) -> None:
    words = f"actor_rollout_ref.model.path=Qwen/Qwen3-8B actor_rollout_ref.rollout.name={name}"
    launch = f"python3 -m verl.trainer.main_ppo {words} trainer.n_gpus_per_node=8 trainer.nnodes=2"
    (run,) = runs_of(tmp_path, {"run.sh": f"{launch}\n"})
    scored = score(audit_named(name), judge(run, all_checks()))
    item = items_of(scored)["pipeline-parallel"]
    assert (item.status, "verl" in item.current.en) == (NA, True)
