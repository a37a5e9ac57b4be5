"""The Chinese reports are Chinese: no English sentence stands in a table or beside code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from report_builder.cli import main
from report_builder.notes import chinese_note
from report_builder.wording import default_text

FIXTURES = Path(__file__).parent.parent / "fixtures"
PROJECTS = (
    "flow_factory_grpo",
    "hf_trainer_sft",
    "lightning_vision",
    "llamafactory_sft",
    "plain_ddp_vision",
    "swift_lora_sft",
    "trl_grpo",
    "videox_fun_lora",
    "vllm_serve",
    "well_configured",
)
MISTAKES = {
    "deepspeed": {
        "ds.json": '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4,'
        ' "zero_optimization": {"stage": 2}}\n',
        "train.py": "from transformers import Trainer, TrainingArguments\n"
        "args = TrainingArguments(\n"
        '    "out", deepspeed="ds.json", gradient_accumulation_steps=8, optim="adamw_fuse"\n'
        ")\n"
        "Trainer(model, args, train_dataset=data).train()\n",
        "run.sh": "torchrun --nproc_per_node 8 train.py --logging_step 5\n",
    },
    "swift": {
        "requirements.txt": "ms-swift==4.6.0\n",
        "run.sh": "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataset d.jsonl \\\n"
        "  --attn_implementation sdpa --logging_step 5 --learning_rate 1e-4 \\\n"
        "  --learning_rate 2e-4 --optim adamw_fuse\n",
    },
}
# Three English words in a row, one of which no code and no name has.
_WORDS = re.compile(r"[A-Za-z][\w'.-]*(?:[,:;]? [A-Za-z][\w'.-]*){2,}")
_SAYING = re.compile(
    r"\b(?:the|are|has|was|but|of|to|its?|that|unless|cannot|makes|nothing|no|instead|loads)\b"
)


def sentences(text: str) -> list[str]:
    """English sentences in the table cells and code spans of a Markdown document."""
    found, fenced = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        if fenced:
            continue
        pieces = re.findall(r"`[^`]+`", line)
        if line.startswith("|"):
            pieces += re.sub(r"`[^`]+`", "`", line).split("|")
        runs = (words for piece in pieces for words in _WORDS.findall(piece))
        found += [words for words in runs if _SAYING.search(words)]
    return found


def rendered(project: Path, out: Path) -> str:
    main([str(project), "--lang", "zh", "--output-dir", str(out)])
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(out.glob("*.md")))


@pytest.mark.parametrize("name", PROJECTS)
def test_a_chinese_report_has_no_english_sentence(name: str, tmp_path: Path) -> None:
    text = rendered(FIXTURES / name, tmp_path / "out")
    assert "达成度" in text
    assert sentences(text) == []


def mistaken(name: str, tmp_path: Path) -> str:
    project = tmp_path / "project"
    project.mkdir()
    for path, text in MISTAKES[name].items():
        (project / path).write_text(text, encoding="utf-8")
    return rendered(project, tmp_path / "out")


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_in_chinese(name: str, tmp_path: Path) -> None:
    assert sentences(mistaken(name, tmp_path)) == []


def test_a_mistake_is_told_with_key_numbers_and_consequence(tmp_path: Path) -> None:
    lines = mistaken("deepspeed", tmp_path).splitlines()
    told = next(line for line in lines if line.startswith("| `ds.json") and "GPU013" in line)
    assert "gradient_accumulation_steps=4" in told
    assert "gradient_accumulation_steps=8" in told
    assert "训练器拒绝启动" in told
    assert "auto" in told


def test_advice_is_told_with_what_to_write(tmp_path: Path) -> None:
    lines = rendered(FIXTURES / "swift_lora_sft", tmp_path / "out").splitlines()
    told = next(line for line in lines if "| GPU301 |" in line)
    assert "`--attn_impl flash_attn`" in told


@pytest.mark.parametrize(
    ("note", "zh"),
    [
        ("no PEFT in the code that is run", "代码中没有 PEFT"),
        ("no DeepSpeed in the code or its launch", "代码中没有 DeepSpeed"),
        ("no sequence parallel in the code", "代码中没有序列并行"),
        ("torchrun: one nnodes unless set", "torchrun：未设置时为 1 个节点"),
        (
            "DataLoader at a/train.py:9: prefetch_factor 2 unless set",
            "a/train.py:9 的 DataLoader 未设 prefetch_factor，默认 2",
        ),
        ("train.seed 42 unless set", "未设置时 train.seed=42"),
        (
            "ms-swift: one process unless NPROC_PER_NODE is set",
            "ms-swift：未设 NPROC_PER_NODE 时为 1 个进程",
        ),
        ("8 processes, nothing shards the model", "8 个进程，模型未被切分"),
        ("1,200 samples in data/train.jsonl", "data/train.jsonl 共 1,200 条样本"),
        (
            "accelerate 1.15 commands/launch.py: fsdp_sharding_strategy FULL_SHARD unless set",
            "accelerate 1.15 commands/launch.py：未设置时 fsdp_sharding_strategy=FULL_SHARD",
        ),
    ],
)
def test_a_note_is_said_in_chinese(note: str, zh: str) -> None:
    assert chinese_note(note) == zh


@pytest.mark.parametrize("text", ["gradient_checkpointing=True", "torch.compile", "a: 1"])
def test_code_is_no_note(text: str) -> None:
    assert chinese_note(text) is None


def test_a_librarys_default_keeps_its_reason() -> None:
    text = "llamafactory 0.9.5 model_utils/checkpointing.py: not reentrant with FSDP2"
    assert default_text(text, "zh") == (
        "FSDP2 下为非重入式（框架默认，llamafactory 0.9.5：checkpointing.py）"
    )
