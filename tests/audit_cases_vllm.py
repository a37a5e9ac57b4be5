"""Small projects for the table of vLLM's own audit: the same options in each front end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import yaml
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, UNKNOWN, Case, Files

from flake8_gpu_training.checks.base import Status

QWEN = "Qwen/Qwen3-4B"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
R1 = "deepseek-ai/DeepSeek-R1"
SEES = "Qwen/Qwen2.5-VL-7B-Instruct"
MOE = "Qwen/Qwen3-30B-A3B"


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


FRONTS = ("flags", "yaml", "python", "pod")


def _flag(name: str, value: Any) -> str:
    dashed = name.replace("_", "-")
    if value is True:
        return f"--{dashed}"
    if value is False:
        return f"--no-{dashed}"
    if isinstance(value, (dict, list)):
        return f"--{dashed} '{json.dumps(value)}'"
    return f"--{dashed} {value}"


def _words(name: str, value: Any) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag if value else flag.replace("--", "--no-", 1)]
    return [flag, json.dumps(value) if isinstance(value, (dict, list)) else str(value)]


@dataclass(frozen=True)
class Row:
    """An item with what is expected of it, and the options by which it comes about.

    ``gpus``: what SLURM, or the pod, is asked for (``h100:1``); ``env``: variables; ``fronts``:
    the front ends in which it holds.
    """

    item: str
    status: Status
    options: Mapping[str, Any] = field(default_factory=_nothing)
    fronts: tuple[str, ...] = ("flags", "yaml", "python")
    model: str = QWEN
    pin: str = ""
    gpus: str = ""
    env: Mapping[str, str] = field(default_factory=_nothing)
    shows: str = ""
    writes: str = ""

    def cases(self) -> Iterator[Case]:
        for front in self.fronts:
            yield Case(self.item, self.status, front, self.files(front), self.shows, self.writes)

    def files(self, front: str) -> Files:
        pins = {"requirements.txt": f"vllm=={self.pin}\n"} if self.pin else {}
        return {**pins, **_FRONT_ENDS[front](self)}


def _head(row: Row) -> str:
    gres = f"#SBATCH --gres=gpu:{row.gpus}\n" if row.gpus else ""
    exports = "".join(f"export {name}={value}\n" for name, value in row.env.items())
    return f"#!/bin/bash\n{gres}{exports}"


def _flags(row: Row) -> Files:
    given = " ".join(_flag(name, value) for name, value in row.options.items())
    return {"serve.sh": f"{_head(row)}vllm serve {row.model} {given}\n"}


def _yaml(row: Row) -> Files:
    options = {"model": row.model, **row.options}
    body = {name.replace("_", "-"): value for name, value in options.items()}
    command = "vllm serve --config serve.yaml\n"
    return {"serve.sh": f"{_head(row)}{command}", "serve.yaml": yaml.safe_dump(body)}


def _python(row: Row) -> Files:
    given = "".join(f"    {name}={value!r},\n" for name, value in row.options.items())
    program = (
        f'from vllm import LLM\n\nllm = LLM(\n    model="{row.model}",\n{given})\n'
        'print(llm.generate("a"))\n'
    )
    return {"generate.py": program, "run.sh": f"{_head(row)}python generate.py\n"}


def _pod(row: Row) -> Files:
    words = ["--model", row.model]
    for name, value in row.options.items():
        words += _words(name, value)
    kind, _, count = row.gpus.partition(":")
    container: dict[str, Any] = {
        "name": "vllm",
        "image": f"vllm/vllm-openai:v{row.pin or '0.33.0'}",
        "args": words,
        "env": [{"name": name, "value": value} for name, value in row.env.items()],
    }
    if row.gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": int(count or 1)}}
    spec: dict[str, Any] = {"containers": [container]}
    if kind:
        spec["nodeSelector"] = {"nvidia.com/gpu.product": f"NVIDIA-{kind.upper()}"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server"}, "spec": spec}
    return {"pod.yaml": yaml.safe_dump(pod)}


_FRONT_ENDS = {"flags": _flags, "yaml": _yaml, "python": _python, "pod": _pod}
SERVED = ("flags", "yaml", "pod")
OFFLINE = ("python",)
SHELL = ("flags", "yaml")

# What another front end of its own shows: training runs, routers, containers.
ROUTER: Files = {"route.sh": "vllm-router --service-discovery static\n"}
TRAINED: Files = {
    "train.py": """\
