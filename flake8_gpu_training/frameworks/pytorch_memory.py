"""Memory and compute of PyTorch programs: recomputation, compilation and TF32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flake8_gpu_training.facts import Call, Setting, known
from flake8_gpu_training.frameworks.pytorch_program import Program, absent, argument_of, given_by
from flake8_gpu_training.frameworks.reading import find, is_off, practice, truth

_RECOMPUTE_WORDS = (
    "checkpointing",
    "utils.checkpoint",
    "utils import checkpoint",
    "use_checkpoint",
    "recompute",
)


def _switched(
    program: Program, name: str, call: Call, parameters: Iterable[str]
) -> dict[str, Setting]:
    """``name`` is on by a call, unless a switch of the program's own says whether it is made."""
    setting = find(program.run, *parameters)
    if setting is None:
        return {name: given_by(name, True, call)}
    if not known(setting.value):
        return {name: practice(name, setting.value, setting)}
    value = truth(setting.value)
    return {name: practice(name, value, setting)} if value is not None else {}


def recompute(program: Program, found: Mapping[str, Setting]) -> dict[str, Setting]:
    """Activation checkpointing, by call or by a switch of the program."""
    result: dict[str, Setting] = {}
    call = program.first(
        "gradient_checkpointing_enable",
        "activation_checkpointing_enable",
        "enable_gradient_checkpointing",
        "apply_activation_checkpointing",
        "checkpoint_wrapper",
        "checkpoint_sequential",
    )
    if call is None:
        call = next(
            (c for c in program.named("checkpoint") if c.name.startswith("torch.utils")), None
        )
    prepared = program.first("prepare_model_for_kbit_training")
    if call is None and prepared is not None and not prepared.is_open:
        told = argument_of(prepared, "use_gradient_checkpointing", position=1)
        value = True if told is None else told.value  # on unless told (peft/utils/other.py)
        name = "gradient_checkpointing"
        return {name: given_by(name, value, prepared, told)}
    if call is not None:
        result.update(
            _switched(
                program,
                "gradient_checkpointing",
                call,
                (
                    "gradient_checkpointing",
                    "activation_checkpointing",
                    "grad_checkpointing",
                    "enable_gradient_checkpointing",
                    "use_gradient_checkpointing",
                    "use_checkpoint",
                ),
            )
        )
        reentrant = argument_of(call, "use_reentrant")
        if reentrant is not None:
            result["reentrant_checkpointing"] = given_by(
                "reentrant_checkpointing", reentrant.value, call, reentrant
            )
    elif "gradient_checkpointing" not in found and program.silent(*_RECOMPUTE_WORDS):
        note = "no activation checkpointing in the code"
        result.update(absent("gradient_checkpointing", False, note))
    return result


def compiling(program: Program, launched: Mapping[str, Setting]) -> dict[str, Setting]:
    """Whether ``torch.compile`` is used."""
    for call in program.named("compile"):
        if call.name == "torch.compile" or call.receiver.startswith("torch.nn"):
            return _switched(
                program,
                "torch_compile",
                call,
                ("torch_compile", "compile", "use_compile", "compile_model", "use_torch_compile"),
            )
    made = program.accelerator()
    backend = argument_of(made, "dynamo_backend") if made is not None else None
    if made is not None and backend is not None and backend.value is not None:
        value = not is_off(backend.value) if known(backend.value) else backend.value
        return {"torch_compile": given_by("torch_compile", value, made, backend)}
    if "torch_compile" in launched or program.is_launch_open():
        return {}
    if program.silent(".compile", "compile_model", "torch_compile"):
        return absent("torch_compile", False, "no torch.compile in the code")
    return {}


def tf32(program: Program) -> dict[str, Setting]:
    """Whether products in float32 may use TF32."""
    for file in program.run.python:
        for setting in file.attributes:
            if setting.name == "torch.backends.cuda.matmul.allow_tf32":
                return {"tf32": practice("tf32", setting.value, setting)}
            if setting.name == "torch.backends.cuda.matmul.fp32_precision":
                return {"tf32": practice("tf32", setting.value == "tf32", setting)}
    for call in program.named("set_float32_matmul_precision"):
        argument = argument_of(call, "precision", position=0)
        if argument is not None:
            value = argument.value in ("high", "medium") if known(argument.value) else None
            return {"tf32": given_by("tf32", value, call, argument)}
    if program.silent("tf32", "matmul_precision"):
        note = "PyTorch 1.12 and later: float32 products do not use TF32 unless told"
        return absent("tf32", False, note)
    return {}
