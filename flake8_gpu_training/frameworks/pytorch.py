"""Plain PyTorch, Accelerate and Lightning programs: practices read from the code itself.

That a practice is absent is said only when the whole reachable code was searched and has no
word of it; everything less is left unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from flake8_gpu_training.facts import Setting
from flake8_gpu_training.frameworks import axolotl, megatron, mmengine, verl
from flake8_gpu_training.frameworks.accelerate import practices_of_run
from flake8_gpu_training.frameworks.base import Framework, Spelling
from flake8_gpu_training.frameworks.colossalai import practices_of_booster
from flake8_gpu_training.frameworks.hub_models import practices_from_models
from flake8_gpu_training.frameworks.kernels import kernel_of_code
from flake8_gpu_training.frameworks.pytorch_data import batching, loading, reading, shared_out
from flake8_gpu_training.frameworks.pytorch_loops import adapters, optimizing, scheduling
from flake8_gpu_training.frameworks.pytorch_memory import compiling, recompute, tf32
from flake8_gpu_training.frameworks.pytorch_precision import precision
from flake8_gpu_training.frameworks.pytorch_processes import parallelism, sharding, wrapping
from flake8_gpu_training.frameworks.pytorch_program import Program
from flake8_gpu_training.runs.model import Run, RunKind


def _dialect(run: Run) -> Mapping[str, Spelling]:
    """The parameters of Megatron-LM, axolotl and verl, which no framework of ours is."""
    if megatron.is_megatron_lm(run):
        return megatron.SPELLINGS
    if axolotl.is_axolotl(run):
        return axolotl.SPELLINGS
    trainer = verl.trainer_of(run)
    return verl.spellings(trainer) if trainer else {}


def _flag_of(run: Run) -> str:
    if megatron.is_megatron_lm(run):
        return megatron.FLAG
    return verl.FLAG if verl.trainer_of(run) else ""


def _derive(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    found = _of_code(run, spelled)
    trainer = verl.trainer_of(run)
    if megatron.is_megatron_lm(run):
        found.update(megatron.practices(run))
    elif axolotl.is_axolotl(run):
        found.update(axolotl.practices(run))
    elif mmengine.is_mmengine(run):
        found.update(mmengine.practices(run))
    # What a flag of the program says is no guess from its code.
    found = {n: s for n, s in found.items() if n not in spelled or s.known or not spelled[n].known}
    if trainer:
        found.update(verl.practices(run, trainer))
    return found


def _of_code(run: Run, spelled: Mapping[str, Setting]) -> dict[str, Setting]:
    if run.kind is not RunKind.TRAIN:
        return {}
    program = Program(run)
    launched = practices_of_run(run)
    found: dict[str, Setting] = dict(launched)
    models = practices_from_models(run)
    weights = models.pop("weights", None)
    found.update(models)
    found.update(sharding(program, launched))
    found.update(precision(program, launched, found, weights))
    found.update(recompute(program, found))
    found.update(compiling(program, launched))
    kernel = kernel_of_code(run, found.get("attention"))
    if kernel is not None:
        found["attention"] = kernel
    found.update(tf32(program))
    found.update(batching(program))
    found.update(loading(run))
    found.update(shared_out(program, found))
    found.update(optimizing(program, found))
    found.update(scheduling(program, found))
    found.update(adapters(program, found))
    for name, setting in parallelism(program).items():
        found.setdefault(name, setting)
    found.update(wrapping(program, found))
    found.update(reading(program))
    found.update(practices_of_booster(run, program.calls))
    return found


FRAMEWORK = Framework(
    id="generic",
    title="PyTorch",
    distribution="torch",
    bare_switches=True,
    dialect=_dialect,
    derive=_derive,
    flag_of=_flag_of,
)
