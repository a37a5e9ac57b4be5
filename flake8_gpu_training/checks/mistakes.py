"""GPU0xx: mistakes, which make a run fail at start or ignore what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable, Optional

from flake8_gpu_training.checks import _sources as sources
from flake8_gpu_training.checks._documents import replacement
from flake8_gpu_training.checks._faults import Fault, judge_of
from flake8_gpu_training.checks._judging import keyword_change, prefixed, spelled
from flake8_gpu_training.checks._programs import calls
from flake8_gpu_training.checks._scale import (
    architecture,
    gpu_text,
    has_flash_kernel,
    is_ray,
    number,
    ranks,
    takes_flash_attention,
    text,
)
from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Example,
    Impact,
    Priority,
)
from flake8_gpu_training.checks.changes import write
from flake8_gpu_training.facts import Document, Location, Origin, ProblemKind, Setting, known
from flake8_gpu_training.frameworks.accepted import accepted_by
from flake8_gpu_training.frameworks.reading import parsed, version_of
from flake8_gpu_training.frameworks.transformers import configuration_class
from flake8_gpu_training.language import Text
from flake8_gpu_training.runs.model import Run, RunKind

# --- What several checks ask ----------------------------------------------------------


def _written(run: Run, name: str) -> Optional[Setting]:
    """The framework's own parameter when the user wrote it and its value is known."""
    setting = run.setting(name)
    if setting is None or not setting.explicit or not setting.known:
        return None
    return setting


def _is_on(run: Run, name: str) -> Optional[Setting]:
    setting = _written(run, name)
    if setting is None:
        return None
    value = setting.value
    return setting if value is True or str(value).lower() == "true" else None


def _value(run: Run, name: str) -> Any:
    setting = _written(run, name)
    return None if setting is None else setting.value


def _at(setting: Setting) -> Location:
    assert setting.location is not None  # only written settings get here
    return setting.location


def _documents(run: Run) -> Iterator[Document]:
    """The configuration documents of a run, each once."""
    told: list[Document] = []
    for document in (run.place.document, run.deepspeed, run.accelerate):
        if document is not None and not any(document is other for other in told):
            told.append(document)
            yield document


def _entry(document: Optional[Document], dotted: str) -> Optional[Setting]:
    """A scalar of a document as a setting with its place, when it is known.

    A number as the last part tells an item of a list.
    """
    node = document.get(dotted) if document is not None else None
    owner, _, last = dotted.rpartition(".")
    if node is None and document is not None and last.isdigit():
        items = listed.items if (listed := document.get(owner)) is not None else ()
        node = items[int(last)] if int(last) < len(items) else None
    if node is None or node.kind != "scalar" or not known(node.value):
        return None
    return Setting(dotted, node.value, node.location, text=node.text)


def _replaced(run: Run, dotted: str, new: Any) -> Optional[Change]:
    """The change of a value of the run's DeepSpeed configuration."""
    return None if run.deepspeed is None else replacement(run.deepspeed, dotted, new)


_ON_TRAINER = ("hf_trainer", "swift", "llamafactory")


# --- GPU001 to GPU004: files ----------------------------------------------------------

_UNREADABLE = {
    ProblemKind.SYNTAX: Text("语法错误", "a syntax error"),
    ProblemKind.ENCODING: Text("编码错误", "an encoding fault"),
    ProblemKind.TOO_DEEP: Text("嵌套过深", "nested too deeply"),
    ProblemKind.UNREADABLE: Text("无法读取", "not readable"),
}


_TO_FILL_IN = re.compile(r"(?i)(?:.*/)?[^/]*template[^/]*\.(?:json|ya?ml|toml)")
"""Configurations with words in the place of values, from which a script makes the real ones."""


def _unreadable(run: Run) -> Iterator[Fault]:
    for problem in run.problems:
        kind = _UNREADABLE.get(problem.kind)
        if kind is not None and not _TO_FILL_IN.fullmatch(problem.location.path):
            yield Fault(
                problem.location,
                f"mend the file: {problem.message}; what it sets could not be checked",
                Text(f"{kind.zh}：{problem.message}", f"{kind.en}: {problem.message}"),
                Text("修复该文件", "mend the file"),
            )


def _refused_json(run: Run) -> Iterator[Fault]:
    for document in _documents(run):
        if document.language != "json" or run.framework == "generic":
            continue  # deepspeed.initialize reads hjson, which takes comments
        for problem in document.tolerated:
            yield Fault(
                problem.location,
                f"remove it, json.load refuses the file: {problem.message}",
                Text(f"JSON 无法被 json.load 读取：{problem.message}", problem.message),
                Text("改为标准 JSON", "write plain JSON"),
            )


def _cut_short(run: Run) -> Iterator[Fault]:
    for problem in run.problems:
        if problem.kind is ProblemKind.CUT_SHORT:
            blanks = problem.message.startswith("spaces follow")
            mend = (
                "remove the spaces behind the backslash"
                if blanks
                else "end the line above with a backslash, or move a comment out of the command"
            )
            yield Fault(
                problem.location,
                f"{mend}: {problem.message}, so {'' if blanks else 'it and '}the flags below are "
                "lost",
                Text("命令续行被截断，后面的参数不生效", problem.message),
                Text(
                    "上一行以反斜杠结尾，注释行移到命令之外",
                    "end the line above with the backslash, move comment lines out of the command",
                ),
            )


