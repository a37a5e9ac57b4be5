"""What ms-swift takes and does by default: of the source in the project, of a pinned release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from audits_support import audit_named, items_of
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.verdicts import judge
from report_builder.scoring import ScoredItem, score

SFT = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset mine.jsonl"
MEGATRON = SFT.replace("swift", "megatron", 1)
GRPO = SFT.replace("sft", "rlhf --rlhf_type grpo", 1)

# A fork's source: what stands in it decides, whatever the release of its number has.
FORK: Mapping[str, str] = {
    "swift/version.py": "__version__ = '4.6.0.dev0'\n",
    "swift/cli/main.py": "",
    "swift/arguments/base_args.py": (
        "@dataclass\n"
        "class BaseArguments(Unseen):\n"
        "    model: Optional[str] = None\n"
        "    tuner_type: str = 'lora'\n"
        "    quant_method: Literal['bnb', 'hqq'] = None\n"
    ),
    "swift/arguments/sft_args.py": (
        "@dataclass\nclass SftArguments(BaseArguments, Seq2SeqTrainingArguments):\n    pass\n"
    ),
    "swift/trainers/arguments.py": (
        "from transformers import Seq2SeqTrainingArguments as HfArguments\n\n\n"
        "@dataclass\n"
        "class Mixin:\n"
        "    dataloader_num_workers: Optional[int] = None\n"
        "    dataloader_persistent_workers: bool = False\n"
        "    dataloader_prefetch_factor: Optional[int] = None\n\n"
        "    def __post_init__(self):\n"
        "        if self.dataloader_prefetch_factor is None:\n"
        "            self.dataloader_prefetch_factor = 7\n\n\n"
        "@dataclass\n"
        "class Seq2SeqTrainingArguments(Mixin, HfArguments):\n"
        "    pass\n"
    ),
}


def run_of(root: Path, launch: str, files: Mapping[str, str]) -> Run:
    """The one run that a line of a script starts."""
    (run,) = (r for r in runs_of(root, {**files, "a.sh": f"{launch}\n"}) if r.framework == "swift")
    return run


def items(root: Path, launch: str, files: Mapping[str, str]) -> dict[str, ScoredItem]:
    """The items of the run's audit."""
    verdicts = judge(run_of(root, launch, files), all_checks())
    return items_of(score(audit_named("swift"), verdicts))


def pin(version: str) -> dict[str, str]:
    return {"requirements.txt": f"ms-swift=={version}\n"}


def test_defaults_are_those_of_the_source_in_the_project(tmp_path: Path) -> None:
    run = run_of(tmp_path / "fork", f"NPROC_PER_NODE=2 {SFT}", FORK)
    kept, ahead = run.practice("persistent_workers"), run.practice("prefetch_factor")
    assert (kept.value, ahead.value) == (False, 7)
    line = "swift/trainers/arguments.py:7: dataloader_persistent_workers False"
    assert kept.note == f"ms-swift 4.6.0.dev0 {line}"
    released = run_of(tmp_path / "released", f"NPROC_PER_NODE=2 {SFT}", pin("4.6.0"))
    assert released.practice("persistent_workers").value is True


def test_what_the_source_in_the_project_lacks_cannot_be_set(tmp_path: Path) -> None:
    found = items(tmp_path / "fork", f"NPROC_PER_NODE=2 {SFT}", FORK)
    lacking = ("padding-free", "packing", "multimodal-freezing", "dora", "qlora-eetq")
    for name in lacking:
        assert found[name].status is Status.NOT_APPLICABLE, name
    assert found["padding-free"].current.en == "this release does not have the parameter"
    assert found["qlora-hqq"].status is Status.DISABLED  # one of its choices
    released = items(tmp_path / "released", f"NPROC_PER_NODE=2 {SFT}", pin("4.6.0"))
    assert released["qlora-eetq"].status is Status.DISABLED
    assert released["padding-free"].status is Status.DISABLED


@pytest.mark.parametrize(
    ("version", "workers", "ahead", "where"),
    [
        ("2.6.1", 1, 2, "PyTorch"),
        ("3.1.1", 0, None, "PyTorch"),
        ("3.9.3", 1, 10, "ms-swift 3.9.3"),
        ("4.6.0", 1, 2, "ms-swift 4.6.0"),
    ],
)
def test_each_release_has_its_own_workers(
    tmp_path: Path, version: str, workers: int, ahead: object, where: str
) -> None:
    run = run_of(tmp_path, SFT, pin(version))
    assert run.practice("dataloader_workers").value == workers
    assert run.practice("prefetch_factor").value == ahead
    assert run.practice("prefetch_factor").note.startswith(where)


