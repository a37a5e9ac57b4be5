"""What the Trainer refuses of its arguments and its configuration (trainer.py)."""

from __future__ import annotations

import re
from typing import Optional

from flake8_gpu_training.facts import Argument, Call, Location, known
from flake8_gpu_training.frameworks.refusals.base import Options, Refusal, UndecidedError
from flake8_gpu_training.frameworks.refusals.transformers.arguments import GROUPS, evaluation
from flake8_gpu_training.language import Text

_SOURCE = "transformers/trainer.py, Trainer.__init__"
_LIBRARIES = ("transformers", "trl")
_CONFIGURES = re.compile(r"(Seq2Seq)?TrainingArguments|HfArgumentParser|TrlParser")
_NO_TRAINER = frozenset({"ModelConfig", "DatasetMixtureConfig"})
_POSITIONAL = 3  # model, args, data_collator: the same in all of them


def trainer_of(options: Options) -> Call:
    """The one Trainer of the library that a run makes, of its one configuration."""
    calls = [call for file in options.run.python for call in file.calls]
    made = [call for call in calls if _is_trainer(call)]
    if len(made) != 1 or sum(map(_configures, calls)) != 1:
        raise UndecidedError("the Trainer")
    if made[0].is_open or len(made[0].positional) > _POSITIONAL:
        raise UndecidedError("the Trainer's arguments")
    return made[0]


def _is_trainer(call: Call) -> bool:
    return call.name.partition(".")[0] in _LIBRARIES and call.method.endswith("Trainer")


def _configures(call: Call) -> bool:
    root = call.name.partition(".")[0]
    if root not in _LIBRARIES:
        return bool(_CONFIGURES.fullmatch(call.method))
    of_trl = root == "trl" and call.method.endswith("Config") and call.method not in _NO_TRAINER
    return of_trl or bool(_CONFIGURES.fullmatch(call.method))


def passed(call: Call, name: str) -> Optional[Argument]:
    """A keyword that a call is given and that is not None."""
    argument = call.keywords.get(name)
    if argument is None or (known(argument.value) and argument.value is None):
        return None
    return argument


def _evaluates_nothing(options: Options) -> bool:
    return evaluation(options) != "no" and passed(trainer_of(options), "eval_dataset") is None


def _stops_early(options: Options) -> bool:
    callbacks = trainer_of(options).keywords.get("callbacks")
    return callbacks is not None and "EarlyStoppingCallback(" in callbacks.text


def _stops_without_evaluation(options: Options) -> bool:
    return _stops_early(options) and evaluation(options) == "no"


def _has_metric(options: Options) -> bool:
    return (
        options["metric_for_best_model"] is not None
        or options["load_best_model_at_end"] is True
        or options["lr_scheduler_type"] in ("reduce_lr_on_plateau", "greedy")
    )


def _stops_without_metric(options: Options) -> bool:
    return _stops_early(options) and evaluation(options) != "no" and not _has_metric(options)


def _stops_without_best(options: Options) -> bool:
    return _stops_early(options) and options["load_best_model_at_end"] is False


def _gives_optimizers(call: Call) -> bool:
    """Whether one of the two of ``optimizers=(optimizer, scheduler)`` is given."""
    argument = passed(call, "optimizers")
    if argument is None:
        return False
    if known(argument.value) and isinstance(argument.value, (tuple, list)):
        return any(not known(one) or one is not None for one in argument.value)
    raise UndecidedError("optimizers")


def _shards_given_optimizers(options: Options) -> bool:
    value = options["fsdp"]
    return bool(value) and str(value).lower() != "false" and _gives_optimizers(trainer_of(options))


def _models_twice(options: Options) -> bool:
    call = trainer_of(options)
    own = call.keywords.get("model") or (call.positional[0] if call.positional else None)
    if own is None or passed(call, "model_init") is None:
        return False
    return own.value is not None if known(own.value) else _is_made(own)


def _is_made(argument: Argument) -> bool:
    return bool(re.match(r"[\w.]+\.from_(pretrained|config)\(", argument.text))


def _no_model(options: Options) -> bool:
    call = trainer_of(options)
    if call.method not in ("Trainer", "Seq2SeqTrainer") or call.positional:
        return False
    return passed(call, "model") is None and passed(call, "model_init") is None


def _inits_with_optimizers(options: Options) -> bool:
    call = trainer_of(options)
    return passed(call, "model_init") is not None and _gives_optimizers(call)


def _optimizes_twice(options: Options) -> bool:
    call = trainer_of(options)
    return passed(call, "optimizer_cls_and_kwargs") is not None and _gives_optimizers(call)


# --- what is done with it ---------------------------------------------------------------

_PLAIN = ("Trainer", "Seq2SeqTrainer")


def _calls_of(options: Options, trainer: Call, method: str) -> list[Call]:
    """Calls of a method of the Trainer, by the one name that it has."""
    calls = [call for file in options.run.python for call in file.calls]
    name = trainer.assigned_to
    if not name or sum(call.assigned_to == name for call in calls) != 1:
        raise UndecidedError("the Trainer's name")
    later = [one.name for file in options.run.python for one in file.attributes]
    if any(one.endswith(("_dataset", "_dataloader", "model_init")) for one in later):
        raise UndecidedError("what the Trainer is given afterwards")
    return [call for call in calls if call.name == f"{name}.{method}" or _on(call, name, method)]


