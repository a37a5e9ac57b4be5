"""What ``--model_type`` and ``--ckpt_dir`` of ms-swift tell about a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import runs_of

from flake8_gpu_training.runs.model import Model

RUN = "/home/me/output/open2/v0-20250508/checkpoint-309"


def model(root: Path, flags: str, program: str = "swift sft") -> Model:
    (run,) = runs_of(root, {"train.sh": f"{program} --dataset a.jsonl {flags}\n"})
    return run.model


@pytest.mark.parametrize(
    ("kind", "name", "mixture"),
    [
        ("LLM", "qwen2_5", False),
        ("LLM", "qwen3_moe", True),
        ("LLM", "gpt_oss", True),
        ("LLM", "deepseek_v3", True),
        ("MLLM", "qwen2_5_vl", False),
        ("MLLM", "minicpmv4_5", False),
        ("MLLM", "qwen3_vl_moe", True),
        ("embedding", "qwen3_emb", False),
        ("encoder", "modern_bert", False),
        ("unknown", "my_own", False),
    ],
)
def test_a_type_tells_the_kind_where_the_path_does_not(
    kind: str, name: str, mixture: bool, tmp_path: Path
) -> None:
    found = model(tmp_path, f"--model {RUN} --model_type {name}")
    assert (found.kind, found.is_moe, found.name) == (kind, mixture, RUN)
    assert found.parameters is None


@pytest.mark.parametrize(
    ("name", "millions"), [("got_ocr2", 580), ("qwq", 32_764), ("qwen3_omni_moe", 30_000)]
)
def test_a_type_whose_checkpoints_are_of_one_size_tells_it(
    name: str, millions: int, tmp_path: Path
) -> None:
    found = model(tmp_path, f"--model {RUN} --model_type {name}")
    assert round((found.parameters or 0) / 1e6) == millions
    assert found.name == RUN
    assert found.source == f"model_type {name}"


def test_the_path_tells_more_than_a_type(tmp_path: Path) -> None:
    found = model(tmp_path, "--model /data/models/Qwen2.5-7B-Instruct --model_type qwen2_5")
    assert (found.kind, round((found.parameters or 0) / 1e9, 1)) == ("LLM", 7.6)
    assert found.known_as == "/data/models/Qwen2.5-7B-Instruct"


def test_a_type_makes_a_text_model_s_path_multimodal(tmp_path: Path) -> None:
    found = model(tmp_path, "--model /data/Qwen2.5-7B-with-eyes --model_type llava_next_qwen")
    assert found.kind == "MLLM"
    assert found.parameters is not None


def test_a_type_of_2_names_one_checkpoint(tmp_path: Path) -> None:
    found = model(tmp_path, "--model_id_or_path /data/base --model_type qwen1half-7b-chat")
    assert (found.kind, found.parameters, found.name) == ("LLM", 7_000_000_000, "/data/base")


def test_full_tuning_goes_on_from_ckpt_dir(tmp_path: Path) -> None:
    flags = f"--rlhf_type grpo --model_type got_ocr2 --ckpt_dir {RUN}"
    found = model(tmp_path, f"{flags} --train_type full", "swift rlhf")
    assert (found.kind, found.name) == ("MLLM", RUN)
    # Beside LoRA it may be the folder of an adapter.
    assert model(tmp_path, flags, "swift rlhf").name is None


def test_the_type_of_another_framework_s_model_is_not_ms_swift_s(tmp_path: Path) -> None:
    script = (
        "from transformers import AutoModelForCausalLM, Trainer\n"
        "model = AutoModelForCausalLM.from_pretrained('/data/base')\n"
        "Trainer(model).train()\n"
    )
    launch = "python train.py --model_type qwen2_vl\n"
    (run,) = runs_of(tmp_path, {"train.py": script, "train.sh": launch})
    assert run.model.kind == "unknown"


PROGRAM = """\
from swift import {arguments}, {main}

{main}({arguments}(model="Qwen/Qwen2.5-7B-Instruct", dataset=["a.jsonl"]))
"""


@pytest.mark.parametrize(
    ("arguments", "main", "algorithm"),
    [
        ("SftArguments", "sft_main", "sft"),
        ("PretrainArguments", "pt_main", "pt"),
        ("RLHFArguments", "rlhf_main", "dpo"),
        ("TrainArguments", "sft_main", "sft"),
        ("TrainArguments", "pt_main", "pt"),
        ("MegatronSftArguments", "megatron_sft_main", "sft"),
    ],
)
@pytest.mark.parametrize("launch", ["", "torchrun --nproc_per_node 2 train.py\n"])
def test_a_program_s_arguments_say_what_it_trains(
    arguments: str, main: str, algorithm: str, launch: str, tmp_path: Path
) -> None:
    files = {"train.py": PROGRAM.format(arguments=arguments, main=main)}
    runs = runs_of(tmp_path, {**files, "train.sh": launch} if launch else files)
    assert [run.value("algorithm") for run in runs if run.framework == "swift"] == [algorithm]