def _duplicates(run: Run) -> Iterator[Fault]:
    for document in _documents(run):
        if document.language == "python":
            continue  # other linters report duplicate keys of dict literals
        refused = _refuses_duplicates(run, document)
        lost = f"{refused} refuses the file" if refused else "only the last one counts"
        told = f"{refused} 拒绝该文件" if refused else "仅最后一个生效"
        for entry in document.duplicates:
            yield Fault(
                entry.location,
                f"remove one of the two: {entry.key!r} is given again below, and {lost}",
                Text(
                    f"键 {entry.key} 重复，{told}",
                    f"{entry.key} is given twice",
                ),
                Text("删除重复的键", "remove one of them"),
                priority=Priority.HIGH if refused else None,
            )


_OMEGACONF = (0, 9, 4)
"""The first LLaMA-Factory whose hparams/parser.py reads a file with OmegaConf.load."""


def _refuses_duplicates(run: Run, document: Document) -> str:
    """Who refuses a file in which a key stands twice; "" where the last one counts."""
    if run.framework != "llamafactory" or document is not run.place.document:
        return ""
    accepted = accepted_by(run)
    release = accepted.parts[0].at_hand.version if accepted is not None else ""
    newer = bool(release) and parsed(release) >= _OMEGACONF and document.language == "yaml"
    return f"LLaMA-Factory {release}" if newer else ""


# --- GPU010: precision ----------------------------------------------------------------


def _both_precisions(run: Run) -> Iterator[Fault]:
    current = Text("同时启用了 fp16 和 bf16", "fp16 and bf16 are both on")
    action = Text("只保留 bf16（Ampere 及更新）或 fp16", "keep one: bf16 on Ampere or newer")
    bf16, fp16 = _is_on(run, "bf16"), _is_on(run, "fp16")
    if bf16 is not None and fp16 is not None and run.framework in _ON_TRAINER:
        last = max(bf16, fp16, key=_at)
        yield Fault(
            _at(last),
            f"drop {last.name}: TrainingArguments refuses fp16 and bf16 together",
            current,
            action,
            write(run, {last.name: False}),
        )
    half = _entry(run.deepspeed, "fp16.enabled")
    if half is not None and _deepspeed_has_both(run):
        yield Fault(
            _at(half),
            'set "enabled": false for one of them: DeepSpeed refuses fp16 and bf16 together',
            current,
            action,
            _replaced(run, half.name, False),
        )


def _deepspeed_has_both(run: Run) -> bool:
    entries = [_entry(run.deepspeed, f"{name}.enabled") for name in ("fp16", "bf16")]
    return all(entry is not None and entry.value is True for entry in entries)


# --- GPU011: options that need worker processes ----------------------------------------

_LOADERS = ("torch.utils.data.DataLoader", ".StatefulDataLoader")


def _workerless(run: Run) -> Iterator[Fault]:
    for call in calls(run, *_LOADERS):
        workers = call.keywords.get("num_workers")
        if call.is_open or len(call.positional) > 5:
            continue
        if workers is not None and (not known(workers.value) or workers.value != 0):
            continue
        change = keyword_change(run, call, "num_workers", 4)
        prefetch = call.keywords.get("prefetch_factor")
        if prefetch is not None and isinstance(prefetch.value, int):
            yield _needs_workers(prefetch.location, "prefetch_factor", "num_workers", change)
        persistent = call.keywords.get("persistent_workers")
        if persistent is not None and persistent.value is True:
            yield _needs_workers(persistent.location, "persistent_workers", "num_workers", change)
    if run.framework in _ON_TRAINER:
        yield from _workerless_trainer(run)


def _workerless_trainer(run: Run) -> Iterator[Fault]:
    workers = run.practice("dataloader_workers")
    if not workers.known or workers.value != 0:
        return
    change = write(run, {"dataloader_num_workers": 4})
    prefetch = _written(run, "dataloader_prefetch_factor")
    if prefetch is not None and isinstance(prefetch.value, int):
        yield _needs_workers(_at(prefetch), prefetch.name, "dataloader_num_workers", change)
    persistent = _is_on(run, "dataloader_persistent_workers")
    if persistent is not None and run.framework != "swift":  # ms-swift turns it off itself
        yield _needs_workers(_at(persistent), persistent.name, "dataloader_num_workers", change)


def _needs_workers(
    location: Location, name: str, workers: str, change: Optional[Change] = None
) -> Fault:
    return Fault(
        location,
        f"set {workers}=4 or drop {name}: it is refused while {workers} is 0",
        Text(f"{workers} 为 0 却设置了 {name}", f"{name} with {workers}=0"),
        Text(f"把 {workers} 设为 4–8", f"set {workers} to 4-8"),
        change,
    )


# --- GPU012: offload below stage 3 ------------------------------------------------------


def _useless_offload(run: Run) -> Iterator[Fault]:
    device = _entry(run.deepspeed, "zero_optimization.offload_param.device")
    stage = _entry(run.deepspeed, "zero_optimization.stage")
    if device is None or device.value not in ("cpu", "nvme"):
        return
    if stage is not None and isinstance(stage.value, int) and stage.value < 3:
        yield Fault(
            _at(device),
            f"set stage 3 or drop offload_param: stage {stage.value} ignores it",
            Text(
                f"ZeRO-{stage.value} 下 offload_param 不生效",
                f"offload_param has no effect at stage {stage.value}",
            ),
            Text("改用 ZeRO-3，或删除 offload_param", "use stage 3, or drop offload_param"),
            _replaced(run, device.name, "none"),
        )


# --- GPU013, GPU014: DeepSpeed against the trainer --------------------------------------

