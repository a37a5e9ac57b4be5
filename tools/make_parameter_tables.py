"""Write frameworks/parameters/*.json from released sources, read and never imported.

Fetch the releases first, without their dependencies, into one folder::

    pip download --no-deps --no-binary :none: -d releases 'transformers==4.57.6' …

then ``python tools/make_parameter_tables.py releases [distribution …]``.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from released.archives import Release, releases
from released.classes import NOTHING, ClassReader, Field, Found
from released.mappings import KeyReader
from released.parsers import arguments, joined, signature
from released.spans import dumped, table

TABLES = Path(__file__).resolve().parent.parent / "flake8_gpu_training/frameworks/parameters"

Foreign = list[tuple[str, str]]
Groups = tuple[dict[str, dict[str, Field]], dict[str, Foreign]]


class _Collector:
    """Gathers the groups of one release."""

    def __init__(self, release: Release) -> None:
        self.release = release
        self.reader = ClassReader(release)
        self.groups: dict[str, dict[str, Field]] = {}
        self.extends: dict[str, Foreign] = {}
        self.closed: set[str] = set()

    def classes(self, group: str, path: str, *names: str) -> None:
        """The fields of dataclasses or pydantic models of a module, as one group."""
        module = self.release.module(path)
        if module is None:
            return
        for name in names:
            found = self.reader.find(module, name)
            if found is None:
                continue
            fields, foreign = self.reader.fields(found)
            self.groups[group] = joined(fields, self.groups.get(group, {}))
            known = self.extends.setdefault(group, [])
            known += [one for one in foreign if one not in known]

    def every_class(self, pattern: str, ending: str) -> None:
        """Each class of the matching modules whose name ends so, as a group of its own."""
        for path in self.release.paths(pattern):
            module = self.release.module(path)
            for name in module.classes if module is not None else ():
                if name.endswith(ending):
                    self.classes(name, path, name)

    def section(self, group: str, path: str, name: str) -> None:
        """A section of a configuration that a pydantic model reads, and those within it."""
        module = self.release.module(path)
        found = self.reader.find(module, name) if module is not None else None
        if found is not None:
            self._section(group, found)

    def _section(self, group: str, found: Found) -> None:
        self.groups[group] = self.reader.fields(found)[0]
        if self.reader.refuses_others(found):
            self.closed.add(group)
        for name, model in self.reader.models(found):
            field = self.groups[group][name]
            self.groups[group][name] = replace(field, types=("dict",))
            self._section(f"{group}.{name}", model)

    def keys(
        self, path: str, roots: Mapping[str, tuple[str, ...]], whole: str, skipped: str = ""
    ) -> None:
        """The keys that a module reads from a dictionary; a section's keys are its group."""
        module = self.release.module(path)
        if module is None:
            return
        for keys, field in KeyReader(self.reader, module, roots).keys(skipped).items():
            group = self.groups.setdefault(".".join(keys[:-1]) or whole, {})
            if field.name not in group or group[field.name].default is NOTHING:
                group[field.name] = field

    def parser(self, group: str, *paths: str) -> None:
        """The options that ``add_argument`` calls of the modules declare, as one group."""
        for path in paths:
            module = self.release.module(path)
            if module is not None:
                found = arguments(self.reader, module)
                self.groups[group] = joined(self.groups.get(group, {}), found)

    def call(self, group: str, path: str, name: str) -> None:
        """The parameters of a function or method, as one group."""
        module = self.release.module(path)
        found = signature(self.reader, module, name) if module is not None else {}
        if found:
            self.groups[group] = found


def _transformers(c: _Collector) -> None:
    c.classes("TrainingArguments", "transformers/training_args.py", "TrainingArguments")
    seq2seq = "Seq2SeqTrainingArguments"
    c.classes(seq2seq, "transformers/training_args_seq2seq.py", seq2seq)
    path = "transformers/utils/quantization_config.py"
    c.call("BitsAndBytesConfig", path, "BitsAndBytesConfig.__init__")


def _trl(c: _Collector) -> None:
    c.every_class(r"trl/trainer/\w+_config\.py", "Config")
    c.every_class(r"trl/experimental/\w+/\w+_config\.py", "Config")
    for path in ("trl/scripts/utils.py", "trl/commands/cli_utils.py", "trl/utils.py"):
        c.classes("ScriptArguments", path, "ScriptArguments")
        c.classes("DatasetMixtureConfig", path, "DatasetMixtureConfig")
    for name in ("grpo", "rloo"):
        arguments_of = f"{name.upper()}ScriptArguments"
        c.classes(arguments_of, f"trl/scripts/{name}.py", arguments_of)


def _peft(c: _Collector) -> None:
    c.every_class(r"peft/tuners/\w+/config\.py", "Config")
    c.every_class(r"peft/tuners/\w+\.py", "Config")


def _accelerate(c: _Collector) -> None:
    c.parser("launch", "accelerate/commands/launch.py")
    path = "accelerate/commands/config/config_args.py"
    c.classes("config", path, "ClusterConfig")
    c.call("Accelerator", "accelerate/accelerator.py", "Accelerator.__init__")
    for name in ("FullyShardedDataParallelPlugin", "DeepSpeedPlugin"):
        c.classes(name, "accelerate/utils/dataclasses.py", name)


def _swift(c: _Collector) -> None:
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


def _llamafactory(c: _Collector) -> None:
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
    if ("transformers", "Seq2SeqTrainingArguments") not in c.extends["train"]:
        c.extends["train"].append(("transformers", "Seq2SeqTrainingArguments"))


