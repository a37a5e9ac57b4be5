"""Settings of the data that do not go together (hparams/data_args.py, data/)."""

from __future__ import annotations

import difflib
from typing import Any

from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.llamafactory.asked import (
    HPARAMS,
    LEAST,
    choices,
    given,
    is_read_from_file,
    listed,
    on,
)
from flake8_gpu_training.language import Text

_SOURCE = f"{HPARAMS}/data_args.py, DataArguments.__post_init__"
_ALIKE = 0.75
"""How much of a misspelt name agrees with the real one (difflib's ratio)."""
_TEMPLATE = "llamafactory/data/template.py, get_template_and_fix_tokenizer"


def _has_share(options: Options) -> bool:
    return bool(options["val_size"] > LEAST)


def _table(options: Options) -> Any:
    return options.accepted.parts[0].at_hand


def _is_template(options: Options, group: str, name: Any) -> bool:
    at_hand = _table(options)
    return name in at_hand.table.parameters(group, at_hand.version)


def _own_templates(options: Options) -> bool:
    """Whether the project's own code adds templates."""
    calls = (call for file in options.run.python for call in file.calls)
    return any("register_template" in call.method for call in calls)


def _near_template(options: Options, name: str) -> list[str]:
    """The release's template that a name is like; itself where only the case differs."""
    at_hand = _table(options)
    names = at_hand.table.parameters("templates", at_hand.version)
    return difflib.get_close_matches(name.lower(), names, 1, _ALIKE)


def _unknown_template(options: Options) -> bool:
    """Whether a template is misspelt, or another release's; others may be the user's own."""
    name = options["template"]
    if not isinstance(name, str) or _own_templates(options):
        return False
    at_hand = _table(options)
    table = at_hand.table
    # Of what is not pinned any release may be the one that is used.
    if any(table.knows("templates", name, one) for one in at_hand.allowed):
        return False
    return bool(_near_template(options, name)) or table.span("templates", name) is not None


def _template_words(options: Options) -> dict[str, Any]:
    at_hand, name = _table(options), options["template"]
    near = _near_template(options, name)
    span = at_hand.table.span("templates", name)
    return {
        "mend": f"write template={near[0]}" if near else "give template a name of this release",
        "mend_zh": f"template 改为 {near[0]}" if near else "template 改为该版本有的模板",
        "why": "there is no such template"
        if span is None
        else f"it is known from {span[0]} to {span[1]}",
        "why_zh": "没有该模板" if span is None else f"该模板只在 {span[0]} 到 {span[1]} 版本中",
    }


def _template_written(options: Options) -> dict[str, Any]:
    near = _near_template(options, options["template"])
    return {"template": near[0]} if near else {}


def _silent_prompt(options: Options) -> bool:
    name = options["template"]
    return (
        on(options, "train_on_prompt")
        and isinstance(name, str)
        and _is_template(options, "templates of efficient_eos", name)
    )


def _uneven(options: Options, name: str) -> bool:
    names, shares = listed(options, name), listed(options, "interleave_probs")
    mixed = options["mix_strategy"] != "concat"
    return mixed and names is not None and shares is not None and len(names) != len(shares)


def _shares(name: str) -> Refusal:
    return Refusal(
        f"shares-of-{name.replace('_', '-')}",
        _SOURCE,
        ("interleave_probs", name),
        lambda options: _uneven(options, name),
        Text(
            f"interleave_probs 与 {name} 个数一致",
            f"give interleave_probs one number for each {name}",
        ),
        Text(
            f"interleave_probs 有 {{shares}} 个，{name} 有 {{names}} 个",
            "there are {shares} for {names}",
        ),
        figures=lambda options: {
            "shares": len(listed(options, "interleave_probs") or ()),
            "names": len(listed(options, name) or ()),
        },
        since="0.8.3",
    )


