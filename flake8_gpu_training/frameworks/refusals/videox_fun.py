"""What VideoX-Fun's training scripts refuse at start (scripts/*/train*.py, main)."""

from __future__ import annotations

from flake8_gpu_training.facts import known
from flake8_gpu_training.frameworks.reading import truth
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.language import Text

_MAIN = "scripts/*/train*.py, main"
_REWARDED = (
    "wan2.1/train_reward_lora",
    "wan2.1_fun/train_reward_lora",
    "wan2.2_fun/train_reward_lora",
)
_VALIDATED = ("cogvideox_fun/train_reward_lora", *_REWARDED[:2])
_ONE_SAMPLE = (
    "qwenimage/train_edit",
    "qwenimage/train_edit_lora",
    "wan2.1_vace/train",
    "wan2.2_vace_fun/train",
)
_AVERAGED = (
    "fantasytalking/train",
    "flashhead/train_s2v",
    "flux/train",
    "flux2/train",
    "flux2_fun/train_control",
    "hunyuanvideo/train",
    "infinitetalk/train_s2v",
    "longcatvideo/train",
    "longcatvideo/train_avatar",
    "ltx2.3/train",
    "ltx2/train",
    "mova/train",
    "qwenimage/train",
    "qwenimage/train_edit",
    "qwenimage_fun/train_control",
    "wan2.1/train",
    "wan2.1_fun/train",
    "wan2.1_fun/train_control",
    "wan2.1_vace/train",
    "wan2.2/train",
    "wan2.2/train_animate",
    "wan2.2/train_s2v",
    "wan2.2_fun/train",
    "wan2.2_fun/train_control",
    "wan2.2_vace_fun/train",
    "z_image/train",
    "z_image_fun/train_control",
)
"""Scripts that keep averaged weights beside the trained ones."""
_ALL = ("common",)
_SCHEDULES = (
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "piecewise_constant",
)
_HUNYUAN = ("hunyuanvideo/train", "hunyuanvideo/train_lora")


def _on(options: Options, name: str) -> bool:
    return options.takes(name) and truth(options[name]) is True


def _averages_in_parts(options: Options) -> bool:
    stage = options.run.value("zero_stage")
    if stage is None:
        raise UndecidedError("zero_stage")
    return _on(options, "use_ema") and bool(stage == 3)


def _lacks_model(options: Options) -> bool:
    """Where the script is in sight, its own parser tells it."""
    name = "pretrained_model_name_or_path"
    return "videox-fun" not in options.run.unreleased and not options.is_given(name)


def _has_token(options: Options) -> bool:
    """Whether a token is given, be it one that nobody may read."""
    token = options.given.get("hub_token")
    return token is not None and not (known(token.value) and token.value is None)


def _validates(options: Options) -> bool:
    names = ("validation_prompt_path", "validation_prompts")
    return any(options.is_given(name) for name in names)


def _uneven_validation(options: Options) -> bool:
    world = options.run.launcher.world_size
    if world is None or not known(world):
        raise UndecidedError("processes")
    size = options["validation_batch_size"]
    return _validates(options) and (size < world or size % world != 0)


def _steps(options: Options) -> list[int]:
    value = options["backprop_step_list"]
    steps = value if isinstance(value, list) else [value]
    if not all(isinstance(step, int) for step in steps):
        raise UndecidedError("backprop_step_list")
    return steps


def _late_steps(options: Options) -> bool:
    if not _on(options, "backprop") or options["backprop_step_list"] is None:
        return False
    return all(step > options["num_inference_steps"] - 1 for step in _steps(options))


def _chosen_steps(options: Options, *strategies: str) -> bool:
    """Whether the steps are chosen by one of the strategies."""
    if not _on(options, "backprop") or options["backprop_step_list"] is not None:
        return False
    return options["backprop_strategy"] in strategies


def _many_steps(options: Options) -> bool:
    limit = options["num_inference_steps"] - 1
    is_chosen = _chosen_steps(options, "tail", "uniform", "random")
    return is_chosen and options["backprop_num_steps"] > limit


