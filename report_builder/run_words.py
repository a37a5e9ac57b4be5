"""A run in words: its model, hardware, mode, memory."""

from __future__ import annotations

import math
from typing import Optional

from flake8_gpu_training.facts import Unknown
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Mode
from flake8_gpu_training.frameworks.reading import is_true
from flake8_gpu_training.frameworks.registry import framework_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.memory import GIB, missing
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.serving_memory import bytes_per_weight, capacity_of
from report_builder.capacity import COPIES, PARALLEL_SIZES, CapacityWords
from report_builder.marks import cell, code, number
from report_builder.report import Report
from report_builder.wording import place_text

_OF_LLAMAFACTORY = ("rm", "ppo", "dpo", "kto")
_KIND = {
    RunKind.TRAIN: Text("训练", "training"),
    RunKind.SERVE: Text("推理服务", "serving"),
    RunKind.INFER: Text("离线推理", "offline inference"),
    RunKind.OTHER: Text("其他", "other"),
}
_MODEL_KIND = {
    "LLM": Text("LLM", "LLM"),
    "MLLM": Text("MLLM", "MLLM"),
    "video": Text("视频生成", "video generation"),
    "image": Text("图像生成", "image generation"),
    "audio": Text("音频", "audio"),
    "embedding": Text("Embedding", "embedding"),
    "encoder": Text("编码器（BERT 类）", "encoder (BERT-like)"),
    "encoder-decoder": Text("编码器-解码器（T5 类）", "encoder-decoder (T5-like)"),
    "vision": Text("视觉", "vision"),
}
_PARTS = {
    "weights": Text("权重", "weights"),
    "gradients": Text("梯度", "gradients"),
    "optimizer": Text("优化器状态", "optimizer states"),
    "activations": Text("激活", "activations"),
    "logits": Text("logits", "logits"),
    "overhead": Text("其他（CUDA 上下文、通信缓冲、碎片）", "rest (CUDA context, buffers, slack)"),
}
# What an estimate of the memory lacks, and how to supply it.
_LACKING = {
    "parameters": Text(
        "模型规模未知（用完整的模型名，如 `Qwen/Qwen2.5-7B-Instruct`）",
        "the size of the model is not known (name the model in full, such as "
        "`Qwen/Qwen2.5-7B-Instruct`)",
    ),
    "shape": Text(
        "模型层数与宽度未知（用公开模型的完整名称；仅有 `--model-params` 的规模不够）",
        "the model's layers and width are not known (name a published model in full; a size "
        "given by `--model-params` does not tell them)",
    ),
    "unlisted": Text(
        "模型层数与宽度未知（内置的模型表中没有该模型）",
        "the model's layers and width are not known (the built-in table of models lacks it)",
    ),
    "kind": Text(
        "估算公式只适用于解码器语言模型，不含编码器、视觉与语音模型",
        "the formulas are those of language models that generate, not of encoders, vision or "
        "audio models",
    ),
    "micro_batch_size": Text(
        "每卡批大小未知（在启动命令或配置中写出，如 `per_device_train_batch_size`）",
        "the batch size per GPU is not known (write it in the command or configuration, such as "
        "`per_device_train_batch_size`)",
    ),
    "max_length": Text(
        "最大序列长度未知（在启动命令或配置中写出，如 `max_length`）",
        "the maximal sequence length is not known (write it in the command or configuration, "
        "such as `max_length`)",
    ),
    "tokenizer": Text(
        "最大序列长度未知（在分词处写出，如 `tokenizer(..., truncation=True, max_length=2048)`）",
        "the maximal sequence length is not known (write it where samples are tokenised, such as "
        "`tokenizer(..., truncation=True, max_length=2048)`)",
    ),
    "prompts": Text(
        "提示词长度没有上限（TRL 0.26 起不再截断提示词，过长的须在数据集中滤除）",
        "prompts have no limit (TRL 0.26 and newer cut none: filter long ones out of the dataset)",
    ),
    "ranks": Text(
        "进程数未知（用 `--num-gpus`、`--num-nodes` 指明）",
        "the number of processes is not known (pass `--num-gpus` and `--num-nodes`)",
    ),
    "rollout": Text(
        "同进程的生成引擎占用的显存由其自身设置决定",
        "the memory of the rollout engine in the same process is its own setting",
    ),
}
_UNKNOWN = Text("未知", "unknown")
_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed"})
_ADJUST = Text("需根据实际硬件调整", "adjust to the actual hardware")


