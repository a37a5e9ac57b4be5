"""Small servers for the table of SGLang's audit: the same options in each front end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, Case, Files, script

from flake8_gpu_training.checks.base import Status

QWEN, QWEN_FP8 = "Qwen/Qwen3-8B", "Qwen/Qwen3-8B-FP8"
LARGE = "meta-llama/Llama-3.1-70B-Instruct"
MIXTURE = "Qwen/Qwen3-30B-A3B"
LATENT = "deepseek-ai/DeepSeek-V3"
SPARSE = "deepseek-ai/DeepSeek-V3.2"
H100, A100, ONE = "gres=gpu:h100:8", "gres=gpu:a100-80g:8", "gres=gpu:h100:1"
H200 = "gres=gpu:h200:8"
SMALL = "gres=gpu:rtx4090:1"
MODULE = "python -m sglang.launch_server"


def _flag(name: str, value: Any) -> str:
    dashed = f"--{name.replace('_', '-')}"
    if value is True:
        return dashed
    return f"{dashed} '{json.dumps(value)}'" if isinstance(value, dict) else f"{dashed} {value}"


def flags(
    options: Mapping[str, Any],
    model: str = QWEN,
    gpus: str = H100,
    pin: str = "",
    start: str = "",
    module: str = MODULE,
) -> Files:
    """``python -m sglang.launch_server`` in a SLURM script."""
    given = " ".join(_flag(name, value) for name, value in options.items())
    files = {"serve.sh": script(f"{start}{module} --model-path {model} {given}", gpus)}
    return {**files, **pinned(pin)}


def pinned(pin: str) -> Files:
    """The release that the project installs; the newest when none is named."""
    return {"requirements.txt": f"sglang=={pin}\n"} if pin else {}


def config(
    options: Mapping[str, Any], model: str = QWEN, gpus: str = H100, pin: str = "", start: str = ""
) -> Files:
    """A YAML file that ``sglang serve --config`` reads."""
    body = {"model-path": model, **{n.replace("_", "-"): v for n, v in options.items()}}
    command = f"{start}{MODULE} --config serve.yaml"
    return {
        "serve.sh": script(command, gpus),
        "serve.yaml": yaml.safe_dump(body, sort_keys=False),
        **pinned(pin),
    }


_OFFLINE = """\
import sglang as sgl


def main():
    engine = sgl.Engine(
        model_path="{model}",
{options}    )
    print(engine.generate(["The capital of France is"], {{"max_new_tokens": 32}}))
{more}

if __name__ == "__main__":
    main()
"""


def python(
    options: Mapping[str, Any],
    model: str = QWEN,
    gpus: str = H100,
    pin: str = "",
    start: str = "",
    more: str = "",
) -> Files:
    """``sgl.Engine`` in a program of the user's own."""
    lines = "".join(f"        {name}={value!r},\n" for name, value in options.items())
    program = _OFFLINE.format(model=model, options=lines, more=more)
    return {
        "generate.py": program,
        "run.sh": script(f"{start}python generate.py", gpus),
        **pinned(pin),
    }


def sampled(options: Mapping[str, Any], more: str = "", **parts: Any) -> Files:
    """An Engine whose weights are replaced while it runs."""
    calls = f"    engine.update_weights_from_tensor(weights)\n{more}"
    return python(options, more=calls, **parts)


VERL = """\
python3 -m verl.trainer.main_ppo \\
    data.train_files=gsm8k.parquet \\
    actor_rollout_ref.model.path={model} \\
    actor_rollout_ref.rollout.name=sglang \\
    actor_rollout_ref.rollout.tensor_model_parallel_size=2 \\
    {options} \\
    trainer.n_gpus_per_node=8 trainer.nnodes=1
"""


