"""GPU972 to GPU977, GPU989: how SGLang spreads over GPUs, nodes and servers."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import (
    FOREIGN,
    UNSPREAD,
    is_foreign,
    is_lacking,
    is_set,
    lacks,
    of_engine,
    propose,
    sglang_item,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import Snippet, advise, cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._sglang import (
    DOCS,
    LARGE_EP,
    SOURCE,
    V4,
    attention_ranks,
    defaulted,
    dispatches,
    examples,
    generation_of,
    is_for_amd,
    is_latent,
    is_mixture,
    number_of,
    ranks,
    serves,
    speculates,
    variable,
)
from flake8_gpu_training.checks.base import Check, Edit, Impact, Judgement, Priority
from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks.engine_of import starts_router
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.reading import number
from flake8_gpu_training.language import Text

_DPA = f"{DOCS}/dp_dpa_smg_guide"
_GATEWAY = f"{DOCS}/sgl_model_gateway"
_ROUTER = "sglang-router 0.3.2, router_args.py and launch_server.py"
_SPREAD = 8
"""Ranks from which on a latent KV cache, whole on each, is worth splitting by requests."""

# --- GPU972: attention by requests, not by heads -----------------------------------------------

_ONE_HEAD = re.compile(r"(?i)deepseek-v4")  # SGLang 0.5.23, models/deepseek_v4.py


def _attention(engine: Engine) -> Judgement:
    names = ("attn_dp_size", "enable_dp_attention")
    if is_lacking(engine, *names):
        return lacks(engine)
    setting = attention_ranks(engine)
    if not setting.known:
        return cannot_tell(setting)
    groups = number(setting.value)
    if groups is not None and groups > 1:
        return on(setting)
    size, latent = ranks(engine), is_latent(engine)
    if size == 1:
        return cannot_apply(UNSPREAD)
    if latent is False and _ONE_HEAD.search(engine.run.model.name or ""):
        return off(
            Text(
                "可选：只有一个 KV 头，每卡都存一份；并发高时用",
                "optional: its one head of keys and values is kept on each GPU; for many requests",
            ),
            setting,
        )
    if latent is False:
        return cannot_apply(
            Text("不是 MLA 模型，KV 按头切分", "no MLA: heads of the KV cache are split")
        )
    if latent is None or size is None:
        return cannot_tell(Text("模型或张量并行未知", "the model, or its ranks, are not known"))
    if size < _SPREAD or speculates(engine) is not False or _is_small(engine):
        return off(
            Text("可选：低延迟、小批量时不用", "optional: not for low latency and small batches"),
            setting,
        )
    return propose(
        engine,
        f"each of {size:g} ranks keeps the whole latent KV cache, so that batches stay small",
        Text("MLA 的 KV 缓存在每张卡上重复", "each GPU keeps the same latent KV cache"),
        Text("开启 DP attention", "split attention by requests (DP attention)"),
        _spread(engine, int(size)),
    )


def _spread(engine: Engine, size: int) -> dict[str, object]:
    if engine.parameter("attn_dp_size") is not None:
        return {"attn_dp_size": size}
    return {"enable_dp_attention": True, "dp_size": size}


def _is_small(engine: Engine) -> bool:
    """Whether few requests are served at once, on purpose."""
    limit = number_of(engine, "max_running_requests")
    return limit is not None and limit <= 64


# --- GPU973, GPU974: a router before copies ----------------------------------------------------


def _router(engine: Engine) -> Judgement:
    if engine.mode is Mode.ROUTER or starts_router(engine.run):
        return on(_started(engine))
    routed = hosted.routed(engine)
    if routed is not None:
        return routed
    if not serves(engine):
        return cannot_apply(Text("不对外提供服务", "it serves no requests of others"))
    copies = engine.option("dp_size")
    if not copies.known:
        return cannot_tell(copies)
    spread = attention_ranks(engine)
    if (number(copies.value) or 1) <= 1 or (spread.known and (number(spread.value) or 1) > 1):
        return cannot_apply(Text("只有一个副本", "there is one copy"))
    asked = engine.written("load_balance_method")
    if asked is not None and asked.value not in ("auto", "round_robin"):
        return off(Text("副本间已按负载分配", "copies share requests by load"), asked)
    return advise(
        engine.run,
        "copies take turns, whichever of them has a request's prefix",
        Text("副本之间轮流分配请求", "copies take requests in turn"),
        Text(
            "安装 sglang-router，改用 sglang_router.launch_server 启动，其余参数不变（按缓存分配）",
            "install sglang-router and start the copies by sglang_router.launch_server with the "
            "same flags: it asks who has the prefix",
        ),
        snippet=Snippet(
            "start it by `python -m sglang_router.launch_server`, with the same flags",
            _routed(engine),
            "bash",
            _started_by_router(engine),
        ),
        at=copies,
    )


_SERVER, _OF_ROUTER = "sglang.launch_server", "sglang_router.launch_server"


def _routed(engine: Engine) -> str:
    """The run's command with the router's program in the server's place."""
    words = engine.run.command.words if engine.run.command is not None else ()
    texts = [word.raw or word.text for word in words]
    started = [n for n, word in enumerate(words) if word.text in (_SERVER, "serve")]
    flags = texts[started[0] + 1 :] if started else []
    command = f"python -m {_OF_ROUTER}"
    for flag in flags:
        command += f" \\\n    {flag}" if flag.startswith("--") else f" {flag}"
    return f"pip install sglang-router\n{command}"


