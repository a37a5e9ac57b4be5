"""Write frameworks/parameters/*.json from released sources, read and never imported.

Fetch the releases first, without their dependencies, into one folder::

    pip download --no-deps --no-binary :none: -d releases 'transformers==4.57.6' …

then ``python tools/make_parameter_tables.py releases [distribution …]``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from released.archives import Release, releases
from released.classes import ClassReader, Field
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


SOURCES: Mapping[str, Callable[[_Collector], None]] = {
    "transformers": _transformers,
    "trl": _trl,
    "peft": _peft,
    "accelerate": _accelerate,
    "ms-swift": _swift,
    "llamafactory": _llamafactory,
    "vllm": _vllm,
    "sglang": _sglang,
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
    )
    TABLES.mkdir(exist_ok=True)
    (TABLES / f"{distribution}.json").write_text(dumped(data), encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[2:] or SOURCES:
        write(Path(sys.argv[1]), name)