def _vllm(c: _Collector) -> None:
    engine = "vllm/engine/arg_utils.py"
    c.classes("engine", engine, "AsyncEngineArgs", "EngineArgs")
    c.parser(
        "serve", engine, "vllm/entrypoints/openai/cli_args.py", "vllm/entrypoints/cli/serve.py"
    )


def _sglang(c: _Collector) -> None:
    path = "sglang/srt/server_args.py"
    c.classes("engine", path, "ServerArgs")
    c.parser("serve", path)


_DEEPSPEED_MODELS = (
    ("zero_optimization", "runtime/zero/config.py", "DeepSpeedZeroConfig"),
    ("fp16", "runtime/precision_config.py", "DeepSpeedFP16Config"),
    ("bf16", "runtime/precision_config.py", "DeepSpeedBF16Config"),
    ("comms_logger", "comm/config.py", "CommsLoggerConfig"),
    ("tensorboard", "monitor/config.py", "TensorBoardConfig"),
    ("wandb", "monitor/config.py", "WandbConfig"),
    ("csv_monitor", "monitor/config.py", "CSVConfig"),
    ("comet", "monitor/config.py", "CometConfig"),
    ("hybrid_engine", "runtime/config.py", "HybridEngineConfig"),
    ("weight_quantization", "inference/config.py", "WeightQuantConfig"),
    ("compile", "runtime/compiler.py", "CompileConfig"),
    ("compile", "compile/config.py", "CompileConfig"),
    ("timers.throughput", "utils/config.py", "DeepSpeedThroughputTimerConfig"),
    ("timers.throughput", "utils/timer.py", "DeepSpeedThroughputTimerConfig"),
    ("tensor_parallel", "runtime/tensor_parallel/config.py", "TPTrainingConfig"),
)
_DEEPSPEED_READERS = (
    ("runtime/config.py", "param_dict", ()),
    ("runtime/zero/config.py", "param_dict", ()),
    ("runtime/precision_config.py", "param_dict", ()),
    ("monitor/config.py", "param_dict", ()),
    ("comm/config.py", "ds_config", ()),
    ("utils/config.py", "param_dict", ()),
    ("runtime/tensor_parallel/config.py", "ds_config", ()),
    ("runtime/swap_tensor/aio_config.py", "param_dict", ()),
    ("runtime/activation_checkpointing/config.py", "param_dict", ()),
    (
        "runtime/activation_checkpointing/config.py",
        "act_chkpt_config_dict",
        ("activation_checkpointing",),
    ),
    ("profiling/config.py", "param_dict", ()),
    ("profiling/config.py", "flops_profiler_dict", ("flops_profiler",)),
    ("autotuning/config.py", "autotuning_dict", ("autotuning",)),
    ("nebula/config.py", "param_dict", ()),
    ("nebula/config.py", "nebula_dict", ("nebula",)),
    ("elasticity/config.py", "param_dict", ("elasticity",)),
    ("datastates/config.py", "param_dict", ()),
)
# Names that no reader of the whole dictionary spells out.
_DEEPSPEED_ELSEWHERE = (
    *("autotuning", "bfloat16", "curriculum_learning", "data_efficiency"),
    *("compression_training", "elasticity", "quantize_training", "sequence_parallel_size"),
)


def _deepspeed(c: _Collector) -> None:
    for path, variable, place in _DEEPSPEED_READERS:
        roots: dict[str, tuple[str, ...]] = {variable: place}
        if variable == "param_dict" and not place:
            roots["_param_dict"] = ()
        c.keys(f"deepspeed/{path}", roots, "config", "get_sparse_attention_")
    for section, path, name in _DEEPSPEED_MODELS:
        c.section(section, f"deepspeed/{path}", name)
    known = {group.partition(".")[0] for group in c.groups} - {"config"}
    for name in known | (set(_DEEPSPEED_ELSEWHERE) - _deepspeed_removed(c)):
        c.groups["config"].setdefault(name, Field(name))


def _deepspeed_removed(c: _Collector) -> set[str]:
    """The keys for which a release stops with an error."""
    module = c.release.module("deepspeed/runtime/config.py")
    removed = module.constants.get("_REMOVED_TOP_LEVEL_CONFIG_KEYS") if module else None
    keys = removed.keys if isinstance(removed, ast.Dict) else []
    return {str(key.value) for key in keys if isinstance(key, ast.Constant)}


SOURCES: Mapping[str, Callable[[_Collector], None]] = {
    "transformers": _transformers,
    "trl": _trl,
    "peft": _peft,
    "accelerate": _accelerate,
    "ms-swift": _swift,
    "llamafactory": _llamafactory,
    "vllm": _vllm,
    "sglang": _sglang,
    "deepspeed": _deepspeed,
}


def write(folder: Path, distribution: str) -> None:
    """Writes the table of one distribution from all its releases in ``folder``."""
    collectors = []
    for release in releases(folder, distribution):
        collector = _Collector(release)
        SOURCES[distribution](collector)
        collectors.append(collector)
    if not collectors:
        raise SystemExit(f"no release of {distribution} in {folder}")
    extends: dict[str, Foreign] = {}
    for collector in collectors:
        extends.update({name: bases for name, bases in collector.extends.items() if bases})
    bases = sorted({base for found in extends.values() for base, _ in found if base in SOURCES})
    data = table(
        distribution,
        [str(c.release.version) for c in collectors],
        [c.groups for c in collectors],
        extends,
        [{base: c.release.requirement(base) for base in bases} for c in collectors],
        [c.closed for c in collectors],
    )
    TABLES.mkdir(exist_ok=True)
    (TABLES / f"{distribution}.json").write_text(dumped(data), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[2:] or SOURCES:
        write(Path(sys.argv[1]), name)