from trl import GRPOConfig, GRPOTrainer

args = GRPOConfig(output_dir="out", use_vllm=True, vllm_mode="colocate", bf16=True)
trainer = GRPOTrainer(model="Qwen/Qwen3-4B", args=args, reward_funcs=score, train_dataset=data)
trainer.train()
""",
    "train.sh": "#!/bin/bash\n#SBATCH --gres=gpu:a100-80g:8\naccelerate launch train.py\n",
    "requirements.txt": "trl==1.16.0\nvllm==0.19.1\n",
}


def trained(*changes: tuple[str, str]) -> Files:
    """TRL's run with other words."""
    program = TRAINED["train.py"]
    for old, new in changes:
        assert old in program
        program = program.replace(old, new)
    return {**TRAINED, "train.py": program}


def verl(*more: str) -> Files:
    words = (
        "python3 -m verl.trainer.main_ppo",
        "algorithm.adv_estimator=grpo",
        f"actor_rollout_ref.model.path={QWEN}",
        "actor_rollout_ref.rollout.name=vllm",
        "trainer.n_gpus_per_node=8",
        "trainer.nnodes=1",
        *more,
    )
    return {"train.sh": f"#!/bin/bash\n{' '.join(words)}\n"}


OPENRLHF: Files = {
    "train.sh": "#!/bin/bash\npython3 -m openrlhf.cli.train_ppo_ray --train.colocate_all "
    "--actor.model_name_or_path Qwen/Qwen3-4B --vllm.num_engines 4\n"
}


def swift(*more: str, kind: str = "rlhf --rlhf_type grpo --use_vllm true") -> Files:
    return {"train.sh": f"#!/bin/bash\nswift {kind} --model {QWEN} {' '.join(more)}\n"}


