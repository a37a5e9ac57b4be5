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


def slime(more: str = "", gpus: int = 2) -> Files:
    """A run of slime, whose engines its program starts."""
    command = "ray job submit -- python3 train.py --hf-checkpoint /root/Qwen3-4B "
    command += f"--rollout-num-gpus-per-engine {gpus} --sglang-mem-fraction-static 0.7 {more}"
    program = "from sglang.srt.server_args import ServerArgs\n"
    program += "from slime.utils.arguments import parse_args\n\n"
    program += "server = ServerArgs(**vars(parse_args()))\n"
    return {"run.sh": script(command), "train.py": program}


def container(options: Mapping[str, Any], run: str = "", model: str = QWEN) -> Files:
    """``docker run`` with the project's image."""
    given = " ".join(_flag(name, value) for name, value in options.items())
    start = f"docker run --gpus all {run} lmsysorg/sglang:v0.5.23 "
    return {"serve.sh": script(f"{start}{MODULE} --model-path {model} {given}", H100)}


def compose(options: Mapping[str, Any], setting: str = "") -> Files:
    """A service of docker compose."""
    given = " ".join(_flag(name, value) for name, value in options.items())
    lines = ["services:", "  llm:", "    image: lmsysorg/sglang:v0.5.23"]
    lines += [f"    command: {MODULE} --model-path {QWEN} {given}"]
    return {"docker-compose.yml": "\n".join([*lines, *([f"    {setting}"] if setting else []), ""])}


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


