"""Training frameworks that start an inference engine: how they name and set its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Callable

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.frameworks import slime, verl
from flake8_gpu_training.frameworks.at_hand import at_hand
from flake8_gpu_training.frameworks.engines import Host
from flake8_gpu_training.runs.model import Run

_COMPUTED = Unknown("the framework works it out")


def _known_to(distribution: str, *groups: str) -> Callable[[Run, str], bool]:
    """Whether one of the groups of a distribution's table has a parameter."""

    def takes(run: Run, name: str) -> bool:
        found = at_hand(run, distribution)
        if found is None:
            return False
        return any(name in found.table.parameters(group, found.version) for group in groups)

    return takes


def _listed(*names: str) -> Callable[[Run, str], bool]:
    """Whether a name is one of those that a host without a table has."""
    listed = frozenset(names)

    def takes(run: Run, name: str) -> bool:
        return name in listed

    return takes


_SWIFT_GROUPS = ("rlhf", "rollout", "infer", "deploy")
_SWIFT_NAMES: Mapping[str, str] = MappingProxyType({"enable_sleep_mode": "sleep_level"})
_SWIFT_BARE = frozenset(  # ms-swift 3.0 to 3.6, llm/argument/infer_args.py
    """
    tensor_parallel_size pipeline_parallel_size gpu_memory_utilization max_model_len max_num_seqs
    enforce_eager limit_mm_per_prompt enable_prefix_caching disable_custom_all_reduce
    """.split()  # noqa: SIM905
)
_ROLLOUT = "actor_rollout_ref.rollout"
_VERL_OWN = [
    "gpu_memory_utilization",
    "enforce_eager",
    "max_num_batched_tokens",
    "max_model_len",
    "max_num_seqs",
    "enable_chunked_prefill",
    "enable_prefix_caching",
    "dtype",
    "quantization",
    "load_format",
    "disable_log_stats",
    "cudagraph_capture_sizes",
    "data_parallel_size",
    "scheduling_policy",
]
_VERL_NAMES: dict[str, str] = {
    **{name: f"{_ROLLOUT}.{name}" for name in _VERL_OWN},
    "tensor_parallel_size": f"{_ROLLOUT}.tensor_model_parallel_size",
    "pipeline_parallel_size": f"{_ROLLOUT}.pipeline_model_parallel_size",
    "expert_parallel_size": f"{_ROLLOUT}.expert_parallel_size",
    "enable_sleep_mode": f"{_ROLLOUT}.free_cache_engine",
    "model": "actor_rollout_ref.model.path",
}


def _host(identifier: str, title: str, names: Mapping[str, str], **parts: Any) -> Host:
    return Host(identifier, title, MappingProxyType(dict(names)), **parts)


def _slime(colocated: bool) -> Host:
    def takes(run: Run, name: str) -> bool:
        return name.startswith("sglang_") and name.removeprefix("sglang_") not in slime.OWN

    return _host(
        "slime",
        "slime",
        {
            "tp_size": "rollout_num_gpus_per_engine",
            "model_path": "hf_checkpoint",
            "enable_memory_saver": "offload_rollout",
        },
        prefix="sglang_",
        defaults=MappingProxyType(
            {
                "enable_memory_saver": colocated,
                "enable_metrics": True,
                "tp_size": 1,
            }
        ),
        source="slime, backends/sglang_utils/sglang_engine.py and utils/arguments.py",
        takes=takes,
        since="0.5.3",
    )


def _openrlhf(prefix: str, switches: str, model: str, length: str, **parts: Any) -> Host:
    """OpenRLHF, whose flags are dotted from 0.10 on."""
    names = {
        "tensor_parallel_size": f"{prefix}tensor_parallel_size",
        "gpu_memory_utilization": f"{prefix}gpu_memory_utilization",
        "enable_sleep_mode": f"{prefix}enable_sleep",
        "enforce_eager": f"{switches}enforce_eager",
        "enable_prefix_caching": f"{switches}enable_prefix_caching",
    }
    return _host(
        "openrlhf",
        "OpenRLHF",
        {
            **names,
            "model": model,
            "max_model_len": length,
            "limit_mm_per_prompt": "data.max_images_per_prompt",
        },
        prefix=prefix,
        **parts,
        defaults=MappingProxyType(
            {
                "tensor_parallel_size": 1,
                "gpu_memory_utilization": 0.95,
                "enable_sleep_mode": False,
                "enforce_eager": False,
                "enable_prefix_caching": False,
                "max_model_len": 2048,
            }
        ),
        source="OpenRLHF 0.9 and 0.11, cli/train_ppo_ray.py",
        takes=_listed(*names.values(), length, "data.max_images_per_prompt"),
        is_open=verl.may_say_more,
    )