def _started_by_router(engine: Engine) -> tuple[Edit, ...]:
    """The edit of a script that names the server's module."""
    words = engine.run.command.words if engine.run.command is not None else ()
    named = [word for word in words if word.raw == _SERVER and word.value == _SERVER]
    return tuple(Edit(word.location, _SERVER, _OF_ROUTER) for word in named[:1])


def _started(engine: Engine) -> Setting:
    command = engine.run.command
    location = command.location if command is not None else engine.run.location
    name = command.words[0].text if command is not None and command.words else "sglang_router"
    words = " ".join(w.text for w in command.words[:4]) if command is not None else name
    return Setting("sglang_router", True, location, note=words)


_POLICIES = ("cache_aware", "prefix_hash", "consistent_hashing")


def _aware(engine: Engine) -> Judgement:
    routes = engine.mode is Mode.ROUTER
    if not routes and not starts_router(engine.run) and hosted.routed(engine) is None:
        return cannot_apply(Text("没有路由", "there is no router"))
    found = engine.run.settings.get("policy" if routes else "router_policy")
    if found is None:
        if engine.run.is_open:
            return cannot_tell(Text("部分参数未能读取", "not all settings could be read"))
        return on(f"policy=cache_aware ({_ROUTER})")
    if not found.known:
        return cannot_tell(found)
    if found.value in _POLICIES:
        return on(found)
    if found.value not in ("random", "round_robin"):
        return off(Text("按负载或自定义规则分配", "it shares by load, or by rules"), found)
    if routes and _targets(engine) == 1:
        return cannot_apply(Text("只有一个后端", "there is one server to choose"))
    flag = "--policy" if routes else "--router-policy"
    return advise(
        engine.run,
        "requests reach servers that have not their prefix, and compute it again",
        Text(f"路由策略为 {found.value}", f"the policy is {found.value}"),
        Text(f"{flag} cache_aware", f"{flag} cache_aware"),
        parameters={found.name: "cache_aware"},
        at=found,
    )


def _targets(engine: Engine) -> Optional[int]:
    """Servers that the router hands prompts to, as far as the command line names them."""
    words = engine.run.command.words if engine.run.command is not None else ()
    prefills = sum(word.text == "--prefill" for word in words)
    told = engine.run.settings.get("worker_urls")
    if "service_discovery" in engine.run.settings or (told is None and not prefills):
        return None
    if told is None:
        return prefills
    return len(told.value) if isinstance(told.value, list) else 1


# --- GPU975: several nodes ---------------------------------------------------------------------