def verl(options: Mapping[str, Any], model: str = QWEN, gpus: str = H100, pin: str = "") -> Files:
    """A rollout of verl."""
    prefix = "+actor_rollout_ref.rollout.engine_kwargs.sglang"
    given = " ".join(f"{prefix}.{name}={value}" for name, value in options.items())
    return {"run.sh": script(VERL.format(model=model, options=given or "\\"), gpus), **pinned(pin)}


def container(options: Mapping[str, Any], run: str = "", model: str = QWEN) -> Files:
    """``docker run`` with the project's image."""
    given = " ".join(_flag(name, value) for name, value in options.items())
    start = f"docker run --gpus all {run} lmsysorg/sglang:v0.5.23 "
    return {"serve.sh": script(f"{start}{MODULE} --model-path {model} {given}", H100)}


def pod(options: Mapping[str, Any], model: str = QWEN) -> Files:
    """A Pod of Kubernetes."""
    words = ["--model-path", model]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "server"},
        "spec": {
            "containers": [
                {
                    "name": "sglang",
                    "image": "lmsysorg/sglang:v0.5.23",
                    "command": ["python3", "-m", "sglang.launch_server"],
                    "args": words,
                    "resources": {"limits": {"nvidia.com/gpu": 8}},
                }
            ]
        },
    }
    return {"pod.yaml": yaml.safe_dump(body, sort_keys=False)}


def router(options: Mapping[str, Any]) -> Files:
    """A router alone."""
    given = " ".join(_flag(name, value) for name, value in options.items())
    command = f"python -m sglang_router.launch_router --worker-urls http://a:30000 {given}"
    return {"route.sh": script(command)}


FRONTS = {"flags": flags, "yaml": config, "python": python, "verl": verl, "pod": pod}


def of(
    item: str,
    status: Status,
    options: Mapping[str, Any],
    shows: str = "",
    writes: str = "",
    fronts: str = "flags yaml python",
    **parts: Any,
) -> Iterator[Case]:
    """The same options in each of the front ends."""
    for front in fronts.split():
        make = {**FRONTS, "sampled": sampled}[front]
        yield Case(item, status, front, make(options, **parts), shows, writes)


SERVED = "flags yaml"
SPREAD = {"tp_size": 8, "attn_dp_size": 8, "moe_a2a_backend": "deepep"}
NODES = {**SPREAD, "tp_size": 16, "attn_dp_size": 16, "nnodes": 2, "node_rank": 0}


