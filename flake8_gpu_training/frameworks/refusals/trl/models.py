"""What TRL's trainers refuse of the model that they are given: adapters and quantization."""

from __future__ import annotations

import re

from flake8_gpu_training.facts import Call, Location
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal
from flake8_gpu_training.frameworks.refusals.transformers.trainer import passed, trainer_of
from flake8_gpu_training.language import Text

_SOURCE = "trl/trainer/*_trainer.py, __init__"
_LOADS = re.compile(r"[\w.]+\.from_pretrained\(")


def _made_by(options: Options, text: str) -> list[Call]:
    """The calls that the variable ``text`` is assigned of."""
    calls = (call for file in options.run.python for call in file.calls)
    return [call for call in calls if text.isidentifier() and call.assigned_to == text]


def _has_adapter(options: Options) -> bool:
    if options.takes("use_peft"):
        return options["use_peft"] is True
    given = passed(trainer_of(options), "peft_config")
    if given is None:
        return False
    made = _made_by(options, given.text)
    return len(made) == 1 and made[0].name.partition(".")[0] == "peft"


def _follows_an_adapter(options: Options) -> bool:
    return options["sync_ref_model"] is True and _has_adapter(options)


def _is_quantized_twice(options: Options) -> bool:
    given = passed(trainer_of(options), "quantization_config")
    return given is not None and "quantization_config" in options.mapping("model_init_kwargs")


def _is_loaded(options: Options) -> bool:
    trainer = trainer_of(options)
    model = passed(trainer, "model")
    if model is None or passed(trainer, "quantization_config") is None:
        return False
    if _LOADS.match(model.text):
        return True
    made = _made_by(options, model.text)
    return len(made) == 1 and made[0].method == "from_pretrained"


def _of_trainer(options: Options) -> Location:
    return trainer_of(options).location


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "synchronised-with-adapter",
        _SOURCE,
        ("sync_ref_model",),
        _follows_an_adapter,
        Text("去掉 sync_ref_model", "drop sync_ref_model"),
        Text(
            "使用适配器时没有单独的参考模型",
            "with an adapter there is no reference model of its own",
        ),
        write=lambda options: {"sync_ref_model": False},
        groups=("DPOConfig", "KTOConfig", "GRPOConfig", "RLOOConfig"),
        since="1.8.0",
    ),
    Refusal(
        "quantized-twice",
        _SOURCE,
        ("model_init_kwargs",),
        _is_quantized_twice,
        Text(
            "从 model_init_kwargs 中去掉 quantization_config",
            "drop quantization_config from model_init_kwargs",
        ),
        Text("Trainer 已得到它", "the Trainer is given it too"),
        raiser="the Trainer",
        groups=(
            "SFTConfig",
            "DPOConfig",
            "KTOConfig",
            "GRPOConfig",
            "RLOOConfig",
            "RewardConfig",
            "DistillationConfig",
        ),
        since="1.10.0",
    ),
    Refusal(
        "quantized-after-loading",
        _SOURCE,
        (),
        _is_loaded,
        Text(
            "把 quantization_config 传给 from_pretrained，或给 Trainer 传模型名",
            "pass quantization_config to from_pretrained, or give the Trainer the model's name",
        ),
        Text("已加载的模型无法再量化", "a loaded model is quantized no more"),
        at=_of_trainer,
        raiser="the Trainer",
        groups=("DPOConfig", "KTOConfig"),
        since="1.10.0",
    ),
)
