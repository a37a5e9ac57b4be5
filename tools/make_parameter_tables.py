"""Write frameworks/parameters/*.json from released sources, read and never imported.

Fetch the releases first, without their dependencies, into one folder::

    pip download --no-deps --no-binary :none: -d releases 'transformers==4.57.6' …

then ``python tools/make_parameter_tables.py releases [distribution …]``. What is on no package
index is a folder of its sources there, ``videox_fun-1.0.1``. PyTorch's signatures are the same on
every platform: its wheels for macOS are the smallest.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from released import deepspeed, engines
from released.archives import Release, releases
from released.classes import Field
from released.collector import Collector, Foreign
from released.spans import dumped, shared, table

TABLES = Path(__file__).resolve().parent.parent / "flake8_gpu_training/frameworks/parameters"


def _transformers(c: Collector) -> None:
    c.classes("TrainingArguments", "transformers/training_args.py", "TrainingArguments")
    seq2seq = "Seq2SeqTrainingArguments"
    c.classes(seq2seq, "transformers/training_args_seq2seq.py", seq2seq)
    c.constructors("transformers/utils/quantization_config.py", "Config")
    generation = "transformers/generation/configuration_utils.py"
    c.popped("GenerationConfig", generation, "GenerationConfig")
    c.constructors(generation, "WatermarkingConfig")
    c.call("Adafactor", "transformers/optimization.py", "Adafactor.__init__")
    for path in ("transformers/trainer.py", "transformers/trainer_seq2seq.py"):
        c.names(path, "Trainer")


def _trl(c: Collector) -> None:
    c.every_class(r"trl/trainer/\w+_config\.py", "Config")
    c.every_class(r"trl/experimental/\w+/\w+_config\.py", "Config")
    for path in ("trl/scripts/utils.py", "trl/commands/cli_utils.py", "trl/utils.py"):
        c.classes("ScriptArguments", path, "ScriptArguments")
        c.classes("DatasetMixtureConfig", path, "DatasetMixtureConfig")
        c.classes("DatasetConfig", path, "DatasetConfig")
    c.classes("vllm-serve", "trl/scripts/vllm_serve.py", "ScriptArguments")
    for name in ("grpo", "rloo"):
        arguments_of = f"{name.upper()}ScriptArguments"
        c.classes(arguments_of, f"trl/scripts/{name}.py", arguments_of)
    for path in c.release.paths(r"trl/trainer/\w+_trainer\.py"):
        c.names(path, "Trainer")


def _peft(c: Collector) -> None:
    c.every_class(r"peft/tuners/\w+/config\.py", "Config")
    c.every_class(r"peft/tuners/\w+\.py", "Config")


def _accelerate(c: Collector) -> None:
    c.parser("launch", "accelerate/commands/launch.py")
    path = "accelerate/commands/config/config_args.py"
    c.classes("config", path, "ClusterConfig")
    for older in ("fp16", "dynamo_backend"):  # taken and converted
        c.groups["config"].setdefault(older, Field(older, deprecated=True))
    c.classes("sagemaker config", path, "SageMakerConfig")
    c.closed |= {"config", "sagemaker config"}
    c.call("Accelerator", "accelerate/accelerator.py", "Accelerator.__init__")
    for name in ("FullyShardedDataParallelPlugin", "DeepSpeedPlugin"):
        c.classes(name, "accelerate/utils/dataclasses.py", name)


def _swift(c: Collector) -> None:
    folder = "swift/arguments" if c.release.module("swift/arguments/sft_args.py") else ""
    if folder:
        c.classes("sft", f"{folder}/sft_args.py", "SftArguments")
        c.classes("pt", f"{folder}/pretrain_args.py", "PretrainArguments")
    else:
        folder = "swift/llm/argument"
        c.classes("sft", f"{folder}/train_args.py", "TrainArguments")
        c.classes("pt", f"{folder}/train_args.py", "TrainArguments")
    for group in ("rlhf", "infer", "deploy", "eval", "export", "sampling"):
        c.classes(group, f"{folder}/{group}_args.py", f"{group.title()}Arguments")
    c.classes("rlhf", f"{folder}/rlhf_args.py", "RLHFArguments")
    c.classes("rollout", f"{folder}/deploy_args.py", "RolloutArguments")
    for megatron in ("swift/megatron/arguments", "swift/megatron/argument"):
        for name in ("train_args", "sft_args"):
            names = ("MegatronTrainArguments", "MegatronSftArguments")
            c.classes("megatron sft", f"{megatron}/{name}.py", *names)
            c.classes("megatron pt", f"{megatron}/{name}.py", *names)
        c.classes("megatron pt", f"{megatron}/pretrain_args.py", "MegatronPretrainArguments")
        c.classes("megatron rlhf", f"{megatron}/rlhf_args.py", "MegatronRLHFArguments")


def _swift_2(c: Collector) -> None:
    """Up to 2.6 all arguments were of one module, and none of them was Transformers' own."""
    path = "swift/llm/utils/argument.py"
    c.classes("sft", path, "SftArguments")
    c.classes("pt", path, "PtArguments", "SftArguments")
    c.classes("rlhf", path, "RLHFArguments", "DPOArguments", "SftArguments")


