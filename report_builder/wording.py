"""Short phrases of the reports: expected effects, where a default comes from, secrets hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Optional

from flake8_gpu_training.checks.base import Impact
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.runs.secrets import MASK, is_secret, masked
from report_builder.notes import chinese_note

_UNMEASURED = "range of the priority class, not a measurement"
_UNMEASURED_TEXT = Text("优先级对应的区间，并非实测", _UNMEASURED)
_NO_FIGURE = Text(
    "避免运行失败或设置失效，无吞吐数字",
    "keeps the run from failing or the setting from having no effect; no figure",
)
_ENABLING = Text("无公开的实测数字", "nobody has published a figure")


def impact_text(impact: Impact, lang: str, is_mistake: bool = False) -> str:
    """Expected effect in figures; a loss is named a loss, and no change is no figure.

    ``is_mistake``: the recommendation mends something that fails or has no effect.
    """
    speed = _range(impact.throughput, Text("吞吐", "throughput"), lang)
    memory = _range(impact.memory, Text("显存", "memory"), lang)
    # The figure that the priority rests on comes first.
    saves = -min(impact.memory or (0,)) > max(impact.throughput or (0,))
    pieces = [*((memory, speed) if saves else (speed, memory)), impact.note.say(lang)]
    shown = [piece for piece in pieces if piece]
    if not shown:
        shown = [(_NO_FIGURE if is_mistake else _ENABLING).say(lang)]
    return ("；" if lang == "zh" else "; ").join(shown)


_COMMAND_LINE = Text("启动命令", "the launch command")


def place_text(location: Location, lang: str) -> str:
    """``path:line``, or that it is the launch command as given."""
    if location.path == "<launch-command>":
        return _COMMAND_LINE.say(lang)
    return str(location)


def run_text(run: Run, lang: str) -> str:
    """A run's id; of a run that only the command as given starts, that it is that command."""
    return run.id.replace("<launch-command>:1", place_text(run.location, lang))


def is_measured(impact: Impact) -> bool:
    """Whether the figures are somebody's, not the range of a priority class."""
    return not impact.source.startswith(_UNMEASURED)


def source_text(source: str, lang: str) -> str:
    """Where an impact's figures come from."""
    said = source.replace(_UNMEASURED, _UNMEASURED_TEXT.say(lang))
    return said.replace("; ", "；") if lang == "zh" else said


def _range(ends: object, subject: Text, lang: str) -> str:
    """``吞吐提升 20–30%`` or ``throughput +20% to +30%``; "" when nothing changes."""
    if not isinstance(ends, (tuple, list)) or not any(ends):
        return ""
    low, high = sorted(int(end) for end in ends)
    name = subject.say(lang)
    if lang != "zh":
        if low == high:
            return f"{name} {_signed(low)}"
        first, last = (high, low) if high <= 0 else (low, high)
        return f"{name} {_signed(first)} to {_signed(last)}"
    if low < 0 < high:
        return f"{name}变化 {_signed(low)} 至 {_signed(high)}"
    grows = Text("增加", "") if subject.zh == "显存" else Text("提升", "")
    verb = grows.zh if low >= 0 else "降低"
    near, far = sorted((abs(low), abs(high)))
    return f"{name}{verb} {near}%" if near == far else f"{name}{verb} {near}–{far}%"


def _signed(percent: int) -> str:
    return f"{percent}%" if percent == 0 else f"{percent:+d}%".replace("-", "−")


# --- changes ------------------------------------------------------------------------------

_DOTTED = re.compile(r"(?P<parents>(?:\w+\.)+)(?P<rest>\w+:.*)")


def nested_yaml(text: str) -> str:
    """``a.b: 1`` as YAML has it: ``b`` under ``a``, each parent written once."""
    lines: list[str] = []
    open_parents: list[str] = []
    for line in text.split("\n"):
        match = _DOTTED.fullmatch(line)
        parents = match["parents"].rstrip(".").split(".") if match else []
        common = 0
        while common < min(len(parents), len(open_parents)) and (
            parents[common] == open_parents[common]
        ):
            common += 1
        lines += ["  " * depth + f"{parents[depth]}:" for depth in range(common, len(parents))]
        lines.append("  " * len(parents) + (match["rest"] if match else line))
        open_parents = parents
    return "\n".join(lines)


# --- evidence without a place -------------------------------------------------------------