# What TRL hands to an engine in its own process, whichever trainer samples.
_OF_TRL: Mapping[str, Any] = MappingProxyType(
    {
        "tensor_parallel_size": 1,
        "max_num_seqs": _COMPUTED,
        "max_num_batched_tokens": 4096,
        "enable_sleep_mode": False,
        "distributed_executor_backend": "external_launcher",
        "quantization": _COMPUTED,
    }
)

VLLM_HOSTS: Mapping[str, Host] = MappingProxyType(
    {
        "trl": _host(
            "trl",
            "TRL",
            {"max_model_len": "vllm_max_model_length", "model": "model_name_or_path"},
            prefix="vllm_",
            defaults=MappingProxyType(
                {"gpu_memory_utilization": 0.3, "max_model_len": None, **_OF_TRL}
            ),
            source="trl 1.16, generation/vllm_generation.py",
            takes=_known_to("trl", "GRPOConfig"),
        ),
        "trl-online": _host(
            "trl-online",
            "TRL",
            {"model": "model_name_or_path"},
            prefix="vllm_",
            defaults=MappingProxyType({"gpu_memory_utilization": 0.55, **_OF_TRL}),
            sums=MappingProxyType({"max_model_len": {"max_length": 512, "max_new_tokens": 64}}),
            source="trl 0.24 and 1.16, online_dpo_config.py and online_dpo_trainer.py",
            takes=_known_to("trl", "OnlineDPOConfig"),
        ),
        "trl-gold": _host(
            "trl-gold",
            "TRL",
            {"max_model_len": "vllm_max_model_length", "model": "model_name_or_path"},
            prefix="vllm_",
            defaults=MappingProxyType({"gpu_memory_utilization": 0.9, **_OF_TRL}),
            sums=MappingProxyType({"max_model_len": {"max_length": 1024}}),
            source="trl 1.16, gold_config.py and gold_trainer.py",
            takes=_known_to("trl", "GOLDConfig"),
        ),
        "trl-device": _host(
            "trl-device",
            "TRL",
            {"model": "model_name_or_path"},
            prefix="vllm_",
            defaults=MappingProxyType(
                {
                    "gpu_memory_utilization": 0.9,
                    "tensor_parallel_size": 1,
                    "max_model_len": None,
                    "enable_prefix_caching": True,
                    "enable_sleep_mode": False,
                }
            ),
            source="trl 0.15.2, trainer/grpo_trainer.py",
            takes=_known_to("trl", "GRPOConfig"),
        ),
        "trl-serve": _host(
            "trl-serve",
            "TRL",
            {},
            defaults=MappingProxyType({"gpu_memory_utilization": 0.9, "disable_log_stats": True}),
            source="trl 1.16, scripts/vllm_serve.py",
            takes=_known_to("trl", "vllm-serve"),
        ),
        "swift": _host(
            "swift",
            "ms-swift",
            {**_SWIFT_NAMES, "model": "model"},
            prefix="vllm_",
            containers=("vllm_engine_kwargs",),
            defaults=MappingProxyType(
                {
                    "gpu_memory_utilization": 0.9,
                    "enforce_eager": False,
                    "enable_prefix_caching": True,
                    "enable_sleep_mode": 0,
                    "max_num_seqs": _COMPUTED,
                }
            ),
            source="ms-swift 4.6.0, infer_engine/vllm_engine.py",
            takes=_known_to("ms-swift", *_SWIFT_GROUPS),
            bare=_SWIFT_BARE,
            section="rollout.",
        ),
        "llamafactory": _host(
            "llamafactory",
            "LlamaFactory",
            {
                "max_model_len": "vllm_maxlen",
                "gpu_memory_utilization": "vllm_gpu_util",
                "enforce_eager": "vllm_enforce_eager",
                "max_lora_rank": "vllm_max_lora_rank",
                "dtype": "infer_dtype",
                "model": "model_name_or_path",
                "enable_lora": "adapter_name_or_path",
            },
            prefix="vllm_config.",
            containers=("vllm_config",),
            defaults=MappingProxyType(
                {
                    "max_model_len": 4096,
                    "gpu_memory_utilization": 0.7,
                    "enforce_eager": False,
                    "tensor_parallel_size": _COMPUTED,
                    "disable_log_stats": True,
                    "enable_lora": False,
                }
            ),
            source="LlamaFactory, chat/vllm_engine.py",
            takes=_listed("vllm_maxlen", "vllm_gpu_util", "vllm_enforce_eager"),
        ),
        "verl": _host(
            "verl",
            "verl",
            _VERL_NAMES,
            prefix=f"{_ROLLOUT}.engine_kwargs.vllm.",
            containers=(f"{_ROLLOUT}.engine_kwargs.vllm",),
            defaults=MappingProxyType(
                {
                    "gpu_memory_utilization": 0.5,
                    "tensor_parallel_size": 2,
                    "data_parallel_size": 1,
                    "max_num_batched_tokens": 8192,
                    "max_model_len": None,
                    "disable_log_stats": True,
                    "enable_chunked_prefill": True,
                    "enable_prefix_caching": True,
                    "enable_sleep_mode": True,
                    "quantization": None,
                }
            ),
            changed=MappingProxyType(
                {
                    "enforce_eager": (("0.6", False), ("0", True)),
                    "max_num_seqs": (("0.8", 256), ("0", 1024)),
                }
            ),
            release=verl.release_of,
            source="verl {release}, trainer/config/rollout/rollout.yaml",
            engine_asked_for=verl.engine_asked_for,
            is_open=verl.may_tell_engine,
            takes=_listed(*_VERL_NAMES.values()),
        ),
        "openrlhf": _openrlhf("vllm.", "vllm.", "actor.model_name_or_path", "data.max_len"),
        "openrlhf-0.9": _openrlhf(
            "vllm_",
            "",
            "pretrain",
            "max_len",
            sums=MappingProxyType(
                {"max_model_len": {"prompt_max_len": 1024, "generate_max_len": 1024}}
            ),
        ),
        "program": _host("program", "Python", {}),
    }
)
SGLANG_HOSTS: Mapping[str, Host] = MappingProxyType(
    {
        "swift": _host(
            "swift",
            "ms-swift",
            {"model_path": "model"},
            prefix="sglang_",
            takes=_known_to("ms-swift", *_SWIFT_GROUPS),
            source="ms-swift 4.6.0, arguments/infer_args.py",
        ),
        "llamafactory": _host(
            "llamafactory",
            "LlamaFactory",
            {
                "context_length": "sglang_maxlen",
                "mem_fraction_static": "sglang_mem_fraction",
                "tp_size": "sglang_tp_size",
                "lora_backend": "sglang_lora_backend",
                "model_path": "model_name_or_path",
            },
            prefix="sglang_config.",
            containers=("sglang_config",),
            source="LlamaFactory, chat/sglang_engine.py",
            takes=_listed("sglang_maxlen", "sglang_mem_fraction", "sglang_tp_size"),
        ),
        "verl": _host(
            "verl",
            "verl",
            {
                "tp_size": f"{_ROLLOUT}.tensor_model_parallel_size",
                "mem_fraction_static": f"{_ROLLOUT}.gpu_memory_utilization",
                "max_running_requests": f"{_ROLLOUT}.max_num_seqs",
                "enable_memory_saver": f"{_ROLLOUT}.free_cache_engine",
                "disable_cuda_graph": f"{_ROLLOUT}.enforce_eager",
                "dp_size": f"{_ROLLOUT}.data_parallel_size",
                "ep_size": f"{_ROLLOUT}.expert_parallel_size",
                "quantization": f"{_ROLLOUT}.quantization",
                "load_format": f"{_ROLLOUT}.load_format",
                "dtype": f"{_ROLLOUT}.dtype",
                "model_path": "actor_rollout_ref.model.path",
            },
            prefix=f"{_ROLLOUT}.engine_kwargs.sglang.",
            containers=(f"{_ROLLOUT}.engine_kwargs.sglang",),
            defaults=MappingProxyType(
                {
                    "mem_fraction_static": 0.5,
                    "enable_memory_saver": True,
                    "disable_cuda_graph": _COMPUTED,
                    "tp_size": 2,
                    "dp_size": 1,
                    "max_running_requests": 256,
                    "quantization": None,
                    "load_format": "dummy",
                    "log_level": "error",
                }
            ),
            source="verl 0.9.1, trainer/config/rollout/rollout.yaml and sglang_rollout",
            is_open=verl.may_tell_engine,
            takes=_listed(
                *(
                    f"{_ROLLOUT}.{name}"
                    for name in (
                        "gpu_memory_utilization",
                        "max_num_seqs",
                        "free_cache_engine",
                        "enforce_eager",
                    )
                )
            ),
        ),
        "slime": _slime(colocated=False),
        "slime-colocate": _slime(colocated=True),
        "program": _host("program", "Python", {}),
    }
)