def _on(call: Call, name: str, method: str) -> bool:
    return call.method == method and call.name.split(".")[-2:-1] == [name]


def _trains_on_nothing(options: Options) -> bool:
    trainer = trainer_of(options)
    if trainer.method not in _PLAIN or passed(trainer, "train_dataset") is not None:
        return False
    return bool(_calls_of(options, trainer, "train"))


def _judges_nothing(options: Options) -> bool:
    trainer = trainer_of(options)
    if trainer.method not in _PLAIN or passed(trainer, "eval_dataset") is not None:
        return False
    if evaluation(options) != "no":
        return False  # the Trainer stops before
    calls = _calls_of(options, trainer, "evaluate")
    return any(not (c.positional or c.keywords or c.is_open) for c in calls)


def _searches_with_one_model(options: Options) -> bool:
    trainer = trainer_of(options)
    if passed(trainer, "model_init") is not None:
        return False
    return bool(_calls_of(options, trainer, "hyperparameter_search"))


# --- what its data are ------------------------------------------------------


def _makers(options: Options, name: str) -> list[Call]:
    """The calls that a variable, or attribute, is assigned of."""
    calls = (call for file in options.run.python for call in file.calls)
    return [call for call in calls if call.assigned_to == name]


def _value_of(trainer: Call, name: str, index: int) -> str:
    """The name of the variable that an argument of the Trainer is."""
    argument = trainer.keywords.get(name)
    if argument is None and index < len(trainer.positional):
        argument = trainer.positional[index]
    return argument.text if argument is not None and argument.text.isidentifier() else ""


_STILL_STREAMED = frozenset(
    """
    map filter shuffle with_format take skip rename_column rename_columns remove_columns
    select_columns cast cast_column
    """.split()  # noqa: SIM905
)


def _streams_without_end(options: Options) -> bool:
    trainer = trainer_of(options)
    if trainer.method not in _PLAIN or options["max_steps"] > 0:
        return False
    name = _value_of(trainer, "train_dataset", 3)
    made = _makers(options, name) if name else []
    loads = [call for call in made if call.method == "load_dataset"]
    changes = [c for c in made if c.method in _STILL_STREAMED and c.name.startswith(f"{name}.")]
    if not loads or len(loads) + len(changes) != len(made):
        return False
    return all(_is_streamed(call) for call in loads)


def _is_streamed(call: Call) -> bool:
    streaming = call.keywords.get("streaming")
    return "split" in call.keywords and streaming is not None and streaming.value is True


# --- what its model is --------------------------------------------------------------------

_ADAPTS = frozenset({"peft", "unsloth", "adapters", "trl", "optimum", "hqq", "torchao"})
"""Packages that may put something to train into a quantized model."""


def _trains_quantized(options: Options) -> bool:
    trainer = trainer_of(options)
    if trainer.method not in _PLAIN:
        return False
    files = options.run.python
    if any(item.module.partition(".")[0] in _ADAPTS for file in files for item in file.imports):
        return False
    if any(call.method in _ADDS for file in files for call in file.calls):
        return False
    made = _makers(options, _value_of(trainer, "model", 0) or "-")
    return len(made) == 1 and made[0].method == "from_pretrained" and _quantizes(options, made[0])


_ADDS = frozenset({"add_adapter", "load_adapter", "dequantize", "inject_adapter_in_model"})


def _quantizes(options: Options, load: Call) -> bool:
    """Whether bitsandbytes surely quantizes the model that a call loads."""
    given = passed(load, "quantization_config")
    if given is None:
        bits = (load.keywords.get(name) for name in _BITS)
        return any(one is not None and one.value is True for one in bits)
    if "BitsAndBytesConfig(" in given.text:
        return any(f"{name}=True" in given.text.replace(" ", "") for name in _BITS)
    made = _makers(options, given.text) if given.text.isidentifier() else []
    if len(made) != 1 or made[0].method != "BitsAndBytesConfig":
        return False
    values = (made[0].keywords.get(name) for name in _BITS)
    return any(one is not None and one.value is True for one in values)


_BITS = ("load_in_4bit", "load_in_8bit")


