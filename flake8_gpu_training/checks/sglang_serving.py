"""GPU978, GPU983 to GPU988, GPU990 to GPU993: SGLang in production."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.checks import _sglang_hosts as hosted
from flake8_gpu_training.checks._engine import (
    is_lacking,
    is_set,
    lacks,
    of_engine,
    propose,
    sglang_item,
)
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import (
    Snippet,
    advise,
    by_itself,
    cannot_apply,
    cannot_tell,
    off,
    on,
)
from flake8_gpu_training.checks._sglang import (
    BREAKABLE,
    DECODES_NOT,
    DOCS,
    ENVIRON,
    SOURCE,
    TUNING,
    V4,
    defaulted,
    examples,
    is_on,
    is_sparse,
    number_of,
    only_embeds,
    optional,
    ranks,
    serves,
    speculates,
    variable,
    worked_out,
)
from flake8_gpu_training.checks._sglang_sizes import sparse_backend
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.facts import Origin, Setting
from flake8_gpu_training.frameworks.engines import Engine
from flake8_gpu_training.frameworks.reading import find, number
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind

_TRUE = ("1", "true", "yes", "y", "on")
_SPEC = f"{DOCS}/speculative_decoding"
_OUTPUTS = f"{DOCS}/structured_outputs"
_SERVES_NOT = Text("不对外提供服务", "it serves no requests of others")


def _says_yes(setting: Setting) -> bool:
    return str(setting.value).lower() in _TRUE


# --- GPU978: drafts while the next batch is scheduled ------------------------------------------


def _second(engine: Engine) -> Judgement:
    drafted = speculates(engine)
    if drafted is None:
        return cannot_tell(engine.option("speculative_algorithm"))
    if not drafted:
        return cannot_apply(Text("未使用推测解码", "nothing is drafted"))
    told = variable(engine, "SGLANG_ENABLE_SPEC_V2")
    if engine.version >= BREAKABLE:
        if is_on(engine, "disable_overlap_schedule"):
            return off(
                Text("重叠调度被关闭", "scheduling in turn: drafts do not overlap it"),
                engine.option("disable_overlap_schedule"),
            )
        return worked_out(engine, "V2", Text("始终使用", "always"))
    if told is not None and (not told.known or _says_yes(told)):
        return on(told) if told.known else cannot_tell(told)
    if engine.version < (0, 5, 6):
        return lacks(engine)
    method = str(engine.option("speculative_algorithm").value).upper()
    if method == "NGRAM" or number_of(engine, "speculative_eagle_topk") != 1:
        return off(Text("可选：需要 topk=1", "optional: it takes drafts of one branch (topk 1)"))
    return off(
        Text(
            "可选：SGLANG_ENABLE_SPEC_V2=1（此版本中为实验性功能）",
            "optional: SGLANG_ENABLE_SPEC_V2=1, experimental in this release",
        )
    )


# --- GPU983: structured output -----------------------------------------------------------------


def _grammar(engine: Engine) -> Judgement:
    if only_embeds(engine):
        return cannot_apply(DECODES_NOT)
    setting = engine.option("grammar_backend")
    if is_lacking(engine, "grammar_backend"):
        return lacks(engine)
    if not setting.known:
        return cannot_tell(setting)
    if not setting.explicit and setting.value is None:
        return defaulted(engine, "grammar_backend=xgrammar")
    if setting.value == "none":
        return off(Text("主动关闭", "off, on purpose"), setting)
    if setting.value != "outlines":
        return on(setting)
    if not setting.explicit:
        return off(Text("默认 outlines；可选 xgrammar", "outlines by default; xgrammar is faster"))
    return propose(
        engine,
        "outlines compiles a grammar to a table, and masks tokens many times slower",
        Text("结构化输出用 outlines", "structured output by outlines"),
        Text("改用 xgrammar", "take xgrammar"),
        {"grammar_backend": "xgrammar"},
        at=setting,
    )


# --- GPU984, GPU985: what is seen of a server, and what ends one that hangs --------------------


def _metrics(engine: Engine) -> Judgement:
    setting = engine.option("enable_metrics")
    if engine.host is not None and setting.known and is_set(setting):
        return on(setting)
    if hosted.is_hosted(engine, "verl"):
        asked = find(engine.run, _PROMETHEUS)
        if asked is not None and (not asked.known or is_set(asked)):
            return on(asked) if asked.known else cannot_tell(asked)
        return off(Text(f"可选：{_PROMETHEUS}=True", f"optional: {_PROMETHEUS}=True"), asked)
    if not serves(engine):
        return cannot_apply(_SERVES_NOT)
    if is_lacking(engine, "enable_metrics"):
        return lacks(engine)
    if not setting.known:
        return cannot_tell(setting)
    if is_set(setting):
        return on(setting)
    if not _is_deployed(engine) or setting.explicit:
        return off(Text("可选：供 Prometheus 采集", "optional: for Prometheus"), setting)
    return propose(
        engine,
        "queues, cache hits and retractions of a deployed server stay unseen",
        Text("部署的服务没有指标", "the deployed server has no metrics"),
        Text("开启 /metrics", "serve /metrics"),
        {"enable_metrics": True},
    )


_PROMETHEUS = "actor_rollout_ref.rollout.prometheus.enable"


def _is_deployed(engine: Engine) -> bool:
    """Whether a container's description starts the server."""
    path = engine.run.place.location.path
    return path.endswith((".yaml", ".yml")) and engine.run.place.kind is PlaceKind.FLAGS


