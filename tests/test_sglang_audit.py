"""Every item of SGLang's audit, by flags, in YAML and in Python; and whole scores."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Optional

import pytest
from audit_cases import ADVISED, NA, OFF, ON, PARTLY, Case, Files
from audit_cases_sglang import CASES, H200, LARGE, LATENT, ONE, SMALL, flags, sampled
from audit_cases_sglang import slime as sampled_by_slime
from audits_support import audit_named, changes_of, items_of, shown
from checks_support import runs_of

from flake8_gpu_training.checks.base import Status
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.frameworks.tables import table_of
from flake8_gpu_training.language import Text
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.scenario_releases import in_release
from report_builder.scenarios import scenarios
from report_builder.scoring import ScoredAudit, ScoredItem, score

AUDIT = audit_named("sglang")
ITEMS = tuple(item for category in AUDIT.categories for item, _ in category.items)


def judged(root: Path, case: Case) -> tuple[ScoredItem, tuple[Verdict, ...]]:
    """The item as the report scores it, and the verdicts of the case's first run."""
    runs = runs_of(root, case.files)
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
    if case.shows:
        assert case.shows in shown(case.files, item)
    if case.writes:
        changes = changes_of(case.item, verdicts)
        assert any(case.writes in text for text in changes), changes


TEMPLATES = Path(__file__).resolve().parent.parent / "report_builder/templates/scenarios/sglang"
NEEDS = {
    "serve_moe.sh": "0.4.10.post2",  # moe_a2a_backend
    "serve_eagle.sh": "0.4.6",
    "rollout_colocate.py.txt": "0.4.3",
}
"""The first release read that has what the template asks for."""
_GIVEN = re.compile(r"^\s+--(?!router-)([\w-]+)|^\s{12}(\w+)=", re.MULTILINE)


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=lambda path: path.name)
def test_templates_are_taken_by_the_releases_that_they_are_for(path: Path, tmp_path: Path) -> None:
    table = table_of("sglang")
    assert table is not None
    text = path.read_text(encoding="utf-8")
    group = "engine" if path.name.endswith(".py.txt") else "serve"
    first = table.versions.index(NEEDS.get(path.name, "0.3.6.post3"))
    releases = table.versions[first:]
    assert len(releases) >= 4
    for release in releases:
        run = runs_of(tmp_path / release, flags({}, pin=release))[0]
        words = in_release(run, Text(text, text)).en
        names = [(flag or keyword).replace("-", "_") for flag, keyword in _GIVEN.findall(words)]
        assert names or path.name == "sync_weights.py.txt"
        known = {
            written
            for name, parameter in table.parameters(group, release).items()
            for written in (name, *parameter.aliases)
        }
        unknown = [n for n in names if n not in known and n != "model_path"]
        assert unknown == [], release


_OPTIONAL = "a server may do without it: whether it helps shows in the run"
_ONE_OF = "one of a group, of which another is advised"
NEVER_ADVISED = {
    **dict.fromkeys(
        """
        torch-compile single-batch-overlap continuous-decode-steps fp8-gemm
        context-length kv-cache-dtype max-running-requests hicache cpu-offload eviction-policy
        schedule-policy-lpm page-size tensor-parallel data-parallel pipeline-parallel multi-node
        nvls symmetric-memory mla-backend dsa-backend hybrid-backend spec-v2 pause-generation
        deterministic-inference cpu-weight-backup remote-fork pd-disaggregation lora-serving
        yaml-config watchdog hisparse schedule-conservativeness container-affinity
        token-usage-monitoring max-new-tokens-clip
        """.split(),  # noqa: SIM905
        _OPTIONAL,
    ),
    **dict.fromkeys(
        """
        prequantized bitsandbytes modelopt torchao moe-wna16 eagle3 eagle2
        standalone ngram weights-from-disk weights-from-tensor weights-from-distributed
        """.split(),  # noqa: SIM905
        _ONE_OF,
    ),
}
"""Items that are never recommended, and why; they are shown disabled instead."""
NEVER_OFF = {"dsa-backend", "fp8-gemm", "eviction-policy", "multi-node", "max-new-tokens-clip"}
"""Of those, what is on wherever it applies."""
IN_PROGRAMS = {"pause-generation", "metrics", "cpu-weight-backup", "shared-memory", "cpu-cores"} | {
    f"weights-from-{way}" for way in ("disk", "tensor", "distributed")
}
"""Items that one front end alone has: calls of a program, words of a container or scheduler."""


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_on_advised_and_inapplicable_in_two_front_ends(name: str) -> None:
    fronts: dict[Status, set[str]] = {}
    for case in CASES:
        if case.item == name:
            fronts.setdefault(case.status, set()).add(case.front)
    count = 1 if name in IN_PROGRAMS else 2
    routed = any(c.item == name and c.front == "router" for c in CASES)
    assert len(fronts.get(ON, ())) >= count, fronts
    assert len(fronts.get(NA, ())) >= (1 if routed else count), fronts
    if name in NEVER_ADVISED:
        assert ADVISED not in fronts
        assert name in NEVER_OFF or len(fronts.get(OFF, ())) >= 1, fronts
    else:
        advised = fronts.get(ADVISED, set()) | fronts.get(PARTLY, set())
        assert len(advised) >= (1 if name in (*IN_PROGRAMS, "metrics") else count), fronts


