"""Which framework a project uses: every rule, and the traps around each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flake8_gpu_training.facts import Command, Location, Word
from flake8_gpu_training.frameworks.detection import Detection, detect
from flake8_gpu_training.project import Project

LOOP = """\
import torch

def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch)
        loss.backward()
        optimizer.step()
"""


def command(text: str) -> tuple[Command, ...]:
    place = Location("<launch-command>")
    return (Command(tuple(Word(word, place, word) for word in text.split()), place),)


def found(root: Path, files: dict[str, str], launch: str = "") -> Detection:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return detect(Project.open(root), command(launch) if launch else ())


def rules(detection: Detection, framework: str) -> set[str]:
    return {e.rule for e in detection.evidence if e.framework == framework and e.strong}


CASES: list[tuple[str, str, dict[str, str]]] = [
    ("llamafactory", "import", {"run.py": "from llamafactory.train.tuner import run_exp\n"}),
    ("llamafactory", "cli", {"scripts/a/train.sh": "llamafactory-cli train sft.yaml\n"}),
    ("llamafactory", "cli", {"train.sh": "torchrun -m llamafactory.cli train sft.yaml\n"}),
    ("llamafactory", "parameter", {"sft.yaml": "finetuning_type: lora\n"}),
    ("llamafactory", "parameter", {"sft.yaml": "neat_packing: true\n"}),
    ("llamafactory", "parameter", {"sft.yaml": "stage: sft\nflash_attn: fa2\n"}),
    ("llamafactory", "parameter", {"sft.json": '{"use_unsloth": true, "lora_target": "all"}'}),
    (
        "llamafactory",
        "structure",
        {"data/dataset_info.json": '{"reviews": {"file_name": "reviews.json"}}'},
    ),
    ("llamafactory", "checkout", {"src/llamafactory/cli.py": "def main():\n    pass\n"}),
    ("swift", "import", {"run.py": "from swift.llm import sft_main, TrainArguments\n"}),
    ("swift", "import", {"run.py": "from swift import Swift, LoRAConfig\n"}),
    ("swift", "import", {"run.py": "from swift.trainers import Seq2SeqTrainer\n"}),
    ("swift", "cli", {"a.sh": "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen3-8B\n"}),
    ("swift", "cli", {"tools/b.sh": "swift rlhf --rlhf_type grpo\n"}),
    ("swift", "cli", {"a.sh": "megatron sft --load mcore\n"}),
    ("swift", "cli", {"a.sh": "torchrun --nproc_per_node 8 swift/cli/sft.py --model x\n"}),
    ("swift", "parameter", {"sft.yaml": "tuner_type: lora\n"}),
    ("swift", "parameter", {"sft.yaml": "train_type: full\nattn_impl: flash_attn\n"}),
    ("swift", "parameter", {"sft.yaml": "tuner_backend: unsloth\n"}),
    ("swift", "parameter", {"sft.yaml": "attn_impl: flash_attn\npadding_free: true\n"}),
    ("swift", "checkpoint", {"out/args.json": '{"swift_version": "4.1.0", "model": "q"}'}),
    ("videox_fun", "import", {"run.py": "from videox_fun.pipeline import WanFunPipeline\n"}),
    ("videox_fun", "path", {"t.sh": "accelerate launch scripts/wan2.1_fun/train.py --low_vram\n"}),
    ("videox_fun", "structure", {"config/wan2.1/wan_civitai.yaml": "format: civitai\n"}),
    (
        "videox_fun",
        "checkout",
        {"videox_fun/models/a.py": "", "videox_fun/data/b.py": "", "videox_fun/pipeline/c.py": ""},
    ),
    (
        "videox_fun",
        "git",
        {".git/config": '[remote "origin"]\n\turl = https://github.com/me/VideoX-Fun.git\n'},
    ),
    ("flow_factory", "import", {"run.py": "from flow_factory.hparams import Arguments\n"}),
    ("flow_factory", "cli", {"t.sh": "ff-train grpo.yaml\n"}),
    ("flow_factory", "parameter", {"a/b.yaml": "train:\n  trainer_type: nft\n"}),
    ("flow_factory", "parameter", {"b.yaml": "scheduler:\n  dynamics_type: Flow-SDE\n"}),
    ("flow_factory", "parameter", {"b.yaml": "train:\n  offload_samples_to_cpu: true\n"}),
    ("flow_factory", "checkout", {"src/flow_factory/cli.py": ""}),
    (
        "flow_factory",
        "git",
        {".git/config": '[remote "up"]\n\turl = git@github.com:me/Flow-Factory.git\n'},
    ),
    ("hf_trainer", "import", {"train.py": "from transformers import Trainer, TrainingArguments\n"}),
    (
        "hf_trainer",
        "call",
        {"train.py": "import transformers\na = transformers.TrainingArguments('out')\n"},
    ),
    ("hf_trainer", "import", {"train.py": "from trl import SFTConfig, SFTTrainer\n"}),
    ("hf_trainer", "cli", {"t.sh": "trl sft --model_name_or_path Qwen/Qwen3-0.6B\n"}),
    ("vllm", "import", {"serve.py": "from vllm import LLM\nllm = LLM('m')\n"}),
    ("vllm", "cli", {"serve.sh": "vllm serve Qwen/Qwen3-8B\n"}),
    ("vllm", "cli", {"s.sh": "python -m vllm.entrypoints.openai.api_server --model m\n"}),
    ("sglang", "import", {"serve.py": "import sglang\ne = sglang.Engine(model_path='m')\n"}),
    ("sglang", "cli", {"serve.sh": "python3 -m sglang.launch_server --model-path m\n"}),
    ("sglang", "cli", {"serve.sh": "python -m sglang_router.launch_server --dp-size 8\n"}),
]


@pytest.mark.parametrize(("framework", "rule", "files"), CASES)
def test_every_rule_recognises_its_framework(
    tmp_path: Path, framework: str, rule: str, files: dict[str, str]
) -> None:
    detection = found(tmp_path, files)
    assert detection.training == framework
    assert rule in rules(detection, framework)


@pytest.mark.parametrize(
    ("requirement", "framework"),
    [
        ("llamafactory==0.9.3", "llamafactory"),
        ("ms-swift>=4", "swift"),
        ("videox-fun", "videox_fun"),
        ("flow_factory", "flow_factory"),
        ("vllm==0.9.2", "vllm"),
        ("sgl-kernel", "sglang"),
    ],
)
def test_a_dependency_decides_where_nothing_else_is_known(
    tmp_path: Path, requirement: str, framework: str
) -> None:
    assert found(tmp_path, {"requirements.txt": requirement + "\n"}).training == framework


def test_a_dependency_that_nothing_uses_is_no_evidence(tmp_path: Path) -> None:
    detection = found(tmp_path, {"requirements.txt": "ms-swift\nvllm\nsglang\n", "train.py": LOOP})
    assert detection.training == "generic"
    assert not detection.vllm
    assert not detection.sglang
    assert all(not evidence.strong for evidence in detection.evidence)


TRAPS: list[dict[str, str]] = [
    {"a.py": "import swift.common.utils\nfrom swift.common import swob\nimport torch\n"},
    {"a.py": "from swiftclient import Connection\nimport torch\n"},
    {"a.py": "import swift\nimport torch\n"},
    {"a.sh": "swift upload container file\nswift build -c release\n"},
    {"a.py": "# from swift.llm import sft_main\nimport torch\n"},
    {"a.py": '"""Alternatives: from vllm import LLM, llamafactory-cli train."""\nimport torch\n'},
    {"a.sh": "# swift sft --model x\necho llamafactory-cli train\necho 'vllm serve m'\n"},
    {"README.md": "Run `llamafactory-cli train` or `swift sft`.\n"},
    {"docs/example.sh": "swift sft --model x\n", "docs/a.py": "from vllm import LLM\n"},
    {"third_party/llm/train.sh": "llamafactory-cli train a.yaml\n"},
    {"tests/test_vllm.py": "from vllm import LLM\n"},
    {"config.yaml": "attn_impl: torch\n"},
    {"ds.json": '{"fp16": {"enabled": true, "loss_scale": 0}}'},
    {"config.yaml": "trainer_type: default\nloss_scale: 128\n"},
    {"data/dataset_info.json": '{"features": {"text": {"dtype": "string"}}, "splits": {}}'},
    {"model.json": '{"gpu_memory_utilization": 0.9}'},
    {"a.py": "from transformers import AutoModel\nimport torch\n"},
    {"a.yaml": "use_vllm: false\ninfer_backend: huggingface\n"},
]


@pytest.mark.parametrize("files", TRAPS)
def test_lookalikes_comments_strings_and_others_code_prove_nothing(
    tmp_path: Path, files: dict[str, str]
) -> None:
    detection = found(tmp_path, {**files, "loop.py": LOOP})
    assert (detection.training, detection.vllm, detection.sglang) == ("generic", False, False)


def test_precedence_of_the_frameworks(tmp_path: Path) -> None:
    files = {
        "a.sh": "swift sft --model m\nff-train a.yaml\nllamafactory-cli train b.yaml\n",
        "b.py": "from transformers import Trainer\n",
    }
    assert found(tmp_path, files).training == "llamafactory"


def test_swift_comes_before_the_trainer_it_builds_on(tmp_path: Path) -> None:
    files = {"a.sh": "swift sft --model m\n", "b.py": "from transformers import Trainer\n"}
    assert found(tmp_path, files).training == "swift"


def test_one_stray_configuration_does_not_outweigh_many_scripts(tmp_path: Path) -> None:
    files: dict[str, str] = {f"s/{n}.sh": "swift sft --model m\n" for n in range(12)}
    files["old.yaml"] = "finetuning_type: lora\n"
    assert found(tmp_path, files).training == "swift"


@pytest.mark.parametrize(
    ("launch", "framework"),
    [
        ("swift sft --model m", "swift"),
        ("megatron pt --load m", "swift"),
        ("llamafactory-cli train a.yaml", "llamafactory"),
        ("ff-train a.yaml", "flow_factory"),
        ("accelerate launch scripts/wan2.2_fun/train_lora.py", "videox_fun"),
        ("trl grpo --config a.yaml", "hf_trainer"),
        ("vllm serve m", "vllm"),
    ],
)
def test_the_launch_command_decides_first(tmp_path: Path, launch: str, framework: str) -> None:
    checkout = {"src/llamafactory/cli.py": "", "a.sh": "llamafactory-cli train a.yaml\n"}
    assert found(tmp_path, checkout, launch).training == framework


GRPO = """\
from trl import GRPOConfig, GRPOTrainer, TrlParser

