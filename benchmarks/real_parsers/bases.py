"""Valid configurations to start from: what each command needs, and what is often set beside."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from real_parsers.configurations import Configuration, Item, Raw

Group = Mapping[str, Any]
"""Settings that go together; a tuple as a value offers a choice."""


@dataclass(frozen=True)
class Base:
    """One command in one of its uses: ``needed`` is always written, some of ``pool`` as well."""

    framework: str
    command: str
    needed: Group
    pool: Sequence[Group]
    forms: Sequence[str]


def configuration(base: Base, bare: Collection[str], source: random.Random) -> Configuration:
    """A valid configuration; ``bare``: switches that need no value."""
    chosen: dict[str, Any] = dict(base.needed)
    groups = source.sample(list(base.pool), source.randint(2, min(12, len(base.pool))))
    for group in groups:
        if not chosen.keys() & group.keys():
            chosen.update(group)
    form = source.choice(base.forms)
    items = tuple(
        _item(name, value, form == "flags" and name in bare, source)
        for name, value in chosen.items()
    )
    return Configuration(base.framework, base.command, form, items)


def _item(name: str, value: Any, bare: bool, source: random.Random) -> Item:
    picked = source.choice(value) if isinstance(value, tuple) else value
    return Item(name, picked, is_bare=bare and picked is True and source.random() < 0.3)


_BF16: Group = {"bf16": True}
_TRAINER: Sequence[Group] = (
    {"learning_rate": (1e-4, 2e-5, Raw("1.0e-4"), Raw("5e-5"))},
    {"per_device_train_batch_size": (1, 2, 4, 8)},
    {"per_device_eval_batch_size": (1, 4)},
    {"gradient_accumulation_steps": (1, 4, 8)},
    {"num_train_epochs": (1, 3, 3.0)},
    {"max_steps": (100, 1000)},
    {"lr_scheduler_type": ("cosine", "linear", "constant_with_warmup", "polynomial")},
    {"weight_decay": (0.0, 0.01, 0.1)},
    {"max_grad_norm": (0.5, 1.0)},
    {"logging_steps": (1, 5, 10)},
    {"logging_strategy": ("steps", "epoch")},
    {"save_strategy": "steps", "save_steps": (200, 500)},
    {"save_strategy": ("epoch", "no")},
    {"save_total_limit": (1, 3)},
    {"save_only_model": (True, False)},
    _BF16,
    _BF16,
    {"tf32": True},
    {"gradient_checkpointing": (True, False)},
    {"dataloader_num_workers": 4, "dataloader_prefetch_factor": 2},
    {"dataloader_num_workers": 4, "dataloader_persistent_workers": True},
    {"dataloader_pin_memory": (True, False)},
    {"optim": ("adamw_torch", "adamw_torch_fused", "paged_adamw_8bit", "adafactor")},
    {"report_to": ("none", "tensorboard", "wandb")},
    {"seed": (42, 3407)},
    {"ddp_find_unused_parameters": False},
    {"adam_beta1": 0.9, "adam_beta2": (0.95, 0.999)},
    {"run_name": "first"},
    {"torch_compile": (True, False)},
    {"neftune_noise_alpha": 5},
    {"ddp_timeout": (1800, 180000000)},
)
_PLAIN: Sequence[Group] = ({"fp16": True, "bf16": False}, {"warmup_steps": (10, 100)})
"""What ms-swift has another default or another name beside."""
_EVALUATED: Sequence[Group] = (
    {"eval_strategy": "steps", "eval_steps": (100, 200)},
    {"eval_strategy": "epoch"},
    {
        "eval_strategy": "steps",
        "eval_steps": 100,
        "save_strategy": "steps",
        "save_steps": (100, 200),
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_loss",
    },
)

_TRANSFORMERS: Sequence[Base] = tuple(
    Base(
        "transformers",
        name,
        {"output_dir": "out"},
        (*_TRAINER, *_PLAIN, *_EVALUATED, *extra),
        ("flags", "flags", "keywords", "keywords", "json", "yaml"),
    )
    for name, extra in (
        ("TrainingArguments", ({"label_smoothing_factor": 0.1}, {"eval_on_start": True})),
        (
            "Seq2SeqTrainingArguments",
            ({"predict_with_generate": True}, {"generation_max_length": 128}),
        ),
    )
)

_TRL_MODEL: Sequence[Group] = (
    {"use_peft": True, "lora_r": (8, 16), "lora_alpha": 32},
    {"use_peft": True, "lora_target_modules": (["q_proj", "v_proj"], "all-linear")},
    {"use_peft": True, "load_in_4bit": True},
    {"dtype": ("bfloat16", "auto")},
    {"attn_implementation": ("flash_attention_2", "sdpa")},
    {"model_revision": "main"},
    {"dataset_config": "default"},
    {"dataset_train_split": "train"},
)
_TRL_COMMANDS: Mapping[str, tuple[Group, Sequence[Group]]] = {
    "sft": (
        {},
        (
            {"packing": True},
            {"max_length": (1024, 4096)},
            {"packing": True, "packing_strategy": ("bfd", "wrapped"), "eval_packing": False},
            {"assistant_only_loss": True},
            {"completion_only_loss": True},
            {"dataset_num_proc": 8},
            {"padding_free": True, "attn_implementation": "flash_attention_2"},
        ),
    ),
    "dpo": ({}, ({"beta": 0.1}, {"loss_type": ("sigmoid", "ipo")}, {"max_length": 2048})),
    "kto": ({}, ({"beta": 0.1}, {"desirable_weight": 1.0}, {"max_length": 1024})),
    "reward": ({}, ({"max_length": 1024}, {"center_rewards_coefficient": 0.01})),
    "grpo": (
        {"reward_funcs": ["accuracy_reward"], "per_device_train_batch_size": 8},
        (
            {"num_generations": (2, 4, 8)},
            {"max_completion_length": (512, 1024)},
            {"use_vllm": True, "vllm_mode": ("colocate", "server")},
            {"beta": (0.0, 0.04)},
            {"loss_type": ("grpo", "dapo", "dr_grpo")},
            {"temperature": (0.7, 1.0)},
            {"scale_rewards": ("group", "batch")},
        ),
    ),
    "rloo": (
        {"reward_funcs": ["accuracy_reward"], "per_device_train_batch_size": 4},
        (
            {"num_generations": (2, 4)},
            {"max_completion_length": 512},
            {"beta": 0.05},
        ),
    ),
}
_TRL: Sequence[Base] = tuple(
    Base(
        "trl",
        command,
        {
            "model_name_or_path": "Qwen/Qwen2.5-0.5B-Instruct",
            "dataset_name": "trl-lib/Capybara",
            "output_dir": "out",
            **needed,
        },
        (*_TRAINER, *_PLAIN, *_EVALUATED, *_TRL_MODEL, *pool),
        ("flags", "yaml"),
    )
    for command, (needed, pool) in _TRL_COMMANDS.items()
)

_FACTORY_POOL: Sequence[Group] = (
    {"template": ("qwen", "llama3")},
    {"cutoff_len": (2048, 4096)},
    {"max_samples": 1000},
    {"preprocessing_num_workers": 16},
    {"overwrite_cache": True},
    {"plot_loss": True},
    {"trust_remote_code": True},
    {"flash_attn": ("fa2", "sdpa", "auto")},
    {"enable_liger_kernel": True},
    {"val_size": 0.1, "eval_strategy": "steps", "eval_steps": 500},
    {"val_size": 0.1, "eval_strategy": "epoch", "per_device_eval_batch_size": 1},
    {"eval_dataset": "alpaca_en_demo", "eval_strategy": "steps", "eval_steps": 200},
    {"rope_scaling": ("linear", "yarn")},
    {"resume_from_checkpoint": None},
    {"use_swanlab": False},
)
_FACTORY_TYPES: Mapping[str, tuple[Group, Sequence[Group]]] = {
    "lora": (
        {"finetuning_type": "lora", "lora_target": ("all", "q_proj,v_proj")},
        (
            {"lora_rank": (8, 64)},
            {"lora_alpha": 16},
            {"lora_dropout": 0.05},
            {"use_dora": True},
            {"use_rslora": True},
            {"quantization_bit": (4, 8), "quantization_method": "bnb"},
            {"loraplus_lr_ratio": 16.0},
            {"additional_target": "embed_tokens,lm_head"},
        ),
    ),
    "full": (
        {"finetuning_type": "full"},
        ({"freeze_vision_tower": True}, {"use_badam": True}, {"pure_bf16": True}),
    ),
    "freeze": (
        {"finetuning_type": "freeze"},
        ({"freeze_trainable_layers": (2, 8)}, {"freeze_trainable_modules": "all"}),
    ),
}
_FACTORY_STAGES: Mapping[str, tuple[Group, Sequence[Group]]] = {
    "pt": ({"dataset": "c4_demo"}, ({"packing": True}, {"streaming": True, "max_steps": 1000})),
    "sft": (
        {"dataset": "identity,alpaca_en_demo"},
        (
            {"packing": True},
            {"neat_packing": True},
            {"train_on_prompt": True},
            {"mask_history": True},
            {"streaming": True, "max_steps": 1000},
            {"predict_with_generate": True, "val_size": 0.1},
        ),
    ),
    "rm": ({"dataset": "dpo_en_demo"}, ()),
    "ppo": (
        {"dataset": "identity", "reward_model": "saves/rm", "report_to": ("none", "wandb")},
        ({"ppo_buffer_size": 1}, {"ppo_epochs": 4}),
    ),
    "dpo": (
        {"dataset": "dpo_en_demo"},
        ({"pref_beta": 0.1}, {"pref_loss": ("sigmoid", "orpo", "simpo")}),
    ),
    "kto": ({"dataset": "kto_en_demo"}, ({"pref_beta": 0.1}, {"kto_chosen_weight": 1.0})),
}
_FACTORY: Sequence[Base] = tuple(
    Base(
        "llamafactory",
        "train",
        {
            "model_name_or_path": "Qwen/Qwen2.5-7B-Instruct",
            "stage": stage,
            "do_train": True,
            **kind,
            **needed,
            "output_dir": "saves/out",
        },
        (*_TRAINER, *_PLAIN, *_FACTORY_POOL, *kinds, *pool),
        ("yaml", "yaml", "yaml", "flags"),
    )
    for stage, (needed, pool) in _FACTORY_STAGES.items()
    for kind, kinds in _FACTORY_TYPES.values()
)

_SWIFT_POOL: Sequence[Group] = (
    {"torch_dtype": "bfloat16", "bf16": True},
    {"torch_dtype": "float16", "fp16": True, "bf16": False},
    {"warmup_steps": (10, 100)},
    {"max_length": (2048, 8192)},
    {"attn_impl": ("flash_attn", "sdpa")},
    {"split_dataset_ratio": (0, 0.01)},
    {"dataset_num_proc": 4},
    {"system": "You are a helpful assistant."},
    {"truncation_strategy": ("left", "delete")},
    {"lazy_tokenize": True},
    {"load_from_cache_file": True},
    {"eval_steps": 100, "save_steps": 100},
    {"model_author": "swift", "model_name": "robot"},
    {"use_hf": True},
    {"warmup_ratio": 0.05},
    {"freeze_vit": True},
)
_SWIFT_TYPES: Sequence[tuple[Group, Sequence[Group]]] = (
    (
        {"tuner_type": "lora"},
        (
            {"lora_rank": (8, 64), "lora_alpha": 32},
            {"target_modules": ("all-linear", ["q_proj", "k_proj"])},
            {"quant_method": "bnb", "quant_bits": (4, 8), "bnb_4bit_compute_dtype": "bfloat16"},
            {"use_rslora": True},
            {"lora_dropout": 0.05},
            {"init_weights": "pissa"},
        ),
    ),
    ({"tuner_type": "full"}, ({"freeze_parameters_ratio": 0.5}, {"freeze_llm": False})),
)
_SWIFT_COMMANDS: Sequence[tuple[str, Group, Sequence[Group]]] = (
    (
        "sft",
        {},
        (
            {"packing": True, "attn_impl": "flash_attn"},
            {"padding_free": True, "attn_impl": "flash_attn"},
            {"streaming": True, "max_steps": 1000},
            {"loss_scale": ("default", "react")},
        ),
    ),
    ("pt", {}, ({"packing": True, "attn_impl": "flash_attn"}, {"streaming": True, "max_steps": 9})),
    ("rlhf", {"rlhf_type": "dpo"}, ({"beta": 0.1}, {"rpo_alpha": 0.1}, {"loss_type": "sigmoid"})),
    ("rlhf", {"rlhf_type": ("orpo", "simpo", "cpo", "rm")}, ({"beta": 0.1},)),
    ("rlhf", {"rlhf_type": "kto"}, ({"desirable_weight": 1.0},)),
    (
        "rlhf",
        {
            "rlhf_type": "grpo",
            "reward_funcs": (["accuracy"], ["format", "accuracy"]),
            "num_generations": 4,
            "per_device_train_batch_size": (4, 8),
        },
        (
            {"use_vllm": True, "vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.5},
            {"max_completion_length": 1024},
            {"temperature": 1.0},
            {"beta": 0.001},
            {"loss_type": ("grpo", "dr_grpo")},
            {"log_completions": True},
        ),
    ),
    (
        "rlhf",
        {"rlhf_type": "gkd", "teacher_model": "Qwen/Qwen2.5-14B-Instruct"},
        ({"lmbda": 0.5}, {"seq_kd": False}),
    ),
)
_SWIFT: Sequence[Base] = tuple(
    Base(
        "ms-swift",
        command,
        {
            "model": "Qwen/Qwen2.5-7B-Instruct",
            "dataset": (["AI-ModelScope/alpaca-gpt4-data-zh#500"], "data/train.jsonl"),
            **kind,
            **needed,
            "output_dir": "output",
        },
        (*_TRAINER, *_SWIFT_POOL, *kinds, *pool),
        ("flags", "flags", "yaml"),
    )
    for command, needed, pool in _SWIFT_COMMANDS
    for kind, kinds in _SWIFT_TYPES
)

BASES: Mapping[str, Sequence[Base]] = {
    "transformers": _TRANSFORMERS,
    "trl": _TRL,
    "llamafactory": _FACTORY,
    "ms-swift": _SWIFT,
}
