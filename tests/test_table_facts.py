"""What the tables say of well-known parameters is what the released sources say."""

from __future__ import annotations

from typing import Any

import pytest

from flake8_gpu_training.frameworks.tables import table_of

ABSENT = None
FACTS: tuple[tuple[str, str, str, str, Any], ...] = (
    # (distribution, group, parameter, version, facts of it)
    ("vllm", "engine", "swap_space", "0.5.5", {"default": 4}),
    ("vllm", "engine", "swap_space", "0.9.2", {"default": 4, "types": ("float",)}),
    ("vllm", "engine", "swap_space", "0.33.0", ABSENT),
    ("vllm", "engine", "gpu_memory_utilization", "0.9.2", {"default": 0.9}),
    ("vllm", "engine", "gpu_memory_utilization", "0.33.0", {"default": 0.92}),
    ("vllm", "engine", "enable_chunked_prefill", "0.5.5", {"default": None, "optional": True}),
    ("vllm", "engine", "max_seq_len_to_capture", "0.5.5", {"default": 8192}),
    ("vllm", "engine", "max_seq_len_to_capture", "0.33.0", ABSENT),
    ("vllm", "serve", "block_size", "0.5.5", {"default": 16}),
    ("vllm", "serve", "tensor_parallel_size", "0.9.2", {"default": 1, "aliases": ("-tp",)}),
    ("vllm", "serve", "max_model_len", "0.9.2", {"types": (), "default": None}),
    ("vllm", "serve", "enable_prefix_caching", "0.33.0", {"default": None, "negatable": True}),
    ("vllm", "serve", "disable_cascade_attn", "0.33.0", {"default": None, "negatable": True}),
    ("sglang", "serve", "dllm_fdfo", "0.5.23", {"default": True, "negatable": True}),
    ("sglang", "serve", "enable_metrics", "0.5.23", {"negatable": False}),
    ("vllm", "serve", "port", "0.33.0", {"default": 8000, "types": ("int",)}),
    ("vllm", "serve", "device", "0.9.2", {"deprecated": True}),
    (
        "vllm",
        "serve",
        "fingerprint_mode",
        "0.33.0",
        {"choices": ("full", "hash", "custom", "none")},
    ),
    ("vllm", "serve", "kv_cache_dtype", "0.33.0", {"choices": (), "default": "auto"}),
    ("sglang", "engine", "mem_fraction_static", "0.4.0", {"default": None, "types": ("float",)}),
    ("sglang", "engine", "schedule_policy", "0.4.0", {"default": "lpm"}),
    ("sglang", "engine", "schedule_policy", "0.5.10", {"default": "fcfs"}),
    (
        "sglang",
        "serve",
        "hicache_host_memory_mode",
        "0.5.23",
        {"choices": ("cache", "buffer_only")},
    ),
    ("sglang", "serve", "enable_hierarchical_cache", "0.5.23", {"aliases": ("enable_hicache",)}),
    ("sglang", "serve", "disable_cuda_graph", "0.5.23", {"deprecated": True}),
    ("sglang", "serve", "enable_ep_moe", "0.5.3", {"deprecated": True}),
    ("sglang", "serve", "enable_ep_moe", "0.5.10", ABSENT),
    ("deepspeed", "zero_optimization", "stage", "0.19.8", {"default": 0, "choices": (0, 1, 2, 3)}),
    ("deepspeed", "zero_optimization", "mics_shard_size", "0.18.9", {"default": -1}),
    ("deepspeed", "zero_optimization", "mics_shard_size", "0.19.8", ABSENT),
    ("deepspeed", "zero_optimization", "reduce_bucket_size", "0.9.5", {"default": 500000000}),
    (
        *("deepspeed", "zero_optimization", "param_persistence_threshold", "0.16.9"),
        {"default": 100000, "aliases": ("stage3_param_persistence_threshold",)},
    ),
    (
        "deepspeed",
        "zero_optimization.offload_optimizer",
        "pin_memory",
        "0.18.9",
        {"default": False},
    ),
    ("deepspeed", "zero_optimization.offload_optimizer", "pin_memory", "0.19.8", {"default": True}),
    ("deepspeed", "bf16", "check_grad_overflow", "0.18.9", {"default": False}),
    ("deepspeed", "config", "gradient_clipping", "0.18.9", {"default": 0.0}),
    ("deepspeed", "config", "gradient_clipping", "0.19.8", {"default": 1.0}),
    ("deepspeed", "config", "steps_per_print", "0.15.4", {"default": None}),
    ("deepspeed", "config", "elasticity", "0.19.8", ABSENT),
    ("deepspeed", "aio", "thread_count", "0.15.4", {"default": 1}),
    ("deepspeed", "aio", "intra_op_parallelism", "0.16.9", {"default": 1}),
    ("transformers", "TrainingArguments", "save_safetensors", "5.24.0", ABSENT),
    ("transformers", "TrainingArguments", "ddp_timeout", "5.24.0", {"default": 1800}),
    ("trl", "SFTConfig", "max_seq_length", "0.11.4", {"default": None, "types": ("int",)}),
    ("trl", "SFTConfig", "max_seq_length", "1.16.0", ABSENT),
    ("trl", "SFTConfig", "max_length", "1.16.0", {"default": 1024}),
    ("peft", "LoraConfig", "lora_dropout", "0.6.2", {"default": 0.0}),
    ("peft", "LoraConfig", "use_dora", "0.6.2", ABSENT),
    ("accelerate", "config", "ipex_config", "1.15.0", ABSENT),
    ("vllm", "serve", "runner", "0.33.0", {"choices": ("auto", "generate", "pooling", "draft")}),
    ("flow-factory", "data", "sampler_type", "0.1.0", {"default": "auto"}),
    ("flow-factory", "config", "train", "0.1.0", {"types": ()}),
    ("flow-factory", "log", "logging_backend", "0.1.0", {"choices": ("wandb", "swanlab", "none")}),
    ("torch", "DataLoader", "prefetch_factor", "2.0.1", {"default": None, "types": ("int",)}),
    ("torch", "DataLoader", "num_workers", "2.13.0", {"default": 0}),
    ("torch", "DataLoader", "in_order", "2.0.1", ABSENT),
    ("torch", "DataLoader", "in_order", "2.13.0", {"default": True}),
    ("torch", "DistributedDataParallel", "bucket_cap_mb", "2.0.1", {"default": 25}),
    ("torch", "DistributedDataParallel", "bucket_cap_mb", "2.13.0", {"default": None}),
    ("torch", "FullyShardedDataParallel", "limit_all_gathers", "2.1.2", {"default": True}),
)


@pytest.mark.parametrize(("distribution", "group", "name", "version", "facts"), FACTS)
def test_a_parameter_is_as_its_release_declares_it(
    distribution: str, group: str, name: str, version: str, facts: Any
) -> None:
    table = table_of(distribution)
    assert table is not None
    assert version in table.versions
    parameter = table.parameters(group, version).get(name)
    if facts is ABSENT:
        assert parameter is None
    else:
        assert parameter is not None
        assert {key: getattr(parameter, key) for key in facts} == facts