def _no_span(options: Options) -> bool:
    start, end = options["backprop_random_start_step"], options["backprop_random_end_step"]
    limit = options["num_inference_steps"] - 1
    return _chosen_steps(options, "random") and (start > end or end > limit)


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "no-base-model",
        "scripts/*/train*.py, parse_args",
        ("pretrained_model_name_or_path",),
        _lacks_model,
        Text("设置 --pretrained_model_name_or_path", "give --pretrained_model_name_or_path"),
        Text("没有指定模型", "no model is named"),
        groups=_ALL,
    ),
    Refusal(
        "token-beside-wandb",
        _MAIN,
        ("hub_token", "report_to"),
        lambda options: options["report_to"] == "wandb" and _has_token(options),
        Text(
            "删除 --hub_token，用 huggingface-cli login 登录",
            "drop --hub_token and log in by huggingface-cli login",
        ),
        Text(
            "wandb 会记录所有参数，令牌会泄露", "wandb records all arguments, the token among them"
        ),
        groups=_ALL,
    ),
    Refusal(
        "schedule",
        "diffusers/optimization.py, get_scheduler",
        ("lr_scheduler",),
        lambda options: (
            isinstance(options["lr_scheduler"], str) and options["lr_scheduler"] not in _SCHEDULES
        ),
        Text("--lr_scheduler 改为 {known} 之一", "give --lr_scheduler one of {known}"),
        Text("Diffusers 没有 {lr_scheduler}", "Diffusers has no schedule {lr_scheduler}"),
        figures=lambda options: {"known": ", ".join(_SCHEDULES)},
        groups=_ALL,
    ),
    Refusal(
        "averages-of-zero3",
        _MAIN,
        ("use_ema",),
        _averages_in_parts,
        Text("删除 --use_ema，或改用 ZeRO-2", "drop --use_ema or take ZeRO stage 2"),
        Text("ZeRO-3 切分权重，无法求滑动平均", "ZeRO-3 splits the weights that are averaged"),
        groups=_AVERAGED,
    ),
    Refusal(
        "several-samples",
        _MAIN,
        ("train_batch_size",),
        lambda options: options["train_batch_size"] >= 2,
        Text("--train_batch_size 设为 1", "write --train_batch_size=1"),
        Text(
            "该脚本每卡只处理一个样本，而不是 {train_batch_size}",
            "the script takes one sample at a time, not {train_batch_size}",
        ),
        write=lambda options: {"train_batch_size": 1},
        groups=_ONE_SAMPLE,
    ),
    Refusal(
        "uneven-validation",
        _MAIN,
        ("validation_batch_size",),
        _uneven_validation,
        Text(
            "--validation_batch_size 设为 {world} 的倍数",
            "give --validation_batch_size a multiple of {world}",
        ),
        Text(
            "{validation_batch_size} 个样本不能平分给 {world} 个进程",
            "{validation_batch_size} samples are not shared evenly by {world} processes",
        ),
        figures=lambda options: {"world": options.run.launcher.world_size},
        groups=_VALIDATED,
    ),
    Refusal(
        "no-validation",
        _MAIN,
        ("validation_prompt_path", "validation_prompts"),
        _validates,
        Text(
            "删除 --validation_prompt_path 和 --validation_prompts",
            "drop --validation_prompt_path and --validation_prompts",
        ),
        Text("该脚本不支持验证", "the script does not validate"),
        groups=("wan2.2_fun/train_reward_lora",),
    ),
    Refusal(
        "decoded-latents",
        _MAIN,
        ("num_decoded_latents", "vae_gradient_checkpointing"),
        lambda options: (
            _on(options, "vae_gradient_checkpointing") and options["num_decoded_latents"] > 3
        ),
        Text(
            "--num_decoded_latents 设为不大于 3，或删除 --vae_gradient_checkpointing",
            "give --num_decoded_latents at most 3 or drop --vae_gradient_checkpointing",
        ),
        Text(
            "VAE 的重计算不支持 {num_decoded_latents} 个潜变量",
            "the VAE does not recompute {num_decoded_latents} latents",
        ),
        groups=("cogvideox_fun/train_reward_lora",),
    ),
    Refusal(
        "late-steps",
        _MAIN,
        ("backprop_step_list", "num_inference_steps"),
        _late_steps,
        Text(
            "--backprop_step_list 给出小于 {num_inference_steps} 的步",
            "give --backprop_step_list a step below {num_inference_steps}",
        ),
        Text(
            "所有步都在 {num_inference_steps} 步之后",
            "all of them come after the {num_inference_steps} steps of inference",
        ),
        groups=_REWARDED,
    ),
    Refusal(
        "many-steps",
        _MAIN,
        ("backprop_num_steps", "num_inference_steps"),
        _many_steps,
        Text(
            "--backprop_num_steps 设为小于 {num_inference_steps}",
            "give --backprop_num_steps less than {num_inference_steps}",
        ),
        Text(
            "{backprop_num_steps} 超过推理步数减一",
            "{backprop_num_steps} is more than the steps of inference less one",
        ),
        groups=_REWARDED,
    ),
    Refusal(
        "no-span-of-steps",
        _MAIN,
        ("backprop_random_end_step", "backprop_random_start_step", "num_inference_steps"),
        _no_span,
        Text(
            "起止步满足 start ≤ end < {num_inference_steps}",
            "let the steps be start <= end < {num_inference_steps}",
        ),
        Text(
            "{backprop_random_start_step} 到 {backprop_random_end_step} 不是这样的范围",
            "{backprop_random_start_step} to {backprop_random_end_step} is no such span",
        ),
        groups=_REWARDED,
    ),
    Refusal(
        "texts-in-loader",
        _MAIN,
        ("enable_text_encoder_in_dataloader",),
        lambda options: _on(options, "enable_text_encoder_in_dataloader"),
        Text(
            "删除 --enable_text_encoder_in_dataloader", "drop --enable_text_encoder_in_dataloader"
        ),
        Text("该脚本没有实现", "the script does not do that"),
        write=lambda options: {"enable_text_encoder_in_dataloader": False},
        groups=_HUNYUAN,
    ),
)