_DAY = 86400


def _watchdog(engine: Engine) -> Judgement:
    setting = engine.option("watchdog_timeout")
    if is_lacking(engine, "watchdog_timeout"):
        return lacks(engine)
    if not setting.known:
        return cannot_tell(setting)
    seconds = number(setting.value)
    if seconds is not None and seconds > _DAY:
        return off(Text("超时超过一天，等于关闭", "more than a day: it ends nothing"), setting)
    return on(setting)


# --- GPU986: sparse attention over host memory -------------------------------------------------


def _hierarchical(engine: Engine) -> Judgement:
    sparse = is_sparse(engine)
    if sparse is False and engine.written("enable_hisparse") is None:
        return cannot_apply(Text("不是 DSA 模型", "no sparse attention (DSA)"))
    if sparse is None and engine.written("enable_hisparse") is None:
        return cannot_tell(Text("模型未知", "the model is not known"))
    return optional(
        engine,
        "enable_hisparse",
        Text(
            "可选：长上下文解码时 KV 放在内存",
            "optional: keeps the KV cache of long contexts in host memory",
        ),
    )


# --- GPU987, GPU988: how many requests are let in ----------------------------------------------


def _conservative(engine: Engine) -> Judgement:
    setting = engine.option("schedule_conservativeness")
    if not setting.known:
        return cannot_tell(setting)
    if setting.explicit and number(setting.value) != 1:
        return on(setting)
    return off(
        Text(
            "可选：token usage 低于 0.9 且有排队时降到 0.3，频繁 retract 时升到 1.3",
            "optional: 0.3 where token usage stays below 0.9 while requests wait, 1.3 where many "
            "are retracted",
        ),
        setting,
    )


def _clipped(engine: Engine) -> Judgement:
    if only_embeds(engine):
        return cannot_apply(DECODES_NOT)
    told = variable(engine, "SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION", "SGLANG_CLIP_MAX_NEW_TOKENS")
    if told is not None:
        return on(told) if told.known else cannot_tell(told)
    return on(f"SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION=4096 ({engine.called})")


# --- GPU990: shared memory of a container ------------------------------------------------------

_SHARED = re.compile(r"--shm-size\b|--ipc[= ]host\b")


def _shared(engine: Engine) -> Judgement:
    words, told = _container(engine), engine.run.hardware.shared_memory
    if words is None and told is None:
        return cannot_apply(
            Text("不由 docker run 或 compose 启动", "neither `docker run` nor compose starts it")
        )
    if words is not None and _SHARED.search(" ".join(words)):
        return on(next(w for w in words if w.startswith(("--shm-size", "--ipc"))))
    if words is not None and words[0] == "drun":
        return cannot_tell(
            Text("别名 drun 的定义不在项目中", "what the alias drun stands for is not in sight")
        )
    if words is None and told is not None and told.origin is not Origin.DEFAULT:
        return on(told)
    if ranks(engine) == 1:
        return off(
            Text("未做张量并行：不经共享内存通信", "one rank: nothing goes through shared memory")
        )
    return advise(
        engine.run,
        "a container has 64 MB of shared memory, which NCCL and the tokenizers exhaust",
        Text("容器共享内存为默认的 64 MB", "the container has the default 64 MB"),
        _BY_DOCKER if words is not None else _BY_COMPOSE,
        snippet=_DOCKER if words is not None else _COMPOSE,
    )


_BY_DOCKER = Text("docker run 加 --shm-size 32g 或 --ipc=host", "--shm-size 32g, or --ipc=host")
_DOCKER = Snippet(
    "give `docker run` --shm-size 32g (or --ipc=host)",
    "docker run --gpus all --shm-size 32g",
    "docker",
)
_BY_COMPOSE = Text("服务中写 shm_size: 32g 或 ipc: host", "shm_size: 32g, or ipc: host")
_COMPOSE = Snippet("give the service shm_size: 32g (or ipc: host)", "shm_size: 32g", "yaml")