def _of_trainer(options: Options) -> Location:
    return trainer_of(options).location


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "optimizers-given-twice",
        _SOURCE,
        (),
        _optimizes_twice,
        Text(
            "只传 optimizers 或 optimizer_cls_and_kwargs",
            "pass optimizers or optimizer_cls_and_kwargs, not both",
        ),
        Text("Trainer 只接受其一", "the Trainer takes one of them"),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
        since="4.47.1",
    ),
    Refusal(
        "quantized-without-adapter",
        f"{_SOURCE}: purely quantized models",
        (),
        _trains_quantized,
        Text(
            "先用 get_peft_model 加上 LoRA，或不量化",
            "put LoRA into the model with get_peft_model, or do not quantize it",
        ),
        Text("量化后的权重不能训练", "quantized weights are not trained"),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
        since="4.38.2",
    ),
    Refusal(
        "training-without-dataset",
        "transformers/trainer.py, Trainer.get_train_dataloader",
        (),
        _trains_on_nothing,
        Text("给 Trainer 传入 train_dataset", "pass train_dataset to the Trainer"),
        Text("train() 需要训练数据", "train() needs data"),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "evaluate-without-dataset",
        "transformers/trainer.py, Trainer.get_eval_dataloader",
        (),
        _judges_nothing,
        Text("给 Trainer 传入 eval_dataset", "pass eval_dataset to the Trainer"),
        Text("evaluate() 需要评估数据", "evaluate() needs data"),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "search-without-model-init",
        "transformers/trainer.py, Trainer.hyperparameter_search",
        (),
        _searches_with_one_model,
        Text("给 Trainer 传入 model_init", "pass model_init to the Trainer"),
        Text(
            "hyperparameter_search() 每次试验都要新建模型",
            "hyperparameter_search() makes a new model for each trial",
        ),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "streaming-without-max-steps",
        _SOURCE,
        ("max_steps",),
        _streams_without_end,
        Text("设置 max_steps", "set max_steps"),
        Text(
            "流式数据没有长度，无法得知训练步数",
            "streamed data has no length that would tell the number of steps",
        ),
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "evaluation-without-dataset",
        _SOURCE,
        ("eval_strategy", "evaluation_strategy"),
        _evaluates_nothing,
        Text(
            "给 Trainer 传入 eval_dataset，或 eval_strategy 设为 no",
            "pass eval_dataset to the Trainer, or set eval_strategy to no",
        ),
        Text(
            "eval_strategy={strategy} 需要评估数据",
            "eval_strategy={strategy} needs data to evaluate on",
        ),
        figures=lambda options: {"strategy": evaluation(options)},
        raiser="Trainer",
        groups=GROUPS,
        since="4.46.3",
    ),
    Refusal(
        "early-stopping-without-evaluation",
        "transformers/trainer_callback.py, EarlyStoppingCallback.on_train_begin",
        ("eval_strategy", "evaluation_strategy"),
        _stops_without_evaluation,
        Text("eval_strategy 设为 steps 或 epoch", "set eval_strategy to steps or epoch"),
        Text(
            "EarlyStoppingCallback 按评估结果停止，而 eval_strategy 为 no",
            "EarlyStoppingCallback stops by the evaluation, and eval_strategy is no",
        ),
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "early-stopping-without-metric",
        "transformers/trainer_callback.py, EarlyStoppingCallback.on_train_begin",
        ("metric_for_best_model",),
        _stops_without_metric,
        Text("设置 metric_for_best_model", "set metric_for_best_model"),
        Text(
            "EarlyStoppingCallback 需要知道看哪个指标",
            "EarlyStoppingCallback has to know which metric to watch",
        ),
        write=lambda options: {"metric_for_best_model": "eval_loss"},
        raiser="Trainer",
        groups=GROUPS,
        since="4.49.0",
    ),
    Refusal(
        "early-stopping-without-best",
        "transformers/trainer_callback.py, EarlyStoppingCallback.on_train_begin",
        ("load_best_model_at_end",),
        _stops_without_best,
        Text("设置 load_best_model_at_end=True", "set load_best_model_at_end=True"),
        Text(
            "该版本的 EarlyStoppingCallback 要求它",
            "EarlyStoppingCallback of this release requires it",
        ),
        write=lambda options: {"load_best_model_at_end": True},
        raiser="Trainer",
        groups=GROUPS,
        until="4.48.3",
    ),
    Refusal(
        "optimizers-given-to-fsdp",
        _SOURCE,
        ("fsdp",),
        _shards_given_optimizers,
        Text(
            "去掉 Trainer 的 optimizers，改为覆盖 create_optimizer_and_scheduler",
            "drop the Trainer's optimizers and override create_optimizer_and_scheduler",
        ),
        Text(
            "FSDP 切分后参数已不同，传入的优化器无效",
            "FSDP replaces the parameters that a given optimizer holds",
        ),
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "model-given-twice",
        _SOURCE,
        (),
        _models_twice,
        Text("只传 model 或 model_init", "pass model or model_init, not both"),
        Text("Trainer 只接受其一", "the Trainer takes one of them"),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
        since="5.2.0",
    ),
    Refusal(
        "no-model",
        _SOURCE,
        (),
        _no_model,
        Text("给 Trainer 传入 model", "pass model to the Trainer"),
        Text("没有 model，也没有 model_init", "it has no model and no model_init"),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
    ),
    Refusal(
        "optimizers-beside-model-init",
        _SOURCE,
        (),
        _inits_with_optimizers,
        Text(
            "去掉 optimizers，改为覆盖 create_optimizer_and_scheduler",
            "drop optimizers and override create_optimizer_and_scheduler",
        ),
        Text(
            "model_init 每次新建模型，传入的优化器不属于它",
            "model_init makes a model that a given optimizer does not belong to",
        ),
        at=_of_trainer,
        raiser="Trainer",
        groups=GROUPS,
    ),
)