def _unknown_mixture(options: Options) -> bool:
    names = listed(options, "dataset")
    word = options["mix_strategy"]
    return (
        is_read_from_file(options)
        and names is not None
        and len(names) > 1
        and isinstance(word, str)
        and word != "concat"
        and not word.startswith("interleave")
    )


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "share-without-dataset",
        _SOURCE,
        ("val_size", "dataset"),
        lambda options: options["dataset"] is None and _has_share(options),
        Text("设置 dataset，或删除 val_size", "name a dataset or drop val_size"),
        Text(
            "val_size 从 dataset 中划分，而没有 dataset",
            "val_size is a share of the dataset and there is none",
        ),
        since="0.8.3",
    ),
    Refusal(
        "share-beside-evaluation-set",
        _SOURCE,
        ("val_size", "eval_dataset"),
        lambda options: given(options, "eval_dataset") and _has_share(options),
        Text("删除 val_size 或 eval_dataset", "drop val_size or eval_dataset"),
        Text("两者都指定验证集", "both give the data to evaluate on"),
        write=lambda options: {"val_size": 0.0},
        since="0.8.3",
    ),
    Refusal(
        "shares-of-concatenation",
        _SOURCE,
        ("interleave_probs", "mix_strategy"),
        lambda options: given(options, "interleave_probs") and options["mix_strategy"] == "concat",
        Text(
            "mix_strategy 设为 interleave_under 或 interleave_over，或删除 interleave_probs",
            "write mix_strategy=interleave_under or interleave_over, or drop interleave_probs",
        ),
        Text(
            "mix_strategy=concat 不按比例采样",
            "mix_strategy=concat takes all samples, in no shares",
        ),
        since="0.8.3",
    ),
    _shares("dataset"),
    _shares("eval_dataset"),
    Refusal(
        "share-of-stream",
        _SOURCE,
        ("val_size", "streaming"),
        lambda options: on(options, "streaming") and LEAST < options["val_size"] < 1,
        Text("val_size 设为样本数（整数）", "give val_size a number of samples"),
        Text(
            "streaming 时总数未知，{val_size} 无法划分",
            "a stream has no length of which {val_size} could be taken",
        ),
    ),
    Refusal(
        "limit-of-stream",
        _SOURCE,
        ("max_samples", "streaming"),
        lambda options: on(options, "streaming") and given(options, "max_samples"),
        Text(
            "删除 max_samples，用 max_steps 限制", "drop max_samples and limit the run by max_steps"
        ),
        Text("streaming 不支持 max_samples", "streaming does not take max_samples"),
    ),
    Refusal(
        "history-masked-and-prompt-trained",
        _SOURCE,
        ("mask_history", "train_on_prompt"),
        lambda options: on(options, "mask_history") and on(options, "train_on_prompt"),
        Text("删除 mask_history 或 train_on_prompt", "drop mask_history or train_on_prompt"),
        Text(
            "一个只训练最后一轮，一个连提问也训练",
            "one trains the last turn alone, the other the prompts as well",
        ),
        since="0.9.0",
    ),
    Refusal(
        "reserved-labels",
        _SOURCE,
        ("reserved_label_len", "cutoff_len"),
        lambda options: options["reserved_label_len"] >= options["cutoff_len"],
        Text(
            "reserved_label_len 设为小于 cutoff_len", "give reserved_label_len less than cutoff_len"
        ),
        Text(
            "{reserved_label_len} ≥ {cutoff_len}",
            "{reserved_label_len} is not less than {cutoff_len}",
        ),
        until="0.8.2",
    ),
    Refusal(
        "mix-strategy",
        "llamafactory/data/data_utils.py, merge_dataset",
        ("mix_strategy",),
        _unknown_mixture,
        Text("mix_strategy 改为 {known} 之一", "give mix_strategy one of {known}"),
        Text("没有 {mix_strategy} 这种混合方式", "there is no strategy {mix_strategy}"),
        figures=lambda options: {"known": choices(options, "mix_strategy")},
    ),
    Refusal(
        "template",
        _TEMPLATE,
        ("template",),
        _unknown_template,
        Text("{mend_zh}", "{mend}"),
        Text("{template}：{why_zh}", "{template}: {why}"),
        figures=_template_words,
        write=_template_written,
    ),
    Refusal(
        "prompt-of-template",
        _TEMPLATE,
        ("train_on_prompt", "template"),
        _silent_prompt,
        Text("删除 train_on_prompt", "drop train_on_prompt"),
        Text("模板 {template} 不支持 train_on_prompt", "the template {template} does not take it"),
        write=lambda options: {"train_on_prompt": False},
        groups=("train",),
    ),
)