def _compute() -> Iterator[Case]:
    graphs = "piecewise-cuda-graph"
    yield from of(graphs, ON, {}, "cuda_graph_backend_prefill=breakable")
    yield from of(graphs, ON, {}, "disable_piecewise_cuda_graph=False", pin="0.5.10")
    yield from of(graphs, ON, {"enable_piecewise_cuda_graph": True}, "enable", pin="0.5.6")
    yield from of(graphs, OFF, {}, pin="0.5.6")
    yield from of(graphs, NA, {}, pin="0.4.6")
    yield from of(graphs, NA, {"pp_size": 2})
    yield from of(graphs, NA, {"tp_size": 8}, model=LATENT, pin="0.5.15")
    yield from of(graphs, ADVISED, {"disable_prefill_cuda_graph": True}, "prefill_cuda_graph")
    yield from of(graphs, OFF, {"cuda_graph_backend_prefill": "disabled"}, "disabled")
    ahead = "overlap-schedule"
    yield from of(ahead, ON, {}, "disable_overlap_schedule=False")
    yield from of(ahead, ON, {}, "SGLang 0.4.3", pin="0.4.3")
    yield from of(ahead, ADVISED, {"disable_overlap_schedule": True}, "overlap")
    yield from of(ahead, NA, {"pp_size": 2})
    yield from of(ahead, NA, {"speculative_algorithm": "EAGLE"}, pin="0.5.3")
    yield from of(ahead, OFF, {"disable_overlap_schedule": True, "pp_size": 2}, "overlap")
    halves = "two-batch-overlap"
    yield from of(halves, ON, {**SPREAD, "enable_two_batch_overlap": True}, "two", model=LATENT)
    yield from of(
        halves, ADVISED, NODES, writes="two", fronts="flags yaml", model=LATENT, gpus=H200
    )
    yield from of(halves, OFF, SPREAD, model=LATENT)
    yield from of(halves, NA, {})
    yield from of(halves, NA, {"tp_size": 8}, model=LATENT)
    one = "single-batch-overlap"
    yield from of(one, ON, {**SPREAD, "enable_single_batch_overlap": True}, "single", model=LATENT)
    yield from of(one, OFF, SPREAD, model=LATENT)
    yield from of(one, NA, {})
    yield from of(one, NA, SPREAD, model=LATENT, pin="0.4.6")
    steps = "continuous-decode-steps"
    yield from of(steps, ON, {"num_continuous_decode_steps": 4}, "decode")
    yield from of(steps, OFF, {})
    yield from of(steps, NA, {}, pin="0.3.0")
    products = "fp8-gemm"
    yield from of(products, ON, {"quantization": "fp8"}, "quantization")
    yield from of(products, ON, {}, "Qwen3-8B-FP8", model=QWEN_FP8)
    yield from of(products, NA, {})
    yield from of(products, NA, {"quantization": "fp8"}, gpus=A100)
    yield Case(products, Status.UNKNOWN, "flags", flags({"quantization": "fp8"}, gpus="nodes=1"))
    deep = "deepgemm"
    yield from of(deep, ON, {"tp_size": 8}, "SGLANG_ENABLE_JIT_DEEPGEMM=1", model=LATENT, gpus=H200)
    yield from of(
        deep,
        ADVISED,
        {"tp_size": 8},
        "DEEPGEMM",
        "SGLANG_ENABLE_JIT_DEEPGEMM=1",
        model=LATENT,
        gpus=H200,
        start="SGLANG_ENABLE_JIT_DEEPGEMM=0 ",
    )
    yield from of(deep, NA, {})
    yield from of(deep, NA, {}, model=QWEN_FP8, gpus="gres=gpu:l40s:1")


def _cache() -> Iterator[Case]:
    eviction = "eviction-policy"
    yield from of(eviction, ON, {}, "radix_eviction_policy=lru")
    yield from of(eviction, ON, {"radix_eviction_policy": "lfu"}, "lfu")
    yield from of(eviction, ON, {}, "LRU", pin="0.4.6")
    yield from of(eviction, NA, {"disable_radix_cache": True})
    lpm = "schedule-policy-lpm"
    yield from of(lpm, ON, {"schedule_policy": "lpm"}, "lpm")
    yield from of(lpm, ON, {}, "schedule_policy=lpm", pin="0.4.3")
    yield from of(lpm, OFF, {})
    yield from of(lpm, NA, {"disable_radix_cache": True})
    chunked = "chunked-prefix-cache"
    yield from of(chunked, ON, SPREAD, "disable_chunked_prefix_cache=False", model=LATENT)
    yield from of(
        chunked, ADVISED, {**SPREAD, "disable_chunked_prefix_cache": True}, "chunked", model=LATENT
    )
    yield from of(chunked, NA, {})
    yield from of(chunked, NA, {"tp_size": 8, "attention_backend": "triton"}, model=LATENT)
    yield from of("max-total-tokens", ON, {"max_total_tokens": 65536}, "65536")
    yield from of("max-total-tokens", OFF, {})
    yield from of("cpu-offload", ON, {"cpu_offload_gb": 16}, "16")
    yield from of("cpu-offload", OFF, {})
    yield from of("cpu-offload", NA, {}, pin="0.3.0")