_PAIRS = (
    ("train_micro_batch_size_per_gpu", "per_device_train_batch_size"),
    ("gradient_accumulation_steps", "gradient_accumulation_steps"),
    ("gradient_clipping", "max_grad_norm"),
    ("optimizer.params.lr", "learning_rate"),
    ("optimizer.params.weight_decay", "weight_decay"),
    ("optimizer.params.eps", "adam_epsilon"),
    ("optimizer.params.betas.0", "adam_beta1"),
    ("optimizer.params.betas.1", "adam_beta2"),
    ("scheduler.params.warmup_max_lr", "learning_rate"),
    ("scheduler.params.warmup_num_steps", "warmup_steps"),
    ("bf16.enabled", "bf16"),
    ("fp16.enabled", "fp16"),
)


def _mismatches(run: Run) -> Iterator[Fault]:
    if run.framework not in _ON_TRAINER or run.deepspeed is None:
        return
    for dotted, parameter in _PAIRS:
        theirs, ours = _entry(run.deepspeed, dotted), _written(run, parameter)
        if theirs is None or ours is None or theirs.value == "auto":
            continue
        if not isinstance(ours.value, (bool, int, float)) or _same(theirs.value, ours.value):
            continue
        if parameter == "warmup_steps" and ours.value < 1:
            continue  # a part of the steps, or none: how many the trainer makes is not known
        yield Fault(
            _at(theirs),
            f'set it to "auto": DeepSpeed says {theirs.value}, {parameter} says {ours.value}, '
            "and the trainer refuses to start",
            Text(
                f"DeepSpeed {dotted}={theirs.value} 与 {parameter}={ours.value} 不一致，"
                "训练器拒绝启动",
                f"DeepSpeed {dotted}={theirs.value}, but {parameter}={ours.value}",
            ),
            Text('DeepSpeed 配置中改为 "auto"', 'write "auto" in the DeepSpeed config'),
            _replaced(run, dotted, "auto") if dotted[-1:].isalpha() else None,
        )
    yield from _precision_left_off(run)


def _precision_left_off(run: Run) -> Iterator[Fault]:
    """DeepSpeed turns on what the trainer leaves off, by its default False."""
    # TRL's own classes turn bf16 on by themselves, ms-swift what the model's type says.
    plain = configuration_class(run) in ("TrainingArguments", "Seq2SeqTrainingArguments")
    if not (run.framework == "llamafactory" or (run.framework == "hf_trainer" and plain)):
        return
    if run.is_open or run.single_file or run.kind is not RunKind.TRAIN:
        return
    if _deepspeed_has_both(run):
        return  # GPU010 asks for one of them first: which one it will be is not known
    for name, other in (("bf16", "fp16"), ("fp16", "bf16")):
        theirs = _entry(run.deepspeed, f"{name}.enabled")
        ours = (name, f"{name}_full_eval", f"pure_{name}")
        if theirs is None or theirs.value is not True or any(n in run.settings for n in ours):
            continue
        beside = _is_on(run, other)
        if beside is None and other in run.settings and not run.settings[other].known:
            continue
        yield Fault(
            _at(theirs),
            _agree(name, other, beside is not None),
            Text(
                f"DeepSpeed 启用了 {name}，训练器没有", f"DeepSpeed has {name} on, the trainer not"
            ),
            Text(f"两处统一使用 {name}", f"turn on {name} in both, or in neither"),
            None if beside is not None else write(run, {name: True}),
        )


def _agree(name: str, other: str, beside: bool) -> str:
    mend = f"set {name}=true in place of {other}" if beside else f"set {name}=true"
    return (
        f"{mend} for the trainer too, or drop it here: DeepSpeed turns {name} on, "
        f"the trainer's {name} is false, and it refuses to start"
    )


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    return isinstance(theirs, (int, float)) and theirs == ours


def _arithmetic(run: Run) -> Iterator[Fault]:
    total = _entry(run.deepspeed, "train_batch_size")
    world = ranks(run)
    if total is None or not isinstance(total.value, int) or world is None:
        return
    if any((number(run, name) or 1) > 1 for name in _MODEL_PARALLEL):
        return  # the data-parallel size is then not the number of ranks
    micro = _factor(run, "train_micro_batch_size_per_gpu", "micro_batch_size")
    steps = _factor(run, "gradient_accumulation_steps", "gradient_accumulation_steps")
    if micro is None or steps is None or micro * steps * world == total.value:
        return
    yield Fault(
        _at(total),
        f"set train_batch_size to {micro * steps * world}: {micro} a GPU x {steps} "
        f"accumulated x {world} ranks, and DeepSpeed refuses {total.value}",
        Text(
            f"train_batch_size={total.value} ≠ {micro}×{steps}×{world}",
            f"train_batch_size={total.value} is not {micro}x{steps}x{world}",
        ),
        Text(f"改为 {micro * steps * world}，或用 auto", f"set {micro * steps * world}, or auto"),
        _replaced(run, "train_batch_size", micro * steps * world),
    )


_MODEL_PARALLEL = (
    "tensor_parallel",
    "pipeline_parallel",
    "sequence_parallel",
    "autotp_size",
)


def _factor(run: Run, dotted: str, practice: str) -> Optional[int]:
    """A factor of the batch: the DeepSpeed config's number, or the trainer's behind "auto".

    DeepSpeed alone knows no "auto" and reckons a missing factor from the others.
    """
    node = run.deepspeed.get(dotted) if run.deepspeed is not None else None
    if node is None or node.value != "auto":
        value = node.value if node is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    setting = run.practice(practice)
    value = setting.value
    if run.framework not in _ON_TRAINER or isinstance(value, bool) or not isinstance(value, int):
        return None
    return value