def test_releases_before_3_have_facts_of_their_own(tmp_path: Path) -> None:
    launch = "swift sft --model_id_or_path Qwen/Qwen2.5-VL-7B-Instruct --dataset mine.jsonl"
    old = items(tmp_path / "old", f"{launch} --sft_type full", pin("2.0.5.post1"))
    for name in ("liger-kernel", "multimodal-freezing", "torch-compile", "persistent-workers"):
        assert old[name].current.en == "this release does not have the parameter", name
    later = run_of(tmp_path / "later", launch, pin("2.6.1"))
    assert later.practice("freeze_vision").value is False
    assert later.practice("tuning").note == "ms-swift 2.6.1: sft_type lora"


def test_evidence_names_the_release_at_hand(tmp_path: Path) -> None:
    old = run_of(tmp_path / "old", f"NPROC_PER_NODE=2 {SFT} --deepspeed zero3", pin("3.7.3"))
    assert old.practice("gradient_checkpointing").note.startswith("ms-swift 3.7.3")
    assert "ms-swift 3.7.3 swift/llm/ds_config/zero3.json" in old.practice("zero_stage").note
    new = run_of(tmp_path / "new", f"NPROC_PER_NODE=2 {SFT} --deepspeed zero3", pin("4.6.0"))
    assert "ms-swift 4.6.0 swift/config/zero3.json" in new.practice("zero_stage").note
    assert (old.value("overlap_comm"), new.value("overlap_comm")) == (False, False)
    first = run_of(tmp_path / "first", f"NPROC_PER_NODE=2 {SFT} --deepspeed zero3", pin("3.1.1"))
    assert first.value("overlap_comm") is True


def test_megatron_has_lora_since_3_7(tmp_path: Path) -> None:
    for version, status in (("3.4.1", Status.NOT_APPLICABLE), ("3.8.3", Status.ENABLED)):
        found = items(tmp_path / version, f"{MEGATRON} --train_type lora", pin(version))
        assert found["lora"].status is status, version


def test_megatrons_older_name_of_flash_attention(tmp_path: Path) -> None:
    launch = f"{MEGATRON} --use_flash_attn true"
    old = run_of(tmp_path / "old", launch, pin("3.4.1"))
    assert old.value("attention") == "flash_attention_2"
    silent = run_of(tmp_path / "silent", MEGATRON, pin("3.2.2"))
    assert silent.value("attention") == "auto"


@pytest.mark.parametrize(
    ("workers", "status", "said"),
    [
        ("--num_infer_workers 4", Status.RECOMMENDED, "vLLM keeps its memory"),
        ("", Status.NOT_APPLICABLE, "vLLM has GPUs of its own"),
        ("--vllm_server_host 10.0.0.1", Status.NOT_APPLICABLE, "vLLM is a server of its own"),
    ],
)
def test_before_vllm_mode_the_number_of_engines_says_where_they_are(
    tmp_path: Path, workers: str, status: Status, said: str
) -> None:
    launch = f"CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4 {GRPO} --use_vllm true {workers}"
    found = items(tmp_path / "old", launch, pin("3.4.1"))["sleep-level"]
    assert (found.status, found.current.en[: len(said)]) == (status, said)
    new = items(tmp_path / "new", f"NPROC_PER_NODE=4 {GRPO} --use_vllm true", pin("4.6.0"))
    assert new["sleep-level"].status is Status.RECOMMENDED


def test_names_that_the_source_in_the_project_does_not_take_are_told(tmp_path: Path) -> None:
    def told(root: Path, flags: str) -> dict[str, str]:
        verdicts = judge(run_of(root, f"swift sft {flags}", FORK), all_checks())
        return {
            finding.message.split(":")[0]: verdict.check.code
            for verdict in verdicts
            for finding in verdict.judgement.findings
            if verdict.check.code == "GPU007"
        }

    old = "--model_id_or_path a/Qwen3-8B --sft_type lora --batch_size 2 --dataset a.jsonl"
    assert told(tmp_path / "old", old) == {
        "write --model": "GPU007",
        "write --tuner_type": "GPU007",
        "write --per_device_train_batch_size": "GPU007",
    }
    assert told(tmp_path / "new", "--model a/Qwen3-8B --tuner_type lora --dataset a.jsonl") == {}