def _parallel() -> Iterator[Case]:
    attention = "dp-attention"
    yield from of(attention, ON, SPREAD, "attn_dp_size", model=LATENT)
    older = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
    yield from of(attention, ON, older, "dp_attention", model=LATENT, pin="0.5.10")
    yield from of(
        attention, ADVISED, {"tp_size": 8}, "", "dp", model=LATENT, fronts="flags yaml python"
    )
    yield from of(
        attention,
        ADVISED,
        {"tp_size": 8},
        writes="dp_attention",
        model=LATENT,
        pin="0.5.3",
        fronts="python",
    )
    yield from of(attention, OFF, {"tp_size": 8, "max_running_requests": 16}, model=LATENT)
    yield from of(attention, OFF, {"tp_size": 4}, model="deepseek-ai/DeepSeek-V2-Lite-Chat")
    yield from of(attention, NA, {"tp_size": 8})
    yield from of(attention, NA, {}, model=LATENT, pin="0.3.0")
    served = "python -m sglang_router.launch_server"
    copies = {"dp_size": 4}
    for item in ("router", "router-cache-aware"):
        shows = "launch_server" if item == "router" else "cache_aware"
        yield Case(item, ON, "servers", flags(copies, module=served), shows)
        shows = "launch_router" if item == "router" else "cache_aware"
        yield Case(item, ON, "router", router({}), shows)
    yield from of("router", ADVISED, copies, "dp", "sglang_router.launch_server", fronts=SERVED)
    yield from of("router", NA, {})
    yield from of("router-cache-aware", NA, {})
    named = {"dp_size": 4, "router_policy": "random"}
    yield Case(
        "router-cache-aware",
        ADVISED,
        "servers",
        flags(named, module=served),
        "random",
        "--router-policy cache_aware",
    )
    yield Case(
        "router-cache-aware",
        ADVISED,
        "router",
        router({"policy": "round_robin"}),
        "round_robin",
        "--policy cache_aware",
    )
    yield Case("router-cache-aware", OFF, "router", router({"policy": "power_of_two"}))
    yield from of("multi-node", ON, NODES, "nnodes", model=LATENT, fronts=SERVED)
    yield from of("multi-node", NA, {})
    for item, name in (("nvls", "enable_nccl_nvls"), ("symmetric-memory", "enable_symm_mem")):
        yield from of(item, ON, {"tp_size": 8, name: True}, name[7:11], model=LARGE)
        yield from of(item, OFF, {"tp_size": 8}, model=LARGE)
        yield from of(item, NA, {})
        yield from of(item, NA, {"tp_size": 8}, model=LARGE, gpus=A100)
    deep = "deepep-parameters"
    yield from of(deep, ON, SPREAD, "deepep_mode=auto", model=LATENT)
    yield from of(deep, ON, {**SPREAD, "deepep_mode": "low_latency"}, "low_latency", model=LATENT)
    normal = {**SPREAD, "deepep_mode": "normal"}
    yield from of(deep, ADVISED, normal, "normal", "auto", model=LATENT)
    apart = {**normal, "disaggregation_mode": "prefill"}
    yield from of(deep, ON, apart, "normal", model=LATENT, fronts=SERVED)
    yield from of(deep, NA, {})


def _rlhf() -> Iterator[Case]:
    paused = "    engine.pause_generation()\n"
    yield Case("pause-generation", ON, "python", sampled({}, paused), "pause_generation")
    yield Case("pause-generation", OFF, "python", sampled({}))
    yield from of("pause-generation", OFF, {}, fronts="verl")
    yield from of("pause-generation", NA, {})
    exact = "deterministic-inference"
    yield from of(
        exact, ON, {"enable_deterministic_inference": True}, "deterministic", fronts="sampled verl"
    )
    yield from of(exact, OFF, {}, fronts="sampled verl")
    yield from of(exact, NA, {}, pin="0.4.6", fronts="sampled")
    yield from of(exact, NA, {})
    lent = {"enable_memory_saver": True}
    backed = {**lent, "enable_weights_cpu_backup": True}
    yield from of("cpu-weight-backup", ON, backed, "backup", fronts="sampled")
    yield from of("cpu-weight-backup", OFF, lent, fronts="sampled")
    yield from of("cpu-weight-backup", NA, {}, fronts="sampled flags")
    forked = {
        "load_format": "remote_instance",
        "remote_instance_weight_loader_seed_instance_ip": "10.0.0.1",
    }
    yield from of("remote-fork", ON, forked, "remote_instance")
    yield from of("remote-fork", OFF, {}, fronts="sampled verl")
    yield from of("remote-fork", NA, {})