# --- GPU015: the best model -------------------------------------------------------------


def _best_model(run: Run) -> Iterator[Fault]:
    best = _is_on(run, "load_best_model_at_end")
    if best is None or run.framework not in _ON_TRAINER:
        return
    judged = _value(run, "eval_strategy") or _value(run, "evaluation_strategy")
    saved = _value(run, "save_strategy")
    if run.framework in ("hf_trainer", "llamafactory") and not run.is_open:
        judged, saved = (
            judged or _default(run, "eval", "no"),
            saved or _default(run, "save", "steps"),
        )
    if not isinstance(judged, str) or not isinstance(saved, str):
        return
    if saved != "best" and judged != saved:
        yield _best_fault(
            best,
            f"give eval_strategy and save_strategy the same value: load_best_model_at_end "
            f"refuses {judged!r} with {saved!r}",
            write(run, {"save_strategy": judged}) if judged != "no" else None,
        )
    elif judged == "steps":
        yield from _best_steps(run, best)


def _default(run: Run, kind: str, value: str) -> Optional[str]:
    """The default of a strategy, unless the program sets it in a way we cannot read."""
    names = ("eval_strategy", "evaluation_strategy") if kind == "eval" else ("save_strategy",)
    return None if any(run.setting(name) is not None for name in names) else value


def _best_steps(run: Run, best: Setting) -> Iterator[Fault]:
    judged, saved = _value(run, "eval_steps"), _value(run, "save_steps")
    whole = isinstance(judged, int) and isinstance(saved, int)
    if whole and judged > 0 and saved > 0 and saved % judged != 0:
        yield _best_fault(
            best,
            f"make save_steps ({saved}) a multiple of eval_steps ({judged}): "
            "load_best_model_at_end refuses the rest",
            current=Text(
                f"save_steps={saved} 不是 eval_steps={judged} 的倍数",
                f"save_steps={saved} is no multiple of eval_steps={judged}",
            ),
            action=Text(
                f"将 save_steps 设为 {judged} 的倍数", f"make save_steps a multiple of {judged}"
            ),
        )


_STRATEGIES_DIFFER = Text(
    "load_best_model_at_end 要求评估与保存策略相同",
    "eval_strategy and save_strategy differ, which load_best_model_at_end refuses",
)
_SAME_STRATEGY = Text(
    "eval_strategy 与 save_strategy 设为同一值", "give eval_strategy and save_strategy one value"
)


def _best_fault(
    best: Setting,
    message: str,
    change: Optional[Change] = None,
    current: Text = _STRATEGIES_DIFFER,
    action: Text = _SAME_STRATEGY,
) -> Fault:
    return Fault(_at(best), message, current, action, change)


# --- GPU016: packing --------------------------------------------------------------------

_FLASH = ("flash_attention_2", "flash_attention_3", "flash_attention_4")


_PACKS_WITH_FLASH = {"packing": (3, 4), "padding_free": (3, 5)}
"""First ms-swift that refuses other attention."""


def _packing_without_flash(run: Run) -> Iterator[Fault]:
    if run.framework != "swift" or run.value("megatron") is True or is_ray(run):
        return
    packed = _is_on(run, "packing") or _is_on(run, "padding_free")
    attention = run.practice("attention")
    if packed is None or not attention.known or attention.value in _FLASH:
        return
    if version_of(run, "ms-swift") < _PACKS_WITH_FLASH[packed.name]:
        return
    is_flag = packed.origin is Origin.FLAG
    own = f"--{packed.name}" if is_flag else packed.name
    flag = "--attn_impl flash_attn" if is_flag else "attn_impl to flash_attn"
    if has_flash_kernel(run) is False:
        yield Fault(
            _at(packed),
            f"drop {own}: {packed.name} needs FlashAttention, which {gpu_text(run)} lacks, and "
            "ms-swift refuses to start",
            Text(f"{packed.name} 需要 flash attention", f"{packed.name} needs flash attention"),
            Text(f"该 GPU 上去掉 {packed.name}", f"drop {packed.name} on this GPU"),
            write(run, {packed.name: False}),
        )
        return
    yield Fault(
        _at(packed),
        f"set {flag}: {packed.name} needs flash attention, the run has {attention.value}, and "
        "ms-swift refuses to start",
        Text(f"{packed.name} 需要 flash attention", f"{packed.name} needs flash attention"),
        Text(f"设置 {flag}", f"set {flag}"),
        write(run, {"attn_impl": "flash_attn"}),
    )


# --- GPU017 to GPU019: options that exclude each other ----------------------------------


def _two_kernel_libraries(run: Run) -> Iterator[Fault]:
    unsloth, liger = run.practice("unsloth"), run.practice("liger_kernel")
    if unsloth.known and unsloth.value is True and liger.known and liger.value is True:
        if liger.location is None:
            return
        yield Fault(
            liger.location,
            "drop the Liger kernels: Unsloth patches the same modules",
            Text("同时启用了 Unsloth 与 Liger", "Unsloth and Liger are both on"),
            Text("二者择一", "keep one of them"),
            write(run, spelled(run, {"liger_kernel": False}) or {}),
        )


def _is_prepared(run: Run) -> bool:
    """Whether Accelerate prepares the model, be it for a Trainer."""
    if run.framework == "hf_trainer":
        return True
    own = run.framework == "generic" and run.launcher.name == "accelerate"
    return own and any(file.calls_to("accelerate.Accelerator") for file in run.python)


