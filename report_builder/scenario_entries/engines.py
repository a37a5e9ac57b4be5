"""Scenarios of the inference engines: what they serve is alike, how it is started is not."""

from __future__ import annotations

from flake8_gpu_training.language import Text
from report_builder.scenario_entries.base import QWEN_72B, Entry

_QWEN_8B = "Qwen/Qwen3-8B"


def _of(engine: str, copies: Text, experts: str, *more: tuple[str, str]) -> tuple[Entry, ...]:
    """The scenarios of an engine. ``copies``: how two of a model are served; ``experts``: the
    name of the script for a large mixture; ``more``: further files of a rollout server."""

    def served(
        title: Text,
        source: str,
        name: str,
        size: float,
        model: str,
        gpus: int = 1,
        family: str = "",
    ) -> Entry:
        return Entry(
            title,
            ((f"{engine}/{source}.sh", f"{name}.sh"),),
            f"bash {name}.sh",
            size,
            model,
            gpus=gpus,
            family=family,
            quantized=family == "awq",
        )

    return (
        served(
            Text("8B 模型在线服务，单卡 80 GB", "Serving an 8B model on one 80 GB card"),
            "serve_8b",
            "serve",
            8,
            _QWEN_8B,
        ),
        served(
            Text(
                "70B 模型在线服务，4×80 GB 张量并行",
                "Serving a 70B model, tensor parallel over 4×80 GB",
            ),
            "serve_70b",
            "serve_tp4",
            72,
            QWEN_72B,
            4,
        ),
        served(copies, "serve_70b_dp", "serve_dp2_tp4", 72, QWEN_72B, 8),
        served(
            Text(
                "8B 模型 4 bit 量化在线服务，单卡 24 GB",
                "Serving an 8B model in 4 bits on one 24 GB card",
            ),
            "serve_8b_awq",
            "serve_awq",
            8,
            "Qwen/Qwen3-8B-AWQ",
            family="awq",
        ),
        served(
            Text("8B 模型 EAGLE-3 推测解码（低延迟）", "An 8B model with EAGLE-3, for low latency"),
            "serve_eagle",
            "serve_eagle3",
            8,
            "meta-llama/Llama-3.1-8B-Instruct",
            family="llama-3.1-8b-instruct",
        ),
        served(
            Text("DeepSeek-V3 专家并行，8×H200", "DeepSeek-V3 with expert parallelism on 8×H200"),
            "serve_moe",
            experts,
            671,
            "deepseek-ai/DeepSeek-V3",
            8,
            "deepseek",
        ),
        Entry(
            Text("8B 模型 GRPO，与训练同卡采样", "GRPO of an 8B model, sampling on the same GPUs"),
            ((f"{engine}/rollout_colocate.py.txt", "rollout.py"),),
            "python rollout.py",
            8,
            _QWEN_8B,
            algorithm="grpo",
            gpus=8,
        ),
        Entry(
            Text("8B 模型 GRPO，独立的采样服务", "GRPO of an 8B model, sampling by a server"),
            ((f"{engine}/rollout_server.sh", "rollout_server.sh"), *more),
            "bash rollout_server.sh",
            8,
            _QWEN_8B,
            algorithm="grpo",
            gpus=8,
        ),
    )


VLLM = _of(
    "vllm",
    Text("70B 模型在线服务，8×H100 上 DP×TP", "Serving a 70B model on 8×H100: two copies (DP×TP)"),
    "serve_ep8",
)
SGLANG = _of(
    "sglang",
    Text(
        "70B 模型在线服务，8×H100 上 DP×TP，路由按缓存分配",
        "Serving a 70B model on 8×H100: two copies behind a router (DP×TP)",
    ),
    "serve_deepep",
    ("sglang/sync_weights.py.txt", "sync_weights.py"),
)