_DEFAULT = re.compile(
    r"(?P<library>ms-swift|transformers|DeepSpeed|from_pretrained|llamafactory|trl|accelerate|deepspeed|torch|PyTorch|vllm"
    r"|vLLM|sglang|SGLang|flow-factory|Flow-Factory|videox-fun|VideoX-Fun|peft|datasets)"
    r"(?P<version>(?: (?:>= )?v?\d[\w.]*(?: (?:to|and|or) \d[\w.]*)?)?)"
    r"(?: (?P<file>[\w./*-]+\.py|\w+Config))?: (?P<rest>.+)"
)
_NAMED = re.compile(r"(?P<name>\w+)[ =](?P<value>True|False|None|none|[\w.+-]+)")
_ASSIGNED = re.compile(r"(?P<setting>[\w.]+=(?:\[[^\]]*\]|\S+)) \((?P<source>.+)\)")
_SAID: Mapping[str, str] = MappingProxyType(
    {
        "Hugging Face datasets memory-maps its Arrow tables": (
            "Hugging Face datasets 以内存映射方式读取 Arrow 表"
        ),
        "Hugging Face datasets keeps the samples in Arrow tables": (
            "Hugging Face datasets 将样本存为 Arrow 表"
        ),
        "the framework tokenises the dataset before the first step": (
            "框架在第一步之前完成全部分词"
        ),
        "TRL's trainer tokenises the dataset before the first step": (
            "TRL 的 Trainer 在第一步之前完成全部分词"
        ),
        "Lightning saves a checkpoint at the end of each epoch": (
            "Lightning 在每个 epoch 结束时保存检查点"
        ),
        "ms-swift decides by the model (ms-swift 4.6, arguments/sft_args.py), on by default": (
            "框架默认（ms-swift 4.6 按模型自动决定，一般为开启）"
        ),
        "unsloth not imported": "代码中没有导入 unsloth",
    }
)
_PRETRAINED = "from_pretrained: transformers >= 4.36: sdpa where supported"
_EAGER = "from_pretrained: transformers < 4.36: eager"
_OVERLAPS: Mapping[str, str] = MappingProxyType(
    {
        "DDP reduces its buckets during the backward pass": "DDP 在反向传播期间分桶归约梯度",
        "FSDP prefetches in the backward pass": "FSDP 在反向传播期间预取参数",
    }
)


def default_text(text: str, lang: str) -> Optional[str]:
    """Evidence that no line of the project holds: a framework's default, or an absence.

    None for a text of another form, which can only be quoted.
    """
    chinese = lang == "zh"
    loaded = text.removeprefix("from_pretrained: ")
    if text not in (_PRETRAINED, _EAGER) and _DEFAULT.fullmatch(loaded):
        text = loaded  # the library's own release, behind the call that takes its default
    if text == _PRETRAINED:
        return (
            "`sdpa`（框架默认，transformers ≥ 4.36）"
            if chinese
            else ("`sdpa` (default of transformers 4.36 and later)")
        )
    if text == _EAGER:
        return (
            "`eager`（框架默认，transformers < 4.36）"
            if chinese
            else ("`eager` (default of transformers before 4.36)")
        )
    found = _DEFAULT.fullmatch(text)
    if found is not None:
        return _of_library(found, chinese)
    assigned = _ASSIGNED.fullmatch(text)
    if assigned is not None:
        source = re.split(r"[:,] |'s default", assigned["source"])[0]
        source = re.sub(r"(?<=\d) to (?=\d)", "–", source)
        if chinese:
            source = source.replace(" and ", "、")
            return f"`{assigned['setting']}`（框架默认，{source}）"
        return f"`{assigned['setting']}` (default, {source})"
    overlap = next((said for said in _OVERLAPS if text.startswith(said)), None)
    if overlap is not None:
        source = text[len(overlap) :].replace(" (", "（").replace(")", "）")
        return f"{_OVERLAPS[overlap]}{source}" if chinese else text
    if text in _SAID:
        return _SAID[text] if chinese else text
    note = chinese_note(text)
    return note if note is None or chinese else text


def _of_library(found: re.Match[str], chinese: bool) -> str:
    """``packing=False（框架默认，ms-swift 4.6.0：base_args.py）``."""
    version = found["version"]
    source = found["library"] + (version.replace(" to ", "–").replace(" and ", "/"))
    if found["file"]:
        name = found["file"].rsplit("/", 1)[-1]
        source += f"：{name}" if chinese else f": {name}"
    named = [_NAMED.fullmatch(said) for said in found["rest"].split(", ")]
    if found["library"] == "from_pretrained":
        source = "transformers"
    if all(named):
        each = [f"`{one['name']}={one['value']}`" for one in named if one is not None]
        setting = ("、" if chinese else ", ").join(each)
        return f"{setting}（框架默认，{source}）" if chinese else f"{setting} (default, {source})"
    if not chinese:
        if found["library"] == "from_pretrained":
            return f"{found['rest']} (default)"
        said = found["rest"].replace(" None ", " unset ")
        return f"{said} (default, {source})" if " " in said else f"framework default ({source})"
    reason = chinese_note(found["rest"])
    return f"框架默认（{source}）" if reason is None else f"{reason}（框架默认，{source}）"


# --- secrets ------------------------------------------------------------------------------

_VALUE = r"""(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s"'`,;|<>&(){}\[\]]+)"""
_ASSIGNMENT = re.compile(
    r"""(?<!\w)(?P<name>(?:--)?[A-Za-z_][\w-]*)(?P<between>["']?\s*[=:]\s*)""" + _VALUE
)
_FLAG = re.compile(r"(?<![\w-])(?P<name>--[A-Za-z][\w-]*)(?P<between>\s+)" + _VALUE)
_LOGIN = re.compile(r"(?<=wandb login )\w{20,}")


def redacted(text: str) -> str:
    """``text`` without the values of secrets; names and references to variables stay."""
    text = _FLAG.sub(_without_value, _ASSIGNMENT.sub(_without_value, text))
    return _LOGIN.sub(MASK, masked(text))


def _without_value(match: re.Match[str]) -> str:
    plain = match["value"].strip("\"'")
    # References, switches and short numbers (a count of tokens) are nobody's secret.
    harmless = (
        not plain
        or plain.startswith(("$", "<", "-", MASK))
        or plain.lower() in ("true", "false", "none", "null", "auto")
        or re.fullmatch(r"\d{1,6}", plain) is not None
    )
    if harmless or not is_secret(match["name"].strip("-").replace("-", "_")):
        return match.group(0)
    return f"{match['name']}{match['between']}{MASK}"