def router(
    options: Mapping[str, Any], servers: str = "--worker-urls http://a:30000 http://b:30000"
) -> Files:
    """A router alone."""
    given = " ".join(_flag(name, value) for name, value in options.items())
    command = f"python -m sglang_router.launch_router {servers} {given}"
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
    for device in ("npu", "xpu", "cpu"):
        elsewhere = flags({"device": device}, gpus="")
        yield Case(graphs, NA, "flags", elsewhere)
    asked = {"device": "npu", "cuda_graph_backend_prefill": "tc_piecewise"}
    yield Case(graphs, ON, "flags", flags(asked, gpus=""), "tc_piecewise")
    left = {"device": "npu", "disable_prefill_cuda_graph": True}
    yield Case(graphs, OFF, "flags", flags(left, gpus=""), "prefill_cuda_graph")
    ahead = "overlap-schedule"
    yield from of(ahead, ON, {}, "disable_overlap_schedule=False")
    yield from of(ahead, ON, {}, "SGLang 0.4.3", pin="0.4.3")
    yield from of(ahead, ADVISED, {"disable_overlap_schedule": True}, "overlap")
    yield from of(ahead, NA, {"pp_size": 2})
    hybrid, older = "Qwen/Qwen3-Next-80B-A3B-Instruct", {"pin": "0.5.10"}
    yield from of(ahead, ON, {"tp_size": 4}, "disable_overlap_schedule=False", model=hybrid)
    yield from of(ahead, NA, {"tp_size": 4}, model=hybrid, **older)
    lone = {"tp_size": 4, "mamba_radix_cache_strategy": "no_buffer"}
    yield from of(ahead, NA, lone, model=hybrid, fronts=SERVED)
    off = flags({"disable_overlap_schedule": True, "device": "cpu"}, gpus="")
    yield Case(ahead, OFF, "flags", off, "overlap")
    yield from of(graphs, NA, {}, model="Qwen/Qwen2.5-VL-7B-Instruct")
    yield from of(graphs, ON, {"tp_size": 8}, "breakable", model="Qwen/Qwen3.5-397B-A17B")
    yield from of(ahead, NA, {"speculative_algorithm": "EAGLE"}, pin="0.5.3")
    yield from of(ahead, OFF, {"disable_overlap_schedule": True, "pp_size": 2}, "overlap")
    halves = "two-batch-overlap"
    yield from of(halves, ON, {**SPREAD, "enable_two_batch_overlap": True}, "two", model=LATENT)
    yield from of(
        halves, ADVISED, NODES, writes="two", fronts="flags yaml", model=LATENT, gpus=H200
    )
    yield from of(halves, OFF, SPREAD, model=LATENT)
    yield from of(halves, OFF, NODES, model="zai-org/GLM-4.6", gpus=H200)
    yield from of(halves, NA, {**NODES, "moe_a2a_backend": "megamoe"}, model=LATENT, gpus=H200)
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
    somewhere = flags({"quantization": "fp8"}, gpus="nodes=1")
    yield Case(products, ON, "flags", somewhere, "fp8_gemm_runner_backend=auto")
    older = flags({"quantization": "fp8"}, gpus="nodes=1", pin="0.5.6")
    yield Case(products, Status.UNKNOWN, "flags", older)
    npu = {"quantization": "fp8", "device": "npu"}
    yield Case(products, NA, "flags", flags(npu, gpus=""))
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
    for folder in ("/root/Qwen3-8B-FP8", "/root/Qwen3-8B-FP8/"):
        yield from of(deep, ON, {}, "SGLANG_ENABLE_JIT_DEEPGEMM=1", model=folder, gpus=H200)
    yield from of(deep, NA, {}, model=QWEN_FP8, gpus="gres=gpu:l40s:1")
    hopper, any_gpu = (
        {"tp_size": 8, "attention_backend": "fa3"},
        {"gpus": "nodes=1", "fronts": "flags yaml"},
    )
    yield from of(deep, ON, hopper, "JIT_DEEPGEMM=1", model=LATENT, **any_gpu)
    yield from of(products, ON, hopper, "DeepSeek-V3", model=LATENT, **any_gpu)
    yield from of(deep, Status.UNKNOWN, hopper, model=QWEN_FP8, **any_gpu)
    yield from of(deep, Status.UNKNOWN, {"tp_size": 8}, model=LATENT, **any_gpu)


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
    yield from of(chunked, NA, {"attention_backend": "ascend"}, model="$MODEL", fronts="flags")
    yield from of(chunked, NA, {"device": "npu"}, model="$MODEL", fronts="flags")
    yield from of(chunked, Status.UNKNOWN, {}, model="$MODEL", fronts="flags")
    yield from of("max-total-tokens", ON, {"max_total_tokens": 65536}, "65536")
    yield from of("max-total-tokens", OFF, {})
    sizes = {"context_length": 32000, "max_running_requests": 32}
    cut = {**sizes, "max_total_tokens": 32768}
    for front, written in (("flags", "--max-total-tokens 32768"), ("yaml", "max_total_tokens")):
        yield from of("max-total-tokens", ADVISED, cut, "32768", written, fronts=front)
    wide = {**sizes, "max_total_tokens": 65536}
    yield from of("max-total-tokens", ON, wide, "65536", fronts=SERVED)
    alone = {**cut, "max_running_requests": 1}
    yield from of("max-total-tokens", ON, alone, "32768", fronts=SERVED)
    yield Case("max-total-tokens", NA, "router", router({}))
    yield from of("cpu-offload", ON, {"cpu_offload_gb": 16}, "16")
    yield from of("cpu-offload", OFF, {})
    yield from of("cpu-offload", NA, {}, pin="0.3.0")


