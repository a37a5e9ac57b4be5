"""What an inference engine's GPU holds, in words: weights, KV cache, requests at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Engine, Mode
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.serving_memory import Capacity, tokens_in

MODES = {
    Mode.SERVE: Text("在线服务", "server"),
    Mode.OFFLINE: Text("离线批量", "offline batches"),
    Mode.RLHF_SERVER: Text("RLHF 采样，独立 GPU", "RLHF rollouts on GPUs of their own"),
    Mode.RLHF_COLOCATE: Text("RLHF 采样，与训练同卡", "RLHF rollouts on the training's GPUs"),
    Mode.INTEGRATED: Text("由训练框架启动", "started by a training framework"),
    Mode.ROUTER: Text("路由", "router"),
}
_CARDS = (24, 40, 48, 80, 141)
"""Memory of common cards, for an engine whose GPU is not named."""
_REST = {True: 1.6, False: 1.2}
"""GiB for the pass and the driver where the card is open, on several GPUs and on one."""
COPIES = ("data_parallel_size", "dp_size")
_PARALLEL = (
    ("TP", ("tensor_parallel_size", "tp_size")),
    ("PP", ("pipeline_parallel_size", "pp_size")),
    ("DP", COPIES),
    ("DP attention", ("attn_dp_size",)),
    ("EP", ("ep_size",)),
)
PARALLEL_SIZES = tuple(names for title, names in _PARALLEL if title in ("TP", "PP", "DP"))
"""The sizes whose product is the number of an engine's GPUs, by the engines' names for each."""


def title_of(run: Run) -> Optional[Text]:
    """The engine of an engine's own run; None for a training framework's."""
    if run.framework not in ("vllm", "sglang"):
        return None
    title = framework_of(run.framework).title
    return Text(title, title)


@dataclass(frozen=True)
class CapacityWords:
    """Words of one language for the capacity of an engine."""

    lang: str

    def t(self, zh: str, en: str) -> str:
        """The wording in the report's language."""
        return zh if self.lang == "zh" else en

    def engine_line(self, run: Run) -> str:
        """Release, mode and sizes of the engine, or nothing for runs without one."""
        engine = engine_of(run)
        if engine is None:
            return ""
        pieces = [engine.called]
        if engine.mode is not None:
            pieces.append(MODES[engine.mode].say(self.lang))
        if engine.host is not None:
            pieces.append(self.t(f"经 {engine.host.title}", f"by {engine.host.title}"))
        return self.t("，", ", ").join((*pieces, *_sizes(engine)))

    def missing(self, run: Optional[Run]) -> str:
        """Why there is no estimate of the engine's cache."""
        engine = engine_of(run) if run is not None else None
        if engine is not None and engine.mode is Mode.RLHF_COLOCATE:
            return self.t(
                "引擎与训练共用 GPU，留给 KV 缓存的显存取决于训练的占用，无法静态估算。",
                "The engine shares its GPUs with training, so what is left for the KV cache "
                "depends on what training holds; the files do not tell.",
            )
        return self.t(
            "模型结构或引擎参数未知，无法估算 KV 缓存；需根据实际硬件调整。",
            "The model's layers or the engine's settings are not known, so the KV cache cannot be "
            "estimated; adjust to the actual hardware.",
        )

    def account(self, found: Capacity) -> str:
        """What the weights and a token of cache take, and what the table below assumes."""
        kind = self.t(f"{found.kind} ".replace(" bit ", " 位"), found.kind.replace(" bit", "-bit"))
        split = ""
        if found.gpus > 1:
            split = self.t(f"（{found.gpus} 卡切分）", f", split over {found.gpus} GPUs,")
        told = self.t(
            f"{kind}权重{split}每卡约 {found.weights:.1f} GiB，KV 缓存每 token 每卡 "
            f"{found.token_bytes / 1024:.1f} KiB。",
            f"{kind} weights{split} take about {found.weights:.1f} GiB per GPU; a token of KV "
            f"cache takes {found.token_bytes / 1024:.1f} KiB per GPU.",
        )
        if found.copies > 1:
            told += self.t(
                f"以下为每个副本的容量，共 {found.copies} 个副本。",
                f" The figures are of one copy; there are {found.copies}.",
            )
        if found.total is None:
            told += self.t(
                f"GPU 型号未知，按常见显存（× {found.share:g}）估算：",
                f" The GPU is not known; on common cards (memory × {found.share:g}):",
            )
        return told

    def rows(self, found: Capacity) -> list[list[str]]:
        """A heading row and the memory of the GPU; of common cards where it is not known."""
        if found.total is None:
            return self._cards(found)
        if found.pool is None:
            return []
        rest = found.overhead
        rows = [
            [
                self.t(
                    f"可用（{found.total:.1f} × {found.share:g}）",
                    f"Usable ({found.total:.1f} × {found.share:g})",
                ),
                f"{found.total * found.share:.1f} GiB",
            ],
            [self.t("− 权重", "- weights"), f"{found.weights:.1f} GiB"],
        ]
        if rest is not None:
            title = self.t("− 前向峰值与驱动", "- peak of a pass, driver")
            rows.append([title, f"{rest:.1f} GiB"])
        rows.append([self.t("**KV 缓存**", "**KV cache**"), f"**{found.pool:.1f} GiB**"])
        rows.append([self.t("可缓存 token", "Tokens cached"), f"{found.tokens or 0:,}"])
        if found.concurrency is not None:
            title = self.t(
                f"{found.length:,} token 的请求同时可容纳", f"Requests of {found.length:,} tokens"
            )
            rows.append([title, f"{found.concurrency:.2f}"])
        return [[self.t("项目", "Part"), self.t("每卡", "Per GPU")], *rows]

    def _cards(self, found: Capacity) -> list[list[str]]:
        length = found.length or 8192
        head = [
            self.t("显存", "Memory"),
            self.t("KV 缓存", "KV cache"),
            self.t("可缓存 token", "Tokens cached"),
            self.t(f"{length:,} token 的请求", f"Requests of {length:,} tokens"),
        ]
        rows = [head]
        for card in _CARDS:
            pool = card * 0.985 * found.share - found.weights - _REST[found.gpus > 1]
            if pool <= 0:
                rows.append([f"{card} GiB", self.t("放不下", "does not fit"), "—", "—"])
                continue
            tokens = tokens_in(pool, found.token_bytes)
            cells = (f"{card} GiB", f"{pool:.1f} GiB", f"{tokens:,}", f"{tokens / length:.2f}")
            rows.append(list(cells))
        return rows


def _sizes(engine: Engine) -> list[str]:
    shown = []
    for title, names in _PARALLEL:
        for name in names:
            if engine.parameter(name) is None:
                continue
            size = engine.option(name).value
            if isinstance(size, int) and (size > 1 or title == "TP"):
                shown.append(f"{title} {size}")
            break
    return shown
