"""Every item of the Trainer's own audit, in Python, by flags and in YAML; and whole scores."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Optional

import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, QWEN, Case
from audit_cases_trainer import CASES, OLD, adapted, constructor, flags
from audits_support import audit_named, changes_of, items_of, shown
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import RunKind
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.scoring import ScoredAudit, ScoredItem, score

AUDIT = audit_named("transformers")
ITEMS = tuple(item for category in AUDIT.categories for item, _ in category.items)
_OPTIONAL = "a run may do without it: whether it helps shows in the run"
_ONE_OF = "one of a group, of which another is advised"
NEVER_ADVISED = {
    **dict.fromkeys(
        """
        tf32 bf16-full-eval fp16-full-eval non-reentrant empty-cache-steps auto-batch-size dora
        fsdp2 fsdp-efficient-loading parallelism-config compile-backend compile-mode liger-config
        group-by-length length-column remove-unused-columns neftune gradient-clipping
        label-smoothing save-only-model jit-checkpoint static-kv-cache quantized-kv-cache
        offloaded-kv-cache speculative-decoding prompt-lookup compiled-forward prefill-chunking
        """.split(),  # noqa: SIM905
        _OPTIONAL,
    ),
    **dict.fromkeys(
        """
        qlora-8bit gptq awq torchao fp8-quantization adamw-8bit adamw-4bit paged-adamw adafactor
        galore apollo lomo schedule-free fsdp-full-shard fsdp-shard-grad-op fsdp-hybrid-shard
        flash-attention-3 flex-attention runtime-switch
        """.split(),  # noqa: SIM905
        _ONE_OF,
    ),
    "sdpa": "advised against, in part: it is what a model has unless FlashAttention is asked for",
}
"""Items that are never recommended, and why; they are shown disabled (or partial) instead."""


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first run."""
    runs = [run for run in runs_of(root, case.files) if run.framework == "hf_trainer"]
    assert runs, "no run was found"
    verdicts = judge(runs[0], all_checks())
    scored = score(AUDIT, verdicts)
    return items_of(scored)[case.item], verdicts


@pytest.mark.parametrize(
    "case", CASES, ids=[f"{number}-{case.id}" for number, case in enumerate(CASES)]
)
def test_status_of_the_item(case: Case, tmp_path: Path) -> None:
    item, verdicts = judged(tmp_path, case)
    assert item.status is case.status, item.current.en
    assert item.evidence or case.status is not ON
    assert item.current.en or case.status is OFF  # an alternative of what is on
    if case.shows:
        assert case.shows in shown(case.files, item)
    if case.writes:
        changes = changes_of(case.item, verdicts)
        assert any(case.writes in text for text in changes)


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable_in_two_front_ends(name: str) -> None:
    fronts: dict[str, set[str]] = {}
    for case in CASES:
        if case.item == name:
            fronts.setdefault(case.status.value, set()).add(case.front)
    wanted = {ON: 1 if name in ("torchao", "fp8-quantization") else 2, NA: 2}
    if name not in NEVER_ADVISED:
        wanted[ADVISED] = 2
    elif name != "sdpa":
        wanted[OFF] = 2
    else:
        wanted[PARTLY] = 2
    for status, count in wanted.items():
        assert len(fronts.get(status.value, ())) >= count, f"{name} {status.value}: {fronts}"
    assert name not in NEVER_ADVISED or ADVISED.value not in fronts


def test_every_item_has_cases_and_no_case_is_of_another() -> None:
    assert {case.item for case in CASES} == set(ITEMS)
    assert set(NEVER_ADVISED) <= set(ITEMS)


def test_no_case_stands_twice() -> None:
    twice = [name for name, count in Counter(case.id for case in CASES).items() if count > 2]
    assert twice == []


FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"


def audited(name: str) -> ScoredAudit:
    """The Trainer's audit of a bundled project's training run."""
    runs = find_runs(Project.open(FIXTURES / name))
    run = next(r for r in runs if r.framework == "hf_trainer" and r.kind is RunKind.TRAIN)
    return score(AUDIT, judge(run, all_checks()))


def by_category(scored: ScoredAudit) -> dict[str, Optional[float]]:
    return {entry.category.id: entry.score for entry in scored.categories}