def _parallel() -> Iterator[Case]:
    attention = "dp-attention"
    yield from of(attention, ON, SPREAD, "attn_dp_size", model=LATENT)
    older = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True}
    yield from of(attention, ON, older, "dp_size=8", model=LATENT, pin="0.5.10")
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
    alone = "--pd-disaggregation --prefill http://a:30000 8998 --decode http://b:30000"
    for servers in ("--worker-urls http://a:30000", f"{alone} --decode http://c:30000"):
        files = router({"policy": "round_robin"}, servers)
        yield Case("router-cache-aware", NA, "router", files)
    several = router({"policy": "round_robin"}, f"{alone} --prefill http://c:30000 8998")
    yield Case("router-cache-aware", ADVISED, "router", several, "round_robin")
    yield from of("multi-node", ON, NODES, "nnodes", model=LATENT, fronts=SERVED)
    yield from of("multi-node", NA, {})
    for item, name in (("nvls", "enable_nccl_nvls"), ("symmetric-memory", "enable_symm_mem")):
        yield from of(item, ON, {"tp_size": 8, name: True}, name[7:11], model=LARGE)
        yield from of(item, OFF, {"tp_size": 8}, model=LARGE)
        yield from of(item, NA, {})
        yield from of(item, NA, {"tp_size": 8}, model=LARGE, gpus=A100)
    symmetric = "symmetric-memory"
    for options, status in (({"device": "npu"}, NA), ({"attention_backend": "aiter"}, OFF)):
        yield Case(symmetric, status, "flags", flags({"tp_size": 8, **options}, gpus=""))
        yield Case("nvls", NA, "flags", flags({"tp_size": 8, **options}, gpus=""))
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
    for more in ("--colocate", ""):
        yield Case("pause-generation", ON, "slime", slime(more), "pause_generation")
    asynchronous = "verl.experimental.fully_async_policy.fully_async_main"
    own = verl({})["run.sh"].replace("verl.trainer.main_ppo", asynchronous)
    yield Case("pause-generation", ON, "verl", {"run.sh": own}, "pause_generation")
    apart = verl({})["run.sh"].replace("trainer.nnodes", f"{_APART}=False trainer.nnodes")
    yield Case("pause-generation", ON, "verl", {"run.sh": apart}, "pause_generation")
    yield Case("router", ON, "slime", slime(), "sglang_router")
    named = slime("--sglang-router-ip 10.0.0.1")
    yield Case("router", ON, "slime", named, "--sglang-router-ip 10.0.0.1")
    yield Case("router-cache-aware", ON, "slime", slime(), "cache_aware")
    yield Case("multi-node", ON, "slime", slime("", 16), "--rollout-num-gpus-per-engine 16")
    yield Case("multi-node", NA, "slime", slime("--num-gpus-per-node 16", 16))
    exact = "deterministic-inference"
    yield from of(
        exact, ON, {"enable_deterministic_inference": True}, "deterministic", fronts="sampled verl"
    )
    yield from of(exact, OFF, {}, fronts="sampled verl")
    yield from of(exact, NA, {}, pin="0.4.6", fronts="sampled")
    yield from of(exact, NA, {})
    yield from of(exact, ON, {"enable_deterministic_inference": True}, fronts=SERVED)
    lent = {"enable_memory_saver": True}
    backed = {**lent, "enable_weights_cpu_backup": True}
    yield from of("cpu-weight-backup", ON, backed, "backup", fronts="sampled")
    yield from of("cpu-weight-backup", OFF, lent, fronts="sampled")
    yield from of("cpu-weight-backup", NA, {}, fronts="sampled flags")
    yield from of("cpu-weight-backup", ON, {}, "enable_weights_cpu_backup=True", fronts="verl")
    yield Case("cpu-weight-backup", OFF, "slime", slime("--colocate"))
    yield Case("cpu-weight-backup", NA, "slime", slime())
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
    yield from of("metrics", OFF, {}, fronts="verl")
    yield Case("metrics", ON, "slime", slime())
    yield Case("yaml-config", OFF, "slime", slime())
    yield Case("yaml-config", ON, "slime", slime("--sglang-config a.yaml"), "--sglang-config")
    yield from of("watchdog", ON, {}, "watchdog_timeout=300")
    yield from of("watchdog", OFF, {"watchdog_timeout": 1000000}, "1000000")
    yield from of("watchdog", ON, {"watchdog_timeout": 9000}, "9000")
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
    two = {"tp_size": 2}
    yield Case(memory, ON, "compose", compose(two, "ipc: host"), "ipc")
    yield Case(memory, ON, "compose", compose(two, "shm_size: 16gb"), "16gb")
    yield Case(memory, ADVISED, "compose", compose(two), "", "shm_size: 32g")
    yield Case(memory, OFF, "compose", compose({}))
    yield from of(memory, NA, {})
    near = "container-affinity"
    yield from of(near, ON, {}, "AFFINITY", start="SGLANG_SET_CPU_AFFINITY=1 ")
    yield from of(near, ON, {}, "numactl", start="numactl --cpunodebind=0 --membind=0 ")
    yield from of(near, ON, {}, "NUMA")
    yield from of(near, OFF, {}, pin="0.5.3")
    yield from of(near, OFF, {}, start="SGLANG_AUTO_NUMA_BIND=0 ", fronts="flags")
    yield Case(near, NA, "router", router({}))


