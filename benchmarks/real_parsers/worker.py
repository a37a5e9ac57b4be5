"""Parses configurations as the real framework does; runs in an environment that build.py made.

python worker.py transformers|trl|llamafactory|ms-swift

Reads one JSON object a line, ``{"folder": …, "argv": […]}``, and writes one that tells whether
the framework took it. Each is parsed in a child process, so that none leaves anything behind.
What is replaced, and why, stands beside each ``_replace``: nothing may be downloaded, and a
machine without GPUs must not be the reason of a refusal.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import io
import json
import os
import re
import runpy
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

_SECONDS = 120
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "DISABLE_VERSION_CHECK": "0",
    "WANDB_MODE": "disabled",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "MODELSCOPE_DOMAIN": "localhost:9",
}


class Started(BaseException):
    """The arguments were taken: what follows would load data or a model."""


def _stop(*_: Any, **__: Any) -> NoReturn:
    raise Started


def _yes(*_: Any, **__: Any) -> bool:
    return True


def _replace(module: str, name: str, value: Any) -> None:
    """Put ``value`` in the place of an attribute (``Class.method`` or a function)."""
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    if not hasattr(owner, last):
        raise AttributeError(f"{module} has no {name}: another release than the one read")
    setattr(owner, last, value)


def _with_gpu() -> None:
    """Do not refuse bf16 and tf32 for the reason that no GPU is here."""
    arguments = "transformers.training_args"
    _replace(arguments, "is_torch_bf16_gpu_available", _yes)
    _replace(arguments, "is_torch_tf32_available", _yes)


def _loader(arguments: Any) -> None:
    """The DataLoader that a Trainer makes of its arguments: PyTorch has refusals of its own."""
    from torch.utils.data import DataLoader

    workers = arguments.dataloader_num_workers
    DataLoader(
        [0],
        batch_size=arguments.per_device_train_batch_size,
        num_workers=workers,
        prefetch_factor=arguments.dataloader_prefetch_factor,
        persistent_workers=arguments.dataloader_persistent_workers,
        pin_memory=False,
    )
    _schedule(arguments)


def _schedule(arguments: Any) -> None:
    """The schedule that a Trainer makes of its arguments, which asks for arguments of its own."""
    import torch
    from transformers.optimization import get_scheduler

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1e-4)
    get_scheduler(
        arguments.lr_scheduler_type,
        optimizer=optimizer,
        num_warmup_steps=arguments.get_warmup_steps(100),
        num_training_steps=100,
        scheduler_specific_kwargs=arguments.lr_scheduler_kwargs,
    )


# --- the frameworks -------------------------------------------------------------------


@dataclass(frozen=True)
class Framework:
    """``prepare`` once; ``parse`` a command's words; ``parsers``: its commands' parsers."""

    prepare: Callable[[], None]
    parse: Callable[[Sequence[str]], None]
    parsers: Callable[[], Iterator[tuple[str, Any]]]


def _prepare_transformers() -> None:
    _with_gpu()
    # The script that is run goes on to load a model, and then to train it.
    _replace("transformers", "AutoModelForCausalLM.from_pretrained", _stop)
    _replace("transformers", "Trainer.__init__", _stop)


def _parse_transformers(argv: Sequence[str]) -> None:
    """``python train.py …``: the script itself, up to where it loads a model."""
    arguments_class: Any = importlib.import_module("transformers").TrainingArguments
    made: list[Any] = []
    check = arguments_class.__post_init__

    def remember(self: Any) -> None:
        check(self)
        made.append(self)

    arguments_class.__post_init__ = remember
    sys.argv = list(argv[1:])
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except Started:
        for arguments in made:
            _loader(arguments)
        raise


def _parsers_of_transformers() -> Iterator[tuple[str, Any]]:
    transformers: Any = importlib.import_module("transformers")
    for name in ("TrainingArguments", "Seq2SeqTrainingArguments"):
        yield name, transformers.HfArgumentParser(getattr(transformers, name))


_TRL = ("sft", "dpo", "kto", "reward", "grpo", "rloo", "distillation")


def _prepare_trl() -> None:
    _with_gpu()
    for name in _TRL:
        importlib.import_module(f"trl.scripts.{name}")
    # The command starts its script in new processes: their arguments are parsed here instead.
    _replace("trl.cli.accelerate_launcher", "launch_training_script", _launched)
    _replace("datasets", "load_dataset", _stop)
    _replace("trl.scripts.utils", "get_dataset", _stop)
    _replace("trl", "get_dataset", _stop)
    for name in ("SFT", "DPO", "KTO", "Reward", "GRPO", "RLOO", "Distillation"):
        getattr(importlib.import_module("trl"), f"{name}Trainer")  # imported once, not each time


def _launched(
    script_name: str, launch_args: Sequence[str], training_script_args: Sequence[str]
) -> None:
    from accelerate.commands import launch

    words = [*launch_args, script_name, *training_script_args]
    parsed = launch.launch_command_parser().parse_args(words)
    launch._validate_launch_command(parsed)
    if parsed.training_script != script_name:
        raise ValueError(f"the launcher would start {parsed.training_script!r} as the script")
    module = importlib.import_module(f"trl.scripts.{script_name.removesuffix('.py')}")
    sys.argv = [script_name, *training_script_args]
    parts = module.make_parser().parse_args_and_config(fail_with_unknown_args=False)
    arguments = next(part for part in parts if hasattr(part, "per_device_train_batch_size"))
    try:
        module.main(*parts)
    except Started:
        _loader(arguments)
        raise


def _parse_trl(argv: Sequence[str]) -> None:
    from trl.cli.main import main

    sys.argv = list(argv)
    main()


def _parsers_of_trl() -> Iterator[tuple[str, Any]]:
    for name in _TRL:
        yield name, importlib.import_module(f"trl.scripts.{name}").make_parser()


def _prepare_llamafactory() -> None:
    _with_gpu()
    _replace("llamafactory.hparams.parser", "is_torch_bf16_gpu_available", _yes)
    # Its data modules load sound with it; no argument needs that.
    sound = types.ModuleType("torchaudio")
    sound.__spec__ = importlib.machinery.ModuleSpec("torchaudio", None)
    sys.modules["torchaudio"] = sound
    # It asks for optional packages that are not installed here.
    _replace("llamafactory.hparams.parser", "check_version", _yes)
    for name in ("pt", "sft", "rm", "ppo", "dpo", "kto"):  # they load a tokenizer and data
        _replace("llamafactory.train.tuner", f"run_{name}", _stop)


def _parse_llamafactory(argv: Sequence[str]) -> None:
    from llamafactory.train import tuner

    made: list[Any] = []
    read = tuner.get_train_args

    def remember(*given: Any) -> Any:
        parts = read(*given)
        made.append(parts[2])
        return parts

    tuner.get_train_args = remember
    sys.argv = ["llamafactory-cli", *argv[2:]]
    try:
        tuner.run_exp()
    except Started:
        _loader(made[0])
        raise


def _parsers_of_llamafactory() -> Iterator[tuple[str, Any]]:
    from llamafactory.hparams import parser

    yield "train", parser.HfArgumentParser(parser._TRAIN_ARGS)


_QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 152064,
}
"""What ms-swift reads of Qwen2.5-7B-Instruct when it parses arguments."""
_SWIFT = {"sft": "SwiftSft", "pt": "SwiftPretrain", "rlhf": "SwiftRLHF"}


def _downloaded(model_id_or_path: str, *_: Any, **__: Any) -> str:
    """The folder of a model: only Qwen2.5 is here, and only its configuration."""
    if Path(model_id_or_path).is_dir():
        return model_id_or_path
    if not re.fullmatch(r"Qwen/Qwen2\.5-[\d.]+B(-Instruct)?", model_id_or_path):
        raise OSError(f"{model_id_or_path} cannot be downloaded here")
    folder = Path(tempfile.mkdtemp())
    (folder / "config.json").write_text(json.dumps(_QWEN), encoding="utf-8")
    return str(folder)


def _prepare_swift() -> None:
    _with_gpu()
    for name in _SWIFT.values():
        _pipeline(name)
    factory = importlib.import_module("swift.trainers").TrainerFactory
    for path in factory.TRAINING_ARGS_MAPPING.values():  # imported once, not each time
        module, _, name = path.rpartition(".")
        getattr(importlib.import_module(module), name)
    for module in ("swift.model.model_meta", "swift.arguments.base_args.base_args"):
        _replace(module, "safe_snapshot_download", _downloaded)


def _pipeline(name: str) -> Any:
    return getattr(importlib.import_module("swift.pipelines.train"), name)


def _parse_swift(argv: Sequence[str]) -> None:
    from swift.cli.main import ROUTE_MAPPING, parse_yaml_args

    command, words = argv[1].replace("_", "-"), list(argv[2:])
    assert command in ROUTE_MAPPING
    parse_yaml_args(words)
    sys.argv = [f"{command}.py", *words]
    pipeline = _pipeline(_SWIFT[command])
    made = pipeline.__new__(pipeline)
    made.args = pipeline._parse_args(made, None)
    _loader(made.args.training_args)
    _first_steps(made)


def _first_steps(pipeline: Any) -> None:
    """What a pipeline asks of its arguments before it needs weights or data."""
    from swift.pipelines.train.tuner import prepare_adapter
    from transformers import Trainer

    arguments = pipeline.args
    none = dict.fromkeys(
        ("compute_metrics", "optimizer_cls_and_kwargs", "optimizer", "lr_scheduler", "model_init")
    )
    trainer: Any = types.SimpleNamespace(args=arguments.training_args, **none)
    trainer.train_dataset = iter(()) if arguments.streaming else [0]
    trainer.eval_dataset, trainer.data_collator = [0], list
    trainer.is_fsdp_xla_enabled = trainer.is_fsdp_enabled = False
    Trainer._validate_args(trainer)
    if arguments.tuner_type not in arguments.supported_tuners:
        import torch

        model: Any = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
        model.model_meta, model.model_info = arguments.model_meta, arguments.model_info
        prepare_adapter(arguments, model)
    mode = "train" if getattr(arguments, "rlhf_type", "gkd") in ("gkd", "grpo") else "rlhf"
    pipeline.template = types.SimpleNamespace(mode=mode, model=None)
    pipeline._save_val_dataset = lambda _: None
    pipeline._encode_dataset(None, None, getattr(arguments, "rlhf_type", "") not in ("gkd", "grpo"))


def _parsers_of_swift() -> Iterator[tuple[str, Any]]:
    from swift.utils.utils import HfArgumentParser, _patch_get_type_hints

    for command, name in _SWIFT.items():
        with _patch_get_type_hints():
            yield command, HfArgumentParser([_pipeline(name).args_class])


FRAMEWORKS: Mapping[str, Framework] = {
    "transformers": Framework(_prepare_transformers, _parse_transformers, _parsers_of_transformers),
    "trl": Framework(_prepare_trl, _parse_trl, _parsers_of_trl),
    "llamafactory": Framework(_prepare_llamafactory, _parse_llamafactory, _parsers_of_llamafactory),
    "ms-swift": Framework(_prepare_swift, _parse_swift, _parsers_of_swift),
}


# --- requests -------------------------------------------------------------------------


def _parameters(framework: Framework) -> dict[str, list[dict[str, Any]]]:
    """What each command's own parser takes."""
    return {
        command: [_parameter(action) for action in parser._actions if action.dest != "help"]
        for command, parser in framework.parsers()
    }


