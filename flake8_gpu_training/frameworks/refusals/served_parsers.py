"""Parsers of tool calls and of reasoning that vLLM and SGLang know, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Callable

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.served import given, is_on
from flake8_gpu_training.language import Text

# Of all releases from vLLM 0.6.6 to 0.33.0 and SGLang 0.4.3 to 0.5.23: a later one has more.
_CALLS_OF_VLLM = frozenset(
    """
    apertus beam cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32
    deepseek_v4 deepseek_v41 dots ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite
    granite-20b-fc granite4 hermes hf hunyuan_a13b hy_v3 hy_v4 inkling internlm jamba
    k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_json llama4_pythonic longcat mimo
    minicpm5 minimax minimax_m2 minimax_m3 mistral muse muse_glimmer musespark1x olmo3 openai
    phi4_mini_json plamo3 poolside_v1 pythonic qwen3_coder qwen3_json qwen3_xml seed_oss step3
    step3p5 step5 xlam
    """.split()  # noqa: SIM905
)
_REASONING_OF_VLLM = frozenset(
    """
    beam cohere_command3 cohere_command4 deepseek_r1 deepseek_v3 deepseek_v4 deepseek_v41
    ernie45 gemma4 glm45 glm47 granite granite_thinking_parser hf holo2 hunyuan_a13b hy_v3
    hy_v4 inkling k2_horizon kimi_k2 kimi_k3 ling3 mimo minicpmv minimax_m2
    minimax_m2_append_think minimax_m3 mistral muse muse_glimmer musespark1x nemotron_v3 olmo3
    openai_gptoss plamo3 poolside_v1 qwen3 seed_oss step3 step3p5 step5
    """.split()  # noqa: SIM905
)
_CALLS_OF_SGLANG = frozenset(
    """
    apertus2509 auto beam cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4
    deepseekv41 dots gemma4 gigachat3 gigachat35 glm glm45 glm47 gpt-oss hermes hunyuan
    inkling interns1 iquest_q1 k2_horizon kimi_k2 kimi_k3 lfm2 ling3 llama3 mimo minicpm5
    minimax-m2 minimax-m3 mistral muse nanbeige poolside_v1 pythonic qwen qwen25 qwen3_coder
    response_template spark25 step3 step3p5 trinity
    """.split()  # noqa: SIM905
)
_REASONING_OF_SGLANG = frozenset(
    """
    apertus2509 auto beam cohere_command4 deepseek-r1 deepseek-v3 deepseek-v4 deepseek-v41
    dots gemma4 gigachat35 glm45 gpt-oss granite_thinking_parser hunyuan inkling interns1
    iquest_q1 k2_horizon kimi kimi_k2 kimi_k3 ling3 mimo minimax minimax-append-think
    minimax-m3 mistral muse nanbeige nemotron_3 poolside_v1 qwen3 qwen3-thinking
    response_template step3 step3p5
    """.split()  # noqa: SIM905
)


def _is_unknown(name: str, parsers: frozenset[str], plugin: str) -> Callable[[Options], bool]:
    def refused(options: Options) -> bool:
        value = given(options, name)
        if plugin and name == "tool_call_parser" and not is_on(options, "enable_auto_tool_choice"):
            return False  # vLLM does not ask
        if plugin and options.takes(plugin) and options.is_given(plugin):
            return False  # it brings parsers of its own
        return isinstance(value, str) and bool(value) and value not in parsers

    return refused


def _near(name: str, parsers: frozenset[str]) -> Callable[[Options], Mapping[str, Any]]:
    def figures(options: Options) -> Mapping[str, Any]:
        value = str(options[name])
        near = difflib.get_close_matches(value, sorted(parsers), 3)
        return {"near": ", ".join(near or sorted(parsers))}

    return figures


def _parser(
    engine: str, name: str, parsers: frozenset[str], source: str, since: str, plugin: str = ""
) -> Refusal:
    return Refusal(
        f"{engine}-{name.replace('_', '-')}-unknown",
        source,
        (name,),
        _is_unknown(name, parsers, plugin),
        Text(f"{{--{name}}} 取 {{near}} 之一", f"give {{--{name}}} one of {{near}}"),
        Text(f"没有名为 {{{name}}} 的解析器", f"there is no parser {{{name}}}"),
        figures=_near(name, parsers),
        groups=("serve",),
        since=since,
    )


_VLLM = "vllm/entrypoints/common/cli_args.py (before: openai/api_server.py)"
_SGLANG = "sglang/srt/server_args.py, ServerArgs.add_cli_args: choices"

OF_VLLM: tuple[Refusal, ...] = (
    _parser(
        "vllm",
        "tool_call_parser",
        _CALLS_OF_VLLM,
        _VLLM,
        "0.6.6.post1",
        "tool_parser_plugin",
    ),
    _parser(
        "vllm",
        "reasoning_parser",
        _REASONING_OF_VLLM,
        _VLLM,
        "0.10.2",
        "reasoning_parser_plugin",
    ),
)
OF_SGLANG: tuple[Refusal, ...] = (
    _parser("sglang", "tool_call_parser", _CALLS_OF_SGLANG, _SGLANG, "0.4.10.post2"),
    _parser("sglang", "reasoning_parser", _REASONING_OF_SGLANG, _SGLANG, "0.4.6"),
)