def _graphs() -> Iterator[Case]:
    item = "cuda-graph-max-bs"
    yield from of(item, ON, {}, "cuda_graph_max_bs")
    yield from of(item, ON, {"cuda_graph_max_bs_decode": 256}, "256")
    yield from of(item, ON, {"cuda_graph_max_bs": 64}, "64", pin="0.5.3")
    marked = {"enable_layerwise_nvtx_marker": True, "disable_cuda_graph": True}
    yield from of(item, OFF, marked, fronts=SERVED)
    metal = flags({"disable_cuda_graph": True}, gpus="", start="SGLANG_USE_MLX=1 ")
    yield Case(item, OFF, "flags", metal, "disable_cuda_graph")
    yield from of(item, OFF, {"attention_backend": "torch_native"}, "torch_native")
    yield from of(item, NA, {}, model="google/embeddinggemma-300m", fronts=SERVED)
    yield from of(
        item, ADVISED, {"disable_cuda_graph": True}, "disable", fronts="flags yaml python"
    )
    full = {"disable_cuda_graph": True, "mem_fraction_static": 0.97}
    yield from of(item, OFF, full, "disable")
    small = {"max_running_requests": 128, "cuda_graph_max_bs_decode": 16}
    yield from of(item, PARTLY, small, "16", "128")
    apart = {"disaggregation_mode": "prefill"}
    yield from of(item, NA, apart, fronts=SERVED)
    yield from of("torch-compile", ON, {"enable_torch_compile": True}, "compile")
    yield from of("torch-compile", OFF, {})
    yield Case("torch-compile", NA, "router", router({}))


def _memory() -> Iterator[Case]:
    share = "mem-fraction-static"
    yield from of(share, ON, {}, "mem_fraction_static")
    yield from of(share, ON, {"mem_fraction_static": 0.9}, "0.9")
    yield from of(share, ON, {"mem_fraction_static": 0.5}, "0.5", fronts="sampled")
    yield from of(share, PARTLY, {"mem_fraction_static": 0.9}, "0.9", "0.6", fronts="sampled")
    lent = {"mem_fraction_static": 0.85, "enable_memory_saver": True}
    yield from of(share, ON, lent, "0.85", fronts="sampled")
    greedy = f"{_FREE}=False actor_rollout_ref.rollout.gpu_memory_utilization=0.9 trainer.nnodes"
    kept = {"run.sh": verl({})["run.sh"].replace("trainer.nnodes", greedy)}
    yield Case(share, PARTLY, "verl", kept, "0.9", "gpu_memory_utilization=0.6")
    yield Case(share, NA, "router", router({}))
    yield from of("context-length", ON, {"context_length": 8192}, "8192")
    yield from of("context-length", OFF, {})
    yield Case("context-length", NA, "router", router({}))
    kind = "kv-cache-dtype"
    yield from of(kind, ON, {"kv_cache_dtype": "fp8_e4m3"}, "fp8_e4m3")
    yield from of(kind, OFF, {})
    yield from of(kind, NA, {}, gpus=A100)
    yield Case(kind, OFF, "flags", flags({"device": "npu"}, gpus=""))
    chunks = "chunked-prefill-size"
    yield from of(chunks, ON, {}, "chunked_prefill_size")
    yield from of(chunks, ON, {"chunked_prefill_size": 4096}, "4096")
    yield from of(chunks, ADVISED, {"chunked_prefill_size": -1}, "-1", "8192")
    whole = {"chunked_prefill_size": -1}
    yield from of(chunks, OFF, whole, "-1", model="openbmb/MiniCPM-V-4.6", fronts=SERVED)
    yield Case(chunks, OFF, "flags", flags({**whole, "device": "npu"}, gpus=""), "-1")
    yield Case(chunks, NA, "router", router({}))
    yield from of(chunks, NA, {"disaggregation_mode": "decode"}, fronts=SERVED)
    yield from of(chunks, ON, {"disaggregation_mode": "prefill"}, "chunked", fronts=SERVED)
    running = "max-running-requests"
    yield from of(running, ON, {}, "max_running_requests")
    yield from of(running, ON, {"max_running_requests": 128}, "128")
    yield from of(running, OFF, {"max_running_requests": 1}, "1")
    yield Case(running, NA, "router", router({}))
    yield from of("hicache", ON, {"enable_hierarchical_cache": True}, "hier")
    yield from of("hicache", OFF, {})
    yield from of("hicache", NA, {"disable_radix_cache": True})
    yield from of("hicache", NA, {}, pin="0.4.0")


