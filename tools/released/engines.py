"""Engines for inference: what their constructors and their servers take."""

from __future__ import annotations

from dataclasses import replace

from released.classes import NOTHING, Field
from released.collector import Collector
from released.options import KeywordTables, annotated, named_in
from released.parsers import arguments, joined

_VLLM_ENGINE = "vllm/engine/arg_utils.py"
_VLLM_SERVERS = r"vllm/(?:entrypoints/\w+/cli_args|entrypoints/cli/serve|scripts)\.py"


def vllm(c: Collector) -> None:
    """``engine``: AsyncEngineArgs; ``LLM``: the constructor; ``serve``: the command's flags."""
    c.reader.literals_only = True
    c.classes("engine", _VLLM_ENGINE, "AsyncEngineArgs")
    c.call("LLM", "vllm/entrypoints/llm.py", "LLM.__init__")
    c.extends["LLM"] = [("vllm", "engine")]
    engine = c.release.module(_VLLM_ENGINE)
    special = named_in(engine, "get_kwargs", "_compute_kwargs") if engine is not None else set()
    serve: dict[str, Field] = {}
    for path in (_VLLM_ENGINE, *c.release.paths(_VLLM_SERVERS)):
        module = c.release.module(path)
        if module is None:
            continue
        tables = KeywordTables(c.reader, module, special)
        serve = joined(serve, arguments(c.reader, module, tables.option))
        frontend = c.reader.find(module, "FrontendArgs")
        if frontend is not None and path != _VLLM_ENGINE:
            serve = joined(serve, tables.options(frontend))
    c.groups["serve"] = serve


_SGLANG = "sglang/srt/server_args.py"
_SGLANG_FIELDS = r"sglang/srt/arg_groups/fields/(?!__init__)\w+\.py"


def sglang(c: Collector) -> None:
    """``engine``: ServerArgs; ``serve``: the flags of ``sglang.launch_server``."""
    c.reader.literals_only = True
    c.classes("engine", _SGLANG, "ServerArgs")
    classes = [(_SGLANG, "ServerArgs")]
    for path in c.release.paths(_SGLANG_FIELDS):
        module = c.release.module(path)
        classes += [(path, name) for name in (module.classes if module is not None else ())]
    serve: dict[str, Field] = {}
    for path, name in classes:
        module = c.release.module(path)
        found = c.reader.find(module, name) if module is not None else None
        if found is not None:
            c.classes("engine", path, name)
            serve = joined(serve, {one.name: one for one in annotated(c.reader, found)})
    module = c.release.module(_SGLANG)
    if module is not None:
        serve = joined(serve, arguments(c.reader, module))
    engine = c.groups["engine"]
    for name, field in serve.items():
        if field.default is NOTHING and name in engine:
            serve[name] = replace(field, default=engine[name].default)
    c.groups["serve"] = serve