def _llamafactory(c: Collector) -> None:
    folder = "llamafactory/hparams"
    for path, name in (
        ("model_args", "ModelArguments"),
        ("data_args", "DataArguments"),
        ("training_args", "TrainingArguments"),
        ("finetuning_args", "FinetuningArguments"),
        ("generating_args", "GeneratingArguments"),
    ):
        c.classes("train", f"{folder}/{path}.py", name)
        if path != "training_args":
            c.classes("infer", f"{folder}/{path}.py", name)
    for path, name in (
        ("model_args", "ModelArguments"),
        ("data_args", "DataArguments"),
        ("evaluation_args", "EvaluationArguments"),
        ("finetuning_args", "FinetuningArguments"),
    ):
        c.classes("eval", f"{folder}/{path}.py", name)
    _templates(c)
    if ("transformers", "Seq2SeqTrainingArguments") not in c.extends["train"]:
        c.extends["train"].append(("transformers", "Seq2SeqTrainingArguments"))


def _templates(c: Collector) -> None:
    """Names that ``template`` takes, and those of them that refuse ``train_on_prompt``."""
    module = c.release.module("llamafactory/data/template.py")
    for statement in module.tree.body if module is not None else ():
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or "register_template" not in ast.unparse(call.func):
            continue
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        name = ast.literal_eval(given["name"])
        c.groups.setdefault("templates", {})[name] = Field(name)
        if "efficient_eos" in given and ast.literal_eval(given["efficient_eos"]):
            c.groups.setdefault("templates of efficient_eos", {})[name] = Field(name)


_TORCH_CALLS = (
    ("DataLoader", "utils/data/dataloader.py", "DataLoader.__init__"),
    ("DistributedSampler", "utils/data/distributed.py", "DistributedSampler.__init__"),
    (
        "DistributedDataParallel",
        "nn/parallel/distributed.py",
        "DistributedDataParallel.__init__",
    ),
    (
        "FullyShardedDataParallel",
        "distributed/fsdp/fully_sharded_data_parallel.py",
        "FullyShardedDataParallel.__init__",
    ),
    ("fully_shard", "distributed/_composable/fsdp/fully_shard.py", "fully_shard"),
    ("fully_shard", "distributed/fsdp/_fully_shard/_fully_shard.py", "fully_shard"),
    ("compile", "__init__.py", "compile"),
    ("autocast", "amp/autocast_mode.py", "autocast.__init__"),
    ("GradScaler", "cuda/amp/grad_scaler.py", "GradScaler.__init__"),
    ("GradScaler", "amp/grad_scaler.py", "GradScaler.__init__"),
    ("checkpoint", "utils/checkpoint.py", "checkpoint"),
    ("init_process_group", "distributed/distributed_c10d.py", "init_process_group"),
    ("init_device_mesh", "distributed/device_mesh.py", "init_device_mesh"),
)