def _nodes(engine: Engine) -> Judgement:
    several = hosted.nodes(engine)
    if several is not None:
        return on(several)
    setting = engine.option("nnodes")
    if not setting.known:
        return cannot_tell(setting)
    if (number(setting.value) or 1) > 1:
        return on(setting)
    return cannot_apply(Text("单机", "one node"))


# --- GPU976, GPU977: communication by the switch, and in symmetric memory ----------------------


def _by_switch(engine: Engine, *names: str) -> Judgement:
    written = engine.written(*names)
    if written is not None:
        if not written.known:
            return cannot_tell(written)
        return on(written) if is_set(written) else off(Text("主动关闭", "off, on purpose"), written)
    found = _without(engine, *names)
    return found or off(
        Text("可选：大规模张量并行时实测", "optional: measure it on many ranks"),
    )


_SYMMETRIC = "enable_symm_mem"
"""On CUDA and on ROCm (arg_groups/platform_hook.py: handle_symm_mem_device_support)."""


def _without(engine: Engine, *names: str) -> Optional[Judgement]:
    if is_lacking(engine, *names):
        return lacks(engine)
    size, generation = ranks(engine), generation_of(engine)
    if size == 1:
        return cannot_apply(UNSPREAD)
    if is_foreign(engine.run) and not (_SYMMETRIC in names and is_for_amd(engine)):
        return cannot_apply(FOREIGN)
    if generation not in (None, "Hopper", "Blackwell"):
        return cannot_apply(Text("需要 Hopper 或更新的 NVSwitch", "it takes NVSwitch of Hopper"))
    return None


# --- GPU989: how tokens reach experts on other GPUs --------------------------------------------