def _device_map_in_processes(run: Run) -> Iterator[Fault]:
    placed = run.practice("device_map")
    count = ranks(run)
    if not _is_prepared(run) or count is None or count < 2 or run.single_file:
        return
    if placed.explicit and placed.value in ("auto", "balanced", "balanced_low_0", "sequential"):
        yield Fault(
            _at(placed),
            f"drop device_map={placed.value!r}: Accelerate refuses it with {count} processes",
            Text(f"{count} 个进程却使用 device_map", f"device_map with {count} processes"),
            Text("多进程训练去掉 device_map", "drop device_map"),
        )


@dataclass(frozen=True)
class _Exclusion:
    """Two settings of a framework that it refuses together."""

    frameworks: tuple[str, ...]
    dropped: str
    kept: str
    reason: str
    is_kept: Callable[[Run], bool]
    since: tuple[int, ...] = ()
    """First ms-swift that refuses it; those before turn one of the two off."""


def _sharded_state(run: Run) -> bool:
    return run.setting("fsdp") is not None and _value(run, "fsdp") == "fsdp2"


_EXCLUSIONS = (
    _Exclusion(
        ("hf_trainer", "swift"),
        "fsdp",
        "deepspeed",
        "FSDP and DeepSpeed both shard the model",
        lambda run: bool(_value(run, "deepspeed")),
    ),
    _Exclusion(
        ("swift",),
        "lazy_tokenize",
        "packing",
        "packing needs the lengths beforehand",
        lambda run: _is_on(run, "packing") is not None,
        (3, 7),
    ),
    _Exclusion(
        ("swift",),
        "lazy_tokenize",
        "streaming",
        "streaming tokenises on the fly already",
        lambda run: _is_on(run, "streaming") is not None,
        (3, 7),
    ),
    _Exclusion(
        ("swift",),
        "save_only_model",
        "fsdp fsdp2",
        "its checkpoints are sharded",
        _sharded_state,
    ),
)


def _exclusive(run: Run) -> Iterator[Fault]:
    for rule in _EXCLUSIONS:
        dropped = _written(run, rule.dropped)
        if run.framework not in rule.frameworks or dropped is None:
            continue
        if rule.since and version_of(run, "ms-swift") < rule.since:
            continue
        if dropped.value in (False, "", "false", None) or not rule.is_kept(run):
            continue
        yield Fault(
            _at(dropped),
            f"drop {rule.dropped}: it is refused with {rule.kept}, since {rule.reason}",
            Text(f"{rule.dropped} 与 {rule.kept} 冲突", f"{rule.dropped} with {rule.kept}"),
            Text(f"去掉 {rule.dropped}", f"drop {rule.dropped}"),
            write(run, {rule.dropped: False}) if rule.dropped != "fsdp" else None,
        )


# --- GPU020: attention and hardware -----------------------------------------------------


def _unsupported_attention(run: Run) -> Iterator[Fault]:
    attention = run.practice("attention")
    generation = architecture(run)
    if generation is None or run.hardware.weak or attention.location is None:
        return
    name = gpu_text(run)
    told = f"not {generation}" if name == generation else f"{name} is {generation}"
    written = text(run, "attention")
    for version, needed in _FLASH_NEEDS.items():
        if written == f"flash_attention_{version}" and not _may_take(run, version):
            yield _attention_fault(
                attention.location, run, f"FlashAttention-{version} needs {needed}, {told}"
            )


_FLASH_NEEDS = {2: "Ampere or newer", 3: "Hopper", 4: "Hopper or newer"}


def _may_take(run: Run, version: int) -> bool:
    return takes_flash_attention(run, version) is not False


def _attention_fault(location: Location, run: Run, reason: str) -> Fault:
    best = "FlashAttention-2" if _may_take(run, 2) else "sdpa"
    return Fault(
        location,
        f"use {best} instead: {reason}",
        Text(f"GPU 不支持该注意力实现：{reason}", reason),
        Text(f"改用 {best}", f"use {best}"),
    )


# --- GPU021: parallel sizes -------------------------------------------------------------


def _parallel_sizes(run: Run) -> Iterator[Fault]:
    yield from _split_heads(run)
    world = ranks(run)
    if world is None or run.kind is not RunKind.TRAIN or _may_be_more(run):
        return
    product, largest = 1, None
    for name in ("tensor_parallel", "pipeline_parallel", "sequence_parallel"):
        setting = run.practice(name)
        if setting.known and isinstance(setting.value, int) and setting.value > 1:
            product *= setting.value
            if setting.location is not None:
                largest = setting
    if largest is None or largest.location is None or world % product == 0:
        return
    yield Fault(
        largest.location,
        f"make the parallel sizes divide the ranks: {product} does not divide {world}",
        Text(f"并行度 {product} 不能整除 {world} 个进程", f"{product} does not divide {world}"),
        Text(f"调整并行度，使乘积整除 {world}", f"choose sizes that divide {world}"),
    )


def _split_heads(run: Run) -> Iterator[Fault]:
    """Attention heads that cannot be dealt out to the ranks of a tensor-parallel group."""
    size, heads = run.practice("tensor_parallel"), run.model.heads
    deals = run.value("megatron") is True
    if not deals or heads is None or run.model.kind != "LLM" or size.location is None:
        return
    if not size.known or not isinstance(size.value, int) or size.value < 2:
        return
    if heads % size.value:
        fitting = max(n for n in range(1, size.value) if heads % n == 0)
        yield Fault(
            size.location,
            f"set tensor parallelism to {fitting}: the model has {heads} attention heads, "
            f"{size.value} does not divide them, and the framework refuses to start",
            Text(
                f"张量并行度 {size.value} 不能整除 {heads} 个注意力头",
                f"{size.value} does not divide {heads} attention heads",
            ),
            Text(f"改为 {fitting} 等能整除的值", f"set it to {fitting}, which divides them"),
        )