def _prefixes() -> Iterator[Case]:
    radix = "radix-cache"
    yield from of(radix, ON, {}, "disable_radix_cache=False")
    yield from of(radix, ADVISED, {"disable_radix_cache": True}, "radix")
    yield from of(radix, ADVISED, {"disable_radix_cache": True}, "radix", fronts="sampled")
    yield from of(radix, NA, {"disaggregation_mode": "decode"}, fronts=SERVED)
    yield from of(radix, OFF, {"disable_radix_cache": True}, model="Qwen/Qwen3-Embedding-8B")
    yield from of("page-size", ON, {"page_size": 64}, "64")
    yield from of("page-size", OFF, {})
    yield from of("page-size", ON, {"attention_backend": "flashmla"}, "page_size=64", model=LATENT)
    yield from of("page-size", ON, {"tp_size": 8}, "page_size=64", model=SPARSE)
    yield Case("page-size", ON, "flags", flags({"device": "npu"}, gpus=""), "page_size=128")
    yield from of("page-size", NA, {}, pin="0.4.3")


def _groups() -> Iterator[Case]:
    tensor, copied = "tensor-parallel", "data-parallel"
    yield from of(tensor, ON, {"tp_size": 4}, "tp", model=LARGE)
    yield from of(tensor, OFF, {})
    yield from of(tensor, NA, {}, gpus=ONE)
    yield from of(copied, ON, {"dp_size": 2}, "dp")
    yield from of(copied, ON, SPREAD, "attn_dp", model=LATENT)
    yield from of(copied, OFF, {})
    yield from of(copied, NA, {}, gpus=ONE)
    yield from of("pipeline-parallel", ON, {"pp_size": 2}, "pp", model=LARGE)
    yield from of("pipeline-parallel", OFF, {})
    yield from of("pipeline-parallel", NA, {}, gpus=ONE)
    experts = "expert-parallel"
    yield from of(experts, ON, SPREAD, "deepep", model=LATENT)
    yield from of(experts, ON, {"tp_size": 8, "ep_size": 8}, "ep", model=MIXTURE)
    nodes = {name: value for name, value in NODES.items() if name != "moe_a2a_backend"}
    yield from of(experts, ADVISED, nodes, writes="deepep", model=LATENT, gpus=H200)
    yield from of(experts, OFF, {"tp_size": 8}, model=MIXTURE)
    yield from of(experts, NA, {"tp_size": 8}, model=LARGE)
    yield from of(experts, NA, {}, model="$MODEL", fronts="flags")
    spread = {"tp_size": 8, "moe_a2a_backend": "deepep"}
    yield from of("two-batch-overlap", OFF, spread, model="$MODEL", fronts="flags")
    yield from of("single-batch-overlap", OFF, spread, model="$MODEL", fronts="flags")


