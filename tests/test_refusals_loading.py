"""What is refused where a model is loaded and where an adapter is put into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import findings, runs_of

HEAD = "from transformers import AutoModelForCausalLM, BitsAndBytesConfig\nimport torch\n"
LOAD = HEAD + 'm = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", {})\n'
END = """
from transformers import Trainer, TrainingArguments
t = Trainer(model=m, args=TrainingArguments(output_dir="o", {}), train_dataset=d)
t.train()
"""


def messages(root: Path, text: str, *pins: str) -> list[str]:
    files = {"train.py": text, "requirements.txt": "\n".join(pins) + "\n"}
    return [one.message for one in findings(runs_of(root, files), "GPU024")]


@pytest.mark.parametrize(
    ("version", "given", "expected"),
    [
        ("4.38.2", 'torch_dtype="bf16"', "write bfloat16 or auto for torch_dtype"),
        ("4.57.1", 'dtype="fp16"', "write float16 or auto for dtype"),
        ("5.24.0", 'dtype="torch.bfloat16"', "write bfloat16 or auto for dtype"),
        (
            "4.57.1",
            'attn_implementation="flash_attn"',
            "give attn_implementation flash_attention_2",
        ),
        ("5.24.0", 'attn_implementation="flash_attention2"', "implementation flash_attention_2"),
        ("5.24.0", "load_in_4bit=True", "pass quantization_config=BitsAndBytesConfig(load_in_4bit"),
        (
            "4.57.1",
            "load_in_8bit=True, quantization_config=BitsAndBytesConfig(load_in_4bit=True)",
            "drop load_in_8bit",
        ),
        (
            "4.57.1",
            'quantization_config=BitsAndBytesConfig(True, bnb_4bit_compute_dtype="bf16")',
            "give bnb_4bit_compute_dtype a torch type",
        ),
    ],
)
def test_a_model_is_not_loaded_so(tmp_path: Path, version: str, given: str, expected: str) -> None:
    told = messages(tmp_path, LOAD.format(given) + END.format(""), f"transformers=={version}")
    assert len([one for one in told if expected in one]) == 1


@pytest.mark.parametrize(
    ("version", "given"),
    [
        ("4.57.1", 'torch_dtype="auto"'),
        ("4.57.1", 'torch_dtype="bfloat16"'),
        ("4.57.1", "torch_dtype=torch.bfloat16"),
        ("4.57.1", "torch_dtype=kind"),
        ("4.57.1", 'attn_implementation="kernels-community/flash-attn"'),
        ("5.24.0", 'attn_implementation="paged|flash_attention_2"'),
        ("4.57.1", 'attn_implementation="flash_attn", trust_remote_code=True'),
        ("4.57.1", "attn_implementation=None"),
        ("5.24.0", "load_in_4bit=False"),
        ("5.24.0", "load_in_4bit=True, trust_remote_code=True"),
        ("4.57.1", "load_in_4bit=True, quantization_config=None"),
        ("4.57.1", "load_in_4bit=False, quantization_config=BitsAndBytesConfig(load_in_4bit=True)"),
    ],
)
def test_a_model_is_loaded_so(tmp_path: Path, version: str, given: str) -> None:
    text = LOAD.format(given) + "import peft\n" + END.format("")
    assert messages(tmp_path, text, f"transformers=={version}") == []


def test_attention_of_ones_own_is_registered(tmp_path: Path) -> None:
    text = "from transformers import AttentionInterface\nAttentionInterface.register('mine', f)\n"
    load = LOAD.format('attn_implementation="mine"')
    assert messages(tmp_path, text + load + END.format(""), "transformers==4.57.1") == []


@pytest.mark.parametrize("version", ["4.38.2", "4.57.1", "5.24.0"])
@pytest.mark.parametrize(
    "load",
    [
        LOAD.format("quantization_config=BitsAndBytesConfig(load_in_4bit=True)"),
        HEAD
        + "c = BitsAndBytesConfig(load_in_8bit=True)\n"
        + 'm = AutoModelForCausalLM.from_pretrained("a/b", quantization_config=c)\n',
    ],
)
def test_quantized_weights_are_not_trained(tmp_path: Path, version: str, load: str) -> None:
    told = messages(tmp_path, load + END.format(""), f"transformers=={version}")
    assert any("put LoRA into the model" in one for one in told)


@pytest.mark.parametrize(
    "load",
    [
        LOAD.format("quantization_config=BitsAndBytesConfig()"),
        LOAD.format("quantization_config=own"),
        LOAD.format("quantization_config=BitsAndBytesConfig(load_in_4bit=True)")
        + "from peft import LoraConfig, get_peft_model\nm = get_peft_model(m, LoraConfig())\n",
        LOAD.format("quantization_config=BitsAndBytesConfig(load_in_4bit=True)")
        + "m.add_adapter(config)\n",
    ],
)
def test_what_may_be_trained_is_not_refused(tmp_path: Path, load: str) -> None:
    assert messages(tmp_path, load + END.format(""), "transformers==4.57.1") == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('report_to="wandbb"', "give report_to wandb:"),
        ('report_to=["wandbb"]', "give report_to wandb:"),
        ('report_to="wandb,tensorboard"', "give report_to [wandb, tensorboard]:"),
        ('report_to="None"', "give report_to none:"),
    ],
)
def test_trackers_have_names(tmp_path: Path, given: str, expected: str) -> None:
    text = LOAD.format('torch_dtype="auto"') + END.format(given)
    told = messages(tmp_path, text, "transformers==4.57.1")
    assert [expected in one for one in told] == [True]


@pytest.mark.parametrize("given", ['"wandb"', '["wandb", "tensorboard"]', '"none"', "[]", "name"])
def test_known_trackers_are_taken(tmp_path: Path, given: str) -> None:
    text = LOAD.format('torch_dtype="auto"') + END.format(f"report_to={given}")
    assert messages(tmp_path, text, "transformers==4.57.1") == []


def test_trackers_of_a_file_are_a_list(tmp_path: Path) -> None:
    recipe = (
        "stage: sft\ndo_train: true\nfinetuning_type: lora\ntemplate: qwen\ndataset: a\n"
        "model_name_or_path: Qwen/Qwen2.5-7B\noutput_dir: o\nreport_to: {}\n"
    )
    pins = "llamafactory==0.9.3\n"
    for given, count in (("wandb, tensorboard", 1), ("[wandb, tensorboard]", 0), ("none", 0)):
        root = tmp_path / str(len(given))
        runs = runs_of(root, {"a.yaml": recipe.format(given), "requirements.txt": pins})
        assert len(findings(runs, "GPU024")) == count


LORA = (
    LOAD.format('torch_dtype="auto"')
    + "from peft import LoraConfig, get_peft_model\n"
    + "m = get_peft_model(m, LoraConfig(<>, target_modules=['q_proj']))\n"
    + END.format("")
)


@pytest.mark.parametrize("version", ["0.9.0", "0.13.2", "0.17.1", "0.21.2"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("r=0", "give r 1 or more"),
        ('bias="lora"', "give bias one of none, all, lora_only"),
        ("lora_dropout=5", "give lora_dropout 0 to 1"),
        ('init_lora_weights="pisa"', "give init_lora_weights pissa"),
    ],
)
def test_no_adapter_is_made_so(tmp_path: Path, version: str, given: str, expected: str) -> None:
    told = messages(tmp_path, LORA.replace("<>", given), f"peft=={version}")
    assert [expected in one for one in told] == [True]


@pytest.mark.parametrize(
    "given",
    [
        "r=8",
        "r=0, rank_pattern={'q_proj': 8}",
        'bias="lora_only"',
        "lora_dropout=0.0",
        "lora_dropout=1",
        "init_lora_weights=False",
        'init_lora_weights="pissa_niter_4"',
        'init_lora_weights="Gaussian"',
        "r=rank",
    ],
)
def test_an_adapter_is_made_so(tmp_path: Path, given: str) -> None:
    assert messages(tmp_path, LORA.replace("<>", given), "peft==0.17.1") == []
