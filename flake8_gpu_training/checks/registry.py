"""Every check, in the order of codes."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from flake8_gpu_training.checks.base import Check

MODULES = (
    "unreadable",  # GPU001 to GPU004
    "parameters",  # GPU005 to GPU009
    "trainer_mistakes",  # GPU010, GPU011, GPU015
    "deepspeed_mistakes",  # GPU012 to GPU014
    "exclusive_options",  # GPU016 to GPU019
    "launch_mistakes",  # GPU020 to GPU022
    "given_twice",  # GPU023
    "refused",  # GPU024
    "command_lines",  # GPU025, GPU026
    "absent_files",  # GPU027
    "unregistered_datasets",  # GPU029
    "parallelism",  # GPU101, GPU107
    "sharding",  # GPU102, GPU108
    "model_parallelism",  # GPU103 to GPU106, GPU109, GPU112
    "precision",  # GPU201, GPU202
    "memory",  # GPU203 to GPU205
    "memory_options",  # GPU206 to GPU210
    "attention",  # GPU301
    "compute",  # GPU302 to GPU307
    "communication",  # GPU4xx
    "debugging",  # GPU308 to GPU310, GPU407, GPU408
    "loading",  # GPU501 to GPU504, GPU506
    "datasets",  # GPU505, GPU508, GPU509
    "distributed_data",  # GPU540
    "reading",  # GPU510 to GPU512
    "packing",  # GPU507, GPU513
    "strategy",  # GPU601 to GPU603, GPU607
    "adapters",  # GPU604 to GPU606
    "swift_options",  # GPU608 to GPU616
    "videox_options",  # GPU126, GPU230 to GPU235, GPU645 to GPU655
    "videox_data",  # GPU127, GPU236, GPU324 to GPU327, GPU523 to GPU532
    "flow_options",  # GPU128 to GPU130, GPU237 to GPU242, GPU656 to GPU664
    "flow_data",  # GPU533 to GPU537, GPU704 to GPU715
    "llamafactory_options",  # GPU110 and others: what LlamaFactory alone has
    "trainer_options",  # GPU220 to GPU226, GPU320 to GPU323
    "trainer_sharding",  # GPU120 to GPU125
    "trainer_training",  # GPU520 to GPU522, GPU640 to GPU644
    "trainer_generation",  # GPU920 to GPU923
    "multimodal",  # GPU7xx
    "hot_loops",  # GPU35x, GPU450, GPU55x
    "infrastructure",  # GPU801, GPU802
    "frequencies",  # GPU803 to GPU805
    "inference",  # GPU901 to GPU908
    "engine_capacity",  # GPU028
    "engine_rollouts",  # GPU911 to GPU913, GPU928
    "engine_production",  # GPU914 to GPU917, GPU959
    "engine_surroundings",  # GPU918, GPU919, GPU924 to GPU927
    "engine_compute",  # GPU930 to GPU934
    "engine_memory",  # GPU935 to GPU939
    "engine_parallel",  # GPU940 to GPU944
    "engine_quantization",  # GPU945 to GPU947
    "engine_scheduling",  # GPU948 to GPU952
    "engine_attention",  # GPU953 to GPU956
    "engine_speculation",  # GPU957, GPU958
    "sglang_compute",  # GPU960 to GPU966
    "sglang_cache",  # GPU967 to GPU971
    "sglang_parallel",  # GPU972 to GPU977, GPU989
    "sglang_rlhf",  # GPU979 to GPU982
    "sglang_serving",  # GPU978, GPU983 to GPU988, GPU990 to GPU993
)


@lru_cache(maxsize=1)
def all_checks() -> tuple[Check, ...]:
    """All checks; each module declares its own in ``CHECKS``."""
    found: list[Check] = []
    for name in MODULES:
        found.extend(import_module(f"flake8_gpu_training.checks.{name}").CHECKS)
    return tuple(sorted(found, key=lambda check: check.code))
