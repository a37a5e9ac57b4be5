"""What ms-swift refuses of distillation (GKD) and its teachers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.ms_swift._asked import (
    MEGATRON_RLHF,
    RLHF,
    ROLLOUTS,
    drop,
    none_of,
    off,
    setting,
    value,
)
from flake8_gpu_training.language import Text

_ARGUMENTS = "swift/arguments/rlhf_args.py, RLHFArguments"


def _is_gkd(options: Options) -> bool:
    return bool(options["rlhf_type"] == "gkd")


def _server(options: Options) -> bool:
    return value(options, "teacher_model_server") is not None


def _two_teachers(options: Options) -> bool:
    taught = options["rlhf_type"] in ROLLOUTS
    return taught and options["teacher_model"] is not None and _server(options)


def _no_local_teacher(options: Options) -> bool:
    return (
        _is_gkd(options) and bool(options["use_liger_kernel"]) and options["teacher_model"] is None
    )


def _fault_of_servers(options: Options) -> Optional[Text]:
    """What is wrong with a list of teachers' servers; None when nothing is."""
    if options["rlhf_type"] not in ROLLOUTS:
        return None
    found = options["teacher_model_server"]
    if isinstance(found, str) and found.strip().startswith("["):
        try:
            found = json.loads(found)
        except ValueError:
            raise UndecidedError("teacher_model_server") from None  # it may be repaired
    if not isinstance(found, list):
        return None
    if not found:
        return Text("列表为空", "the list is empty")
    return _fault_of_server(found) or _fault_of_tags(found)


def _fault_of_server(servers: list[Any]) -> Optional[Text]:
    for index, server in enumerate(servers, 1):
        if not known(server):
            raise UndecidedError("teacher_model_server")
        if not isinstance(server, dict):
            return Text(f"第 {index} 项不是对象", f"entry {index} is no object with url and tags")
        if not server.get("url"):
            return Text(f"第 {index} 项没有 url", f"entry {index} has no url")
        if not isinstance(server.get("tags", []), list):
            return Text(f"第 {index} 项的 tags 不是列表", f"the tags of entry {index} are no list")
    return None


def _fault_of_tags(servers: list[Any]) -> Optional[Text]:
    """Several teachers tell their samples by tags, each its own."""
    if len(servers) < 2:
        return None
    seen: set[str] = set()
    for index, server in enumerate(servers, 1):
        tags = [str(tag) for tag in server.get("tags", [])]
        if not tags:
            return Text(f"第 {index} 项没有 tags", f"entry {index} has no tags")
        for tag in tags:
            if tag in seen:
                return Text(f"tag {tag} 出现两次", f"tag {tag} is given to two entries")
            seen.add(tag)
    return None


def _words_of_servers(options: Options) -> Mapping[str, Any]:
    fault = _fault_of_servers(options)
    return {"zh": fault.zh, "en": fault.en} if fault is not None else {}


_NO_ASYNC = Text("GKD 不支持 async_generate", "GKD does not generate asynchronously")


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "two-teachers",
        f"{_ARGUMENTS}._check_teacher",
        ("teacher_model_server", "teacher_model"),
        _two_teachers,
        Text(
            "teacher_model 与 teacher_model_server 只保留一个",
            "keep one of teacher_model and teacher_model_server",
        ),
        Text("不能有两个教师", "there is one teacher"),
        since="4.4.2",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "teachers-servers",
        "swift/rlhf_trainers/gkd_helpers.py, parse_teacher_model_server",
        ("teacher_model_server",),
        lambda options: _fault_of_servers(options) is not None,
        Text("修改 teacher_model_server 的 JSON", "mend the JSON of teacher_model_server"),
        Text("{zh}", "{en}"),
        figures=_words_of_servers,
        since="4.4.2",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "liger-without-teacher",
        f"{_ARGUMENTS}._check_teacher",
        ("use_liger_kernel", "teacher_model"),
        _no_local_teacher,
        drop("use_liger_kernel"),
        Text(
            "GKD 的 Liger 损失需要本地 teacher_model",
            "the Liger loss of GKD needs a local teacher_model",
        ),
        write=off("use_liger_kernel"),
        since="4.4.2",
        groups=RLHF,
    ),
    Refusal(
        "liger-with-sft-loss",
        "swift/rlhf_trainers/gkd_trainer.py, GKDTrainer._prepare_liger_loss",
        ("sft_alpha", "use_liger_kernel"),
        lambda options: (
            _is_gkd(options)
            and options["use_liger_kernel"]
            and options["teacher_model"] is not None
            and options["sft_alpha"] != 0
        ),
        Text("去掉 sft_alpha 或 use_liger_kernel", "drop sft_alpha or use_liger_kernel"),
        Text("GKD 的 Liger 损失不含 SFT 损失", "the Liger loss of GKD has no SFT loss"),
        write=off("use_liger_kernel"),
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "liger-with-top-k",
        f"{_ARGUMENTS}._check_gkd",
        ("gkd_logits_topk", "use_liger_kernel"),
        lambda options: (
            _is_gkd(options)
            and options["use_liger_kernel"]
            and options["teacher_model"] is not None
            and options["gkd_logits_topk"] is not None
        ),
        Text(
            "去掉 gkd_logits_topk 或 use_liger_kernel", "drop gkd_logits_topk or use_liger_kernel"
        ),
        Text("GKD 的 Liger 损失使用全部词表", "the Liger loss of GKD takes the whole vocabulary"),
        write=off("use_liger_kernel"),
        since="4.0.4",
        groups=RLHF,
    ),
    Refusal(
        "gkd-asynchronous",
        f"{_ARGUMENTS}._check_gkd",
        ("async_generate",),
        lambda options: _is_gkd(options) and options["async_generate"],
        drop("async_generate"),
        _NO_ASYNC,
        write=off("async_generate"),
        since="3.10.3",
        groups=RLHF,
    ),
    Refusal(
        "gkd-sequences-of-teacher",
        f"{_ARGUMENTS}._check_gkd",
        ("seq_kd",),
        lambda options: _is_gkd(options) and options["seq_kd"],
        drop("seq_kd"),
        Text("该版本没有 seq_kd", "training on the teacher's sequences is not implemented"),
        write=off("seq_kd"),
        since="4.4.2",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "gkd-server-without-top-k",
        f"{_ARGUMENTS}._check_gkd",
        ("teacher_model_server", "gkd_logits_topk"),
        lambda options: (
            _is_gkd(options) and _server(options) and none_of(options, "gkd_logits_topk")
        ),
        Text("设置 gkd_logits_topk，例如 20", "give gkd_logits_topk, 20 for example"),
        Text("教师服务只返回前 k 个概率", "a teacher's server returns the top k only"),
        write=setting(gkd_logits_topk=20),
        since="4.0.4",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
    Refusal(
        "gkd-top-k",
        f"{_ARGUMENTS}._check_gkd",
        ("gkd_logits_topk",),
        lambda options: _is_gkd(options) and options["gkd_logits_topk"] <= 0,
        Text("gkd_logits_topk 设为大于 0", "give gkd_logits_topk more than 0"),
        Text("{gkd_logits_topk} 不是个数", "{gkd_logits_topk} is no number of logits"),
        since="4.0.4",
        groups=(*RLHF, *MEGATRON_RLHF),
    ),
)