(args,) = TrlParser((GRPOConfig,)).parse_args_and_config()
GRPOTrainer(model="Qwen/Qwen3-0.6B", args=args, train_dataset=data, reward_funcs=f).train()
"""


@pytest.mark.parametrize(
    "launch",
    [
        "accelerate launch a.py --use_vllm true",
        "accelerate launch a.py --use_vllm --vllm_mode server --vllm_gpu_memory_utilization 0.3",
        "python a.py --output_dir o",
    ],
)
def test_flags_of_an_engine_do_not_make_it_the_trainer(tmp_path: Path, launch: str) -> None:
    detection = found(tmp_path, {"a.py": GRPO}, launch)
    assert detection.training == "hf_trainer"
    assert detection.vllm == ("vllm" in launch)


def test_a_checkout_is_its_own_framework(tmp_path: Path) -> None:
    files = {
        "swift/cli/sft.py": "from swift.pipelines import sft_main\n",
        "swift/infer_engine/vllm_engine.py": "from vllm import AsyncLLMEngine\n",
        "examples/convert.sh": "llamafactory-cli export a.yaml\n",
    }
    detection = found(tmp_path, files)
    assert (detection.training, detection.vllm) == ("swift", True)


@pytest.mark.parametrize(
    "files",
    [
        {"a.py": "from trl import GRPOConfig\nc = GRPOConfig(use_vllm=True)\n"},
        {"a.sh": "swift rlhf --rlhf_type grpo --use_vllm true --vllm_mode colocate\n"},
        {"a.yaml": "model_name_or_path: m\ninfer_backend: vllm\n"},
        {"a.sh": "python -m verl.trainer.main_ppo actor_rollout_ref.rollout.name=vllm\n"},
        {"a.sh": "python gen.py --gpu-memory-utilization 0.9 --max-num-seqs 64\n"},
        {"a.sh": "trl vllm-serve --model m\n"},
    ],
)
def test_vllm_inside_a_training_job_is_flagged(tmp_path: Path, files: dict[str, str]) -> None:
    detection = found(tmp_path, {**files, "loop.py": LOOP})
    assert detection.vllm
    assert not detection.sglang
    assert detection.training != "vllm"


@pytest.mark.parametrize(
    "files",
    [
        {"a.yaml": "infer_backend: sglang\n"},
        {"a.yaml": "sglang_mem_fraction: 0.8\n"},
        {"a.yaml": "rollout:\n  name: sglang\n"},
        {"a.sh": "python x.py --mem-fraction-static 0.8 --schedule-policy lpm\n"},
    ],
)
def test_sglang_inside_a_training_job_is_flagged(tmp_path: Path, files: dict[str, str]) -> None:
    detection = found(tmp_path, {**files, "loop.py": LOOP})
    assert detection.sglang
    assert not detection.vllm


def test_engines_alone_take_the_training_slot_in_order(tmp_path: Path) -> None:
    both = {"a.py": "import vllm\nimport sglang\n"}
    detection = found(tmp_path, both)
    assert (detection.training, detection.vllm, detection.sglang) == ("vllm", True, True)


def test_commands_that_a_program_starts_count(tmp_path: Path) -> None:
    files = {
        "a.py": "import subprocess, torch\nsubprocess.run(['llamafactory-cli', 'train', 'a'])\n"
    }
    assert found(tmp_path, files).training == "llamafactory"


def test_an_empty_project_is_generic(tmp_path: Path) -> None:
    assert found(tmp_path, {}) == Detection()


def test_evidence_has_its_place_and_is_bounded(tmp_path: Path) -> None:
    files: dict[str, Any] = {f"s/{n:02}.sh": "set -e\nswift sft --model m\n" for n in range(40)}
    detection = found(tmp_path, files)
    assert 1 <= len(detection.evidence) <= 12
    assert detection.evidence[0].location == Location("s/00.sh", 2, 1)
    assert detection.evidence[0].text == "swift sft"


def test_imports_tell_a_framework_without_reading_the_file_for_more(tmp_path: Path) -> None:
    root = tmp_path / "project"
    files = {"a.py": "x = 1\nif x:\n    from vllm import LLM, SamplingParams\n", "b.py": LOOP}
    for name, text in files.items():
        root.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    project = Project.open(root)
    evidence = [item for item in detect(project).evidence if item.framework == "vllm"]
    assert [str(item.location) for item in evidence] == ["a.py:3", "a.py:3"]
    assert [item.text for item in evidence] == ["vllm.LLM", "vllm.SamplingParams"]