def _dispatching(engine: Engine) -> Judgement:
    if is_mixture(engine) is False:
        return cannot_apply(Text("不是 MoE 模型", "no mixture of experts"))
    library = dispatches(engine)
    if library is None:
        return cannot_tell(engine.option("moe_a2a_backend"))
    if library != "deepep":
        return cannot_apply(Text("未使用 DeepEP", "DeepEP is not used"))
    found = engine.written("deepep_mode", "deepep_config")
    found = found or variable(engine, "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK")
    if found is not None and not found.known:
        return cannot_tell(found)
    mode = engine.option("disaggregation_mode")
    if found is None or found.name != "deepep_mode" or found.value != "normal":
        return on(found) if found is not None else defaulted(engine, "deepep_mode=auto")
    if mode.value == "prefill":
        return on(found)
    return propose(
        engine,
        "normal mode goes without CUDA graphs, also in decoding",
        Text("deepep_mode=normal 关闭了 CUDA Graph", "deepep_mode=normal goes without CUDA graphs"),
        Text("用默认的 auto", "leave it at auto"),
        {"deepep_mode": "auto"},
        at=found,
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU972",
        "dp-attention",
        Text("DP Attention", "Attention split by requests"),
        Priority.MEDIUM,
        of_engine(sglang=_attention),
        why="Tensor parallelism splits heads, and MLA's cache has none: each GPU keeps all of it.",
        fix="Set --attn-dp-size to --tp-size (before 0.5.23: --enable-dp-attention --dp-size N).",
        ignore="Few requests run at once, and latency counts.",
        items=sglang_item("D", "dp-attention", 1),
        impact=Impact(
            throughput=(0, 90),
            note=Text("官方：解码吞吐最高 1.9 倍", "the project: decoding up to 1.9 times as fast"),
            source=V4,
        ),
        difficulty="medium",
        examples=examples(
            "--tp-size 8", "--tp-size 8 --attn-dp-size 8", model="deepseek-ai/DeepSeek-V3"
        ),
        sources=(V4, _DPA, f"{SOURCE}/parallel_hook.py"),
    ),
    Check(
        "GPU973",
        "router",
        Text("路由", "A router before copies"),
        Priority.LOW,
        of_engine(routers=True, sglang=_router),
        why="Copies that take turns each compute the same prefixes; a router knows who has them.",
        fix="Start the server by sglang_router.launch_server.",
        ignore="Requests share no prefixes.",
        items=sglang_item("D", "router", 0.25),
        impact=Impact(
            note=Text(
                "请求共享前缀时吞吐最高 1.9 倍（官方测试）",
                "up to 1.9 times the throughput where requests share prefixes (the project's test)",
            ),
            source=V4,
        ),
        sources=(V4, _GATEWAY, _ROUTER),
    ),
    Check(
        "GPU974",
        "cache-aware-routing",
        Text("缓存感知路由", "Routing by cached prefixes"),
        Priority.MEDIUM,
        of_engine(routers=True, sglang=_aware),
        why="A request is cheapest where its prefix is cached.",
        fix="Set --policy cache_aware, or leave it out.",
        ignore="Requests share no prefixes.",
        items=sglang_item("I", "router-cache-aware", 1),
        impact=Impact(
            note=Text(
                "请求共享前缀时命中率 3.8 倍，吞吐最高 1.9 倍（官方测试）",
                "3.8 times the hits and up to 1.9 times the throughput where requests share "
                "prefixes (the project's test)",
            ),
            source=V4,
        ),
        sources=(V4, _GATEWAY, _ROUTER),
    ),
    Check(
        "GPU975",
        "engine-nodes",
        Text("多机部署", "One engine over several nodes"),
        Priority.LOW,
        of_engine(sglang=_nodes),
        why="A model that no node holds is served by several.",
        fix="Set --nnodes, --node-rank and --dist-init-addr on each node.",
        items=sglang_item("D", "multi-node", 0.25),
        impact=Impact(source=f"{SOURCE}/fields/parallel.py"),
        sources=(f"{SOURCE}/fields/parallel.py",),
    ),
    Check(
        "GPU976",
        "nvlink-sharp",
        Text("NVLink SHARP", "NVLink SHARP"),
        Priority.LOW,
        of_engine(sglang=lambda engine: _by_switch(engine, "enable_nccl_nvls")),
        why="NVSwitch adds the ranks' parts up itself, so that less crosses the links.",
        fix="Set --enable-nccl-nvls on Hopper or newer with NVSwitch.",
        items=sglang_item("D", "nvls", 0.25),
        impact=by_class(Priority.LOW, f"{SOURCE}/fields/exec_.py: enable_nccl_nvls"),
        sources=(f"{SOURCE}/fields/exec_.py: enable_nccl_nvls",),
    ),
    Check(
        "GPU977",
        "symmetric-memory",
        Text("对称内存通信", "Communication in symmetric memory"),
        Priority.LOW,
        of_engine(sglang=lambda engine: _by_switch(engine, _SYMMETRIC, "enable_torch_symm_mem")),
        why="Buffers at the same address on each GPU are added up in one step.",
        fix="Set --enable-symm-mem, and measure.",
        items=sglang_item("D", "symmetric-memory", 0.5),
        impact=by_class(Priority.LOW, f"{SOURCE}/fields/exec_.py: enable_symm_mem"),
        sources=(f"{SOURCE}/fields/exec_.py: enable_symm_mem, enable_torch_symm_mem",),
    ),
    Check(
        "GPU989",
        "deepep-parameters",
        Text("DeepEP 参数", "How DeepEP hands tokens out"),
        Priority.MEDIUM,
        of_engine(sglang=_dispatching),
        why="DeepEP's normal mode goes without CUDA graphs: it suits prefill, but no decoding.",
        fix="Leave --deepep-mode at auto, but for servers that only prefill.",
        items=sglang_item("J", "deepep-parameters", 0.5),
        impact=by_class(Priority.MEDIUM, LARGE_EP),
        examples=examples(
            "--tp-size 8 --attn-dp-size 8 --moe-a2a-backend deepep --deepep-mode normal",
            "--tp-size 8 --attn-dp-size 8 --moe-a2a-backend deepep",
            model="deepseek-ai/DeepSeek-V3",
        ),
        sources=(LARGE_EP, f"{SOURCE}/moe_hook.py"),
    ),
)
