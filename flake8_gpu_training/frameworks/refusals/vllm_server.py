"""What the flags of vLLM's server refuse."""

from __future__ import annotations

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.served import drop, given, is_on
from flake8_gpu_training.language import Text

_FLAGS = "vllm/entrypoints/common/cli_args.py, validate_parsed_serve_args"
_COMMAND = "vllm/entrypoints/cli/serve.py"
_SERVE = ("serve",)


def _tools_unparsed(options: Options) -> bool:
    return is_on(options, "enable_auto_tool_choice") and not options["tool_call_parser"]


def _silent_outputs(options: Options) -> bool:
    return is_on(options, "enable_log_outputs") and not is_on(options, "enable_log_requests")


def _headless_servers(options: Options) -> bool:
    count = given(options, "api_server_count")
    return is_on(options, "headless") and isinstance(count, int) and count > 0


def _ways(options: Options) -> int:
    """Ways to balance the replicas that are asked for."""
    hybrid = is_on(options, "data_parallel_hybrid_lb")
    several = is_on(options, "data_parallel_multi_port_external_lb")
    if not hybrid and not several:
        hybrid = options["data_parallel_start_rank"] is not None
    external = is_on(options, "data_parallel_external_lb")
    external = external or options["data_parallel_rank"] is not None
    return hybrid + several + external


def _headless_hybrid(options: Options) -> bool:
    return is_on(options, "headless") and is_on(options, "data_parallel_hybrid_lb")


def _headless_empty(options: Options) -> bool:
    return is_on(options, "headless") and given(options, "data_parallel_size_local") == 0


def _unmeasured(options: Options) -> bool:
    return is_on(options, "enable_per_request_metrics") and is_on(options, "disable_log_stats")


OF_SERVER: tuple[Refusal, ...] = (
    Refusal(
        "vllm-tools-unparsed",
        _FLAGS,
        ("enable_auto_tool_choice", "tool_call_parser"),
        _tools_unparsed,
        Text("加上 {--tool_call_parser}", "add {--tool_call_parser}"),
        Text(
            "{--enable_auto_tool_choice} 需要知道如何解析工具调用",
            "{--enable_auto_tool_choice} must know how calls are parsed",
        ),
        groups=_SERVE,
        since="0.6.6",
    ),
    Refusal(
        "vllm-outputs-without-requests",
        _FLAGS,
        ("enable_log_outputs", "enable_log_requests"),
        _silent_outputs,
        Text("加上 {--enable_log_requests}", "add {--enable_log_requests}"),
        Text(
            "{--enable_log_outputs} 需要 {--enable_log_requests}",
            "{--enable_log_outputs} needs {--enable_log_requests}",
        ),
        write=lambda options: {"enable_log_requests": True},
        groups=_SERVE,
        since="0.14.1",
    ),
    Refusal(
        "vllm-headless-servers",
        f"{_COMMAND}, ServeSubcommand.cmd",
        ("api_server_count", "headless"),
        _headless_servers,
        drop("api_server_count"),
        Text("headless 模式不启动 API 服务", "a headless node starts no API server"),
        groups=_SERVE,
        since="0.19.1",
    ),
    Refusal(
        "vllm-two-balancers",
        f"{_COMMAND}, ServeSubcommand.cmd",
        (
            "data_parallel_hybrid_lb",
            "data_parallel_start_rank",
            "data_parallel_external_lb",
            "data_parallel_rank",
            "data_parallel_multi_port_external_lb",
        ),
        lambda options: _ways(options) > 1,
        Text(
            "只保留一种数据并行负载均衡方式",
            "keep one of the hybrid, external and multi-port balancing of replicas",
        ),
        Text("同时要求了多种", "more than one is asked for"),
        groups=_SERVE,
        since="0.26.0",
    ),
    Refusal(
        "vllm-headless-hybrid",
        f"{_COMMAND}, run_headless",
        ("data_parallel_hybrid_lb", "headless"),
        _headless_hybrid,
        drop("data_parallel_hybrid_lb"),
        Text("headless 模式不做负载均衡", "a headless node balances nothing"),
        groups=_SERVE,
        since="0.14.1",
    ),
    Refusal(
        "vllm-headless-empty",
        f"{_COMMAND}, run_headless",
        ("data_parallel_size_local", "headless"),
        _headless_empty,
        Text("{--data_parallel_size_local} 大于 0", "set {--data_parallel_size_local} above 0"),
        Text("该节点没有要运行的模型", "the node has nothing to run"),
        groups=_SERVE,
        since="0.14.1",
    ),
    Refusal(
        "vllm-negative-interval",
        _FLAGS,
        ("sse_keep_alive_interval",),
        lambda options: given(options, "sse_keep_alive_interval") < 0,
        Text(
            "{--sse_keep_alive_interval} 不小于 0", "set {--sse_keep_alive_interval} to at least 0"
        ),
        Text("0 表示关闭", "0 turns it off"),
        groups=_SERVE,
        since="0.30.0",
    ),
    Refusal(
        "vllm-metrics-without-statistics",
        _FLAGS,
        ("disable_log_stats", "enable_per_request_metrics"),
        _unmeasured,
        drop("disable_log_stats"),
        Text(
            "{--enable_per_request_metrics} 需要引擎统计",
            "{--enable_per_request_metrics} needs the statistics",
        ),
        groups=_SERVE,
        since="0.26.0",
    ),
)
