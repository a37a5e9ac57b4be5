"""GPU914 to GPU917, GPU959: an inference engine in production."""

from __future__ import annotations

import re

from flake8_gpu_training.checks import _sglang_operations
from flake8_gpu_training.checks._engine import (
    ROUTER,
    is_lacking,
    is_set,
    lacks,
    of_engine,
    propose,
    sglang_item,
    vllm_item,
)
from flake8_gpu_training.checks._engine_examples import served
from flake8_gpu_training.checks._impacts import by_class
from flake8_gpu_training.checks._judging import cannot_apply, cannot_tell, off, on
from flake8_gpu_training.checks._vllm import CONSERVING, DOCS, OPTIMIZATION
from flake8_gpu_training.checks.base import Check, Impact, Judgement, Priority
from flake8_gpu_training.frameworks.engines import Engine, Mode, amount
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.frameworks.swift_commands import subcommand
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import PlaceKind

_LORA = f"{DOCS}/features/lora/"
_DATA = f"{DOCS}/serving/data_parallel_deployment.html"
_DISAGGREGATED = f"{DOCS}/features/disagg_prefill/"
_ARGUMENTS = f"{DOCS}/configuration/serve_args/"
_NO_SERVER = Text("非在线服务", "it serves no requests over HTTP")
_UNREAD = Text("并非所有参数都已读到", "not all settings could be read")


def _serverless(engine: Engine) -> Text:
    """Why what belongs to vLLM's own server has no place: a host's server is another program."""
    answers = engine.mode is Mode.RLHF_SERVER or (
        engine.host is not None
        and engine.host.id == "swift"
        and subcommand(engine.run) in ("deploy", "app")
    )
    if engine.host is None or not answers or engine.call is not None:
        return _NO_SERVER
    title = engine.host.title
    return Text(
        f"{title} 用自己的服务程序，不是 `vllm serve`",
        f"{title} answers with a server of its own, not with `vllm serve`",
    )


def _is_served(engine: Engine) -> bool:
    """Whether `vllm serve` answers, be it started by a host that hands its flags on."""
    return engine.is_server or engine.builds_serve


# --- GPU914: API servers ---


def _servers(engine: Engine) -> Judgement:
    if not _is_served(engine):
        return cannot_apply(_serverless(engine))
    setting = engine.written("api_server_count")
    if setting is not None:
        if not setting.known:
            return cannot_tell(setting)
        if (amount(setting) or 1) > 1:
            return on(setting)
    if engine.is_open:
        return cannot_tell(_UNREAD)
    if is_lacking(engine, "api_server_count"):
        return lacks(engine)
    copies = engine.option("data_parallel_size")
    if setting is None and copies.known and (amount(copies) or 1) > 1:
        return on(f"{engine.called}: api_server_count = data_parallel_size")
    return off(
        Text(
            "可选：CPU 上的分词或多模态预处理成为瓶颈时增加",
            "optional: where tokenizing, or images on the CPU, hold the GPU up",
        ),
        setting,
    )


# --- GPU915: prefill apart from decoding ---

_STORES = ("lmcache", "offloading", "sharedstorage", "mooncakestore", "flexkv", "hf3fs")
_ELSEWHERE = "hiddenstates"
"""In the names of connectors that write what a layer gives, and hand no cache on."""


def _disaggregated(engine: Engine) -> Judgement:
    role = engine.entry("kv_transfer_config", "kv_role")
    connector = engine.entry("kv_transfer_config", "kv_connector")
    if connector is not None or role is not None:
        found = connector or role
        assert found is not None
        if not found.known:
            return cannot_tell(found)
        name = str(connector.value if connector is not None else "").lower()
        if _ELSEWHERE in name:
            return off(Text("连接器只导出隐藏状态", "the connector only takes out hidden states"))
        divided = role is not None and role.value in ("kv_producer", "kv_consumer")
        if divided or not name.startswith(_STORES):
            return on(role if divided and role is not None else found)
        return off(
            Text("连接器用于缓存，不分离预填充", "the connector keeps a cache, and divides nothing")
        )
    whole = engine.written("kv_transfer_config")
    if whole is not None:
        return cannot_tell(whole)
    if engine.mode is Mode.ROUTER:
        return cannot_apply(ROUTER)
    if not _is_served(engine):
        return cannot_apply(_serverless(engine))
    if engine.is_open:
        return cannot_tell(_UNREAD)
    if engine.parameter("kv_transfer_config") is None:
        return lacks(engine)
    return off(
        Text(
            "可选：首 token 与 token 间延迟需分别调优时分离预填充",
            "optional: where the first token and the others need tuning apart",
        )
    )


# --- GPU916: a file of arguments ---


def _file(engine: Engine) -> Judgement:
    if not _is_served(engine) or engine.run.command is None:
        return cannot_apply(_serverless(engine))
    setting = engine.written("config")
    if setting is not None:
        return on(setting) if setting.known else cannot_tell(setting)
    if engine.run.place.kind is PlaceKind.YAML:
        return on(str(engine.run.place.location))
    if engine.run.location.path.endswith((".yaml", ".yml", ".tpl")):
        return on(f"{engine.run.location}")
    return off(
        Text("可选：参数写入 YAML，用 --config 读取", "optional: a YAML file behind --config")
    )