def test_every_item_has_cases_and_no_case_is_of_another() -> None:
    assert {case.item for case in CASES} == set(ITEMS)
    assert set(NEVER_ADVISED) <= set(ITEMS)
    assert set(NEVER_ADVISED) >= NEVER_OFF


def audited(root: Path, files: Files) -> ScoredAudit:
    """The audit of a project's first run."""
    return score(AUDIT, judge(runs_of(root, files)[0], all_checks()))


def by_category(scored: ScoredAudit) -> dict[str, Optional[float]]:
    return {entry.category.id: entry.score for entry in scored.categories}


def test_the_total_of_a_server_that_leaves_all_at_its_default(tmp_path: Path) -> None:
    scored = audited(tmp_path, flags({}, gpus=ONE))
    # A: prefill graphs 1, decode graphs 1, overlap 1.5. B: share, chunks, requests 1 each.
    # C: radix 2.5, LRU 0.5. F: fa3 on Hopper as backend 2.5 and kernel 1. I: xgrammar 0.5,
    # watchdog 0.5. J: token usage and the clipped estimate 0.75 each, the NUMA node 0.5.
    points = {"A": 3.5, "B": 3, "C": 3, "D": 0, "E": 0, "F": 3.5, "G": 0, "H": None, "I": 1}
    assert by_category(scored) == {**points, "J": 2}
    # FP8 on Hopper 5 is to be gained: 16 / 21; 54 without the 7 of RLHF.
    assert (scored.score, scored.maximum, scored.attainment) == (16, 47, 0.76)
    assert (scored.earned, scored.lost) == (16, 5)


def test_the_total_of_a_latent_mixture_over_eight_gpus(tmp_path: Path) -> None:
    scored = audited(tmp_path, flags({"tp_size": 8}, model=LATENT, gpus=H200))
    # More than the first: FP8 products and DeepGEMM 0.5 each, chunks of prefixes 0.75,
    # tensor parallelism 1.5, the checkpoint is in FP8: 5.
    points = {"A": 4.5, "B": 3, "C": 3.75, "D": 1.5, "E": 5, "F": 3.5, "G": 0, "H": None, "I": 1}
    assert by_category(scored) == {**points, "J": 2}
    # DP attention 1 is to be gained.
    assert (scored.score, scored.maximum, scored.attainment) == (24.25, 47, 0.96)
    assert (scored.earned, scored.lost) == (24.25, 1)


def test_the_total_of_a_colocated_engine_that_switches_much_off(tmp_path: Path) -> None:
    switches = {"disable_radix_cache": True, "disable_cuda_graph": True}
    options = {"mem_fraction_static": 0.85, **switches}
    scored = audited(tmp_path, sampled(options, "    engine.release_memory_occupation()\n"))
    # A: overlap 1.5. B: chunks and requests 1 each, half of the share. F: 3.5. H: weights from
    # tensors 2. I: xgrammar and watchdog. J: the estimate and the node; an Engine logs errors only.
    points = {"A": 1.5, "B": 2.5, "C": 0, "D": 0, "E": 0, "F": 3.5, "G": 0, "H": 2, "I": 1}
    assert by_category(scored) == {**points, "J": 1.25}
    # To be gained: decode graphs 1, half of the share, the radix cache 2.5, the saver 2.5.
    assert (scored.score, scored.maximum, scored.attainment) == (11.75, 54, 0.64)
    assert (scored.earned, scored.lost) == (11.75, 6.5)


def test_a_server_of_images_is_no_server_of_tokens(tmp_path: Path) -> None:
    files = {"serve.sh": "sglang serve --model-path black-forest-labs/FLUX.1-dev --port 30000\n"}
    scored = audited(tmp_path, files)
    statuses = {item.status for category in scored.categories for item in category.items}
    assert statuses == {NA}