class RunWords:
    """What the documents say of a run, in one language."""

    def __init__(self, lang: str) -> None:
        self.lang = lang

    def t(self, zh: str, en: str) -> str:
        """The wording in the report's language."""
        return zh if self.lang == "zh" else en

    def say(self, text: Text) -> str:
        """A bilingual text in the report's language."""
        return text.say(self.lang)

    def kind_of(self, run: Run) -> str:
        """Training, serving, inference."""
        return self.say(_KIND[run.kind])

    def model_kind(self, run: Optional[Run]) -> str:
        """Kind of the model, or that it is not known."""
        kind = run.model.kind if run is not None else "unknown"
        return self.say(_MODEL_KIND.get(kind, _UNKNOWN))

    def model_size(self, run: Optional[Run]) -> str:
        """Number of parameters, or that it is not known."""
        if run is None or not run.model.parameters:
            return self.say(_UNKNOWN)
        size, active = run.model.parameters, run.model.active_parameters
        if not active or active == size:
            return _billions(size)
        return self.t(
            f"{_billions(size)}，激活 {_billions(active)}",
            f"{_billions(size)}, {_billions(active)} active",
        )

    def model_of(self, run: Run) -> str:
        """The model's name and size."""
        if not run.model.name and not run.model.parameters:
            return self.say(_UNKNOWN)
        name = code(run.model.name) if run.model.name else self.say(_UNKNOWN)
        return name + self.t(f"（{self.model_size(run)}）", f" ({self.model_size(run)})")

    def held_of(self, run: Run) -> str:
        """The release of the framework: of the source that the project holds, or a pinned one."""
        name = framework_of(run.framework).distribution
        engine = engine_of(run) if run.framework == "generic" else None
        if engine is not None and engine.host is not None:
            return ""  # a copy of its source, which a pin says nothing of, is not known as such
        version, pinned = run.held.get(name, ""), run.versions.get(name, "")
        if version:
            return self.t(f"（项目自带源码 {version}）", f" (the project's own source, {version})")
        return self.t(f"（版本 {pinned}）", f" (release {pinned})") if pinned else ""

    def mode_of(self, run: Run) -> str:
        """How the run is started: the program and its sub-command."""
        if run.command is None:
            return self.say(_KIND[run.kind]) + self._stage(run, self._unseen(run))
        words = [word.text for word in run.command.words[:3]]
        if words[1:2] != ["-m"]:
            words = [word for word in words[:2] if not word.startswith("-")]
        words = [_near(word, run) for word in words]
        if (
            run.launcher.name in _LAUNCHERS
            and run.python
            and words[-1] in (run.launcher.name, "launch")
        ):
            words.append(run.python[0].path)  # behind the launcher's own flags
        shown = code(" ".join(words)) if words else self.say(_KIND[run.kind])
        return shown + self._stage(run)

    def _unseen(self, run: Run) -> str:
        """That no command names the run, and the one that starts others like it."""
        if run.started_like is None:
            return self.t("未见启动命令", "no launch command seen")
        place = code(place_text(run.started_like, self.lang))
        return self.t(f"由 {place} 启动", f"started by {place}")

    def _stage(self, run: Run, unseen: str = "") -> str:
        """LlamaFactory's stage, which its command does not name."""
        stage = run.value("algorithm") if run.framework == "llamafactory" else None
        said = self.t(f"stage：{stage}", f"stage: {stage}") if stage else ""
        within = self.t("，", "; ").join(part for part in (said, unseen) if part)
        return self.t(f"（{within}）", f" ({within})") if within else ""

    def rlhf_of(self, run: Run) -> str:
        """The RLHF algorithm, or nothing for other runs."""
        algorithm = run.value("algorithm")
        if run.framework == "llamafactory" and algorithm not in _OF_LLAMAFACTORY:
            return ""  # a stage that a fork has added
        return str(algorithm) if algorithm not in (None, "sft", "pt") else ""

    def practice(self, run: Run, name: str) -> str:
        """Value of a practice, with its place."""
        setting = run.practice(name)
        may = setting.value.candidates if isinstance(setting.value, Unknown) else ()
        if len(may) == 1 and may[0] is not None and setting.location is not None:
            shown, where = code(str(may[0])), cell(place_text(setting.location, self.lang))
            return self.t(f"未知，可能为 {shown}（{where}）", f"unknown, maybe {shown} ({where})")
        if not setting.known or setting.value is None:
            return self.say(_UNKNOWN)
        place = self.t("默认值", "default")
        if setting.location is not None:
            place = place_text(setting.location, self.lang)
        return code(str(setting.value)) + self.t(f"（{cell(place)}）", f" ({cell(place)})")

    def length_of(self, run: Run) -> str:
        """The longest sequence of a run; an engine takes the model's where none is set."""
        engine = engine_of(run) if run.framework in ("vllm", "sglang") else None
        if engine is None or engine.is_open or engine.mode is Mode.ROUTER:
            return self.practice(run, "max_length")
        if engine.written("context_length", "max_model_len") is not None:
            return self.practice(run, "max_length")
        return self.t("未设置（取模型的上限）", "not set (the model's own)")

    def hardware_of(self, run: Optional[Run]) -> str:
        """GPUs of the run, with what is not known said so."""
        adjust = self.say(_ADJUST)
        if run is None:
            return self.say(_UNKNOWN) + self.t(f"（{adjust}）", f" ({adjust})")
        hardware = run.hardware
        gpu = hardware.gpu or self.t("GPU 型号未知", "unknown GPU")
        if hardware.gpu is None and hardware.architecture is not None:
            gpu = self.t(f"{hardware.architecture} 架构 GPU", f"{hardware.architecture} GPU")
        count = hardware.gpus or (
            run.launcher.world_size if run.kind is RunKind.TRAIN else _at_least(run)
        )
        pieces = [f"{gpu} × {count}" if count else gpu]
        if hardware.nodes is not None and hardware.nodes > 1:
            pieces.append(self.t(f"{hardware.nodes} 个节点", f"{hardware.nodes} nodes"))
        if hardware.memory_gib is not None:
            pieces.append(f"{number(hardware.memory_gib)} GiB")
        if hardware.gpu is None and hardware.memory_gib is None:
            pieces.append(adjust)
        if hardware.weak and hardware.location is not None:
            place = place_text(hardware.location, self.lang)
            if hardware.location.path.endswith(".ipynb"):
                said = self.t(f"见 notebook 元数据 {place}", f"the notebook's metadata, {place}")
            else:
                said = self.t(f"仅见于注释 {place}", f"only in a comment, {place}")
            pieces.append(said)
        return self.t("，", ", ").join(pieces)

    def memory_rows(self, report: Report) -> list[list[str]]:
        """The memory table: a heading row, the parts, the total; one column or two."""
        found = report.memory
        assert found is not None
        columns = [found.parts]
        heads = ["GiB"]
        if found.full_parts is not None and found.max_length != found.sample_length:
            columns.append(found.full_parts)
            heads = [
                self.t(f"样本最长 {length} token（GiB）", f"samples up to {length} tokens (GiB)")
                for length in (found.sample_length, found.max_length)
            ]
        rows = [[self.t("部分", "Part"), *heads]]
        for name in found.parts:
            shown = [_gib(column[name]) for column in columns]
            if name in found.offloaded:
                shown = [self.t("卸载到 CPU", "on the CPU")] * len(columns)
            rows.append([self.say(_PARTS[name]), *shown])
        totals = [f"**{sum(column.values()):.1f}**" for column in columns]
        return [*rows, [self.t("**每卡合计**", "**Total per GPU**"), *totals]]

    def memory_note(self, report: Report) -> str:
        """What the figures of the memory table rest on."""
        notes = (self._lengths_of(report), self._optimizer_of(report))
        return self.t("", " ").join(note for note in notes if note)

    def _optimizer_of(self, report: Report) -> str:
        optimizer = report.primary.practice("optimizer") if report.primary is not None else None
        if optimizer is None or optimizer.known or optimizer.location is None:
            return ""
        if report.memory is None or "optimizer" in report.memory.offloaded:
            return ""
        place = f"`{optimizer.location}`"
        return self.t(
            f"优化器未知（{place}），按 Adam 的状态计。",
            f"The optimizer is not known ({place}); the states of Adam are counted.",
        )

    def _lengths_of(self, report: Report) -> str:
        found = report.memory
        assert found is not None
        if found.full_parts is None:
            return self.t(
                f"未设最大长度，按样本最长 {found.sample_length} token 估算；"
                "更长的样本需要更多显存。",
                f"No maximum length is set, so samples of up to {found.sample_length} tokens are "
                "assumed; longer ones take more.",
            )
        if found.max_length == found.sample_length:
            return ""
        return self.t(
            "峰值由一批中最长的样本决定，数据长度不在配置中，故给出两种情形："
            f"假设为常见的指令数据（最长约 {found.sample_length} token），以及样本达到上限 "
            f"{found.max_length} token 的最坏情形。",
            "The longest sample of a batch makes the peak, and the files do not tell how long the "
            f"data are, so here are two cases: instruction data as usual, assumed to stay below "
            f"{found.sample_length} tokens, and samples that reach the limit of "
            f"{found.max_length} tokens.",
        )

    def fits_of(self, report: Report) -> str:
        """Whether the run fits, as one sentence."""
        assert report.memory is not None
        run = report.primary
        capacity = run.hardware.memory_gib if run is not None else None
        if capacity is None:
            return self.t(
                "GPU 显存未知，是否放得下需根据实际硬件调整。",
                "The GPU's memory is not known; whether it fits depends on the actual hardware.",
            )
        known_gib = number(capacity)
        if report.memory.fits is None:
            return self.t(
                f"与每卡 {known_gib} GiB 显存接近，是否放得下取决于样本的实际长度。",
                f"It is close to the GPU's {known_gib} GiB: the real lengths of samples decide.",
            )
        if report.memory.fits:
            return self.t(
                f"每卡 {known_gib} GiB 显存放得下。", f"It fits the GPU's {known_gib} GiB."
            )
        return self.t(
            f"每卡 {known_gib} GiB 显存放不下，会 OOM。",
            f"It does not fit the GPU's {known_gib} GiB: out of memory.",
        )

    def no_memory(self, run: Optional[Run]) -> str:
        """Why there is no estimate: what is missing, and how to supply it."""
        if run is not None and run.framework in ("videox_fun", "flow_factory"):
            return self.t(
                "扩散模型的显存取决于每个样本的 token 数，以及 VAE、文本编码器与奖励模型是否同在"
                "显存中，此处不作估算；需根据实际硬件调整。",
                "The memory of a diffusion model depends on the tokens of a sample and on whether "
                "VAE, text encoders and reward models share the GPU: it is not estimated here. "
                "Adjust to the actual hardware.",
            )
        lacking = missing(run) if run is not None and run.kind is RunKind.TRAIN else ()
        if not lacking:
            return self.t(
                "没有可估算的训练运行；需根据实际硬件调整。",
                "There is no training run to estimate; adjust to the actual hardware.",
            )
        instead = {} if _has_length(run) else {"max_length": _limit_of(run)}
        if run is not None and run.model.name:
            instead["shape"] = "unlisted"
        named = (instead.get(name, name) for name in lacking)
        joined = self.t("；", "; ").join(self.say(_LACKING[name]) for name in named)
        return self.t(
            f"无法估算本次运行的显存：{joined}。需根据实际硬件调整。",
            f"The memory of this run cannot be estimated: {joined}. Adjust to the actual hardware.",
        )

    def serving_memory(self, run: Optional[Run], sampling: bool = False) -> str:
        """What the weights of an inference run take on each GPU; "" for other runs.

        ``sampling``: of the engine that samples for a training run, too.
        """
        trains = run is not None and run.kind is RunKind.TRAIN
        if run is None or (trains and not sampling) or not run.model.parameters:
            return ""
        found = capacity_of(run)
        if found is not None:
            return CapacityWords(self.lang).account(found)
        if trains:
            return ""
        degree = 1
        for name in ("tensor_parallel", "pipeline_parallel"):
            size = run.value(name, 1)
            degree *= size if isinstance(size, int) and size > 0 else 1
        engine = engine_of(run)
        each, kind = bytes_per_weight(engine) if engine is not None else (2.0, "16 bit")
        gib = run.model.parameters * each / degree / GIB
        zh, en = f"{kind} ".replace(" bit ", " 位"), kind.replace(" bit", "-bit")
        split = (f"（{degree} 卡切分）", f", split over {degree} GPUs") if degree > 1 else ("", "")
        return self.t(
            f"{zh}权重{split[0]}每卡约 {gib:.1f} GiB，其余显存主要用于 KV 缓存。",
            f"{en} weights{split[1]} take about {gib:.1f} GiB per GPU; most of the rest holds the "
            "KV cache.",
        )

    def capacity_rows(self, run: Optional[Run], sampling: bool = False) -> list[list[str]]:
        """The table of an engine's KV cache; empty where it cannot be worked out."""
        serves = run is not None and (sampling or run.kind is not RunKind.TRAIN)
        found = capacity_of(run) if run is not None and serves else None
        return CapacityWords(self.lang).rows(found) if found is not None else []

    def engine_of(self, run: Run) -> str:
        """The inference engine of a run, in words; "" where it has none."""
        return CapacityWords(self.lang).engine_line(run)