_SEES = re.compile(
    r"(?i)(?:^|[-_/])vl(?:m2vec)?(?:[-_]|$)|colpali|colqwen|clip|siglip|vision|reranker-m0|omni-embed|embeddings-v4"
)
"""Models of vectors and scores that take images, too."""


# --- GPU917: images and videos of a request ---


_UNLIMITED = Text(
    "未设上限（默认）；仅用于多模态模型", "no limit by default; of use to multimodal models alone"
)


def _media(engine: Engine) -> Judgement:
    only = engine.written("language_model_only")
    if only is not None and truth(only.value) is True:
        return on(only)
    setting = engine.written("limit_mm_per_prompt") or engine.entry(
        "limit_mm_per_prompt", "image", "video", "audio"
    )
    if setting is not None and setting.value not in (0, None):  # 0: OpenRLHF limits nothing
        return on(setting)
    if engine.run.model.kind == "audio":
        return off(
            Text("可选：限制每个提示的音频数", "optional: a limit of recordings in a prompt")
        )
    if engine.run.model.kind != "MLLM" and not _SEES.search(engine.run.model.name or ""):
        if engine.run.model.kind == "unknown":
            return cannot_tell(_UNREAD) if engine.is_open else off(_UNLIMITED)
        return cannot_apply(Text("非多模态大模型", "the model takes text only"))
    if engine.is_open:
        return cannot_tell(_UNREAD)
    if engine.host is not None and engine.host.id == "llamafactory":
        return on(f"{engine.host.title}: limit_mm_per_prompt image 4, video 2")
    if engine.mode is not Mode.SERVE:
        return off(Text("可选：限制每个提示的图像数", "optional: a limit of images in a prompt"))
    return propose(
        engine,
        "memory is kept for the largest input of every kind that the model takes",
        Text("未限制图像与视频数", "images and videos of a prompt are not limited"),
        Text("按业务限制，不用的类型设为 0", "limit them, and give 0 for what never comes"),
        {"limit_mm_per_prompt": {"image": 4}},
    )


# --- GPU959: adapters ---


def _adapters(engine: Engine) -> Judgement:
    setting = engine.option("enable_lora")
    if not setting.known and (setting.explicit or engine.is_open):
        return cannot_tell(setting)
    if setting.known and is_set(setting):
        return on(setting)
    modules = engine.written("lora_modules")
    if modules is not None:
        return on(modules) if modules.known else cannot_tell(modules)
    return off(Text("可选：多个 LoRA 共用一份基座", "optional: several adapters on one base model"))


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU914",
        "engine-api-servers",
        Text("API 服务进程数", "API server processes"),
        Priority.LOW,
        of_engine(vllm=_servers),
        why="One process tokenizes, loads images and streams answers for all engine cores.",
        fix="Set api_server_count where that process is busy and the GPU is not.",
        items=vllm_item("I", "api-server-count", 1),
        impact=Impact(source=_DATA),
        sources=(_DATA, OPTIMIZATION),
    ),
    Check(
        "GPU915",
        "engine-disaggregation",
        Text("预填充与解码分离", "Prefill apart from decoding"),
        Priority.LOW,
        of_engine(routers=True, vllm=_disaggregated, sglang=_sglang_operations.disaggregated),
        why="Prefill computes, decoding reads memory; apart, neither delays the other.",
        fix="Set kv_transfer_config with NixlConnector, and a proxy in front.",
        items=(
            *vllm_item("I", "disaggregated-prefill", 1),
            *sglang_item("I", "pd-disaggregation", 1),
        ),
        impact=Impact(source=_DISAGGREGATED),
        difficulty="high",
        sources=(_DISAGGREGATED,),
    ),
    Check(
        "GPU916",
        "engine-arguments-file",
        Text("YAML 配置", "Arguments in a file"),
        Priority.LOW,
        of_engine(vllm=_file, sglang=_sglang_operations.in_file),
        why="Arguments in a file are reviewed and compared like code.",
        fix="Write the arguments to a YAML file and give it as --config.",
        items=(*vllm_item("I", "yaml-config", 1), *sglang_item("I", "yaml-config", 0.5)),
        impact=Impact(source=_ARGUMENTS),
        sources=(_ARGUMENTS,),
    ),
    Check(
        "GPU917",
        "engine-media-limits",
        Text("多模态输入上限", "Limits of images and videos"),
        Priority.LOW,
        of_engine(needs=("limit_mm_per_prompt",), vllm=_media),
        why="Memory for the largest inputs is taken from the KV cache.",
        fix="Set limit_mm_per_prompt to what requests hold; 0 for kinds that never come.",
        items=vllm_item("I", "multimodal-limits", 1),
        impact=by_class(Priority.LOW, CONSERVING),
        examples=served(
            "--max-model-len 8192",
            '--max-model-len 8192 --limit-mm-per-prompt \'{"image": 4, "video": 0}\'',
            model="Qwen/Qwen2.5-VL-7B-Instruct",
        ),
        sources=(CONSERVING,),
    ),
    Check(
        "GPU959",
        "engine-adapters",
        Text("LoRA 服务", "Adapters served"),
        Priority.LOW,
        of_engine(needs=("enable_lora",), vllm=_adapters, sglang=_sglang_operations.adapters),
        why="Adapters on one base model need one copy of its weights.",
        fix="Set enable_lora and lora_modules.",
        items=(*vllm_item("I", "lora-serving", 1), *sglang_item("I", "lora-serving", 1)),
        impact=Impact(source=_LORA),
        sources=(_LORA,),
    ),
)