def test_lora_llm_trains_the_towers(tmp_path: Path) -> None:
    launch = SFT.replace("Qwen2.5-7B", "Qwen2.5-VL-7B")
    whole = items(tmp_path / "whole", f"{launch} --tuner_type lora_llm", pin("4.6.0"))
    assert whole["multimodal-freezing"].status is Status.DISABLED
    assert whole["layered-learning-rate"].status is Status.DISABLED
    lora = items(tmp_path / "lora", f"{launch} --tuner_type lora", pin("4.6.0"))
    assert lora["multimodal-freezing"].status is Status.ENABLED
    assert lora["layered-learning-rate"].status is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("model", "more", "freezing", "tower"),
    [
        ("Qwen/Qwen2-Audio-7B-Instruct", "", Status.ENABLED, Status.ENABLED),
        ("a/mine", "--freeze_vit false", Status.DISABLED, Status.ENABLED),
        ("a/mine", "", Status.UNKNOWN, Status.UNKNOWN),
        ("Qwen/Qwen3-8B", "--freeze_vit false", Status.NOT_APPLICABLE, Status.NOT_APPLICABLE),
        ("Qwen/Qwen3-TTS-12Hz-1.7B-Base", "", Status.NOT_APPLICABLE, Status.NOT_APPLICABLE),
    ],
)
def test_whether_a_model_is_multimodal_is_one_answer(
    tmp_path: Path, model: str, more: str, freezing: Status, tower: Status
) -> None:
    launch = f"swift sft --model {model} --dataset mine.jsonl {more}"
    found = items(tmp_path, launch, pin("4.6.0"))
    assert found["multimodal-freezing"].status is freezing
    assert found["vit-gradient-checkpointing"].status is tower


def test_megatron_has_no_lisa_to_choose(tmp_path: Path) -> None:
    said = items(tmp_path / "m", f"{MEGATRON} --tuner_type full", pin("4.6.0"))["lora"].current.en
    assert said == "all weights are trained (LoRA is optional)"
    said = items(tmp_path / "s", f"{SFT} --tuner_type full", pin("4.6.0"))["lora"].current.en
    assert "LISA" in said


def test_a_release_that_only_the_readme_names(tmp_path: Path) -> None:
    readme = {"README.md": "```\npip install ms-swift==3.7.2\n```\n"}
    run = run_of(tmp_path / "named", SFT, readme)
    assert run.practice("gradient_checkpointing").note.startswith("ms-swift 3.7")
    assert items(tmp_path / "a", SFT, readme)["dft-loss"].status is Status.NOT_APPLICABLE
    asked = {**readme, "requirements.txt": "ms-swift>=4.0\n"}
    assert (
        run_of(tmp_path / "asked", SFT, asked).practice("tuning").note.startswith("ms-swift 4.6.0")
    )


def test_ms_swift_2_is_advised_in_its_own_names(tmp_path: Path) -> None:
    launch = "swift sft --model_id_or_path Qwen/Qwen2-7B-Instruct --dataset mine.jsonl"
    run = run_of(tmp_path / "old", launch, pin("2.6.1"))
    (answer,) = (v.judgement for v in judge(run, all_checks()) if v.check.code == "GPU301")
    assert answer.change is None or "use_flash_attn" in answer.change.text
    old = items(tmp_path / "b", launch, pin("2.6.1"))
    assert old["loss-scale"].status is Status.DISABLED
    assert items(tmp_path / "c", SFT, pin("4.6.0"))["loss-scale"].status is Status.ENABLED
    asked = items(tmp_path / "d", f"{launch} --use_flash_attn true", pin("2.6.1"))
    assert asked["flash-attention-2"].status is Status.ENABLED
    assert asked["flash-attention-3"].status is Status.NOT_APPLICABLE
    assert asked["lora-plus"].status is Status.DISABLED


def test_a_ray_job_shares_gpus_by_colocate_groups_alone(tmp_path: Path) -> None:
    body = (
        "rlhf_type: grpo\nmodel: Qwen/Qwen3-8B\ndataset: a.jsonl\nuse_vllm: true\n"
        "micro_batch_size: 1\ntrain:\n  gpus: 4\nrollout:\n  gpus: 4\n"
    )
    launch = "megatron rlhf --use_ray true --config job.yaml"
    apart = items(tmp_path / "apart", launch, {**pin("4.6.0"), "job.yaml": body})
    assert apart["sleep-level"].current.en == "vLLM has GPUs of its own"
    shared = {"job.yaml": f"{body}colocate_groups: [[train, rollout]]\n", **pin("4.6.0")}
    assert items(tmp_path / "shared", launch, shared)["sleep-level"].status is Status.ENABLED