@pytest.mark.parametrize(("pin", "offered"), [("0.3.6.post3", False), ("0.5.3", True), ("", True)])
def test_templates_are_offered_for_the_release_at_hand(
    pin: str, offered: bool, tmp_path: Path
) -> None:
    run = runs_of(tmp_path, flags({"tp_size": 8}, model=LATENT, pin=pin))[0]
    titles = [scenario.title.en for scenario in scenarios(run, "sglang")]
    assert any("one 80 GB card" in title for title in titles)
    assert any("expert parallelism" in title for title in titles) is offered
    files = [f for scenario in scenarios(run, "sglang") for f in scenario.files]
    text = "".join(file.text.en for file in files)
    assert ("--attn-dp-size 8" in text) is (pin == "")
    assert ("--dp-size 8 \\\n    --enable-dp-attention" in text) is (pin == "0.5.3")
    assert titles[0].startswith("DeepSeek-V3") is offered


@pytest.mark.parametrize(
    ("files", "start"),
    [
        (flags({}, gpus=ONE), "Serving an 8"),
        (flags({"tp_size": 4}, model=LARGE, gpus="gres=gpu:a100-80g:4"), "Serving a 70"),
        (flags({"tp_size": 8}, model=LARGE), "Serving a 70"),
        (flags({}, model="Qwen/Qwen3-8B-AWQ", gpus=SMALL), "Serving an 8"),
    ],
)
def test_the_nearest_template_comes_first(files: Files, start: str, tmp_path: Path) -> None:
    found = scenarios(runs_of(tmp_path, files)[0], "sglang")
    assert found[0].title.en.startswith(start)


def test_a_build_that_no_release_tells_has_what_the_newest_release_has(tmp_path: Path) -> None:
    command = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B"
    service = f"services:\n  s:\n    image: lmsysorg/sglang:dev\n    command: {command}"
    files = {"docker-compose.yml": f"{service} --disaggregation-mode prefill\n"}
    items = items_of(audited(tmp_path, files))
    assert items["pd-disaggregation"].status is ON
    assert items["two-batch-overlap"].current.en == "no mixture of experts"
    assert items["eagle3"].status is OFF  # in every release that has it, unless asked for
    assert items["radix-cache"].status is ON  # by default in every release
    assert items["schedule-policy-lpm"].status is OFF
    assert items["watchdog"].status is ON
    assert items["piecewise-cuda-graph"].status is not NA


def test_a_checkout_of_sglang_is_of_none_of_the_releases_in_its_images(tmp_path: Path) -> None:
    project = '[project]\nname = "{}"\ndynamic = ["version"]\n'
    files = {
        "docker/Dockerfile": "FROM lmsysorg/sglang:v0.5.10\n",
        "docker/build.sh": "git clone https://github.com/a/sglang\npip install -e python\n",
        "bench/serve.sh": "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B\n",
    }
    for name, release in (("sglang", "0.5.23"), ("served", "0.5.10")):
        folder = tmp_path / name
        folder.mkdir()
        own = {**files, "python/pyproject.toml": project.format(name)}
        shown = items_of(audited(folder, own))["chunked-prefill-size"].current.en
        assert f"(SGLang {release})" in shown


def test_the_flags_of_slime_choose_among_the_ways_of_its_program(tmp_path: Path) -> None:
    called = "server.update_weights_from_distributed(names)\n"
    files = sampled_by_slime("--colocate")
    files["train.py"] += called
    items = items_of(audited(tmp_path, files))
    assert items["weights-from-tensor"].status is ON
    assert items["weights-from-distributed"].status is OFF


HELPED = """\
from sglang.utils import launch_server_cmd, wait_for_server

process, port = {call}
wait_for_server(f"http://localhost:{{port}}", process=process)
"""
_SERVED = """\
python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B \\
    --enable-lora
    --lora-paths a=b/c"""


def test_a_server_that_a_helper_starts_takes_all_lines_of_its_text(tmp_path: Path) -> None:
    call = f'launch_server_cmd("""\n{_SERVED}\n""")'
    item, _ = judged(tmp_path, Case("lora-serving", ON, "", {"a.py": HELPED.format(call=call)}))
    assert item.status is Status.ENABLED
    (tmp_path / "b").mkdir()
    assert runs_of(tmp_path / "b", {"a.py": HELPED.format(call="start(text)")}) == ()