def _limit_of(run: Optional[Run]) -> str:
    """What would limit the samples of a run whose framework does not."""
    rolls_out = run is not None and run.value("algorithm") in ("grpo", "rloo")
    return "prompts" if rolls_out else "tokenizer"


def _at_least(run: Run) -> Optional[int]:
    """The GPUs that a run which trains nothing asks for; None where it names no size."""
    engine = engine_of(run)
    names = [*PARALLEL_SIZES] if engine is not None else []
    if engine is not None and is_true(engine.written("enable_dp_attention")):
        names.remove(COPIES)  # attention is split among the GPUs that tensor parallelism has
    sizes = [engine.written(*one) for one in names] if engine is not None else []
    told = [one.value for one in sizes if one is not None and isinstance(one.value, int)]
    return math.prod(told) if told else None


def _has_length(run: Optional[Run]) -> bool:
    """Whether the run's framework has a parameter for the length of samples."""
    return run is None or "max_length" in framework_of(run.framework).spellings_of(run)


def _near(word: str, run: Run) -> str:
    """A program without the folders of another machine: a file of the project by its path there."""
    name = word.rpartition("/")[2]
    if not word.startswith("/"):
        return word
    return next((file.path for file in run.python if file.path.endswith(f"/{name}")), name)


def _gib(size: float) -> str:
    return "< 0.1" if 0 < size < 0.05 else f"{size:.1f}"


def _billions(parameters: int) -> str:
    return f"{parameters / 1e9:.1f}B" if parameters >= 1e9 else f"{parameters / 1e6:.0f}M"
