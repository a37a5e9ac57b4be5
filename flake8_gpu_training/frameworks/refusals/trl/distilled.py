"""What distillation with a teacher refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

from flake8_gpu_training.frameworks.refusals import fields
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.language import Text

_PATH = "trl/experimental"
_RATIO = Text("0 到 1 的数", "a number from 0 to 1")
_FROM_0 = Text("不小于 0 的数", "0 or more")
_ABOVE_0 = Text("大于 0 的数", "more than 0")
_MODES = ("sampled", "argmax")


def _source(group: str) -> str:
    return f"{_PATH}, {group}.__post_init__"


def _always(options: Options) -> bool:
    return True


def _ratio(group: str, parameter: str, since: str = "") -> Refusal:
    return fields.satisfying(
        group, parameter, lambda value: 0 <= value <= 1, _RATIO, _source(group), since=since
    )


def _from_0(group: str, parameter: str, when: Callable[[Options], bool] = _always) -> Refusal:
    return fields.satisfying(
        group,
        parameter,
        lambda value: value is None or value >= 0,
        _FROM_0,
        _source(group),
        when=when,
    )


def _above_0(
    group: str, parameter: str, when: Callable[[Options], bool] = _always, since: str = ""
) -> Refusal:
    return fields.satisfying(
        group, parameter, lambda value: value > 0, _ABOVE_0, _source(group), when=when, since=since
    )


# --- batches and lengths ------------------------------------------------------------------

_GROUPED = ("GOLDConfig", "IWOPDConfig")


def _leaves_no_prompt(options: Options) -> bool:
    longest = options["max_length"]
    return longest is not None and options["max_completion_length"] >= longest


def _local(options: Options) -> int:
    return int(options["per_device_train_batch_size"] * options["gradient_accumulation_steps"])


def _does_not_partition(options: Options) -> bool:
    count = int(options["num_generations"])
    if count < 1:
        return False
    batch = options["generation_batch_size"]
    batch = _local(options) // count if batch is None else int(batch)
    return batch * count != _local(options)


_BATCHES = (
    Refusal(
        "completion-as-long-as-all",
        f"{_PATH}, __post_init__",
        ("max_completion_length", "max_length"),
        _leaves_no_prompt,
        Text(
            "max_completion_length 设为小于 max_length（{max_length}）",
            "give max_completion_length less than max_length ({max_length})",
        ),
        Text(
            "{max_completion_length} 没有给提示留出长度",
            "{max_completion_length} leaves no room for the prompt",
        ),
        groups=_GROUPED,
    ),
    Refusal(
        "generations-do-not-partition",
        f"{_PATH}, __post_init__",
        ("num_generations", "generation_batch_size", "per_device_train_batch_size"),
        _does_not_partition,
        Text(
            "generation_batch_size×num_generations 应等于 {local}",
            "make generation_batch_size x num_generations {local}",
        ),
        Text(
            "每个进程每次更新有 {local} 条（批大小×累积）",
            "a process has {local} samples an update (batch size x accumulation)",
        ),
        figures=lambda options: {"local": _local(options)},
        groups=_GROUPED,
        since="1.0.0",
    ),
)

# --- the teacher's server -----------------------------------------------------------------


def _is_served(options: Options) -> bool:
    """Whether the teacher answers from a server: always, for a class that has no switch."""
    return not options.takes("use_teacher_server") or options["use_teacher_server"] is True


def _has_no_address(options: Options) -> bool:
    return _is_served(options) and not str(options["teacher_model_server_url"] or "").strip()


def _supports_nothing(options: Options) -> bool:
    return _is_served(options) and options["beta"] == 0 and options["loss_top_k"] < 1


def _supports_more(options: Options) -> bool:
    return _is_served(options) and options["beta"] > 0 and options["loss_top_k"] != 1


def _asks_for_chosen(options: Options) -> bool:
    return _is_served(options) and options["reverse_kl_top_1_mode"] == "argmax"


_SERVED = ("IWOPDConfig", "ServerDistillationConfig")


def _of_server(
    name: str, parameter: str, holds: Callable[[Options], bool], mend: Text, why: Text
) -> Refusal:
    return Refusal(name, f"{_PATH}, __post_init__", (parameter,), holds, mend, why, groups=_SERVED)


_SERVERS = (
    _of_server(
        "teacher-without-address",
        "teacher_model_server_url",
        _has_no_address,
        Text("设置 teacher_model_server_url", "set teacher_model_server_url"),
        Text("教师由服务器提供", "the teacher answers from a server"),
    ),
    _of_server(
        "no-support-of-teacher",
        "loss_top_k",
        _supports_nothing,
        Text("loss_top_k 设为大于 0", "give loss_top_k more than 0"),
        Text("beta=0 时服务器只给出前几个概率", "with beta=0 the server tells the top ones only"),
    ),
    _of_server(
        "support-of-mixed-loss",
        "loss_top_k",
        _supports_more,
        Text("loss_top_k 设为 1", "set loss_top_k to 1"),
        Text("beta={beta} 时只支持 1", "with beta={beta} there is no other"),
    ),
    _of_server(
        "argmax-of-server",
        "reverse_kl_top_1_mode",
        _asks_for_chosen,
        Text("reverse_kl_top_1_mode 设为 sampled", "set reverse_kl_top_1_mode to sampled"),
        Text(
            "服务器给不出任意记号的概率",
            "the server does not tell the probability of any token that is asked for",
        ),
    ),
)

# --- one by one -------------------------------------------------------------------------


def _is_uld(options: Options) -> bool:
    return options["use_uld_loss"] is True


def _is_hybrid(options: Options) -> bool:
    return _is_uld(options) and options["uld_use_hybrid_loss"] is True


def _weighs_one_half(options: Options) -> bool:
    names = ("uld_hybrid_matched_weight", "uld_hybrid_unmatched_weight")
    return _is_hybrid(options) and len({options[name] is None for name in names}) == 2


def _is_hybrid_and_weighed(options: Options) -> bool:
    return _is_hybrid(options) and options["uld_hybrid_matched_weight"] is not None


def _is_iw(options: Options) -> bool:
    return bool(options["distillation_objective"] == "iw_opd")


def _samples_in_part(options: Options) -> bool:
    return _is_iw(options) and 0 <= options["lmbda"] < 1


def _judges_others(options: Options) -> bool:
    return (
        _is_iw(options) and options["reverse_kl_top_1_mode"] == "argmax" and not _is_served(options)
    )


def _samples_of_old(options: Options) -> bool:
    return _is_iw(options) and options["use_vllm"] is True and options["vllm_sync_frequency"] != 1


def _reverses_part(options: Options) -> bool:
    return bool(
        options["distillation_mode"] == "sampled_token" and options["distillation_alpha"] != 1.0
    )


_PLACES = ("{prompt}", "{privileged_context}")


def _missing(options: Options) -> Iterator[str]:
    return (place for place in _PLACES if place not in options["teacher_prompt_template"])


def _objective(
    name: str, parameter: str, holds: Callable[[Options], bool], mend: Text, why: Text
) -> Refusal:
    source = _source("IWOPDConfig")
    return Refusal(name, source, (parameter,), holds, mend, why, groups=("IWOPDConfig",))


_ONE_BY_ONE = (
    _ratio("DistillationConfig", "beta"),
    _ratio("AsyncDistillationConfig", "beta"),
    _ratio("GKDConfig", "beta", since="0.11.4"),
    _ratio("GKDConfig", "lmbda", since="0.11.4"),
    _ratio("GOLDConfig", "beta"),
    _ratio("GOLDConfig", "lmbda"),
    _above_0("GOLDConfig", "num_generations", since="1.0.0"),
    _from_0("GOLDConfig", "uld_crossentropy_weight", _is_uld),
    _from_0("GOLDConfig", "uld_distillation_weight", _is_uld),
    _above_0("GOLDConfig", "uld_student_temperature", _is_uld),
    _above_0("GOLDConfig", "uld_teacher_temperature", _is_uld),
    _from_0("GOLDConfig", "uld_hybrid_matched_weight", _is_hybrid),
    _from_0("GOLDConfig", "uld_hybrid_unmatched_weight", _is_hybrid_and_weighed),
    fields.among(
        "GOLDConfig",
        "uld_token_merge_strategy",
        ("observed", "bayesian"),
        _source("GOLDConfig"),
        when=_is_uld,
        since="1.8.0",
    ),
    Refusal(
        "one-hybrid-weight",
        _source("GOLDConfig"),
        ("uld_hybrid_matched_weight", "uld_hybrid_unmatched_weight"),
        _weighs_one_half,
        Text(
            "uld_hybrid_matched_weight 与 uld_hybrid_unmatched_weight 都给出，或都不给",
            "give both uld_hybrid_matched_weight and uld_hybrid_unmatched_weight, or neither",
        ),
        Text("只给出了一个", "one of them is given"),
        groups=("GOLDConfig",),
    ),
    _ratio("IWOPDConfig", "beta"),
    _ratio("IWOPDConfig", "lmbda"),
    _above_0("IWOPDConfig", "num_generations"),
    _from_0("IWOPDConfig", "iw_opd_gamma"),
    _above_0("IWOPDConfig", "iw_opd_epsilon"),
    fields.among(
        "IWOPDConfig", "distillation_objective", ("jsd", "iw_opd"), _source("IWOPDConfig")
    ),
    fields.among("IWOPDConfig", "reverse_kl_top_1_mode", _MODES, _source("IWOPDConfig")),
    fields.among(
        "ServerDistillationConfig",
        "reverse_kl_top_1_mode",
        _MODES,
        _source("ServerDistillationConfig"),
    ),
    _objective(
        "iw-opd-off-policy",
        "lmbda",
        _samples_in_part,
        Text("lmbda 设为 1.0", "set lmbda to 1.0"),
        Text("iw_opd 只用学生自己的样本", "iw_opd learns from the student's own samples only"),
    ),
    _objective(
        "iw-opd-of-argmax",
        "reverse_kl_top_1_mode",
        _judges_others,
        Text("reverse_kl_top_1_mode 设为 sampled", "set reverse_kl_top_1_mode to sampled"),
        Text("iw_opd 定义在采样的记号上", "iw_opd is defined on sampled tokens"),
    ),
    _objective(
        "iw-opd-of-old-weights",
        "vllm_sync_frequency",
        _samples_of_old,
        Text("vllm_sync_frequency 设为 1", "set vllm_sync_frequency to 1"),
        Text("iw_opd 要求样本出自当前权重", "iw_opd needs samples of the weights as they are"),
    ),
    Refusal(
        "teacher-urls",
        _source("AsyncDistillationConfig"),
        ("teacher_server_urls",),
        lambda options: not options["teacher_server_urls"],
        Text("teacher_server_urls 至少给出一个地址", "give teacher_server_urls an address"),
        Text("教师由服务器提供", "the teacher answers from a server"),
        groups=("AsyncDistillationConfig",),
    ),
    _ratio("SDPOConfig", "distillation_weight", since="1.6.0"),
    Refusal(
        "sampled-token-alpha",
        f"{_PATH}, __post_init__",
        ("distillation_alpha", "distillation_mode"),
        _reverses_part,
        Text("distillation_alpha 设为 1.0", "set distillation_alpha to 1.0"),
        Text(
            "distillation_mode=sampled_token 只有反向 KL",
            "distillation_mode=sampled_token has the reverse KL only",
        ),
        write=lambda options: {"distillation_alpha": 1.0},
        groups=("SDPOConfig", "SDFTConfig"),
        since="1.6.0",
    ),
    Refusal(
        "template-without-place",
        _source("SDFTConfig"),
        ("teacher_prompt_template",),
        lambda options: bool(list(_missing(options))),
        Text(
            "在 teacher_prompt_template 中写入缺少的占位符", "write the missing placeholder in it"
        ),
        Text("teacher_prompt_template 缺少 {missing}", "teacher_prompt_template lacks {missing}"),
        figures=lambda options: {"missing": ", ".join(_missing(options))},
        groups=("SDFTConfig",),
        since="1.0.0",
    ),
)

REFUSALS: tuple[Refusal, ...] = (*_BATCHES, *_SERVERS, *_ONE_BY_ONE)
