"""Rules of frameworks/refusals/llamafactory: what is refused, and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from checks_support import findings, runs_of

from flake8_gpu_training.frameworks.refusals import refusals_of

NEWEST = "0.9.5"
ZERO3 = '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"}'
ZERO2 = ZERO3.replace("3}", "2}")
BASE = {
    "model_name_or_path": "Qwen/Qwen2.5-7B-Instruct",
    "stage": "sft",
    "do_train": "true",
    "finetuning_type": "lora",
    "template": "qwen",
    "dataset": "alpaca_en_demo",
    "output_dir": "out",
}
INFER = {key: BASE[key] for key in ("model_name_or_path", "template")}


def settings(base: Mapping[str, str], text: str) -> dict[str, str]:
    """``base`` with ``key: value`` parts of ``text``; a value of ``-`` takes the key out."""
    found = dict(base)
    for part in filter(None, map(str.strip, text.split(";"))):
        key, _, value = part.partition(":")
        if value.strip() == "-":
            found.pop(key)
        else:
            found[key] = value.strip()
    return found


def told(
    root: Path,
    text: str,
    version: str = NEWEST,
    command: str = "llamafactory-cli train x.yaml",
    base: Mapping[str, str] = BASE,
    **pins: str,
) -> list[str]:
    """What GPU024 says of a YAML file and the command that reads it."""
    lines = "".join(f"{key}: {value}\n" for key, value in settings(base, text).items())
    required = "".join(f"{k}=={v}\n" for k, v in {"llamafactory": version, **pins}.items())
    runs = runs_of(
        root,
        {
            "x.yaml": lines,
            "z3.json": ZERO3,
            "z2.json": ZERO2,
            "requirements.txt": required,
            "train.sh": f"{command}\n",
        },
    )
    assert len(runs) == 1, runs
    return [finding.message for finding in findings(runs, "GPU024")]


DISTRIBUTED = "FORCE_TORCHRUN=1 NPROC_PER_NODE=4 llamafactory-cli train x.yaml"
SINGLE = "CUDA_VISIBLE_DEVICES=0 llamafactory-cli train x.yaml"

REFUSED = (
    # hparams/finetuning_args.py
    ("finetuning_type: lorra", "finetuning_type: oft", "give finetuning_type one of lora, oft"),
    ("ref_model_quantization_bit: 3", "ref_model_quantization_bit: 4", "write ref_model_quan"),
    ("reward_model_quantization_bit: 2", "reward_model_quantization_bit: 8", "write reward_mod"),
    ("stage: ppo", "stage: ppo; reward_model: rm", "name the reward_model"),
    (
        "stage: ppo; reward_model: rm; finetuning_type: full",
        "stage: ppo; reward_model: rm; finetuning_type: full; reward_model_type: full",
        "write reward_model_type=full or api, or finetuning_type=lora",
    ),
    (
        "stage: ppo; reward_model: rm; reward_model_type: oft",
        "stage: ppo; reward_model: rm; reward_model_type: oft; finetuning_type: oft",
        "write reward_model_type=full or api, or finetuning_type=oft",
    ),
    (
        "stage: dpo; pref_loss: hinge; dpo_label_smoothing: 0.1",
        "stage: dpo; pref_loss: sigmoid; dpo_label_smoothing: 0.1",
        "drop dpo_label_smoothing or write pref_loss=sigmoid",
    ),
    (
        "use_llama_pro: true; finetuning_type: full",
        "use_llama_pro: true; finetuning_type: freeze",
        "write finetuning_type=freeze or lora",
    ),
    ("use_galore: true", "use_galore: true; finetuning_type: full", "write finetuning_type=full"),
    (
        "finetuning_type: full; use_galore: true; use_badam: true",
        "finetuning_type: full; use_badam: true",
        "keep one of use_galore, use_badam",
    ),
    ("stage: kto; pissa_init: true", "stage: rm; pissa_init: true", "drop pissa_init: stage=kto"),
    (
        "stage: dpo; pissa_init: true",
        "stage: dpo; pref_loss: simpo; pissa_init: true",
        "drop pissa_init: stage=dpo",
    ),
    (
        "finetuning_type: full; loraplus_lr_ratio: 16.0",
        "loraplus_lr_ratio: 16.0",
        "drop loraplus_lr_ratio or write finetuning_type=lora",
    ),
    ("finetuning_type: oft; use_rslora: true", "use_rslora: true", "drop use_rslora"),
    ("finetuning_type: full; use_dora: true", "use_dora: true", "drop use_dora"),
    ("finetuning_type: full; pissa_init: true", "pissa_init: true", "drop pissa_init"),
    # hparams/model_args.py and _verify_model_args
    ("model_name_or_path: -", "", "give model_name_or_path"),
    ("image_max_pixels: 100", "image_max_pixels: 2048", "give image_max_pixels at least"),
    ("video_min_pixels: 70000", "video_min_pixels: 60000", "give video_max_pixels at least"),
    (
        "export_quantization_bit: 4",
        "export_quantization_bit: 4; export_quantization_dataset: c4.json",
        "name an export_quantization_dataset",
    ),
    (
        "adapter_name_or_path: saves/a; finetuning_type: full",
        "adapter_name_or_path: saves/a",
        "write finetuning_type=lora or drop adapter_name_or_path",
    ),
    (
        "quantization_bit: 4; finetuning_type: full",
        "quantization_bit: 4; finetuning_type: oft",
        "write finetuning_type=lora or drop quantization_bit",
    ),
    ("quantization_bit: 4; pissa_init: true", "quantization_bit: 4", "run scripts/pissa_init.py"),
    ("quantization_bit: 4; resize_vocab: true", "resize_vocab: true", "drop resize_vocab"),
    (
        "quantization_bit: 4; adapter_name_or_path: a; create_new_adapter: true",
        "quantization_bit: 4; create_new_adapter: true",
        "drop create_new_adapter",
    ),
    (
        "quantization_bit: 4; adapter_name_or_path: 'a, b'",
        "quantization_bit: 4; adapter_name_or_path: a",
        "merge the adapters first and name one: a quantized",
    ),
    (
        "use_unsloth: true; adapter_name_or_path: 'a,b'",
        "use_unsloth: true; adapter_name_or_path: a",
        "merge the adapters first and name one: ZeRO-3, Unsloth",
    ),
    ("use_kt: true; finetuning_type: oft", "use_kt: true", "write finetuning_type=lora"),
    ("use_unsloth: true; finetuning_type: oft", "use_unsloth: true", "drop use_unsloth"),
    # hparams/data_args.py and data/
    (
        "dataset: -; do_train: false; val_size: 0.1",
        "dataset: -; do_train: false",
        "name a dataset or drop val_size",
    ),
    ("eval_dataset: e; val_size: 0.1", "eval_dataset: e", "drop val_size or eval_dataset"),
    (
        "dataset: 'a,b'; interleave_probs: '0.5,0.5'",
        "dataset: 'a,b'; interleave_probs: '0.5,0.5'; mix_strategy: interleave_under",
        "write mix_strategy=interleave_under",
    ),
    (
        "dataset: 'a,b'; interleave_probs: '0.5,0.3,0.2'; mix_strategy: interleave_over",
        "dataset: 'a, b'; interleave_probs: '0.5, 0.5'; mix_strategy: interleave_over",
        "give interleave_probs one number for each dataset: there are 3 for 2",
    ),
    (
        "dataset: 'a,b'; eval_dataset: e; interleave_probs: '0.5,0.5'; "
        "mix_strategy: interleave_over",
        "dataset: 'a,b'; eval_dataset: 'e,f'; interleave_probs: '0.5,0.5'; "
        "mix_strategy: interleave_over",
        "give interleave_probs one number for each eval_dataset",
    ),
    (
        "streaming: true; max_steps: 9; val_size: 0.1",
        "streaming: true; max_steps: 9; val_size: 100",
        "give val_size a number of samples",
    ),
    (
        "streaming: true; max_steps: 9; max_samples: 50",
        "max_steps: 9; max_samples: 50",
        "drop max_samples",
    ),
    (
        "mask_history: true; train_on_prompt: true",
        "mask_history: true",
        "drop mask_history or train_on_prompt",
    ),
    ("dataset: 'a,b'; mix_strategy: mixed", "mix_strategy: mixed", "give mix_strategy one of"),
    ("template: qwn", "template: qwen3", "write template=qwen: "),
    ("template: Qwen", "template: of_my_own", "write template=qwen: "),
    ("template: aquila", "template: alpaca", "give template a name of this release"),
    (
        "template: chatglm3; train_on_prompt: true",
        "template: qwen; train_on_prompt: true",
        "drop train_on_prompt",
    ),
    # get_train_args
    ("stage: grpo", "stage: kto", "give stage one of pt, sft"),
    (
        "stage: dpo; predict_with_generate: true; val_size: 0.1",
        "stage: sft; predict_with_generate: true; val_size: 0.1",
        "drop predict_with_generate or write stage=sft",
    ),
    ("stage: pt; neat_packing: true", "neat_packing: true", "drop neat_packing"),
    ("stage: rm; train_on_prompt: true", "train_on_prompt: true", "drop train_on_prompt or"),
    ("stage: kto; mask_history: true", "stage: sft; mask_history: true", "drop mask_history or"),
    (
        "do_train: false; do_predict: true; eval_dataset: e",
        "do_train: false; do_predict: true; eval_dataset: e; predict_with_generate: true",
        "write predict_with_generate=true",
    ),
    (
        "stage: rm; load_best_model_at_end: true; eval_strategy: steps; val_size: 0.1",
        "stage: sft; load_best_model_at_end: true; eval_strategy: steps; val_size: 0.1",
        "drop load_best_model_at_end",
    ),
    (
        "stage: ppo; reward_model: rm; do_train: false",
        "stage: ppo; reward_model: rm",
        "write do_train=true",
    ),
    (
        "stage: ppo; reward_model: rm; shift_attn: true",
        "shift_attn: true",
        "drop shift_attn",
    ),
    (
        "stage: ppo; reward_model: rm; use_unsloth: true",
        "stage: ppo; reward_model: rm; use_unsloth: true; reward_model_type: full",
        "drop use_unsloth or write reward_model_type=full",
    ),
    (
        "stage: ppo; reward_model: rm; use_kt: true",
        "stage: ppo; reward_model: rm; use_kt: true; reward_model_type: full",
        "drop use_kt or write reward_model_type=full",
    ),
    (
        "stage: ppo; reward_model: rm; report_to: swanlab",
        "stage: ppo; reward_model: rm; report_to: none",
        "report to wandb, tensorboard or trackio",
    ),
    ("streaming: true", "streaming: true; max_steps: 100", "give max_steps"),
    ("dataset: -", "dataset: -; do_train: false", "name a dataset: do_train"),
    ("eval_strategy: steps", "eval_strategy: steps; val_size: 0.05", "name an eval_dataset"),
    ("do_eval: true", "do_eval: true; eval_dataset: e", "name an eval_dataset"),
    (
        "predict_with_generate: true",
        "predict_with_generate: true; val_size: 100",
        "name an eval_dataset, give val_size, or drop predict_with_generate",
    ),
    (
        "predict_with_generate: true; compute_accuracy: true; val_size: 0.1",
        "compute_accuracy: true; val_size: 0.1",
        "drop compute_accuracy or",
    ),
    (
        "report_to: trackio; project: ''",
        "report_to: trackio; project: mine",
        "give project a name",
    ),
    ("seed: -1", "seed: 0", "give seed 0 to 4294967295"),
    (
        "use_kt: true; compute_accuracy: true",
        "compute_accuracy: true",
        "drop compute_accuracy: use_kt",
    ),
    (
        "use_kt: true; predict_with_generate: true; val_size: 0.1",
        "use_kt: true; val_size: 0.1",
        "drop predict_with_generate: use_kt",
    ),
    (
        "stage: ppo; reward_model: rm; val_size: 0.1",
        "stage: rm; val_size: 0.1",
        "drop eval_dataset and val_size",
    ),
    (
        "stage: ppo; reward_model: rm; resume_from_checkpoint: out/checkpoint-9",
        "stage: ppo; reward_model: rm; resume_from_checkpoint: null",
        "drop resume_from_checkpoint",
    ),
    (
        "finetuning_type: freeze; use_llama_pro: true; freeze_trainable_layers: 8",
        "finetuning_type: freeze; use_llama_pro: true; freeze_trainable_layers: 7",
        "give freeze_trainable_layers a divisor of 28",
    ),
    (
        "finetuning_type: full; use_galore: true; optim: lion_32bit",
        "finetuning_type: full; use_galore: true; optim: adafactor",
        "write optim=adamw_torch: use_galore",
    ),
    (
        "finetuning_type: full; use_apollo: true; optim: adafactor",
        "finetuning_type: full; use_apollo: true; optim: adamw_torch",
        "write optim=adamw_torch: use_apollo",
    ),
    (
        "finetuning_type: full; use_galore: true; galore_layerwise: true; "
        "gradient_accumulation_steps: 4",
        "finetuning_type: full; use_galore: true; galore_layerwise: true",
        "write gradient_accumulation_steps=1: galore_layerwise",
    ),
    (
        "finetuning_type: full; use_apollo: true; apollo_layerwise: true; "
        "gradient_accumulation_steps: 4",
        "finetuning_type: full; use_apollo: true; gradient_accumulation_steps: 4",
        "write gradient_accumulation_steps=1: apollo_layerwise",
    ),
    (
        "finetuning_type: full; use_badam: true; badam_mode: ratio; badam_update_ratio: 0.0",
        "finetuning_type: full; use_badam: true; badam_mode: ratio",
        "give badam_update_ratio more than 0",
    ),
    (
        "stage: ppo; reward_model_type: api; reward_model: localhost:8000",
        "stage: ppo; reward_model_type: api; reward_model: http://localhost:8000",
        "write the whole address",
    ),
    ("infer_backend: vllm", "infer_backend: huggingface", "drop infer_backend"),
    # quantization
    ("quantization_bit: 3", "quantization_bit: 3; quantization_method: hqq", "write quantizatio"),
    (
        "quantization_bit: 4; quantization_method: eetq",
        "quantization_bit: 8; quantization_method: eetq",
        "write quantization_bit=8: eetq does not know 4 bits",
    ),
    (
        "export_quantization_bit: 5; export_quantization_dataset: c4.json",
        "export_quantization_bit: 2; export_quantization_dataset: c4.json",
        "write export_quantization_bit=2, 3, 4 or 8",
    ),
    (
        "quantization_bit: 4; quantization_device_map: auto",
        "quantization_bit: 4",
        "drop quantization_device_map",
    ),
    ("fp8: true; quantization_bit: 8", "fp8: true", "drop fp8 or quantization_bit"),
)


@pytest.mark.parametrize(("refused", "taken", "instruction"), REFUSED, ids=lambda text: text[:40])
def test_what_a_training_refuses(
    tmp_path: Path, refused: str, taken: str, instruction: str
) -> None:
    messages = told(tmp_path / "a", refused)
    assert [m for m in messages if m.startswith(instruction)], messages
    assert len(messages) == 1, messages
    assert told(tmp_path / "b", taken) == []


STARTED = (
    (SINGLE, "deepspeed: z3.json", DISTRIBUTED, "set FORCE_TORCHRUN=1"),
    (SINGLE, "deepspeed: z3.json", f"FORCE_TORCHRUN=1 {SINGLE}", "set FORCE_TORCHRUN=1"),
    (
        DISTRIBUTED,
        "finetuning_type: full; use_galore: true; galore_layerwise: true",
        SINGLE,
        "start one process or drop galore_layerwise",
    ),
    (
        DISTRIBUTED,
        "finetuning_type: full; use_apollo: true; apollo_layerwise: true",
        SINGLE,
        "start one process or drop apollo_layerwise",
    ),
    (
        DISTRIBUTED,
        "finetuning_type: full; use_badam: true; badam_mode: ratio",
        SINGLE,
        "write badam_mode=layer",
    ),
    (
        DISTRIBUTED,
        "finetuning_type: full; use_badam: true",
        SINGLE,
        "give deepspeed a configuration of ZeRO stage 3",
    ),
)


@pytest.mark.parametrize(("refused", "text", "taken", "instruction"), STARTED)
def test_what_a_launch_does_not_go_with(
    tmp_path: Path, refused: str, text: str, taken: str, instruction: str
) -> None:
    (message,) = told(tmp_path / "a", text, command=refused)
    assert message.startswith(instruction)
    assert told(tmp_path / "b", text, command=taken) == []
    # How many GPUs there are is not known.
    assert told(tmp_path / "c", text) == []


PARTITIONED = (
    ("predict_with_generate: true; val_size: 0.1", "drop predict_with_generate or take ZeRO"),
    ("pissa_init: true", "drop pissa_init or take ZeRO"),
    ("finetuning_type: full; pure_bf16: true", "drop pure_bf16 or take ZeRO"),
    ("use_unsloth: true", "drop use_unsloth or take ZeRO"),
    ("use_kt: true", "drop use_kt or take ZeRO"),
    ("quantization_bit: 8", "take 4 bits of bitsandbytes or ZeRO stage 2"),
    ("quantization_bit: 4; quantization_method: hqq", "take 4 bits of bitsandbytes or ZeRO"),
    ("adapter_name_or_path: 'a,b'", "merge the adapters first"),
)


@pytest.mark.parametrize(("text", "instruction"), PARTITIONED)
def test_what_zero3_does_not_go_with(tmp_path: Path, text: str, instruction: str) -> None:
    (message,) = told(tmp_path / "a", f"{text}; deepspeed: z3.json", command=DISTRIBUTED)
    assert message.startswith(instruction)
    assert told(tmp_path / "b", f"{text}; deepspeed: z2.json", command=DISTRIBUTED) == []
    assert told(tmp_path / "c", text, command=DISTRIBUTED) == []
    assert told(tmp_path / "d", f"{text}; deepspeed: other.json", command=DISTRIBUTED) == []


def test_a_lean_optimizer_beside_deepspeed(tmp_path: Path) -> None:
    text = "finetuning_type: full; use_galore: true; deepspeed: z2.json"
    (message,) = told(tmp_path / "a", text, command=DISTRIBUTED)
    assert message.startswith("drop deepspeed: GaLore and APOLLO")
    assert told(tmp_path / "b", text.replace("galore", "muon"), command=DISTRIBUTED) == []


SERVED = (
    ("infer_backend: vllm; stage: rm", "infer_backend: vllm", "write infer_backend=huggingface"),
    ("infer_backend: vllm; quantization_bit: 4", "quantization_bit: 4", "drop quantization_bit"),
    (
        "infer_backend: vllm; rope_scaling: linear",
        "infer_backend: sglang; rope_scaling: linear",
        "drop rope_scaling",
    ),
    (
        "infer_backend: vllm; adapter_name_or_path: 'a,b'",
        "infer_backend: vllm; adapter_name_or_path: a",
        "merge the adapters first",
    ),
    (
        "adapter_name_or_path: a; finetuning_type: full",
        "adapter_name_or_path: a",
        "write finetuning_type=lora",
    ),
)


@pytest.mark.parametrize(("refused", "taken", "instruction"), SERVED)
@pytest.mark.parametrize("command", ["chat", "api"])
def test_what_an_inference_refuses(
    tmp_path: Path, command: str, refused: str, taken: str, instruction: str
) -> None:
    line = f"llamafactory-cli {command} x.yaml"
    (message,) = told(tmp_path / "a", refused, command=line, base=INFER)
    assert message.startswith(instruction)
    assert told(tmp_path / "b", taken, command=line, base=INFER) == []


def test_what_an_export_refuses(tmp_path: Path) -> None:
    line = "llamafactory-cli export x.yaml"
    (message,) = told(tmp_path / "a", "adapter_name_or_path: a", command=line, base=INFER)
    assert message.startswith("give export_dir")
    quantized = "export_dir: o; export_quantization_bit: 4; export_quantization_dataset: c.json"
    text = f"adapter_name_or_path: a; {quantized}"
    (message,) = told(tmp_path / "b", text, command=line, base=INFER)
    assert message.startswith("export the merged model first")
    assert told(tmp_path / "c", quantized, command=line, base=INFER) == []


def test_the_command_of_evaluation(tmp_path: Path) -> None:
    line, text = "llamafactory-cli eval x.yaml", "task: mmlu_test; n_shot: 5; lang: en"
    (message,) = told(tmp_path / "a", text, command=line, base=INFER)
    assert message.startswith("evaluate by another tool")
    assert told(tmp_path / "b", text, "0.9.3", command=line, base=INFER) == []


OLDER = (
    ("0.9.1", "template: -", "0.9.2", "name a template"),
    ("0.9.3", "predict_with_generate: true; val_size: 0.1", "0.9.4", "name an eval_dataset"),
    (
        "0.9.4",
        "stage: ppo; reward_model: rm; report_to: trackio",
        "0.9.5",
        "report to wandb or tensorboard",
    ),
    ("0.9.4", "split_special_tokens: true", "0.9.5", "write use_fast_tokenizer=false"),
    ("0.9.1", "train_mm_proj_only: true", "0.9.2", "write finetuning_type=full"),
    (
        "0.8.2",
        "pure_bf16: true; bf16: true",
        "0.8.3",
        "drop bf16 and fp16",
    ),
    ("0.8.1", "use_unsloth: true; use_dora: true", "0.8.3", "drop use_unsloth or use_dora"),
    ("0.8.3", "visual_inputs: true; packing: true", "0.9.0", "drop packing"),
    ("0.8.3", "visual_inputs: true; use_unsloth: true", "0.9.0", "drop use_unsloth"),
    ("0.8.2", "quantization_bit: 5", "", "write quantization_bit=4 or 8"),
    (
        "0.8.2",
        "do_train: true; predict_with_generate: true",
        "",
        "drop predict_with_generate: this release",
    ),
    ("0.8.0", "reserved_label_len: 4096", "0.8.3", "give reserved_label_len less"),
    ("0.7.1", "use_galore: true", "", "write finetuning_type=full"),
)


@pytest.mark.parametrize(("version", "text", "later", "instruction"), OLDER)
def test_what_older_releases_refuse(
    tmp_path: Path, version: str, text: str, later: str, instruction: str
) -> None:
    (message,) = told(tmp_path / "a", text, version)
    assert message.startswith(instruction)
    if later:
        assert told(tmp_path / "b", text, later) == []


def test_packing_and_the_transformers_beside_it(tmp_path: Path) -> None:
    text = "neat_packing: true"
    (message,) = told(tmp_path / "a", text, "0.9.4", transformers="4.55.4")
    assert message.startswith("install transformers<4.53")
    assert told(tmp_path / "b", text, "0.9.4", transformers="4.52.4") == []
    assert told(tmp_path / "c", text, "0.9.4") == []
    assert told(tmp_path / "d", text, "0.9.5", transformers="4.57.1") == []


def test_older_badam_and_deepspeed(tmp_path: Path) -> None:
    layer = "finetuning_type: full; use_badam: true"
    (message,) = told(tmp_path / "a", layer, "0.8.2", command=DISTRIBUTED)
    assert message.startswith("write badam_mode=ratio")
    with_config = f"{layer}; badam_mode: ratio; deepspeed: z2.json"
    (message,) = told(tmp_path / "b", with_config, "0.8.2", command=DISTRIBUTED)
    assert message.startswith("drop deepspeed: in this release")


def test_a_reward_server_of_images(tmp_path: Path) -> None:
    text, line = "stage: rm; visual_inputs: true", "llamafactory-cli api x.yaml"
    (message,) = told(tmp_path / "a", text, "0.8.3", command=line, base=INFER)
    assert message.startswith("drop visual_inputs")
    assert told(tmp_path / "b", "visual_inputs: true", "0.8.3", command=line, base=INFER) == []


def flags(root: Path, command: str) -> list[str]:
    """What GPU024 says of a command that gives all by flags."""
    files = {"train.sh": f"{command}\n", "requirements.txt": f"llamafactory=={NEWEST}\n"}
    return [finding.message for finding in findings(runs_of(root, files), "GPU024")]


BY_FLAGS = (
    "--stage sft --do_train --model_name_or_path Qwen/Qwen2.5-7B-Instruct "
    "--finetuning_type full --dataset alpaca_en_demo --template qwen --output_dir out"
)


def test_flags_are_values_after_parsing(tmp_path: Path) -> None:
    command = f"llamafactory-cli train {BY_FLAGS} --streaming true --max_samples 100"
    messages = flags(tmp_path / "a", command)
    assert sorted(m.partition(" and")[0] for m in messages) == [
        "drop max_samples",
        "give max_steps: a stream has no length that tells the last step,",
    ]
    assert flags(tmp_path / "b", command.replace("true --max", "false --max")) == []
    assert flags(tmp_path / "c", f"llamafactory-cli train {BY_FLAGS} --use_dora False") == []


def test_a_template_of_any_release_that_may_be_installed(tmp_path: Path) -> None:
    lines = "".join(f"{key}: {value}\n" for key, value in BASE.items() if key != "template")
    files = {"x.yaml": f"{lines}template: baichuan2\n"}
    assert findings(runs_of(tmp_path / "a", files), "GPU024") == []
    files["requirements.txt"] = "llamafactory==0.9.5\n"
    (finding,) = findings(runs_of(tmp_path / "b", files), "GPU024")
    assert "it is known from 0.7.1 to 0.9.4" in finding.message


def test_several_gpus_and_one_process(tmp_path: Path) -> None:
    command = f"CUDA_VISIBLE_DEVICES=0,1 python src/train.py {BY_FLAGS}"
    (message,) = flags(tmp_path / "a", command)
    assert message.startswith("start it by torchrun --nproc_per_node=2")
    assert flags(tmp_path / "b", command.replace("=0,1", "=0")) == []
    assert flags(tmp_path / "c", command.replace("python", "torchrun --nproc_per_node 2")) == []


def test_words_of_flags_are_told_by_another_check(tmp_path: Path) -> None:
    command = f"llamafactory-cli train {BY_FLAGS.replace('full', 'fulll')}"
    assert flags(tmp_path, command) == []


def test_what_the_command_overrides_counts(tmp_path: Path) -> None:
    line = "llamafactory-cli train x.yaml max_steps=100 finetuning_type=lora"
    text = "streaming: true; use_dora: true; finetuning_type: full"
    assert told(tmp_path, text, command=line) == []


@pytest.mark.parametrize(
    "command", ["USE_MCA=1 llamafactory-cli train x.yaml", "ALLOW_EXTRA_ARGS=1 lmf train x.yaml"]
)
def test_other_arguments_are_not_judged(tmp_path: Path, command: str) -> None:
    assert told(tmp_path, "streaming: true; use_dora: true", command=command) == []


def test_what_is_not_known_is_not_told(tmp_path: Path) -> None:
    command = f"llamafactory-cli train {BY_FLAGS} --streaming true --max_steps $STEPS"
    assert flags(tmp_path / "a", command) == []
    assert flags(tmp_path / "b", f"llamafactory-cli train {BY_FLAGS} --streaming true $MORE") == []
    ray = "USE_RAY=1 CUDA_VISIBLE_DEVICES=0 llamafactory-cli train x.yaml"
    assert told(tmp_path / "c", "deepspeed: z3.json", command=ray) == []


def test_a_word_that_is_no_switch_counts_as_on_in_a_file(tmp_path: Path) -> None:
    text = "stage: ppo; reward_model: rm; do_train: maybe"
    assert told(tmp_path, text) == []


def test_a_file_without_a_command_may_be_for_inference(tmp_path: Path) -> None:
    files = {"x.yaml": "model_name_or_path: Q/q\ntemplate: qwen\ninfer_backend: vllm\n"}
    assert findings(runs_of(tmp_path, files), "GPU024") == []


def test_the_best_model_by_default_strategies(tmp_path: Path) -> None:
    text = "load_best_model_at_end: true; eval_strategy: epoch; val_size: 0.1"
    lines = "".join(f"{key}: {value}\n" for key, value in settings(BASE, text).items())
    (finding,) = findings(runs_of(tmp_path / "a", {"x.yaml": lines}), "GPU015")
    assert "refuses 'epoch' with 'steps'" in finding.message
    files = {"x.yaml": f"{lines}save_strategy: epoch\n"}
    assert findings(runs_of(tmp_path / "b", files), "GPU015") == []


def test_a_name_that_one_part_had_and_another_will_have(tmp_path: Path) -> None:
    """Transformers had it, and LLaMA-Factory took it over in 0.9.4."""
    lines = "".join(f"{key}: {value}\n" for key, value in BASE.items())
    files = {
        "x.yaml": f"{lines}overwrite_output_dir: true\n",
        "requirements.txt": "llamafactory==0.8.3\n",
    }
    (finding,) = findings(runs_of(tmp_path, files), "GPU007")
    assert finding.message.startswith("drop overwrite_output_dir")
    assert "or pin transformers<5:" in finding.message


def test_every_rule_has_a_source_and_a_span_of_releases() -> None:
    for rule in refusals_of("llamafactory"):
        assert rule.source.startswith("llamafactory/"), rule.name
        assert rule.mend.zh, rule.name
        assert rule.why.zh, rule.name