def _weights() -> Iterator[Case]:
    yield from of("fp8-online", ON, {"quantization": "fp8"}, "fp8")
    yield from of("fp8-online", ADVISED, {}, writes="fp8", fronts=SERVED)
    yield from of("fp8-online", ADVISED, {}, fronts="python")
    yield from of("fp8-online", OFF, {}, fronts="sampled verl")
    yield from of("fp8-online", OFF, {}, gpus=A100)
    yield from of("prequantized", ON, {}, "Qwen3-8B-FP8", model=QWEN_FP8)
    yield from of("prequantized", ON, {"tp_size": 8}, "DeepSeek-V3", model=LATENT)
    for item, name in (
        ("awq-gptq-marlin", "awq_marlin"),
        ("bitsandbytes", "bitsandbytes"),
        ("modelopt", "modelopt_fp4"),
        ("moe-wna16", "moe_wna16"),
    ):
        yield from of(item, ON, {"quantization": name}, name, model=MIXTURE)
        yield from of(item, OFF, {"quantization": "fp8"}, model=MIXTURE)
    yield from of("moe-wna16", NA, {})
    yield from of("awq-gptq-marlin", ON, {}, "AWQ", model="Qwen/Qwen3-8B-AWQ", gpus=SMALL)
    yield from of("torchao", ON, {"torchao_config": "int4wo-128"}, "int4wo", pin="0.4.6")
    yield from of("torchao", OFF, {"quantization": "fp8"}, pin="0.5.15")
    yield from of("torchao", NA, {"quantization": "fp8"})
    yield from of("awq-gptq-marlin", ADVISED, {}, gpus=A100, fronts=SERVED)
    yield from of("prequantized", ON, {}, "Kimi-K2.5", model="moonshotai/Kimi-K2.5")
    for own in ("prequantized", "awq-gptq-marlin", "bitsandbytes", "modelopt"):
        yield from of(own, OFF, {}, fronts=SERVED)
    yield Case("fp8-online", ADVISED, "flags", flags({}, gpus="nodes=1"))
    yield Case("fp8-online", OFF, "flags", flags({"device": "npu"}, gpus=""))
    yield from of("prequantized", OFF, {"quantization": "fp8"})
    for item in ("fp8-online", "prequantized", "awq-gptq-marlin", "bitsandbytes", "modelopt"):
        yield Case(item, NA, "router", router({}))
    for item in ("torchao", "moe-wna16"):
        yield Case(item, NA, "router", router({}))


def _attention() -> Iterator[Case]:
    heads, latent, sparse, third = "mha-backend", "mla-backend", "dsa-backend", "fa3-kernel"
    yield from of(heads, ON, {}, "attention_backend=fa3")
    yield from of(heads, ON, {}, "attention_backend=flashinfer", gpus=A100)
    yield from of(heads, ON, {"attention_backend": "triton"}, "triton", gpus=A100)
    yield from of(heads, ADVISED, {"attention_backend": "torch_native"}, "torch_native")
    yield from of(heads, NA, {"tp_size": 8}, model=LATENT)
    untold = {"attention_backend": "ascend"}
    yield from of(heads, Status.UNKNOWN, untold, model="$MODEL", fronts="flags")
    yield from of(latent, Status.UNKNOWN, untold, model="$MODEL", fronts="flags")
    yield from of(heads, ON, untold, "ascend", fronts="flags")
    yield from of(latent, ON, {"tp_size": 8}, "attention_backend=fa3", model=LATENT)
    flashmla = {"tp_size": 8, "attention_backend": "flashmla"}
    yield from of(latent, ON, flashmla, "flashmla", model=LATENT)
    yield from of(latent, OFF, {"tp_size": 8, "disable_mla": True}, model=LATENT, pin="0.4.3")
    yield from of(latent, NA, {})
    yield from of(sparse, ON, {"tp_size": 8}, "DSA", model=SPARSE)
    chosen = {"tp_size": 8, "dsa_prefill_backend": "flashmla_sparse"}
    yield from of(sparse, ON, chosen, "flashmla_sparse", model=SPARSE)
    yield from of(sparse, NA, {})
    yield from of(sparse, NA, {"tp_size": 8}, model=LATENT)
    yield from of(third, ON, {}, "attention_backend=fa3")
    yield from of(third, ON, {"attention_backend": "fa3"}, "fa3")
    yield from of(third, ADVISED, {"attention_backend": "triton"}, "triton")
    exact = {"attention_backend": "triton", "enable_deterministic_inference": True}
    yield from of(third, OFF, exact, "triton")
    yield from of(third, NA, {}, gpus=A100)
    yield from of(third, NA, {}, pin="0.4.3")
    yield Case(
        third, OFF, "flags", flags({"attention_backend": "triton"}, gpus="nodes=1"), "triton"
    )
    yield Case(third, Status.UNKNOWN, "flags", flags({}, gpus="nodes=1"))
    yield Case(third, NA, "flags", flags({"device": "npu"}, gpus=""))
    yield from of(third, OFF, {}, fronts="verl")
    yield from of(third, ON, {}, "fa3", fronts="verl", pin="0.5.10")
    yield from of(heads, ON, {}, "attention_backend=flashinfer", fronts="verl")
    math = "deepseek-ai/DeepSeek-Math-V2"
    yield from of(sparse, ON, {"tp_size": 8}, "DSA", model=math)
    yield from of(latent, NA, {"tp_size": 8}, model=math)
    named, none = '"$HOME/models/Qwen3.5-35B-A3B"', '"$HOME/models"'
    yield from of(latent, NA, {"tp_size": 8}, model=named, fronts="flags verl")
    yield from of(latent, Status.UNKNOWN, {"tp_size": 8}, model=none, fronts="flags verl")