def test_the_total_of_a_run_that_leaves_all_at_its_default() -> None:
    scored = audited("hf_trainer_sft")
    # F: half of 5, SDPA; H: pinned memory 1, unused columns removed 0.5; I: clipping 1.5.
    points = {"A": 0, "B": 0, "C": 0, "D": 0, "E": 0, "F": 2.5, "G": 0, "H": 1.5, "I": 1.5}
    assert by_category(scored) == {**points, "J": None}
    # bf16 3, checkpointing 2, fused AdamW 7, ZeRO-2 5, FlashAttention 2.5, Liger 2.5, workers 2.
    assert (scored.earned, scored.lost) == (5.5, 24)
    # 62 without the 5 of J, as it generates nothing; 5.5 / (5.5 + 24).
    assert (scored.score, scored.maximum, scored.attainment) == (5.5, 57, 0.19)


def test_the_total_of_a_run_that_samples_with_an_engine() -> None:
    scored = audited("trl_grpo")
    # A: bf16 3; B: checkpointing 2; D: fused AdamW 7; E: ZeRO-3 5 and its offload 1;
    # F: half of 5, SDPA; H: pinned memory 1; I: accumulation 1, clipping 1.5. The workers read
    # prompts only.
    points = {"A": 3, "B": 2, "C": 0, "D": 7, "E": 6, "F": 2.5, "G": 0, "H": 1, "I": 2.5}
    assert by_category(scored) == {**points, "J": None}
    # FlashAttention 2.5: 24 / (24 + 2.5).
    assert (scored.score, scored.maximum, scored.attainment) == (24, 57, 0.91)


def test_the_total_of_adapters_on_one_gpu() -> None:
    scored = audited("well_configured/one_gpu_lora")
    # A: bf16 3, TF32 1; B: checkpointing 2, not reentrant 1; C: LoRA 3; D: fused AdamW 7;
    # F: FlashAttention 5; G: Liger 2.5; H: 2 + 1 + 1 + 1, columns 0.5; I: 1 + 1.5.
    points = {"A": 4, "B": 3, "C": 3, "D": 7, "E": 0, "F": 5, "G": 2.5, "H": 5.5, "I": 2.5}
    assert by_category(scored) == {**points, "J": None}
    assert (scored.score, scored.maximum, scored.attainment) == (32.5, 57, 1.0)


def test_the_total_of_a_sharded_run() -> None:
    scored = audited("well_configured/full_zero3")
    # As above without adapters and with an open implementation of checkpointing; E: ZeRO-3 5.
    points = {"A": 4, "B": 2, "C": 0, "D": 7, "E": 5, "F": 5, "G": 2.5, "H": 5.5, "I": 2.5}
    assert by_category(scored) == {**points, "J": None}
    assert (scored.score, scored.attainment) == (33.5, 1.0)


def status_of(root: Path, item: str, files: Mapping[str, str]) -> Status:
    return judged(root, Case(item, ON, "python", files))[0].status


def test_other_adapters_of_peft_are_no_lora(tmp_path: Path) -> None:
    files = adapted()
    prompts = files["train.py"].replace("LoraConfig", "CPTConfig")
    assert status_of(tmp_path / "a", "lora", files) is ON
    assert status_of(tmp_path / "b", "lora", {**files, "train.py": prompts}) is OFF


def test_noise_on_embeddings_is_an_option_wherever_tokens_are_embedded(tmp_path: Path) -> None:
    decoder = constructor({"bf16": True})
    images = constructor(
        {"bf16": True},
        model="google/vit-base-patch16-224",
        loader="AutoModelForImageClassification",
    )
    assert status_of(tmp_path / "a", "neftune", decoder) is OFF
    assert status_of(tmp_path / "b", "neftune", images) is NA


def test_a_commented_line_about_tpus_is_no_tpu(tmp_path: Path) -> None:
    files = constructor({"bf16": True})
    noted = files["train.py"] + "# !pip install torch_xla\n"
    assert status_of(tmp_path / "a", "bf16", {**files, "train.py": noted}) is ON
    plain = constructor({}, files=OLD)
    noted = plain["train.py"] + "# !pip install torch_xla\n"
    assert status_of(tmp_path / "b", "bf16", {**plain, "train.py": noted}) is ADVISED


_LAYERS = """\
import torch
from transformers import PreTrainedModel


class Decoder(PreTrainedModel):
    def forward(self, hidden):
        for layer in self.layers:
            if self.gradient_checkpointing and self.training:
                hidden = torch.utils.checkpoint.checkpoint(layer, hidden)
            else:
                hidden = layer(hidden)
        return hidden


"""