_TORCH_CLASSES = {
    "utils/data/sampler.py": "BatchSampler RandomSampler WeightedRandomSampler",
    **{
        f"optim/{name.lower()}.py": name
        for name in (
            *("Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "LBFGS", "NAdam"),
            *("RAdam", "RMSprop", "Rprop", "SGD"),
        )
    },
    "optim/_adafactor.py": "Adafactor",
    "optim/_muon.py": "Muon",
    "optim/lr_scheduler.py": "ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR "
    "ExponentialLR LambdaLR LinearLR MultiStepLR OneCycleLR ReduceLROnPlateau StepLR",
}


def _torch(c: Collector) -> None:
    for group, path, name in _TORCH_CALLS:
        c.call(group, f"torch/{path}", name)
    for path, names in _TORCH_CLASSES.items():
        for name in names.split():
            c.call(name, f"torch/{path}", f"{name}.__init__")
    c.classes("MixedPrecision", "torch/distributed/fsdp/api.py", "MixedPrecision")
    for path in ("_composable/fsdp/_fsdp_api.py", "fsdp/_fully_shard/_fsdp_api.py"):
        c.classes("MixedPrecisionPolicy", f"torch/distributed/{path}", "MixedPrecisionPolicy")
    c.parser("torchrun", "torch/distributed/run.py")


def _videox_fun(c: Collector) -> None:
    """A group for each script; what all of them take is in the group ``common``."""
    scripts = list(c.release.paths(r"scripts/[\w.]+/(?:[\w.]+/)*train\w*\.py"))
    for path in scripts:
        c.parser(path[len("scripts/") : -len(".py")], path)
    found = {name: group for name, group in c.groups.items() if group}
    first = next(iter(found.values()))
    common = {
        name: field
        for name, field in first.items()
        if all(group.get(name) == field for group in found.values())
    }
    c.groups = {
        name: {key: field for key, field in group.items() if key not in common}
        for name, group in found.items()
    }
    c.extends = {name: [("videox-fun", "common")] for name in c.groups}
    c.groups["common"] = common


_FLOW_FACTORY = (
    ("config", "args", "Arguments"),
    ("data", "data_args", "DataArguments"),
    ("model", "model_args", "ModelArguments"),
    ("scheduler", "scheduler_args", "SchedulerArguments"),
    ("train", "training_args", "TrainingArguments"),
    ("eval", "training_args", "EvaluationArguments"),
    ("log", "log_args", "LogArguments"),
    ("rewards", "reward_args", "RewardArguments"),
)


def _flow_factory(c: Collector) -> None:
    """A group for each section of the file; what an algorithm adds to ``train``, beside it."""
    folder = "flow_factory/hparams"
    for group, path, name in _FLOW_FACTORY:
        c.classes(group, f"{folder}/{path}.py", name)
        if group != "config":
            c.groups["config"][group] = Field(group)
    c.groups["config"]["eval_rewards"] = Field("eval_rewards")
    module = c.release.module(f"{folder}/training_args.py")
    for name in module.classes if module is not None else ():
        if name.endswith("TrainingArguments") and name != "TrainingArguments":
            algorithm = name[: -len("TrainingArguments")].lower()
            c.classes(f"train {algorithm}", f"{folder}/training_args.py", name)


SOURCES: Mapping[str, Callable[[Collector], None]] = {
    "transformers": _transformers,
    "trl": _trl,
    "peft": _peft,
    "accelerate": _accelerate,
    "ms-swift": _swift,
    "llamafactory": _llamafactory,
    "vllm": engines.vllm,
    "sglang": engines.sglang,
    "deepspeed": deepspeed.collect,
    "torch": _torch,
    "videox-fun": _videox_fun,
    "flow-factory": _flow_factory,
}


EARLIER: Mapping[str, tuple[int, Callable[[Collector], None]]] = {"ms-swift": (3, _swift_2)}
"""The first major release of a table, and what is read of those before it, in a table of theirs."""


def write(folder: Path, distribution: str) -> None:
    """Writes the table of one distribution from all its releases in ``folder``."""
    first, collect = EARLIER.get(distribution, (0, SOURCES[distribution]))
    found = releases(folder, distribution)
    older = [one for one in found if one.version.major < first]
    _write(distribution, distribution, [one for one in found if one not in older], SOURCES)
    if older:
        _write(f"earlier/{distribution}", distribution, older, {distribution: collect})


def _write(
    name: str,
    distribution: str,
    found: Iterable[Release],
    sources: Mapping[str, Callable[[Collector], None]],
) -> None:
    collectors = []
    for release in found:
        collector = Collector(release)
        sources[distribution](collector)
        collectors.append(collector)
        release.close()
    if not collectors:
        raise SystemExit(f"no release of {distribution}")
    extends: dict[str, Foreign] = {}
    for collector in collectors:
        extends.update({name: bases for name, bases in collector.extends.items() if bases})
    known = SOURCES.keys() - {distribution}
    bases = sorted({base for found in extends.values() for base, _ in found if base in known})
    data = table(
        name,
        [str(c.release.version) for c in collectors],
        [c.groups for c in collectors],
        extends,
        [{base: c.release.requirement(base) for base in bases} for c in collectors],
        [c.closed for c in collectors],
    )
    path = TABLES / f"{name}.json"
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(dumped(shared(data)), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[2:] or SOURCES:
        write(Path(sys.argv[1]), name)