def _parameter(action: Any) -> dict[str, Any]:
    kind = getattr(action.type, "__name__", "str")
    plain = isinstance(action.default, (str, int, float, bool, list, type(None)))
    return {
        "name": action.dest,
        "type": "bool" if kind == "string_to_bool" else kind,
        "choices": [str(one) for one in action.choices] if action.choices else [],
        "default": action.default if plain else None,
        "many": action.nargs in ("+", "*"),
        "bare": action.nargs == "?",
        "required": action.required,
    }


def _answer(framework: Framework, request: Mapping[str, Any]) -> dict[str, Any]:
    """Parse in a child process and read what it says of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        with os.fdopen(writing, "w") as pipe:
            signal.alarm(_SECONDS)
            pipe.write(json.dumps(_parsed(framework, request)))
            pipe.flush()
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    if not text:
        return {"accepted": False, "type": "Died", "text": "the process died or took too long"}
    answer: dict[str, Any] = json.loads(text)
    return answer


def _parsed(framework: Framework, request: Mapping[str, Any]) -> dict[str, Any]:
    os.chdir(request["folder"])
    os.environ.update(request.get("environment", {}))
    log = io.StringIO()
    sys.stdout = sys.stderr = log
    try:
        framework.parse(request["argv"])
    except Started:
        return {"accepted": True}
    except SystemExit as end:
        lines = [line for line in log.getvalue().splitlines() if "error:" in line]
        text = lines[-1].partition("error:")[2].strip() if lines else str(end.code)
        return {"accepted": end.code in (None, 0), "type": "SystemExit", "text": text}
    except Exception as error:
        return {"accepted": False, "type": type(error).__name__, "text": str(error)[:2000]}
    return {"accepted": True}


def main() -> None:
    """Answer until there is no more to read."""
    framework = FRAMEWORKS[sys.argv[1]]
    os.environ.update(_ENVIRONMENT)
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2) if "--quiet" in sys.argv else None
    framework.prepare()
    versions = {
        name: importlib.metadata.version(name)
        for name in ("transformers", "trl", "llamafactory", "ms-swift", "accelerate", "peft")
        if _is_installed(name)
    }
    answers.write(json.dumps({"versions": versions, "parameters": _parameters(framework)}) + "\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(_answer(framework, json.loads(line))) + "\n")
        answers.flush()


def _is_installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