_PROGRAM = """\
from sglang.utils import launch_server_cmd, wait_for_server

MODEL_PATH = "deepseek-ai/DeepSeek-V3"


def main():
    process, port = launch_server_cmd(
        f"python -m sglang.launch_server --model-path {MODEL_PATH} --tp 8 --host 0.0.0.0"
    )
    wait_for_server(f"http://localhost:{port}", process=process)


if __name__ == "__main__":
    main()
"""


def test_a_server_that_a_function_starts_is_a_run(tmp_path: Path) -> None:
    (run,) = runs_of(tmp_path, {"examples/serve.py": _PROGRAM})
    assert run.model.name == "deepseek-ai/DeepSeek-V3"
    assert items_of(score(AUDIT, judge(run, all_checks())))["tensor-parallel"].status is ON


_BRANCHED = """\
set -e
HOME_OF_RUNS=${{HOME_OF_RUNS:-"${{HOME}}/verl"}}
MODEL_PATH=${{MODEL_PATH:-"${{HOME_OF_RUNS}}/models/Qwen3.5-35B-A3B"}}
ROLLOUT=(
    actor_rollout_ref.rollout.name=sglang
    actor_rollout_ref.rollout.tensor_model_parallel_size=4
)
case "${{DEVICE}}" in
    gpu) ;;
    npu) ROLLOUT+=({added}) ;;
esac
python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=${{MODEL_PATH}} "${{ROLLOUT[@]}}"
"""
_OF_ROLLOUT = "+actor_rollout_ref.rollout.engine_kwargs"


@pytest.mark.parametrize(
    ("added", "cache", "overlap"),
    [
        (f"{_OF_ROLLOUT}.vllm.mm_processor_cache_gb=0", ON, NA),
        (f"{_OF_ROLLOUT}.sglang.disable_radix_cache=True", Status.UNKNOWN, NA),
        ("ray_kwargs.ray_init.runtime_env.py_executable='uv -v run python'", ON, NA),
        ("--config-name=other", Status.UNKNOWN, Status.UNKNOWN),
        ("$MORE", Status.UNKNOWN, Status.UNKNOWN),
    ],
)
def test_what_a_branch_adds_to_an_array_concerns_its_own_key_alone(
    added: str, cache: Status, overlap: Status, tmp_path: Path
) -> None:
    items = items_of(audited(tmp_path, {"run.sh": _BRANCHED.format(added=added)}))
    assert items["radix-cache"].status is cache
    assert items["single-batch-overlap"].status is overlap


@pytest.mark.parametrize(
    ("sizes", "told", "tensor", "share"),
    [
        (("4", "0.6", "8", "0.8"), "=8 or 4 (by a branch of the script)", ON, ON),
        (("1", "0.6", "8", "0.8"), "", Status.UNKNOWN, ON),
        (("4", "$SHARE", "4", "0.8"), "", ON, Status.UNKNOWN),
    ],
)
def test_a_size_of_each_branch_is_on_where_all_are(
    sizes: tuple[str, ...], told: str, tensor: Status, share: Status, tmp_path: Path
) -> None:
    script = (
        'if [ -n "$NPU" ]; then TP={2}; SHARE={3}; else TP={0}; SHARE={1}; fi\n'
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B "
        "actor_rollout_ref.rollout.name=sglang "
        "actor_rollout_ref.rollout.tensor_model_parallel_size=${{TP}} "
        "actor_rollout_ref.rollout.gpu_memory_utilization=${{SHARE}}\n"
    )
    items = items_of(audited(tmp_path, {"run.sh": script.format(*sizes)}))
    assert items["tensor-parallel"].status is tensor
    assert items["mem-fraction-static"].status is share
    assert told in items["tensor-parallel"].current.en


def test_verl_keeps_the_length_of_requests_to_itself(tmp_path: Path) -> None:
    command = (
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B "
        "actor_rollout_ref.rollout.name=sglang {}\n"
    )
    own = "actor_rollout_ref.rollout.max_model_len=4096"
    handed = "+actor_rollout_ref.rollout.engine_kwargs.sglang.context_length=4096"
    for key, status in ((own, OFF), (handed, ON)):
        root = tmp_path / status.value
        root.mkdir()
        items = items_of(audited(root, {"run.sh": command.format(key)}))
        assert items["context-length"].status is status


def test_one_head_of_keys_and_values_may_be_split_by_requests(tmp_path: Path) -> None:
    for model, expected in (("deepseek-ai/DeepSeek-V4-Pro", OFF), ("Qwen/Qwen3-32B", NA)):
        line = f"sglang serve --model-path {model} --tp 8\n"
        scored = audited(tmp_path / model.rpartition("/")[2], {"serve.sh": line})
        assert items_of(scored)["dp-attention"].status is expected