_EAGER = {"enforce_eager": True}
_NGRAM = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 4}}
_EAGLE = {
    "speculative_config": {
        "method": "eagle3",
        "model": "RedHatAI/Qwen3-8B-speculator.eagle3",
        "num_speculative_tokens": 3,
        "draft_tensor_parallel_size": 1,
    }
}
_DRAFT = {"speculative_config": {"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 4}}
_MTP = {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}
_STORE = {"kv_connector": "MooncakeStoreConnector", "kv_role": "kv_both"}
_HIDDEN = {"kv_connector": "ExampleHiddenStatesConnector", "kv_role": "kv_producer"}
_OFFLOADING = {"kv_connector": "LMCacheConnectorV1", "kv_role": "kv_both"}
_NIXL = {"kv_connector": "NixlConnector", "kv_role": "kv_producer"}
_V0 = {"VLLM_USE_V1": "0"}

ROWS: tuple[Row, ...] = (
    # A
    Row("optimization-level", ON, shows="optimization_level=2 (vLLM 0.33.0)"),
    Row("optimization-level", ON, pin="0.10.2", shows="compilation level 3"),
    Row("optimization-level", ADVISED, {"optimization_level": 0}, shows="0"),
    Row("optimization-level", ADVISED, _EAGER),
    Row("optimization-level", OFF, pin="0.7.3"),
    Row("cuda-graph", ON, shows="enforce_eager=False"),
    Row("cuda-graph", ON, {"compilation_config": {"cudagraph_mode": "FULL"}}, shows="FULL"),
    Row("cuda-graph", ADVISED, _EAGER, fronts=("yaml",), writes="enforce_eager: false"),
    Row("cuda-graph", ADVISED, _EAGER, fronts=OFFLINE, writes="enforce_eager=False"),
    Row("cuda-graph", ADVISED, _EAGER, fronts=("flags", "pod"), shows="enforce"),
    Row("cuda-graph", ADVISED, {"compilation_config": {"cudagraph_mode": "NONE"}}),
    Row("torch-compile", ON, shows="optimization_level"),
    Row("torch-compile", ADVISED, _EAGER),
    Row("torch-compile", OFF, {"compilation_config": {"mode": 0}}, shows="mode"),
    Row("v1-engine", ON, shows="V1"),
    Row("v1-engine", ADVISED, env=_V0, pin="0.9.2", shows="VLLM_USE_V1"),
    Row("v1-engine", ADVISED, env=_V0, pin="0.8.5.post1", gpus="a100-80g:1"),
    Row("cuda-graph", NA, env={"VLLM_CPU_KVCACHE_SPACE": "40"}),
    Row("capture-sizes", NA, env={"VLLM_CPU_KVCACHE_SPACE": "40"}),
    Row("v1-engine", NA, env=_V0, pin="0.8.5.post1", gpus="v100:1"),
    Row("v1-engine", NA, pin="0.9.2", gpus="t4:1"),
    Row("v1-engine", ON, pin="0.10.2", gpus="t4:1"),
    Row("max-num-seqs", ON, env=_V0, pin="0.8.5.post1", shows="max_num_seqs=256"),
    Row("max-num-seqs", ON, pin="0.9.2", gpus="v100:1", shows="max_num_seqs=256"),
    Row("max-num-seqs", ON, pin="0.9.2", gpus="h100:1", shows="1024"),
    Row(
        "max-batched-tokens",
        ON,
        {"max_model_len": 16384},
        env=_V0,
        pin="0.8.5.post1",
        shows="max_num_batched_tokens=16384",
    ),
    Row("max-batched-tokens", ON, env=_V0, pin="0.8.5.post1", shows="V0"),
    Row("torch-compile", OFF, _EAGER, env=_V0, pin="0.8.5.post1"),
    Row("torch-compile", PARTLY, {"compilation_config": {"use_inductor": False}}, pin="0.10.2"),
    Row("torch-compile", ON, {"compilation_config": {"use_inductor": True}}, pin="0.10.2"),
    Row("flash-version", NA, pin="0.8.5.post1", gpus="v100:1"),
    Row("v1-engine", OFF, pin="0.7.3"),
    Row("v1-engine", ON, env=_V0, pin="0.14.1"),
    Row("capture-sizes", ON, {"cudagraph_capture_sizes": [1, 2, 4, 8]}, shows="capture"),
    Row("capture-sizes", ON),
    Row(
        "capture-sizes",
        PARTLY,
        {"max_num_seqs": 256, "max_cudagraph_capture_size": 32},
        writes="256",
    ),
    Row("capture-sizes", NA, _EAGER),
    # B
    Row("gpu-memory-utilization", ON, {"gpu_memory_utilization": 0.95}, shows="0.95"),
    Row("gpu-memory-utilization", ON, pin="0.19.1", shows="0.9 (vLLM 0.19.1)"),
    Row(
        "gpu-memory-utilization",
        PARTLY,
        {"gpu_memory_utilization": 0.5},
        fronts=SERVED,
        writes="0.9",
    ),
    Row("max-model-len", ON, {"max_model_len": 8192}, shows="8192"),
    Row("max-model-len", OFF),
    Row(
        "max-model-len",
        ADVISED,
        model="Qwen/Qwen2.5-14B-Instruct-1M",
        gpus="a100-80g:1",
        writes="max",
    ),
    Row("kv-cache-dtype", ON, {"kv_cache_dtype": "fp8"}, shows="fp8"),
    Row("kv-cache-dtype", OFF),
    Row("kv-cache-dtype", NA, gpus="a100-80g:1"),
    Row(
        "kv-cache-dtype",
        ADVISED,
        {"max_model_len": 32768},
        model="Qwen/Qwen3-14B",
        gpus="l40s:1",
        writes="fp8",
    ),
    Row("kv-cache-dtype", OFF, {"max_model_len": 4096}, gpus="h100:1"),
    Row("swap-space", ON, pin="0.7.3", shows="swap_space=4"),
    Row("swap-space", OFF, {"swap_space": 0}, pin="0.7.3"),
    Row("swap-space", NA, {"swap_space": 16}, pin="0.10.2"),
    Row("swap-space", NA, pin="0.10.2"),
    Row("kv-offload", ON, {"kv_offloading_size": 32}, shows="32"),
    Row("kv-offload", ON, {"kv_transfer_config": _OFFLOADING}, shows="LMCache"),
    Row("kv-offload", OFF),
    Row("kv-offload", NA, pin="0.10.2"),
    Row("block-size", ON, {"block_size": 32}, shows="32"),
    Row("block-size", ON),
    # C
    Row("tensor-parallel", ON, {"tensor_parallel_size": 2}, shows="2"),
    Row("tensor-parallel", NA, gpus="h100:1"),
    Row("tensor-parallel", OFF),
    Row(
        "tensor-parallel",
        ADVISED,
        {"max_model_len": 8192},
        fronts=("flags", "yaml", "python"),
        model="Qwen/Qwen2.5-72B-Instruct",
        gpus="a100-80g:4",
        env={"CUDA_VISIBLE_DEVICES": "0,1,2,3"},
        writes="4",
    ),
    Row("pipeline-parallel", ON, {"pipeline_parallel_size": 2}, shows="2"),
    Row("pipeline-parallel", NA, gpus="h100:1"),
    Row("pipeline-parallel", OFF),
    Row("data-parallel", ON, {"data_parallel_size": 2}, fronts=SERVED, shows="2"),
    Row("data-parallel", NA, gpus="h100:1"),
    Row("data-parallel", OFF),
    Row("data-parallel", NA, pin="0.7.3"),
    Row(
        "data-parallel",
        ADVISED,
        {"max_model_len": 8192},
        fronts=SHELL,
        env={"CUDA_VISIBLE_DEVICES": "0,1,2,3"},
        writes="4",
    ),
    Row("data-parallel", ADVISED, {"max_model_len": 8192}, fronts=("pod",), gpus="a100:4"),
    Row("data-parallel", OFF, fronts=OFFLINE, env={"CUDA_VISIBLE_DEVICES": "0,1"}),
    Row("expert-parallel", ON, {"enable_expert_parallel": True}, model=MOE, shows="expert"),
    Row("expert-parallel", NA),
    Row("expert-parallel", OFF, {"tensor_parallel_size": 4}, model=MOE),
    Row(
        "expert-parallel",
        ADVISED,
        {"data_parallel_size": 4},
        fronts=SERVED,
        model=MOE,
        writes="expert",
    ),
    Row(
        "dp-tp-mix",
        ON,
        {"data_parallel_size": 2, "tensor_parallel_size": 4},
        fronts=SERVED,
        shows="2",
    ),
    Row("dp-tp-mix", NA, gpus="h100:2"),
    Row("dp-tp-mix", OFF, {"tensor_parallel_size": 8}, gpus="h100:8"),
    # D
    Row("fp8-online", ON, {"quantization": "fp8"}, shows="fp8"),
    Row("fp8-online", ON, model="Qwen/Qwen3-8B-FP8", shows="FP8"),
    Row("fp8-online", ON, model=R1, shows="FP8"),
    Row("fp8-online", ADVISED, fronts=SHELL, gpus="h100:1", writes="fp8"),
    Row(
        "fp8-online",
        ADVISED,
        {"max_model_len": 4096},
        model="Qwen/Qwen3-8B",
        gpus="rtx4090:1",
        writes="fp8",
    ),
    Row("fp8-online", OFF, gpus="a100-80g:1"),
    Row("fp8-online", OFF, fronts=OFFLINE, gpus="h100:1"),
    Row("awq", ON, model="Qwen/Qwen2.5-7B-Instruct-AWQ", shows="AWQ"),
    Row("awq", OFF),
    Row("gptq", ON, {"quantization": "gptq_marlin"}, pin="0.10.2", shows="gptq"),
    Row("gptq", ON, model="RedHatAI/Qwen3-8B-quantized.w4a16", shows="w4a16"),
    Row("gptq", OFF),
    Row("bitsandbytes", ON, {"quantization": "bitsandbytes"}, pin="0.19.1", shows="bits"),
    Row("bitsandbytes", OFF),
    Row("gguf", ON, {"quantization": "gguf"}, pin="0.19.1", shows="gguf"),
    Row("gguf", OFF),
    Row("marlin", ON, model="Qwen/Qwen2.5-7B-Instruct-AWQ", pin="0.10.2"),
    Row("marlin", NA),
    Row("marlin", UNKNOWN, model="Qwen/Qwen3-8B-FP8"),
    Row("marlin", ON, model="Qwen/Qwen3-8B-FP8", gpus="a100-80g:1"),
    Row("marlin", NA, model="Qwen/Qwen3-8B-FP8", gpus="h100:1"),
    Row("marlin", UNKNOWN, model="RedHatAI/Qwen3-30B-A3B-NVFP4"),
    Row("marlin", ON, model="RedHatAI/Qwen3-30B-A3B-NVFP4", gpus="h100:1"),
    Row("marlin", NA, model="RedHatAI/Qwen3-30B-A3B-NVFP4", gpus="b200:1"),
    Row("marlin", UNKNOWN, model="openai/gpt-oss-20b"),
    Row("marlin", NA, model="openai/gpt-oss-20b", gpus="b200:1"),
    Row("marlin", NA, model="RedHatAI/Qwen3-8B-quantized.w8a8", gpus="a100-80g:1"),
    Row("marlin", NA, model="Qwen/Qwen2.5-7B-Instruct-AWQ", gpus="t4:1"),
    Row(
        "marlin",
        ADVISED,
        {"quantization": "awq"},
        model="Qwen/Qwen2.5-7B-Instruct-AWQ",
        pin="0.10.2",
        writes="awq_marlin",
    ),
    Row("marlin", ON, {"quantization": "awq"}, model="Qwen/Qwen2.5-7B-Instruct-AWQ"),
    Row("mixed-quantization", ON, {"quantization": "compressed-tensors"}, shows="compressed"),
    Row("mixed-quantization", OFF),
    # E
    Row("chunked-prefill", ON, shows="enable_chunked_prefill=True"),
    Row("chunked-prefill", ON, {"enable_chunked_prefill": True}),
    Row("chunked-prefill", ADVISED, {"enable_chunked_prefill": False}),
    Row("chunked-prefill", ON, {"enable_chunked_prefill": False}, pin="0.10.2", shows="V1"),
    Row("chunked-prefill", UNKNOWN, pin="0.7.3"),
    Row("max-batched-tokens", ON, {"max_num_batched_tokens": 8192}, shows="8192"),
    Row("max-batched-tokens", ON),
    Row(
        "max-batched-tokens",
        PARTLY,
        {"max_num_batched_tokens": 512},
        fronts=SHELL,
        gpus="h100:1",
        writes="8192",
    ),
    Row("max-num-seqs", ON, {"max_num_seqs": 128}, shows="128"),
    Row("max-num-seqs", ON),
    Row("max-num-seqs", ON, {"max_num_seqs": 4}),
    Row(
        "max-num-seqs",
        ADVISED,
        {"max_num_seqs": 4, "max_model_len": 4096},
        fronts=SHELL,
        gpus="h100:1",
        writes="max",
    ),
    Row("prefix-caching", ON, shows="enable_prefix_caching=True"),
    Row("prefix-caching", ADVISED, {"enable_prefix_caching": False}, fronts=SERVED),
    Row("prefix-caching", OFF, {"enable_prefix_caching": False}, fronts=OFFLINE),
    Row("prefix-caching", OFF, pin="0.7.3"),
    Row("prefix-caching", UNKNOWN, pin="0.26.0", model="Qwen/Qwen3.6-27B-FP8"),
    Row("prefix-caching", ON, {"enable_prefix_caching": True}, model="Qwen/Qwen3.6-27B-FP8"),
    Row("partial-prefills", ON, {"long_prefill_token_threshold": 2048}, shows="2048"),
    Row("partial-prefills", ON, {"max_num_partial_prefills": 4}, pin="0.7.3", shows="4"),
    Row("partial-prefills", OFF),
    Row("partial-prefills", NA, pin="0.6.6"),
    # F
    Row("flash-version", ON, shows="auto"),
    Row("flash-version", ON, {"attention_config": {"flash_attn_version": 3}}, shows="3"),
    Row("flash-version", NA, gpus="t4:1"),
    Row("flash-version", NA, {"attention_backend": "FLASHINFER"}),
    Row(
        "flash-version",
        ADVISED,
        pin="0.10.2",
        gpus="h100:1",
        env={"VLLM_FLASH_ATTN_VERSION": "2"},
    ),
    Row("attention-backend", ON, shows="auto"),
    Row("attention-backend", ON, {"attention_backend": "FLASHINFER"}, shows="FLASHINFER"),
    Row(
        "attention-backend",
        ADVISED,
        pin="0.10.2",
        gpus="a100-80g:1",
        env={"VLLM_ATTENTION_BACKEND": "XFORMERS"},
        writes="FLASH_ATTN",
    ),
    Row("mla-backend", ON, {"tensor_parallel_size": 8}, model=R1, shows="MLA"),
    Row("mla-backend", NA),
    Row("mla-backend", ADVISED, model=R1, env={"VLLM_MLA_DISABLE": "1"}),
    Row("fp8-attention", ON, {"kv_cache_dtype": "fp8"}, gpus="h100:1", shows="fp8"),
    Row("fp8-attention", OFF, gpus="h100:1"),
    Row("fp8-attention", NA, {"kv_cache_dtype": "fp8"}, gpus="l40s:1"),
    Row("fp8-attention", UNKNOWN, {"kv_cache_dtype": "fp8"}),
    # G
    Row("eagle", ON, _EAGLE, model="Qwen/Qwen3-8B", shows="eagle3"),
    Row("eagle", ADVISED, {"max_num_seqs": 16}, fronts=SERVED, model=LLAMA, writes="eagle3"),
    Row("eagle", OFF, {"max_num_seqs": 256}, fronts=SERVED, model=LLAMA),
    Row("eagle", OFF, model=LLAMA, fronts=OFFLINE),
    Row("eagle", OFF),
    Row("mtp", ON, _MTP, model=R1, shows="mtp"),
    Row("mtp", ADVISED, {"tensor_parallel_size": 8}, fronts=SERVED, model=R1, writes='"mtp"'),
    Row("mtp", ADVISED, fronts=SHELL, model=R1, pin="0.10.2", writes="deepseek_mtp"),
    Row("mtp", NA),
    Row("mtp", NA, fronts=SHELL, model="Qwen/Qwen3-4B"),
    Row("mtp", OFF, fronts=SHELL, model="MiniMaxAI/MiniMax-M2"),
    Row("mtp", ADVISED, fronts=SHELL, model="Qwen/Qwen3.6-27B", writes='"mtp"'),
    Row("draft-model", ON, _DRAFT, shows="Qwen3-0.6B"),
    Row("draft-model", OFF),
    Row("ngram", ON, _NGRAM, shows="ngram"),
    Row("ngram", ON, {"speculative_model": "[ngram]"}, pin="0.7.3", shows="ngram"),
    Row("ngram", OFF),
    Row("draft-tp", ON, _EAGLE, model="Qwen/Qwen3-8B", shows="draft_tensor"),
    Row("draft-tp", NA),
    Row("draft-tp", NA, _NGRAM),
    Row("draft-tp", OFF, {**_MTP, "tensor_parallel_size": 8}, model=R1),
    # I
    Row("lora-serving", ON, {"enable_lora": True}, shows="lora"),
    Row("lora-serving", OFF),
    Row("api-server-count", ON, {"api_server_count": 4}, fronts=SERVED, shows="4"),
    Row("api-server-count", ON, {"data_parallel_size": 4}, fronts=SERVED, shows="data"),
    Row("api-server-count", OFF, fronts=SERVED),
    Row("api-server-count", NA, fronts=OFFLINE),
    Row("api-server-count", NA, fronts=SHELL, pin="0.8.5"),
    Row("disaggregated-prefill", ON, {"kv_transfer_config": _NIXL}, fronts=SERVED, shows="kv_"),
    Row("disaggregated-prefill", OFF, {"kv_transfer_config": _OFFLOADING}, fronts=SERVED),
    Row("disaggregated-prefill", OFF, {"kv_transfer_config": _STORE}, fronts=SERVED),
    Row("disaggregated-prefill", OFF, {"kv_transfer_config": _HIDDEN}, fronts=SERVED),
    Row("disaggregated-prefill", OFF, fronts=SERVED),
    Row("disaggregated-prefill", NA, fronts=OFFLINE),
    Row("yaml-config", ON, fronts=("yaml", "pod")),
    Row("yaml-config", OFF, fronts=("flags",)),
    Row("yaml-config", NA, fronts=OFFLINE),
    Row(
        "multimodal-limits",
        ON,
        {"limit_mm_per_prompt": {"image": 4}},
        model=SEES,
        shows="limit",
    ),
    Row("multimodal-limits", NA),
    Row("multimodal-limits", ADVISED, fronts=SERVED, model=SEES, writes="image"),
    Row("multimodal-limits", OFF, fronts=OFFLINE, model=SEES),
    # J
    Row("fast-tokenizer", ON, shows="tokenizer_mode=auto"),
    Row("fast-tokenizer", ADVISED, {"tokenizer_mode": "slow"}, writes="auto"),
    Row("cpu-cores", UNKNOWN),
    Row("worker-method", ON, env={"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}, shows="spawn"),
    Row("worker-method", ON, fronts=SERVED, shows="spawn"),
    Row("worker-method", OFF, fronts=OFFLINE),
    Row("worker-method", OFF, env={"VLLM_WORKER_MULTIPROC_METHOD": "fork"}),
    Row("dev-mode", NA),
    Row(
        "dev-mode",
        ON,
        {"enable_sleep_mode": True},
        fronts=SERVED,
        env={"VLLM_SERVER_DEV_MODE": "1"},
        shows="DEV_MODE",
    ),
    Row("dev-mode", ADVISED, {"enable_sleep_mode": True}, fronts=SERVED, writes="DEV_MODE=1"),
    Row("dev-mode", OFF, fronts=SHELL, env={"VLLM_SERVER_DEV_MODE": "1"}),
    Row("long-max-len", ON, env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}, shows="LONG"),
    Row("long-max-len", NA, {"max_model_len": 8192}),
    Row("long-max-len", OFF, {"max_model_len": 131072}, model="Qwen/Qwen2.5-7B-Instruct"),
    Row("preemption-monitoring", ON, fronts=SERVED, shows="metrics"),
    Row("preemption-monitoring", ON, {"disable_log_stats": False}, fronts=OFFLINE),
    Row("preemption-monitoring", OFF, fronts=OFFLINE),
    Row("preemption-monitoring", ADVISED, {"disable_log_stats": True}, fronts=SERVED),
    # H: an engine of its own trains nothing
    *(
        Row(item, NA, fronts=("flags", "python"))
        for item in (
            "sleep-mode",
            "weight-transfer",
            "colocate",
            "server",
            "async-rl",
            "dynamic-lora",
            "layerwise-reload",
        )
    ),
    Row("weight-transfer", ON, {"weight_transfer_config": {"backend": "nccl"}}, shows="nccl"),
    Row("weight-transfer", OFF, {"enable_sleep_mode": True}),
    Row("server", ON, {"enable_sleep_mode": True}, fronts=SERVED),
    Row("server", OFF, {"enable_sleep_mode": True}, fronts=OFFLINE),
    Row("colocate", OFF, {"enable_sleep_mode": True}, fronts=SERVED),
    Row("sleep-mode", ON, {"enable_sleep_mode": True}, shows="sleep"),
    Row("async-rl", OFF, {"enable_sleep_mode": True}, fronts=SERVED),
    Row(
        "dynamic-lora",
        ON,
        {"enable_sleep_mode": True},
        env={"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True"},
        shows="LORA",
    ),
    Row("dynamic-lora", OFF, {"enable_sleep_mode": True}),
    Row("layerwise-reload", OFF, {"enable_sleep_mode": True}),
)

_LOADED = """\
from vllm import LLM

llm = LLM("Qwen/Qwen3-4B", worker_extension_cls="own.Extension")
llm.collective_rpc("reload_weights")
"""
_PAUSED = """\
import asyncio

from vllm import AsyncEngineArgs, AsyncLLMEngine

engine = AsyncLLMEngine.from_engine_args(AsyncEngineArgs(model="Qwen/Qwen3-4B"))


async def update():
    await engine.pause_generation()


asyncio.run(update())
"""


def pod_of(cores: int) -> Files:
    """A server on four GPUs with so many cores."""
    row = Row("", ON, {"tensor_parallel_size": 4}, gpus="h100:4")
    pod = yaml.safe_load(row.files("pod")["pod.yaml"])
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = cores
    return {"pod.yaml": yaml.safe_dump(pod)}


def slurm_of(cores: int) -> Files:
    """The same in a SLURM job."""
    head = f"#!/bin/bash\n#SBATCH --gres=gpu:h100:4\n#SBATCH --cpus-per-task={cores}\n"
    return {"serve.sh": f"{head}vllm serve {QWEN} --tensor-parallel-size 4\n"}


AHEAD: Files = {
    **TRAINED,
    "train.py": """\
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer

args = AsyncGRPOConfig(output_dir="out", bf16=True)
trainer = AsyncGRPOTrainer(model="Qwen/Qwen3-4B", args=args, reward_funcs=score, train_dataset=data)
trainer.train()
""",
}


OTHERS: tuple[Case, ...] = (
    Case("async-rl", ON, "trl", AHEAD, "AsyncGRPOTrainer"),
    Case("async-rl", NA, "trl", TRAINED),
    Case("server", ON, "trl", AHEAD, "TRL"),
    Case("sleep-mode", NA, "trl", AHEAD),
    Case("cuda-graph", NA, "trl", AHEAD),
    Case("worker-method", ON, "swift", swift("--vllm_mode colocate"), "spawn"),
    Case("worker-method", OFF, "trl", TRAINED),
    Case("sleep-mode", ADVISED, "trl", TRAINED, writes="vllm_enable_sleep_mode"),
    Case(
        "sleep-mode",
        ON,
        "trl",
        trained(("bf16=True", "bf16=True, vllm_enable_sleep_mode=True")),
        "sleep",
    ),
    Case("sleep-mode", ON, "verl", verl(), "free_cache_engine"),
    Case(
        "sleep-mode",
        ADVISED,
        "verl",
        verl("actor_rollout_ref.rollout.free_cache_engine=False"),
        writes="free_cache_engine=true",
    ),
    Case("sleep-mode", ON, "swift", swift("--vllm_mode colocate --sleep_level 1"), "sleep"),
    Case("sleep-mode", ADVISED, "swift", swift("--vllm_mode colocate"), writes="sleep_level"),
    Case("weight-transfer", ON, "trl", TRAINED, "load_weights"),
    Case("weight-transfer", ON, "verl", verl(), "verl"),
    Case("weight-transfer", ON, "python", {"sync.py": _LOADED}, "worker_extension_cls"),
    Case("colocate", ON, "trl", TRAINED, "colocate"),
    Case("colocate", ON, "verl", verl(), "vllm"),
    Case("server", ON, "trl", trained(("colocate", "server")), "server"),
    Case("colocate", OFF, "trl", trained(("colocate", "server"))),
    Case("server", OFF, "verl", verl()),
    Case("async-rl", NA, "trl", TRAINED),
    Case("async-rl", ON, "swift", swift("--vllm_mode server --async_generate true"), "async"),
    Case("async-rl", OFF, "swift", swift("--vllm_mode server")),
    Case(
        "dynamic-lora",
        ON,
        "swift",
        swift("--vllm_mode colocate --vllm_enable_lora true --tuner_type lora"),
        "vllm_enable_lora",
    ),
    Case("dynamic-lora", NA, "swift", swift("--vllm_mode colocate --tuner_type full")),
    Case("layerwise-reload", ON, "python", {"sync.py": _LOADED}, "reload_weights"),
    Case(
        "layerwise-reload",
        ON,
        "verl",
        verl("actor_rollout_ref.rollout.layered_summon=True"),
        "layered",
    ),
    Case("layerwise-reload", ON, "swift", swift("--vllm_mode colocate --move_model_batches 16")),
    Case("layerwise-reload", OFF, "verl", verl()),
    Case("gpu-memory-utilization", ON, "trl", TRAINED, "0.3"),
    Case(
        "gpu-memory-utilization",
        PARTLY,
        "trl",
        trained(("bf16=True", "bf16=True, vllm_gpu_memory_utilization=0.9")),
        writes="vllm_gpu_memory_utilization=0.4",
    ),
    Case("gpu-memory-utilization", ON, "verl", verl(), "0.5"),
    Case("prefix-caching", ON, "verl", verl(), "enable_prefix_caching=True"),
    Case(
        "prefix-caching",
        ADVISED,
        "swift",
        swift("--vllm_mode colocate --vllm_enable_prefix_caching false"),
        writes="vllm_enable_prefix_caching",
    ),
    Case(
        "cuda-graph",
        ADVISED,
        "verl",
        verl("actor_rollout_ref.rollout.enforce_eager=True"),
        writes="enforce_eager=false",
    ),
    Case("async-rl", ON, "python", {"update.py": _PAUSED}, "pause_generation"),
    *(
        Case(item, NA, "router", ROUTER)
        for item in ("cuda-graph", "disaggregated-prefill", "yaml-config", "tensor-parallel")
    ),
    Case("prefix-caching", NA, "router", ROUTER),
    Case("prefix-caching", ADVISED, "openrlhf", OPENRLHF, writes="--vllm.enable_prefix_caching"),
    Case("sleep-mode", ADVISED, "openrlhf", OPENRLHF, writes="--vllm.enable_sleep"),
    Case("weight-transfer", ON, "openrlhf", OPENRLHF, "OpenRLHF"),
    Case("tensor-parallel", ON, "verl", verl(), "tensor_model_parallel_size=2"),
    Case("cpu-cores", ON, "pod", pod_of(16), "16"),
    Case("cpu-cores", ADVISED, "pod", pod_of(4), writes="12"),
    Case("cpu-cores", ON, "slurm", slurm_of(16), "16"),
    Case("cpu-cores", ADVISED, "slurm", slurm_of(4), writes="12"),
    Case("multimodal-limits", OFF, "flags", {"serve.sh": "vllm serve /models/own\n"}),
)

CASES: tuple[Case, ...] = (*(case for row in ROWS for case in row.cases()), *OTHERS)
