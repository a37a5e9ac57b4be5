"""DeepSpeed's configuration: the keys of its models and those that its code reads."""

from __future__ import annotations

import ast

from released.classes import Field
from released.collector import Collector

_MODELS = (
    ("zero_optimization", "runtime/zero/config.py", "DeepSpeedZeroConfig"),
    ("fp16", "runtime/precision_config.py", "DeepSpeedFP16Config"),
    ("bf16", "runtime/precision_config.py", "DeepSpeedBF16Config"),
    ("comms_logger", "comm/config.py", "CommsLoggerConfig"),
    ("tensorboard", "monitor/config.py", "TensorBoardConfig"),
    ("wandb", "monitor/config.py", "WandbConfig"),
    ("csv_monitor", "monitor/config.py", "CSVConfig"),
    ("comet", "monitor/config.py", "CometConfig"),
    ("hybrid_engine", "runtime/config.py", "HybridEngineConfig"),
    ("weight_quantization", "inference/config.py", "WeightQuantConfig"),
    ("compile", "runtime/compiler.py", "CompileConfig"),
    ("compile", "compile/config.py", "CompileConfig"),
    ("timers.throughput", "utils/config.py", "DeepSpeedThroughputTimerConfig"),
    ("timers.throughput", "utils/timer.py", "DeepSpeedThroughputTimerConfig"),
    ("tensor_parallel", "runtime/tensor_parallel/config.py", "TPTrainingConfig"),
)
_READERS = (
    ("runtime/config.py", "param_dict", ()),
    ("runtime/zero/config.py", "param_dict", ()),
    ("runtime/precision_config.py", "param_dict", ()),
    ("monitor/config.py", "param_dict", ()),
    ("comm/config.py", "ds_config", ()),
    ("utils/config.py", "param_dict", ()),
    ("runtime/tensor_parallel/config.py", "ds_config", ()),
    ("runtime/swap_tensor/aio_config.py", "param_dict", ()),
    ("runtime/activation_checkpointing/config.py", "param_dict", ()),
    (
        "runtime/activation_checkpointing/config.py",
        "act_chkpt_config_dict",
        ("activation_checkpointing",),
    ),
    ("profiling/config.py", "param_dict", ()),
    ("profiling/config.py", "flops_profiler_dict", ("flops_profiler",)),
    ("autotuning/config.py", "autotuning_dict", ("autotuning",)),
    ("nebula/config.py", "param_dict", ()),
    ("nebula/config.py", "nebula_dict", ("nebula",)),
    ("elasticity/config.py", "param_dict", ("elasticity",)),
    ("datastates/config.py", "param_dict", ()),
)
# Names that no reader of the whole dictionary spells out.
_ELSEWHERE = (
    *("autotuning", "bfloat16", "curriculum_learning", "data_efficiency"),
    *("compression_training", "elasticity", "quantize_training", "sequence_parallel_size"),
)


def collect(c: Collector) -> None:
    """The sections of the configuration; what stands in none is in the group ``config``."""
    for path, variable, place in _READERS:
        roots: dict[str, tuple[str, ...]] = {variable: place}
        if variable == "param_dict" and not place:
            roots["_param_dict"] = ()
        c.keys(f"deepspeed/{path}", roots, "config", "get_sparse_attention_")
    for section, path, name in _MODELS:
        c.section(section, f"deepspeed/{path}", name)
    c.parser("launcher", "deepspeed/launcher/runner.py")
    known = {group.partition(".")[0] for group in c.groups} - {"config", "launcher"}
    for name in known | (set(_ELSEWHERE) - _removed(c)):
        c.groups["config"].setdefault(name, Field(name))


def _removed(c: Collector) -> set[str]:
    """The keys for which a release stops with an error."""
    module = c.release.module("deepspeed/runtime/config.py")
    removed = module.constants.get("_REMOVED_TOP_LEVEL_CONFIG_KEYS") if module else None
    keys = removed.keys if isinstance(removed, ast.Dict) else []
    return {str(key.value) for key in keys if isinstance(key, ast.Constant)}