def _may_be_more(run: Run) -> bool:
    """Whether one process is only what a launcher starts when nobody says more to it."""
    launcher = run.launcher
    return launcher.is_open or (
        launcher.name in ("python", "torchrun") and not launcher.processes.explicit
    )


# --- GPU022: one process on several GPUs -------------------------------------------------


def _spread_and_refused(run: Run) -> Iterator[Fault]:
    """ms-swift in one process that sees several GPUs loads the model with ``device_map``, which
    it refuses beside what needs a process a GPU."""
    seen = run.hardware.gpus_per_node
    processes = run.launcher.processes.value
    visible = run.environment.get("CUDA_VISIBLE_DEVICES")
    single = run.environment.get("SWIFT_SINGLE_DEVICE_MODE")
    if run.framework != "swift" or run.value("megatron") is True or is_ray(run):
        return
    if visible is None or single is not None or processes != 1 or seen is None or seen < 2:
        return
    refused = _refuses_device_map(run)
    if refused is None:
        return
    yield Fault(
        run.place.location,
        f"set NPROC_PER_NODE={seen}: one process would spread the model over {seen} GPUs "
        f"(device_map), and ms-swift refuses {refused} with it",
        Text(
            f"一个进程可见 {seen} 张卡（device_map），与 {refused} 冲突",
            f"one process sees {seen} GPUs (device_map), which {refused} does not go with",
        ),
        Text(f"设置 NPROC_PER_NODE={seen}", f"set NPROC_PER_NODE={seen}"),
        Change("bash", f"NPROC_PER_NODE={seen} swift sft …", prefixed(run, seen)),
    )


def _refuses_device_map(run: Run) -> Optional[str]:
    for name in ("deepspeed", "fsdp"):
        if _value(run, name):
            return name
    if _is_on(run, "use_liger_kernel") is not None:
        return "use_liger_kernel"
    engine = _is_on(run, "use_vllm")
    mode = run.setting("vllm_mode")
    samples = text(run, "algorithm") in ("grpo", "gkd")
    return "use_vllm" if engine is not None and mode is not None and samples else None


_FAILS = Impact(note=Text("不修复则启动失败", "the run fails at start until it is mended"))
_IGNORED = Impact(note=Text("当前设置不生效", "what was asked for has no effect"))

_PRECISION_TRAINER = """\
from transformers import TrainingArguments

args = TrainingArguments(
    output_dir="out",
    {}
    gradient_checkpointing=True,
)
"""
_LOADER = """\
from torch.utils.data import DataLoader

loader = DataLoader(dataset, batch_size=8, {}pin_memory=True, {})
for batch in loader:
    loss = model(batch)
    loss.backward()
"""
_PACKED = (
    "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
    "    --packing true {}--dataset data/train.jsonl\n"
)

_DEEPSPEED = """\
from transformers import Trainer, TrainingArguments

config = {{
    "train_micro_batch_size_per_gpu": {micro},
    "gradient_accumulation_steps": "auto",
    "fp16": {{"enabled": {fp16}}},
    "bf16": {{"enabled": True}},
    "zero_optimization": {{
        "stage": {stage},
        "overlap_comm": True,
        "offload_param": {{"device": "cpu", "pin_memory": True}},
    }},
}}
args = TrainingArguments(
    output_dir="out", bf16=True, per_device_train_batch_size=2, deepspeed=config
)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""
_TWICE = (
    "model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\n{}attn_impl: flash_attn\n"
    "dataset: data/train.jsonl\nlearning_rate: 1e-5\n"
)
_ONE_PROCESS = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3 {}swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
    "    --tuner_type full --deepspeed zero3 --dataset data/train.jsonl\n"
)
_AGREEING = {"micro": '"auto"', "fp16": False, "stage": 3}


_ZERO_FILE = """\
{{
    "bf16": {{"enabled": "auto"}},
    "train_batch_size": {},
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "zero_optimization": {{"stage": 2, "overlap_comm": true}}{}
}}
"""
_WITH_ZERO_FILE = """\
NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type full \\
    --per_device_train_batch_size 1 --gradient_accumulation_steps 4 \\
    --deepspeed ds_z2.json --dataset data/train.jsonl
"""
_PLACED = """\
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct"{})
args = TrainingArguments(output_dir="out", bf16=True, gradient_checkpointing=True)
Trainer(model=model, args=args, train_dataset=train_dataset).train()
"""
_VOLTA = """\
#!/bin/bash
#SBATCH --gres=gpu:4
#SBATCH --constraint=v100-32gb
NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\
    --torch_dtype float16 --attn_impl {} --dataset data/train.jsonl