def test_a_models_code_that_asks_the_switch_recomputes_nothing_by_itself(tmp_path: Path) -> None:
    for value, expected in (("False", OFF), ("True", ON)):
        files = constructor({"bf16": True, "gradient_checkpointing": value == "True"})
        files = {**files, "train.py": _LAYERS + files["train.py"]}
        found = status_of(tmp_path / value, "gradient-checkpointing", files)
        assert (found is ON) is (expected is ON)


def test_kernels_for_a_loss_that_is_not_known_are_not_advised(tmp_path: Path) -> None:
    body = {"model_name_or_path": QWEN, "output_dir": "out", "bf16": True, "learning_rate": 1e-5}
    settings = {**body, "dataset_name": "data", "per_device_train_batch_size": 4}
    files = {"train.json": json.dumps(settings)}
    assert status_of(tmp_path, "liger-kernel", files) is Status.UNKNOWN


def test_weights_that_a_branch_quantizes_are_not_known_to_be(tmp_path: Path) -> None:
    files = adapted()
    load = 'model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B-Instruct"{})\n'
    both = f"if small():\n    {load.format(', load_in_8bit=True')}else:\n    {load.format('')}"
    program = files["train.py"].replace(load.format(""), both)
    assert both in program
    assert status_of(tmp_path, "qlora-8bit", {**files, "train.py": program}) is Status.UNKNOWN


@pytest.mark.parametrize(("given", "expected"), [({}, NA), ({"do_train": True}, ON)])
def test_a_script_that_is_not_asked_to_train_only_evaluates(
    given: Mapping[str, bool], expected: Status, tmp_path: Path
) -> None:
    files = flags({"bf16": True, "do_eval": True, **given})
    asked = "if args.do_train:\n    trainer.train()\nif args.do_eval:\n    trainer.evaluate()\n"
    program = files["train.py"].replace("trainer.train()\n", asked)
    assert status_of(tmp_path, "bf16", {**files, "train.py": program}) is expected


def test_a_method_that_hands_the_call_on_switches_nothing_on(tmp_path: Path) -> None:
    files = constructor({"bf16": True, "gradient_checkpointing": False})
    wrapper = (
        "class Wrapper(torch.nn.Module):\n"
        "    def gradient_checkpointing_enable(self, **kwargs):\n"
        "        self.model.gradient_checkpointing_enable(**kwargs)\n\n\n"
    )
    files = {
        **files,
        "train.py": files["train.py"].replace("\nmodel =", f"\n\n{wrapper}model =", 1),
    }
    assert wrapper in files["train.py"]
    assert status_of(tmp_path, "gradient-checkpointing", files) is not ON


def test_liger_is_not_advised_for_a_class_of_the_projects_own(tmp_path: Path) -> None:
    files = constructor({"bf16": True})
    assert status_of(tmp_path / "a", "liger-kernel", files) is ADVISED
    program = files["train.py"].replace("AutoModelForCausalLM.from", "Seeing.from")
    program = program.replace("import torch\n", _OWN, 1)
    found = status_of(tmp_path / "b", "liger-kernel", {**files, "train.py": program})
    assert found is Status.UNKNOWN


_OWN = """\
import torch
from transformers import LlamaForCausalLM


class Seeing(LlamaForCausalLM):
    pass


"""


def test_autocast_that_decorates_a_function_is_no_proof_of_how_it_trains(tmp_path: Path) -> None:
    files = constructor({}, files=OLD)
    predict = '@torch.amp.autocast("cuda")\ndef predict(batch):\n    return model(**batch)\n'
    program = files["train.py"] + predict
    assert status_of(tmp_path, "bf16", {**files, "train.py": program}) is Status.UNKNOWN


def test_liger_is_not_advised_for_a_model_without_its_head(tmp_path: Path) -> None:
    files = constructor({"bf16": True}, loader="AutoModel")
    assert status_of(tmp_path, "liger-kernel", files) is OFF


def test_the_default_optimizer_is_that_of_the_releases_a_project_takes(tmp_path: Path) -> None:
    files = constructor({"bf16": True})
    older = {**files, "requirements.txt": "transformers>=4.43.1,<=4.44.2\n"}
    assert status_of(tmp_path / "a", "fused-adamw", files) is ON
    assert status_of(tmp_path / "b", "fused-adamw", older) is ADVISED


def test_a_branch_that_prepares_a_quantized_model_leaves_recomputation_open(tmp_path: Path) -> None:
    setup = "if small():\n    model = prepare_model_for_kbit_training(model)"
    imports = "from peft import prepare_model_for_kbit_training"
    files = constructor({"bf16": True}, setup=setup, imports=imports)
    assert status_of(tmp_path, "gradient-checkpointing", files) is Status.UNKNOWN