def _serving() -> Iterator[Case]:
    drafts = {"speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "a/b"}
    yield from of("spec-v2", ON, drafts, "V2")
    yield from of("spec-v2", ON, drafts, "SPEC_V2", pin="0.5.10", start="SGLANG_ENABLE_SPEC_V2=1 ")
    yield from of("spec-v2", OFF, {**drafts, "speculative_eagle_topk": 1}, pin="0.5.10")
    yield from of("spec-v2", OFF, {**drafts, "disable_overlap_schedule": True}, "overlap")
    yield from of("spec-v2", NA, {})
    yield from of("structured-output", ON, {}, "grammar_backend=xgrammar")
    yield from of("structured-output", ON, {"grammar_backend": "llguidance"}, "llguidance")
    yield from of("structured-output", ADVISED, {"grammar_backend": "outlines"}, "outlines", "xgr")
    yield from of("structured-output", OFF, {}, pin="0.4.3")
    yield from of("structured-output", NA, {}, pin="0.3.0")
    yield from of("metrics", ON, {"enable_metrics": True}, "metrics", fronts="flags yaml pod")
    yield from of("metrics", OFF, {}, fronts=SERVED)
    yield from of("metrics", ADVISED, {}, writes="--enable-metrics", fronts="pod")
    yield from of("metrics", NA, {}, fronts="python")
    yield from of("watchdog", ON, {}, "watchdog_timeout=300")
    yield from of("watchdog", OFF, {"watchdog_timeout": 1000000}, "1000000")
    yield from of("watchdog", NA, {}, pin="0.3.0")
    yield from of("hisparse", ON, {"tp_size": 8, "enable_hisparse": True}, "hisp", model=SPARSE)
    yield from of("hisparse", OFF, {"tp_size": 8}, model=SPARSE)
    yield from of("hisparse", NA, {})
    yield from of("hybrid-backend", ON, {"prefill_attention_backend": "fa3"}, "fa3")
    yield from of("hybrid-backend", OFF, {})
    yield from of("hybrid-backend", NA, {}, pin="0.4.6")


def _environment() -> Iterator[Case]:
    item = "schedule-conservativeness"
    yield from of(item, ON, {"schedule_conservativeness": 0.3}, "0.3")
    yield from of(item, OFF, {})
    yield Case(item, NA, "router", router({}))
    clip = "max-new-tokens-clip"
    yield from of(clip, ON, {}, "=4096")
    yield from of(clip, ON, {}, "2048", start="SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION=2048 ")
    yield Case(clip, NA, "router", router({}))
    memory = "shared-memory"
    yield Case(memory, ON, "docker", container({"tp_size": 2}, "--shm-size 32g"), "--shm-size")
    yield Case(memory, ON, "docker", container({"tp_size": 2}, "--ipc=host"), "--ipc=host")
    yield Case(memory, ADVISED, "docker", container({"tp_size": 2}), "", "--shm-size 32g")
    yield Case(memory, OFF, "docker", container({}))
    yield from of(memory, NA, {})
    near = "container-affinity"
    yield from of(near, ON, {}, "AFFINITY", start="SGLANG_SET_CPU_AFFINITY=1 ")
    yield from of(near, ON, {}, "numactl", start="numactl --cpunodebind=0 --membind=0 ")
    yield from of(near, OFF, {})
    yield Case(near, NA, "router", router({}))


CASES = (*_compute(), *_cache(), *_parallel(), *_rlhf(), *_serving(), *_environment())
assert PARTLY  # for the items that other checks serve as well