"""


def _of_zero_file(bad: str, good: str) -> Example:
    return Example("swift", "ds_z2.json", bad, good, (("train.sh", _WITH_ZERO_FILE),))


def _deepspeed_example(**bad: object) -> Example:
    return Example(
        "hf_trainer",
        "train.py",
        _DEEPSPEED.format(**{**_AGREEING, **bad}),
        _DEEPSPEED.format(**_AGREEING),
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "GPU001",
        "unreadable-file",
        Text("文件无法读取", "Unreadable file"),
        Priority.HIGH,
        judge_of(_unreadable),
        why="A file that cannot be parsed fails at start, and nothing in it can be checked.",
        fix="Mend the file at the place named.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                'swift sft --model "Qwen/Qwen2.5-7B-Instruct \\\n    --dataset data/train.jsonl\n',
                'swift sft --model "Qwen/Qwen2.5-7B-Instruct" \\\n    --dataset data/train.jsonl\n',
            ),
        ),
    ),
    Check(
        "GPU002",
        "refused-json",
        Text("JSON 不合法", "JSON that json.load refuses"),
        Priority.HIGH,
        judge_of(_refused_json),
        why="Transformers and Accelerate read DeepSpeed configurations with json.load, which "
        "refuses comments and trailing commas.",
        fix="Remove the comment or the comma.",
        impact=_FAILS,
        examples=(
            _of_zero_file(_ZERO_FILE.format('"auto"', ","), _ZERO_FILE.format('"auto"', "")),
        ),
        sources=("accelerate 1.15, utils/deepspeed.py", sources.HF_DEEPSPEED),
    ),
    Check(
        "GPU003",
        "cut-short-command",
        Text("命令续行被截断", "Command cut short"),
        Priority.HIGH,
        judge_of(_cut_short),
        why="A blank after the backslash ends the command: the flags below it are lost.",
        fix="Make the backslash the last character of the line.",
        impact=_IGNORED,
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\ \n"
                "    --attn_impl flash_attn \\\n    --dataset data/train.jsonl\n",
                "swift sft \\\n    --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --attn_impl flash_attn \\\n    --dataset data/train.jsonl\n",
            ),
        ),
        sources=("POSIX.1-2017, Shell Command Language, 2.2.1",),
    ),
    Check(
        "GPU004",
        "duplicate-key",
        Text("配置键重复", "Duplicate key"),
        Priority.MEDIUM,
        judge_of(_duplicates),
        why="Of two values for one key only the last counts; DeepSpeed refuses such a file, and so "
        "does LLaMA-Factory from 0.9.4 on.",
        fix="Remove the one that is not meant.",
        impact=_IGNORED,
        examples=(
            Example(
                "swift",
                "sft.yaml",
                _TWICE.format("learning_rate: 1e-4\n"),
                _TWICE.format(""),
            ),
        ),
        sources=(sources.DEEPSPEED_SOURCE, "llamafactory 0.9.4, hparams/parser.py"),
    ),
    Check(
        "GPU010",
        "both-precisions",
        Text("fp16 与 bf16 冲突", "fp16 and bf16 together"),
        Priority.HIGH,
        judge_of(_both_precisions),
        why="The trainer and DeepSpeed refuse to start.",
        fix="Keep bf16 on Ampere or newer, fp16 before.",
        impact=_FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _PRECISION_TRAINER.format("bf16=True,\n    fp16=True,"),
                _PRECISION_TRAINER.format("bf16=True,"),
            ),
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --bf16 true --fp16 true\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --bf16 true\n",
            ),
            _deepspeed_example(fp16=True),
        ),
        sources=(sources.HF_ARGUMENTS, sources.DEEPSPEED_SOURCE),
    ),
    Check(
        "GPU011",
        "workerless-options",
        Text("无工作进程却设置其选项", "Worker options without workers"),
        Priority.HIGH,
        judge_of(_workerless),
        why="DataLoader raises ValueError for prefetch_factor or persistent_workers while "
        "num_workers is 0.",
        fix="Set num_workers to 4-8, or drop the option.",
        impact=_FAILS,
        examples=(
            Example(
                "generic",
                "train.py",
                _LOADER.format("", "prefetch_factor=4"),
                _LOADER.format("num_workers=4, ", "prefetch_factor=4"),
            ),
        ),
        sources=("torch 2.8, utils/data/dataloader.py", sources.HF_ARGUMENTS),
    ),
    Check(
        "GPU012",
        "useless-offload",
        Text("offload_param 需要 ZeRO-3", "offload_param below stage 3"),
        Priority.MEDIUM,
        judge_of(_useless_offload),
        why="Only stage 3 partitions parameters; below it offload_param is ignored, and the "
        "memory it was to free stays taken.",
        fix="Set stage 3, or drop offload_param.",
        impact=_IGNORED,
        examples=(_deepspeed_example(stage=2),),
        sources=(sources.DEEPSPEED_SOURCE, sources.DEEPSPEED_CONFIG),
    ),
    Check(
        "GPU013",
        "deepspeed-mismatch",
        Text("DeepSpeed 与训练参数不一致", "DeepSpeed against the trainer"),
        Priority.HIGH,
        judge_of(_mismatches),
        why="The Hugging Face integration compares both and raises ValueError.",
        fix='Write "auto" in the DeepSpeed configuration.',
        impact=_FAILS,
        examples=(_deepspeed_example(micro=4),),
        sources=(sources.HF_DEEPSPEED,),
    ),
    Check(
        "GPU014",
        "batch-arithmetic",
        Text("批大小算术错误", "Batch arithmetic"),
        Priority.HIGH,
        judge_of(_arithmetic, training=True),
        why="DeepSpeed asserts train_batch_size = micro-batch x accumulation x ranks.",
        fix="Mend the product, or leave train_batch_size out.",
        impact=_FAILS,
        examples=(_of_zero_file(_ZERO_FILE.format(64, ""), _ZERO_FILE.format(32, "")),),
        sources=(sources.DEEPSPEED_SOURCE,),
    ),
    Check(
        "GPU015",
        "best-model-strategies",
        Text("最优模型的保存策略冲突", "Strategies of the best model"),
        Priority.HIGH,
        judge_of(_best_model, training=True),
        why="load_best_model_at_end needs an evaluation for every checkpoint; TrainingArguments "
        "raises ValueError otherwise.",
        fix="Give eval_strategy and save_strategy the same value, and steps that divide.",
        impact=_FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _PRECISION_TRAINER.format(
                    'bf16=True,\n    eval_strategy="epoch",\n    load_best_model_at_end=True,'
                )
                + "Trainer(model=model, args=args, train_dataset=data).train()\n",
                _PRECISION_TRAINER.format(
                    'bf16=True,\n    eval_strategy="epoch",\n    save_strategy="epoch",\n'
                    "    load_best_model_at_end=True,"
                )
                + "Trainer(model=model, args=args, train_dataset=data).train()\n",
            ),
        ),
        sources=(sources.HF_ARGUMENTS,),
    ),
    Check(
        "GPU016",
        "packing-without-flash",
        Text("packing 需要 flash attention", "Packing without flash attention"),
        Priority.HIGH,
        judge_of(_packing_without_flash, training=True),
        why="ms-swift raises ValueError: packed samples are kept apart by the flash kernel.",
        fix="Set --attn_impl flash_attn.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                _PACKED.format(""),
                _PACKED.format("--attn_impl flash_attn "),
            ),
        ),
        sources=(sources.SWIFT_ARGUMENTS,),
    ),
    Check(
        "GPU017",
        "two-kernel-libraries",
        Text("Unsloth 与 Liger 二选一", "Unsloth and Liger together"),
        Priority.MEDIUM,
        judge_of(_two_kernel_libraries, training=True),
        why="Both replace the same modules of the model.",
        fix="Keep Unsloth for LoRA on one GPU, Liger elsewhere.",
        impact=_IGNORED,
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --tuner_backend unsloth --use_liger_kernel true\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --tuner_type lora \\\n"
                "    --tuner_backend unsloth\n",
            ),
        ),
        sources=(sources.SWIFT_DOCS,),
    ),
    Check(
        "GPU018",
        "device-map-in-processes",
        Text("多进程不能用 device_map", "device_map with several processes"),
        Priority.HIGH,
        judge_of(_device_map_in_processes, training=True),
        why="Accelerate raises ValueError for a model spread by device_map in any "
        "distributed mode.",
        fix="Drop device_map, or start one process.",
        impact=_FAILS,
        examples=(
            Example(
                "hf_trainer",
                "train.py",
                _PLACED.format(', device_map="auto"'),
                _PLACED.format(""),
                (("train.sh", "torchrun --nproc_per_node=4 train.py\n"),),
            ),
        ),
        sources=("accelerate 1.15, accelerator.py",),
    ),
    Check(
        "GPU019",
        "exclusive-options",
        Text("互斥的选项", "Options that exclude each other"),
        Priority.HIGH,
        judge_of(_exclusive, training=True),
        why="The framework refuses the two together.",
        fix="Keep one of them.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --attn_impl flash_attn \\\n"
                "    --packing true --lazy_tokenize true\n",
                "swift sft --model Qwen/Qwen2.5-7B-Instruct --attn_impl flash_attn \\\n"
                "    --packing true\n",
            ),
        ),
        sources=(sources.SWIFT_ARGUMENTS, "transformers 5.24, trainer.py"),
    ),
    Check(
        "GPU020",
        "unsupported-attention",
        Text("GPU 不支持该 Flash Attention", "Flash attention the GPU lacks"),
        Priority.HIGH,
        judge_of(_unsupported_attention),
        why="FlashAttention-2 has no kernels for Volta and Turing, FlashAttention-3 only for "
        "Hopper.",
        fix="Use sdpa before Ampere, FlashAttention-2 on Ampere and Ada.",
        impact=_FAILS,
        examples=(
            Example("swift", "train.slurm", _VOLTA.format("flash_attn"), _VOLTA.format("sdpa")),
        ),
        sources=(sources.FLASH_ATTENTION_2, sources.FLASH_ATTENTION_3),
    ),
    Check(
        "GPU021",
        "parallel-sizes",
        Text("并行度不能整除进程数", "Parallel sizes that do not divide the ranks"),
        Priority.HIGH,
        judge_of(_parallel_sizes),
        why="The ranks cannot be arranged in groups of these sizes, or the attention heads "
        "cannot be dealt out to the ranks of a tensor-parallel group.",
        fix="Choose sizes whose product divides the number of ranks, and a tensor-parallel size "
        "that divides the model's attention heads.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --attn_impl flash_attn --sequence_parallel_size 8\n",
                "NPROC_PER_NODE=4 swift sft --model Qwen/Qwen2.5-7B-Instruct \\\n"
                "    --attn_impl flash_attn --sequence_parallel_size 4\n",
            ),
        ),
        sources=(
            sources.MEGATRON,
            sources.SWIFT_DOCS,
            "megatron-core 0.16.1, transformer/transformer_config.py, TransformerConfig",
        ),
    ),
    Check(
        "GPU022",
        "device-map-refused",
        Text("单进程多卡与 DeepSpeed 等冲突", "One process on several GPUs, refused"),
        Priority.HIGH,
        judge_of(_spread_and_refused, training=True),
        why="Started as one process that sees several GPUs, ms-swift spreads the model over "
        "them, and raises ValueError for DeepSpeed, FSDP, Liger kernels or vLLM beside that.",
        fix="Set NPROC_PER_NODE to the number of GPUs.",
        impact=_FAILS,
        examples=(
            Example(
                "swift",
                "train.sh",
                _ONE_PROCESS.format(""),
                _ONE_PROCESS.format("NPROC_PER_NODE=4 "),
            ),
        ),
        sources=(sources.SWIFT_ARGUMENTS, "ms-swift 4.6, trainers/arguments.py"),
    ),
)
