"""Calls of PyTorch whose parameters are known, and the names of their positional arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping

from flake8_gpu_training.facts import Call

_OPTIMIZER = ("params", "lr")
_ADAM = (*_OPTIMIZER, "betas", "eps", "weight_decay", "amsgrad")
_RATE = ("optimizer",)
_MODULES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    r"torch\.utils\.data(?:\.\w+)?": {
        "DataLoader": (
            *("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers"),
            *("collate_fn", "pin_memory", "drop_last", "timeout", "worker_init_fn"),
            *("multiprocessing_context", "generator"),
        ),
        "BatchSampler": ("sampler", "batch_size", "drop_last"),
        "RandomSampler": ("data_source", "replacement", "num_samples", "generator"),
        "WeightedRandomSampler": ("weights", "num_samples", "replacement", "generator"),
        "DistributedSampler": ("dataset", "num_replicas", "rank", "shuffle", "seed", "drop_last"),
    },
    r"torch\.nn\.parallel(?:\.distributed)?": {
        "DistributedDataParallel": ("module", "device_ids", "output_device", "dim"),
    },
    r"torch\.distributed\.fsdp(?:\.fully_sharded_data_parallel)?": {
        "FullyShardedDataParallel": ("module", "process_group", "sharding_strategy"),
        "fully_shard": ("module",),
    },
    r"torch\.distributed(?:\.device_mesh|\.distributed_c10d)?": {
        "init_process_group": ("backend", "init_method"),
        "init_device_mesh": ("device_type", "mesh_shape"),
    },
    r"torch": {"compile": ("model",)},
    r"torch\.amp(?:\.grad_scaler)?": {
        "GradScaler": ("device", "init_scale", "growth_factor", "backoff_factor"),
    },
    r"torch\.cuda\.amp(?:\.grad_scaler)?": {
        "GradScaler": ("init_scale", "growth_factor", "backoff_factor", "growth_interval"),
    },
    r"torch\.optim(?:\.\w+)?": {
        "Adadelta": (*_OPTIMIZER, "rho", "eps", "weight_decay"),
        "Adafactor": (*_OPTIMIZER, "beta2_decay", "eps", "d", "weight_decay"),
        "Adagrad": (*_OPTIMIZER, "lr_decay", "weight_decay", "initial_accumulator_value", "eps"),
        "Adam": _ADAM,
        "AdamW": _ADAM,
        "Adamax": _ADAM[:-1],
        "ASGD": (*_OPTIMIZER, "lambd", "alpha", "t0", "weight_decay"),
        "LBFGS": (*_OPTIMIZER, "max_iter", "max_eval"),
        "Muon": (*_OPTIMIZER, "weight_decay", "momentum", "nesterov"),
        "NAdam": (*_ADAM[:-1], "momentum_decay"),
        "RAdam": _ADAM[:-1],
        "RMSprop": (*_OPTIMIZER, "alpha", "eps", "weight_decay", "momentum", "centered"),
        "Rprop": (*_OPTIMIZER, "etas", "step_sizes"),
        "SGD": (*_OPTIMIZER, "momentum", "dampening", "weight_decay", "nesterov"),
        "ConstantLR": (*_RATE, "factor", "total_iters", "last_epoch"),
        "CosineAnnealingLR": (*_RATE, "T_max", "eta_min", "last_epoch"),
        "CosineAnnealingWarmRestarts": (*_RATE, "T_0", "T_mult", "eta_min", "last_epoch"),
        "CyclicLR": (*_RATE, "base_lr", "max_lr", "step_size_up", "step_size_down", "mode"),
        "ExponentialLR": (*_RATE, "gamma", "last_epoch"),
        "LambdaLR": (*_RATE, "lr_lambda", "last_epoch"),
        "LinearLR": (*_RATE, "start_factor", "end_factor", "total_iters", "last_epoch"),
        "MultiStepLR": (*_RATE, "milestones", "gamma", "last_epoch"),
        "OneCycleLR": (
            *(*_RATE, "max_lr", "total_steps", "epochs", "steps_per_epoch", "pct_start"),
            *("anneal_strategy", "cycle_momentum"),
        ),
        "ReduceLROnPlateau": (*_RATE, "mode", "factor", "patience", "threshold"),
        "StepLR": (*_RATE, "step_size", "gamma", "last_epoch"),
    },
}
"""Names by module (a pattern); each is a group of the table (torch 2.0.1 to 2.13.0)."""


def positions(call: Call) -> tuple[str, ...]:
    """Names of the first positional arguments of a call of PyTorch; none when it is no such."""
    if not call.name.startswith("torch."):
        return ()
    module, _, name = call.name.rpartition(".")
    for pattern, known_to_it in _MODULES.items():
        if name in known_to_it and re.fullmatch(pattern, module):
            return known_to_it[name]
    return ()


TORCH_TYPES = tuple(
    """
    float32 float float64 double float16 half bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz
    float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 uint8 uint16 uint32 uint64 int8 int16 short
    int32 int int64 long bool complex32 chalf complex64 cfloat complex128 cdouble
    """.split()  # noqa: SIM905
)
"""Types of tensors by their names in ``torch``."""