def _drafts() -> Iterator[Case]:
    head = {"speculative_draft_model_path": "a/b"}
    for item, name, more in (
        ("eagle3", "EAGLE3", head),
        ("eagle2", "EAGLE", head),
        ("standalone", "STANDALONE", head),
        ("ngram", "NGRAM", {}),
    ):
        yield from of(item, ON, {"speculative_algorithm": name, **more}, name)
        yield from of(item, OFF, {})
        yield from of(item, NA, {}, pin="0.3.0")
    glm = "zai-org/GLM-4.5-Air"
    own = {"tp_size": 8, "speculative_algorithm": "EAGLE"}
    yield from of("mtp", ON, own, "EAGLE", model=glm)
    for model in ("zai-org/GLM-5.1-FP8", "$MODEL"):
        yield from of("mtp", ON, own, "EAGLE", model=model, fronts="flags")
        yield from of("eagle2", OFF, own, model=model, fronts="flags")
    spoken = f"{_MTP}.enable=True {_MTP}.enable_rollout=True trainer.nnodes"
    files = {"run.sh": verl({})["run.sh"].replace("trainer.nnodes", spoken)}
    yield Case("mtp", ON, "verl", files, "enable_rollout")
    yield from of("mtp", NA, {}, fronts="verl")
    yield from of("mtp", NA, {}, model="google/embeddinggemma-300m", fronts=SERVED)
    yield from of("mtp", ON, {**own, "speculative_algorithm": "NEXTN"}, "NEXTN", model=LATENT)
    yield from of("mtp", ADVISED, {"tp_size": 8}, writes="num", model=glm, fronts=SERVED)
    yield from of("mtp", OFF, {"tp_size": 8}, model=glm, fronts="python")
    yield from of("mtp", OFF, {}, model="Qwen/Qwen3-Next-80B-A3B-Instruct", fronts=SERVED)
    yield from of("mtp", NA, {})
    slow = {"attention_backend": "flex_attention"}
    for name in ("mtp", "eagle2", "eagle3", "standalone", "ngram"):
        yield from of(name, NA, slow, fronts="flags")
    yield from of("mtp", NA, {}, pin="0.3.0")


_MTP = "actor_rollout_ref.model.mtp"
_TRAINS = "    engine.release_memory_occupation()\n"