def _container(engine: Engine) -> Optional[tuple[str, ...]]:
    """The words of the ``docker run`` around the command; None where there is none."""
    command = engine.run.command
    for wrapper in command.wrappers if command is not None else ():
        words = tuple(word.text for word in wrapper)
        is_run = words[:1] in (("docker",), ("podman",)) and "run" in words[:4]
        if is_run or words[:1] == ("drun",):
            return words
    return None


# --- GPU991: processors next to the GPU --------------------------------------------------------


_BINDS_ITSELF = (0, 5, 15)
"""From this release on utils/numa_utils.py asks for the GPU's node (0.5.10: only when told)."""
_BOUND = Text(
    "SGLang 0.5.15 起自动绑定到 GPU 所在的 NUMA 节点（容器需有权限）",
    "from 0.5.15 on SGLang binds to the GPU's NUMA node itself, where it has the right to",
)


def _affinity(engine: Engine) -> Judgement:
    command = engine.run.command
    for wrapper in command.wrappers if command is not None else ():
        text = " ".join(word.text for word in wrapper)
        if re.search(r"numactl|taskset|--cpuset-|--cpu-bind|--cpu_bind", text):
            return on(text)
    told = variable(engine, "SGLANG_SET_CPU_AFFINITY")
    if told is not None and (not told.known or _says_yes(told)):
        return on(told) if told.known else cannot_tell(told)
    node = engine.written("numa_node")
    if node is not None:
        return on(node) if node.known else cannot_tell(node)
    if engine.is_remote:
        return cannot_tell(Text("由另一个任务提供服务", "another job serves it"))
    switched = variable(engine, "SGLANG_AUTO_NUMA_BIND")
    is_off = switched is not None and not (switched.known and _says_yes(switched))
    if engine.version >= _BINDS_ITSELF and not is_off:
        return by_itself(_BOUND)
    return off(
        Text(
            "可选：多路 CPU 上用 --numa-node 或 SGLANG_SET_CPU_AFFINITY=1",
            "optional: --numa-node, or SGLANG_SET_CPU_AFFINITY=1, on nodes with several sockets",
        )
    )


# --- GPU992: two backends of attention ---------------------------------------------------------