def test_what_is_no_megatron_run_has_no_fp8(tmp_path: Path) -> None:
    for name, launch, status in (
        ("sft", "swift sft --model a/mine --dataset a.jsonl", Status.NOT_APPLICABLE),
        ("megatron", "megatron sft --model a/mine --dataset a.jsonl", Status.DISABLED),
    ):
        assert items(tmp_path / name, launch, pin("4.6.0"))["fp8-training"].status is status


def test_a_file_of_arguments_is_named_by_its_command(tmp_path: Path) -> None:
    body = (
        '{"model": "Qwen/Qwen3-8B", "tuner_type": "lora", "dataset": ["a.jsonl"], "lora_rank": 8}'
    )
    for name, expected in (("sft", "sft"), ("mine", None)):
        found = [
            run
            for run in runs_of(tmp_path / name, {f"{name}.json": body})
            if run.framework == "swift"
        ]
        assert [run.value("algorithm") for run in found] == [expected] * len(found)


def test_a_command_in_the_names_of_ms_swift_2_is_judged_by_it(tmp_path: Path) -> None:
    launch = "swift sft --model_type qwen2-7b --sft_type full --dataset a.jsonl --batch_size 2"
    found = items(tmp_path / "old", launch, {})
    assert found["persistent-workers"].current.en == "this release does not have the parameter"
    assert run_of(tmp_path / "b", launch, {}).value("micro_batch_size") == 2
    for name, files, flags in (
        ("new", {}, "--model a/Qwen3-8B --dataset a.jsonl"),
        ("told", pin("4.6.0"), "--model_id_or_path a/Qwen3-8B --dataset a.jsonl"),
    ):
        run = run_of(tmp_path / name, f"swift sft {flags}", files)
        assert run.value("persistent_workers") is True, name


def test_a_default_that_is_put_later_names_the_line_that_puts_it(tmp_path: Path) -> None:
    shown = items(tmp_path, SFT, FORK)["prefetch-factor"].current.en
    declared = "swift/trainers/arguments.py:8: dataloader_prefetch_factor None becomes 7"
    assert shown.endswith(f"{declared} (swift/trainers/arguments.py:12)")
    none = f"{SFT} --dataloader_num_workers 0"
    assert "becomes" not in items(tmp_path / "b", none, FORK)["prefetch-factor"].current.en


SERVED = f"{GRPO} --use_vllm true --vllm_mode server --vllm_server_host 127.0.0.1"
ROLLOUT = "swift rollout --model Qwen/Qwen2.5-7B-Instruct"


@pytest.mark.parametrize(
    ("server", "status", "said"),
    [
        (ROLLOUT, Status.ENABLED, "leaves vllm_enable_prefix_caching to vLLM"),
        (f"{ROLLOUT} --vllm_enable_prefix_caching false", Status.DISABLED, "switches prefix"),
        ("", Status.NOT_APPLICABLE, "a server of its own"),
    ],
)
def test_the_rollout_server_of_the_script_says_whether_it_caches_prefixes(
    tmp_path: Path, server: str, status: Status, said: str
) -> None:
    runs = runs_of(tmp_path, {"a.sh": f"{server}\n{SERVED}\n"})
    (run,) = (run for run in runs if "rlhf" in (run.command.text if run.command else ""))
    scored = score(audit_named("swift"), judge(run, all_checks()))
    (item,) = (i for c in scored.categories for i in c.items if i.id == "prefix-caching")
    assert item.status is status
    assert said in item.current.en


def test_one_process_is_one_gpu_only_where_something_says_so(tmp_path: Path) -> None:
    assert items(tmp_path, SFT, {})["device-map"].status is Status.UNKNOWN
    assert items(tmp_path, SFT, {})["zero3"].current.en == "the run starts one process"
    seen = items(tmp_path / "b", f"CUDA_VISIBLE_DEVICES=0 {SFT}", {})["device-map"]
    assert (seen.status, seen.current.en) == (Status.NOT_APPLICABLE, "the run uses one GPU")


def test_rays_training_gpus_are_its_data_parallel_world(tmp_path: Path) -> None:
    config = (
        "rlhf_type: grpo\nmodel: Qwen/Qwen2.5-7B-Instruct\nmicro_batch_size: 2\n"
        "global_batch_size: 16\ntrain:\n  gpus: 4\n  tensor_model_parallel_size: 2\n"
        "rollout:\n  gpus: 4\n"
    )
    run = run_of(tmp_path, "megatron rlhf --use_ray true --config r.yaml", {"r.yaml": config})
    assert run.practice("gradient_accumulation_steps").value == 4
