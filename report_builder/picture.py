"""The picture of a run: what it will run with, and who says so where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

from flake8_gpu_training.facts import Origin, Setting, Unknown, known
from flake8_gpu_training.frameworks.engine_of import engine_of
from flake8_gpu_training.frameworks.engines import Mode
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind
from flake8_gpu_training.runs.names import PRACTICE_NAMES
from report_builder.marks import cell, code
from report_builder.notes import chinese_note
from report_builder.wording import default_text, place_text

_TRAINING = (
    "precision",
    "tuning",
    "quantization_bits",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "max_length",
    "attention",
    "gradient_checkpointing",
    "zero_stage",
    "offload_optimizer",
    "offload_param",
    "fsdp",
    "optimizer",
    "lr_scheduler",
    "dataloader_workers",
    "save_steps",
    "logging_steps",
    "dataset",
    "output_dir",
)
_BY_STRATEGY = ("save_steps", "logging_steps")
_STRATEGY = re.compile(r"_strategy\W+(?:is )?\W*(?:\w+Strategy\.)?(epoch|no|best)\b", re.IGNORECASE)
_SERVING = ("precision", "attention", "max_length", "quantization_method")
_PARAMETERS = {
    "vllm": {"precision": "dtype", "attention": "attention_backend", "max_length": "max_model_len"},
    "sglang": {
        "precision": "dtype",
        "attention": "attention_backend",
        "max_length": "context_length",
    },
}
_BY_ENGINE = {
    "precision": Text("按检查点", "that of the checkpoint"),
    "attention": Text("由引擎选择", "chosen by the engine"),
    "max_length": Text("模型的上限", "the model's own"),
}
# Degrees that multiply to more GPUs per replica; shown when they are on.
_DEGREES = ("tensor_parallel", "pipeline_parallel", "sequence_parallel", "expert_parallel")
_OFF = ("none", None, 0, 1, False)
_ORIGIN = {
    Origin.FLAG: Text("命令行参数", "flag"),
    Origin.ENVIRONMENT: Text("环境变量", "environment"),
    Origin.FILE: Text("配置文件", "file"),
    Origin.CONSTRUCTOR: Text("代码", "code"),
    Origin.DEFAULT: Text("默认值", "default"),
    Origin.DERIVED: Text("推导", "derived"),
}
_UNKNOWN = Text("未知", "unknown")
_LISTED_FILES = 12


@dataclass(frozen=True)
class Row:
    """One thing a run will run with; every field is a finished table cell."""

    name: str
    value: str
    source: str


def picture(run: Run, lang: str) -> tuple[Row, ...]:
    """The settings that decide how ``run`` uses its GPUs, in the order of a launch."""
    return tuple(_Picture(run, lang).rows())


def _is_said(setting: Setting) -> bool:
    """Whether a value, or those that it may be, can be shown."""
    return not isinstance(setting.value, Unknown) or bool(setting.value.candidates)


class _Picture:
    def __init__(self, run: Run, lang: str) -> None:
        self.run = run
        self.lang = lang

    def t(self, zh: str, en: str) -> str:
        return zh if self.lang == "zh" else en

    def rows(self) -> Iterator[Row]:
        yield self._files()
        yield self._processes()
        trains = self.run.kind is RunKind.TRAIN
        for name in _TRAINING if trains else _SERVING:
            row = self._of_engine(name) or self._practice(name, needed=True)
            if row is not None:
                yield row
        for name in _DEGREES:
            row = self._practice(name, needed=False)
            if row is not None:
                yield row
        batch = self._global_batch() if trains else None
        if batch is not None:
            yield batch

    def _files(self) -> Row:
        run = self.run
        files = list(run.files)
        for document in (run.deepspeed, run.accelerate):
            if document is not None and document.path not in files:
                files.append(document.path)
        files = [path for path in files if not path.startswith("<")]  # the command as given
        shown = self.t("、", ", ").join(code(path) for path in files[:_LISTED_FILES])
        if len(files) > _LISTED_FILES:
            more = len(files) - _LISTED_FILES
            shown += self.t(f" 等 {len(files)} 个文件", f" and {more} more")
        start = code(place_text(run.location, self.lang))
        return Row(self.t("读到的文件", "files read"), shown or "—", start)

    def _processes(self) -> Row:
        launcher = self.run.launcher
        name = self.t("启动器与进程", "launcher and processes")
        processes, nodes = self._value(launcher.processes), self._value(launcher.nodes)
        plural = "node" if known(launcher.nodes.value) and launcher.nodes.value == 1 else "nodes"
        counts = [
            self.t(f"每节点 {processes} 个进程", f"{processes} per node")
            if _is_said(launcher.processes)
            else self.t("每节点进程数未知", "processes per node unknown"),
            self.t(f"{nodes} 个节点", f"{nodes} {plural}")
            if _is_said(launcher.nodes)
            else self.t("节点数未知", "number of nodes unknown"),
        ]
        value = f"{code(launcher.name)}{self.t('：', ': ')}" + self.t("，", ", ").join(counts)
        if launcher.world_size is not None:
            value += self.t(f"，共 {launcher.world_size}", f", {launcher.world_size} in all")
        sources = [self._source(s) for s in (launcher.processes, launcher.nodes)]
        if self.run.started_like is not None:
            sources = [code(place_text(self.run.started_like, self.lang))]
        return Row(name, value, self.t("；", "; ").join(dict.fromkeys(sources)))

    def _practice(self, name: str, *, needed: bool) -> Optional[Row]:
        """A practice as a row; None when it is off and only of interest when it is on."""
        setting = self.run.practice(name)
        absent = name not in self.run.profile
        if not needed and (absent or (known(setting.value) and setting.value in _OFF)):
            return None
        if setting.location is None and known(setting.value) and setting.value in ("none", None):
            return None
        if absent and name not in ("precision", "micro_batch_size", "tuning", "attention"):
            return None
        title = cell(PRACTICE_NAMES[name].say(self.lang))
        strategy = _STRATEGY.search(self._reason(setting)) if name in _BY_STRATEGY else None
        if strategy is not None:
            return Row(title, self._by(strategy[1]), self._source(setting))
        return Row(title, self._value(setting), self._source(setting))

    def _reason(self, setting: Setting) -> str:
        unknown = isinstance(setting.value, Unknown)
        return setting.value.reason if unknown else setting.note if setting.value is None else ""

    def _by(self, strategy: str) -> str:
        """What is done by no number of steps."""
        if strategy == "epoch":
            return self.t("每个 epoch", "each epoch")
        return self.t("不做", "never") if strategy == "no" else code(strategy)

    def _of_engine(self, name: str) -> Optional[Row]:
        """A practice by the parameter of an engine's own run, which has a default for it."""
        engine = engine_of(self.run) if self.run.framework in _PARAMETERS else None
        if engine is None or engine.mode is Mode.ROUTER or name not in _BY_ENGINE:
            return None
        setting = engine.option(_PARAMETERS[self.run.framework][name])
        title = cell(PRACTICE_NAMES[name].say(self.lang))
        if setting.explicit or setting.value not in (None, "auto"):
            return Row(title, self._value(setting), self._source(setting))
        return Row(title, _BY_ENGINE[name].say(self.lang), self._source(setting))

    def _value(self, setting: Setting) -> str:
        value = setting.value
        if not isinstance(value, Unknown):
            if isinstance(value, bool):
                return self.t("开启", "on") if value else self.t("关闭", "off")
            return self.t("无", "none") if value is None else code(str(value))
        said = _UNKNOWN.say(self.lang)
        if not value.candidates:
            return said
        options = self.t(" 或 ", " or ").join(
            code(str(one) if one not in ("", None) else "none") for one in value.candidates
        )
        if len(value.candidates) == 1:
            return said + self.t(f"，可能为 {options}", f", maybe {options}")
        return said + self.t(f"（{options}）", f" ({options})")

    def _source(self, setting: Setting) -> str:
        if setting.location is None:
            return self._unplaced(setting)
        origin = _ORIGIN[setting.origin].say(self.lang)
        place = place_text(setting.location, self.lang)
        flag = setting.note.partition(" (")[0]
        written = code(flag) if "=" in flag or flag.startswith("--") else ""
        comma = self.t("，", ", ") if written else ""
        return f"{origin} {written}{comma}{cell(place)}{self._beaten(setting)}"

    def _unplaced(self, setting: Setting) -> str:
        if isinstance(setting.value, Unknown):
            reason = setting.value.reason
            return cell((chinese_note(reason) or "—") if self.lang == "zh" else reason)
        if setting.note:
            said = default_text(setting.note, self.lang)
            if said is not None:
                return cell(said)
            if self.lang == "en":
                return cell(setting.note)
        return _ORIGIN[setting.origin].say(self.lang)

    def _beaten(self, setting: Setting) -> str:
        """The weaker values of the same name that this one overrides."""
        parameter = setting.note.partition("=")[0] or setting.name
        opened, closed = self.t("（", " ("), self.t("）", ")")
        weaker = [
            f"{code(one.text or str(one.value))}{opened}"
            f"{cell(place_text(one.location, self.lang))}{closed}"
            for one in self.run.overridden
            if one.name == parameter and one.location is not None and one.known
        ]
        if not weaker:
            return ""
        joined = self.t("、", ", ").join(weaker)
        return self.t(f"；覆盖了 {joined}", f"; overrides {joined}")

    def _replicas(self) -> Optional[int]:
        """How many GPUs share a step, each with a micro-batch of its own.

        The Trainer of a single process copies the model to all GPUs it sees
        (``nn.DataParallel``), unless the model's layers are spread or DeepSpeed drives it.
        """
        run = self.run
        single = run.framework == "hf_trainer" and run.launcher.name == "python"
        if not single or run.launcher.world_size != 1:
            return run.launcher.world_size
        spread = run.value("device_map", "none") != "none" or run.value("unsloth", False)
        if spread or run.deepspeed is not None:
            return 1
        return run.hardware.gpus_per_node

    def _global_batch(self) -> Optional[Row]:
        run = self.run
        world = self._replicas()
        micro, steps = run.value("micro_batch_size"), run.value("gradient_accumulation_steps")
        split = any(run.value(name, 1) not in _OFF for name in _DEGREES[:3])
        if split or not all(isinstance(n, int) for n in (world, micro, steps)):
            return None
        assert world is not None
        return Row(
            self.t("全局批大小", "global batch size"),
            code(str(micro * steps * world)),
            f"{micro} × {steps} × {world}",
        )