def _two_backends(engine: Engine) -> Judgement:
    if is_lacking(engine, "prefill_attention_backend"):
        return lacks(engine)
    prefill = engine.written("prefill_attention_backend")
    decode = engine.written("decode_attention_backend")
    if prefill is None and decode is None:
        return off(
            Text(
                "可选：预填充与解码用不同后端",
                "optional: one backend for prefill, another for decoding",
            )
        )
    given = prefill or decode
    assert given is not None
    if not given.known:
        return cannot_tell(given)
    if prefill is not None and decode is not None and prefill.value == decode.value:
        return off(Text("两个后端相同", "both are the same"), given)
    return on(given)


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU978",
        "overlapped-drafts",
        Text("推测解码 V2", "Speculative decoding, version 2"),
        Priority.LOW,
        of_engine(sglang=_second),
        why="The older worker drafts while the scheduler waits; the newer works ahead.",
        fix="Leave the overlapped schedule on; before 0.5.15 set SGLANG_ENABLE_SPEC_V2=1.",
        items=sglang_item("G", "spec-v2", 0.5),
        impact=by_class(Priority.LOW, _SPEC),
        sources=(_SPEC, f"{SOURCE}/speculative_hook.py; SGLang 0.5.10, srt/server_args.py"),
    ),
    Check(
        "GPU983",
        "structured-output",
        Text("结构化输出", "Structured output"),
        Priority.MEDIUM,
        of_engine(sglang=_grammar),
        why="A grammar decides at every token which tokens may follow.",
        fix="Leave --grammar-backend at xgrammar.",
        ignore="The grammar is one that xgrammar does not take.",
        items=sglang_item("I", "structured-output", 0.5),
        impact=Impact(
            note=Text("官方：JSON 解码最高快 10 倍", "the project: JSON up to 10 times as fast"),
            source=V4,
        ),
        examples=examples("--grammar-backend outlines", ""),
        sources=(V4, _OUTPUTS, "SGLang 0.4.6 and 0.5.23: grammar_backend"),
    ),
    Check(
        "GPU984",
        "engine-metrics",
        Text("指标", "Metrics of the engine"),
        Priority.LOW,
        of_engine(sglang=_metrics),
        why="Whether requests queue, miss the cache or are retracted shows in the metrics.",
        fix="Set --enable-metrics, and let Prometheus read /metrics.",
        items=sglang_item("I", "metrics", 1),
        impact=Impact(source=f"{SOURCE}/fields/observability.py"),
        sources=(f"{SOURCE}/fields/observability.py: enable_metrics",),
    ),
    Check(
        "GPU985",
        "watchdog",
        Text("看门狗", "Watchdog"),
        Priority.LOW,
        of_engine(sglang=_watchdog),
        why="A batch that never ends blocks every request behind it.",
        fix="Leave --watchdog-timeout at 300 seconds.",
        items=sglang_item("I", "watchdog", 0.5),
        impact=Impact(source=f"{SOURCE}/fields/device.py"),
        sources=(f"{SOURCE}/fields/device.py: watchdog_timeout",),
    ),
    Check(
        "GPU986",
        "hierarchical-sparse-attention",
        Text("HiSparse", "Sparse attention over host memory"),
        Priority.LOW,
        of_engine(sglang=_hierarchical),
        why="DSA reads few tokens of a long context: the others may lie in host memory.",
        fix="Set --enable-hisparse for long contexts of DSA models.",
        items=sglang_item("I", "hisparse", 0.5),
        impact=Impact(source=f"{DOCS}/hisparse_guide"),
        sources=(f"{SOURCE}/hisparse_hook.py",),
    ),
    Check(
        "GPU987",
        "schedule-conservativeness",
        Text("调度保守系数", "How cautiously requests are let in"),
        Priority.LOW,
        of_engine(sglang=_conservative),
        why="A scheduler that expects full answers leaves the pool half empty where answers stop "
        "early.",
        fix="Set --schedule-conservativeness 0.3 where token usage stays below 0.9.",
        items=sglang_item("J", "schedule-conservativeness", 0.75),
        impact=Impact(source=TUNING),
        sources=(TUNING,),
    ),
    Check(
        "GPU988",
        "clipped-estimate",
        Text("最大生成长度估计", "Clipped estimate of answers"),
        Priority.LOW,
        of_engine(sglang=_clipped),
        why="Requests that ask for very long answers would reserve the pool for what few need.",
        fix="Leave SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION at 4096; lower it for short answers.",
        items=sglang_item("J", "max-new-tokens-clip", 0.75),
        impact=Impact(source=ENVIRON),
        sources=(ENVIRON, "SGLang 0.4.3, srt/managers/schedule_policy.py"),
    ),
    Check(
        "GPU990",
        "container-shared-memory",
        Text("容器共享内存", "Shared memory of the container"),
        Priority.MEDIUM,
        of_engine(sglang=_shared),
        why="Processes of one server exchange through /dev/shm, of which a container has 64 MB.",
        fix="Give docker run --shm-size 32g, or --ipc=host; a service of compose shm_size: 32g.",
        items=sglang_item("J", "shared-memory", 1),
        impact=Impact(
            note=Text(
                "避免多卡启动时 NCCL 报错",
                "else NCCL may stop several GPUs at the start",
            ),
            source="https://docs.docker.com/engine/containers/run/#runtime-constraints-on-resources",
        ),
        sources=(
            "https://docs.sglang.io/docs/get-started/install",
            "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",
        ),
    ),
    Check(
        "GPU991",
        "processor-affinity",
        Text("CPU 亲和性", "Processors next to the GPU"),
        Priority.LOW,
        of_engine(sglang=_affinity),
        why="A scheduler on the other socket reaches its GPU by way of the first.",
        fix="Set --numa-node, or SGLANG_SET_CPU_AFFINITY=1.",
        items=sglang_item("J", "container-affinity", 0.5),
        impact=by_class(Priority.LOW, ENVIRON),
        sources=(ENVIRON, f"{SOURCE}/fields/device.py: numa_node"),
    ),
    Check(
        "GPU992",
        "two-attention-backends",
        Text("混合注意力后端", "A backend for prefill, another for decoding"),
        Priority.LOW,
        of_engine(sglang=_two_backends),
        why="The fastest kernel for long prompts is not always that of single tokens.",
        fix="Set --prefill-attention-backend and --decode-attention-backend, and measure.",
        items=sglang_item("F", "hybrid-backend", 0.5),
        impact=by_class(Priority.LOW, f"{DOCS}/attention_backend"),
        sources=(f"{DOCS}/attention_backend", f"{SOURCE}/attention_hook.py"),
    ),
    Check(
        "GPU993",
        "sparse-attention-backend",
        Text("DSA 后端", "Backend of sparse attention"),
        Priority.LOW,
        of_engine(sglang=sparse_backend),
        why="DeepSeek sparse attention picks tokens by an index, which has kernels of its own.",
        fix="Leave the DSA backends to SGLang, which takes those of the GPU.",
        items=sglang_item("F", "dsa-backend", 2.5, "backend"),
        impact=by_class(Priority.LOW, f"{DOCS}/attention_backend"),
        sources=(f"{DOCS}/attention_backend", f"{SOURCE}/fields/exec_.py: dsa_*_backend"),
    ),
)