def _rollouts() -> Iterator[Case]:
    saver = "memory-saver"
    yield from of(saver, ON, {"enable_memory_saver": True}, "memory_saver", fronts="sampled")
    yield Case(saver, ADVISED, "python", sampled({}, _TRAINS), "", "enable_memory_saver=True")
    yield from of(saver, ON, {}, "free_cache_engine", fronts="verl")
    kept = {"run.sh": verl({})["run.sh"].replace("trainer.nnodes", f"{_FREE}=False trainer.nnodes")}
    yield Case(saver, ADVISED, "verl", kept, _FREE, _FREE)
    yield from of(saver, NA, {})
    yield Case(saver, ON, "slime", slime("--colocate"), "enable_memory_saver=True")
    yield Case(saver, NA, "slime", slime())
    yield Case(saver, ON, "slime", slime("--offload"), "--offload")
    yield Case(saver, OFF, "slime", slime("--colocate --no-offload-rollout"), "no-offload")
    disk = "--update-weight-transport disk"
    for item, more, shows in (
        ("weights-from-tensor", "--colocate", "--colocate"),
        ("weights-from-distributed", "", "NCCL"),
        ("weights-from-disk", disk, disk),
        ("weights-from-disk", f"--colocate {disk}", disk),
    ):
        yield Case(item, ON, "slime", slime(more), shows)
    yield Case("weights-from-tensor", OFF, "slime", slime())
    yield Case("weights-from-distributed", OFF, "slime", slime("--colocate"))
    graphs = "piecewise-cuda-graph"
    yield Case(graphs, OFF, "slime", slime("--colocate"))
    yield Case(graphs, ON, "slime", slime(), "breakable")
    by = {
        "weights-from-tensor": "update_weights_from_tensor",
        "weights-from-disk": "update_weights_from_disk",
        "weights-from-distributed": "update_weights_from_distributed",
    }
    for item, method in by.items():
        call = f"    engine.{method}(weights)\n"
        yield Case(item, ON, "python", python({}, more=call), method)
        yield from of(item, NA, {})
    yield from of("weights-from-tensor", ON, {}, "verl", fronts="verl")
    yield from of("weights-from-disk", OFF, {}, fronts="verl sampled")
    yield from of("weights-from-distributed", OFF, {}, fronts="verl sampled")
    other = "    engine.update_weights_from_disk(path)\n"
    yield Case("weights-from-tensor", OFF, "python", python({}, more=other))


_FREE = "actor_rollout_ref.rollout.free_cache_engine"
_APART = "actor_rollout_ref.hybrid_engine"


def _production() -> Iterator[Case]:
    apart = "pd-disaggregation"
    yield from of(apart, ON, {"disaggregation_mode": "prefill"}, "prefill", fronts=SERVED)
    yield Case(apart, ON, "router", router({"pd_disaggregation": True}), "pd-dis")
    yield from of(apart, OFF, {}, fronts=SERVED)
    yield from of(apart, NA, {}, fronts="python")
    yield from of(apart, OFF, {}, fronts="verl")
    yield Case(apart, OFF, "slime", slime())
    yield Case(apart, ON, "slime", slime("--prefill-num-servers 1"), "--prefill-num-servers 1")
    adapters = "lora-serving"
    yield from of(adapters, ON, {"lora_paths": "a=b/c", "max_lora_rank": 16}, "lora")
    yield from of(adapters, OFF, {})
    yield from of(adapters, NA, {}, pin="0.3.0")
    yield Case("yaml-config", ON, "yaml", config({}), "serve.yaml")
    yield Case("yaml-config", ON, "pod", {**pod({"config": "/etc/serve.yaml"})}, "config")
    yield from of("yaml-config", OFF, {}, fronts="flags pod")
    yield from of("yaml-config", NA, {}, fronts="python verl")
    usage = "token-usage-monitoring"
    yield from of(usage, ON, {}, "decode_log_interval=40", fronts=SERVED)
    yield from of(usage, ON, {"enable_metrics": True}, "metrics")
    yield from of(usage, ON, {"log_level": "info"}, "decode_log_interval", fronts="python")
    yield from of(usage, OFF, {"log_level": "error"}, "error")
    yield from of(usage, OFF, {}, fronts="python")
    yield Case(usage, NA, "router", router({}))
    cores = {"serve.sh": flags({"tp_size": 8})["serve.sh"]}
    few = cores["serve.sh"].replace("bash\n", "bash\n#SBATCH --cpus-per-task=4\n", 1)
    many = few.replace("=4", "=64")
    yield Case("cpu-cores", ADVISED, "slurm", {"serve.sh": few}, "cpus-per-task")
    yield Case("cpu-cores", ON, "slurm", {"serve.sh": many}, "cpus-per-task")
    yield Case("cpu-cores", NA, "router", router({}))


CASES = (
    *_compute(),
    *_graphs(),
    *_memory(),
    *_cache(),
    *_prefixes(),
    *_parallel(),
    *_groups(),
    *_weights(),
    *_attention(),
    *_drafts(),
    *_rlhf(),
    *_rollouts(),
    *_serving(),
    *_production(),
    *_environment(),
)
