"""Short phrases of the reports: effects, defaults, changes that are code, hidden secrets."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Optional

import pytest
import yaml

from flake8_gpu_training.checks.base import (
    Change,
    Check,
    Evidence,
    Finding,
    Impact,
    Judgement,
    Priority,
    Status,
)
from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.facts import Location
from flake8_gpu_training.language import Text
from flake8_gpu_training.project import Project
from flake8_gpu_training.runs.find import find_runs
from flake8_gpu_training.runs.model import PRACTICES, Place, PlaceKind, Run, RunKind
from flake8_gpu_training.runs.names import PRACTICE_NAMES
from flake8_gpu_training.verdicts import Verdict, judge
from report_builder.cli import main
from report_builder.recommendations import is_prose, recommend
from report_builder.wording import default_text, impact_text, nested_yaml, redacted

AT = Location("train.sh", 1)
FIXTURES = Path(__file__).parent.parent / "fixtures"
MEASURED = Impact((10, 30))
RUN = Run("train.sh:1", RunKind.TRAIN, "swift", AT, Place(PlaceKind.FLAGS, AT))


@pytest.mark.parametrize(
    ("impact", "zh", "en"),
    [
        (Impact((20, 30)), "吞吐提升 20–30%", "throughput +20% to +30%"),
        (Impact((-30, -20)), "吞吐降低 20–30%", "throughput −20% to −30%"),
        (Impact((10, 10)), "吞吐提升 10%", "throughput +10%"),
        (Impact((0, 10)), "吞吐提升 0–10%", "throughput 0% to +10%"),
        (Impact((-5, 5)), "吞吐变化 −5% 至 +5%", "throughput −5% to +5%"),
        (Impact(memory=(-60, -30)), "显存降低 30–60%", "memory −30% to −60%"),
        (Impact(memory=(5, 10)), "显存增加 5–10%", "memory +5% to +10%"),
        (Impact((0, 0), note=Text("更稳定", "steadier")), "更稳定", "steadier"),
    ],
)
def test_an_effect_is_named_for_what_it_is(impact: Impact, zh: str, en: str) -> None:
    assert impact_text(impact, "zh") == zh
    assert impact_text(impact, "en") == en


def test_an_effect_without_figures_is_not_called_a_failure_unless_it_is() -> None:
    assert "失败" in impact_text(Impact(), "zh", is_mistake=True)
    assert "失败" not in impact_text(Impact(), "zh")


@pytest.mark.parametrize(
    ("text", "zh"),
    [
        (
            "ms-swift 4.6.0 swift/arguments/base_args/base_args.py: packing False",
            "`packing=False`（框架默认，ms-swift 4.6.0：base_args.py）",
        ),
        (
            "transformers 4.46.3 to 5.24.0 training_args.py: True",
            "框架默认（transformers 4.46.3–5.24.0：training_args.py）",
        ),
        (
            "loss_scale=default (ms-swift 4.6.0, trainers/arguments.py)",
            "`loss_scale=default`（框架默认，ms-swift 4.6.0）",
        ),
        ("no torch.compile in the code", "代码中没有 torch.compile"),
        ("no activation checkpointing in the code", "代码中没有激活重计算"),
    ],
)
def test_a_default_is_named_with_where_it_was_read(text: str, zh: str) -> None:
    assert default_text(text, "zh") == zh
    english = default_text(text, "en")
    assert english is not None
    assert not re.search(r"[\u4e00-\u9fff（）：，]", english)


def test_evidence_of_another_form_is_left_to_be_quoted() -> None:
    assert default_text("whatever a check says", "zh") is None


def test_every_practice_has_a_name_in_both_languages() -> None:
    assert set(PRACTICE_NAMES) == set(PRACTICES)
    assert not any(re.search(r"[\u4e00-\u9fff]", name.en) for name in PRACTICE_NAMES.values())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("WANDB_API_KEY=abcdef12 swift sft", "WANDB_API_KEY=*** swift sft"),
        ('export OPENAI_API_KEY="sk x"', "export OPENAI_API_KEY=***"),
        ("--hub_token hfabcdef --lr 1e-4", "--hub_token *** --lr 1e-4"),
        ("https://user:word@host/x.git", "https://***@host/x.git"),
        ("wandb login 0123456789abcdef0123456789", "wandb login ***"),
        ("HF_TOKEN=$HF_TOKEN", "HF_TOKEN=$HF_TOKEN"),
        ("--max_tokens 512 --pad_token [PAD]", "--max_tokens 512 --pad_token [PAD]"),
        ("TOKENIZERS_PARALLELISM=false", "TOKENIZERS_PARALLELISM=false"),
        ("sorted(x, key=len)", "sorted(x, key=len)"),
    ],
)
def test_secrets_are_hidden_and_nothing_else(text: str, shown: str) -> None:
    assert redacted(text) == shown


def test_no_report_shows_a_secret(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "demo"
    root.mkdir()
    (root / "train.sh").write_text(
        "export HF_TOKEN=verysecretvalue1\n"
        "WANDB_API_KEY=verysecretvalue2 swift sft --model Qwen/Qwen2.5-7B-Instruct "
        "--tuner_type lora --hub_token verysecretvalue3 --dataset d.jsonl\n"
    )
    command = "WANDB_API_KEY=verysecretvalue4 swift sft --model Qwen/Qwen2.5-7B-Instruct"
    for arguments in ([], ["--launch-command", command]):
        out = tmp_path / f"out{len(arguments)}"
        assert main([str(root), "--output-dir", str(out), *arguments]) == 0
        for path in out.iterdir():
            if path.name != "recommended.patch":  # its context is the user's own lines
                text = path.read_text(encoding="utf-8")
                if path.suffix == ".json":
                    data = json.loads(text)
                    for entry in data["recommendations"]:
                        entry["patch"] = None
                    text = json.dumps(data)
                assert "verysecretvalue" not in text, path.name
    assert "verysecretvalue" not in capsys.readouterr().out


# --- changes ------------------------------------------------------------------------------


def test_a_sentence_is_no_change() -> None:
    assert is_prose("Batches are prefetched by the loader")
    assert is_prose("")
    assert not is_prose("--packing true \\\n--attn_impl flash_attn")
    assert not is_prose("model = torch.compile(model)")
    assert not is_prose("sudo apt install one two three four five --yes")


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_no_change_of_a_fixture_is_a_sentence(name: str) -> None:
    for run in find_runs(Project.open(FIXTURES / name)):
        for verdict in judge(run, all_checks()):
            changes = [f.change for f in verdict.judgement.findings] + [verdict.judgement.change]
            for change in changes:
                assert change is None or not is_prose(change.text), (verdict.check.code, change)


def verdict(
    code: str,
    change: Optional[str],
    at: Optional[Location] = AT,
    priority: Priority = Priority.MEDIUM,
    impact: Impact = MEASURED,
) -> Verdict:
    written = Change("bash", change) if change is not None else None
    findings = (Finding(at, "do it", written),) if at is not None else ()
    judgement = Judgement(
        Status.RECOMMENDED,
        evidence=(Evidence("a=0", AT),),
        findings=findings,
        change=written,
        action=Text("做", "do"),
        priority=priority,
    )
    title = Text(code, code)
    check = Check(
        code, code, title, Priority.MEDIUM, lambda run: judgement, "why", "fix", impact=impact
    )
    return Verdict(RUN, check, judgement)


def test_nested_keys_are_shown_as_yaml_has_them() -> None:
    shown = nested_yaml("data.workers: 4\ndata.size: 8\ntrain.a.b: 1\nc: 2")
    assert yaml.safe_load(shown) == {
        "data": {"workers": 4, "size": 8},
        "train": {"a": {"b": 1}},
        "c": 2,
    }
    assert nested_yaml("packing: true\nx: a.b") == "packing: true\nx: a.b"


def test_what_another_change_brings_along_is_not_recommended_twice() -> None:
    both = "--a true \\\n--b true"
    found = recommend([verdict("GPU901", both), verdict("GPU902", "--b true", at=None)])
    assert [entry.code for entry in found] == ["GPU901"]
    apart = recommend([verdict("GPU901", "--a true"), verdict("GPU902", "--b true", at=None)])
    assert [entry.code for entry in apart] == ["GPU901", "GPU902"]


def test_a_range_that_only_stands_for_a_priority_follows_the_priority() -> None:
    unmeasured = Impact((10, 30), source="range of the priority class, not a measurement; x")
    (entry,) = recommend([verdict("GPU350", "--a 1", priority=Priority.LOW, impact=unmeasured)])
    assert entry.impact.throughput == (0, 10)
    measured = Impact((10, 30), source="a paper")
    (entry,) = recommend([verdict("GPU350", "--a 1", priority=Priority.LOW, impact=measured)])
    assert entry.impact.throughput == (10, 30)


def test_what_costs_throughput_is_not_called_free_of_risk() -> None:
    costly = Impact((-30, -15), (-60, -30), source="a paper")
    (entry,) = recommend([verdict("GPU203", "--a 1", priority=Priority.HIGH, impact=costly)])
    assert entry.safety == "P1"
    (free,) = recommend([verdict("GPU301", "--a 1", priority=Priority.HIGH)])
    assert free.safety == "P0"


def test_a_mistake_that_stops_no_run_for_sure_stands_behind_those_that_do() -> None:
    (ignored,) = recommend([verdict("GPU007", "--a 1", priority=Priority.MEDIUM)])
    assert ignored.safety == "P2"
    (gain,) = recommend([verdict("GPU301", "--a 1", priority=Priority.MEDIUM)])
    assert gain.safety == "P1"
    (fatal,) = recommend([verdict("GPU007", "--a 1", priority=Priority.HIGH)])
    assert fatal.safety == "P0"


# --- documents ----------------------------------------------------------------------------


class _Page(HTMLParser):
    """Ids, inner links, and addresses that a browser would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, Optional[str]]]) -> None:
        named = {name: value or "" for name, value in attrs}
        if "id" in named:
            self.ids.append(named["id"])
        if tag == "a":
            self.links.append(named["href"])
        elif "src" in named or "href" in named:
            self.fetched.append(tag)


def test_the_page_fetches_nothing_and_its_links_lead_somewhere(tmp_path: Path) -> None:
    assert main([str(FIXTURES / "swift_lora_sft"), "--quiet", "--output-dir", str(tmp_path)]) == 0
    text = (tmp_path / "static-analysis-report.html").read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert page.fetched == []
    assert "<script" not in text
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    assert len(page.links) > 10
    assert {link.lstrip("#") for link in page.links if link.startswith("#")} <= set(page.ids)


def test_a_long_command_is_shown_in_full_below_the_table(tmp_path: Path) -> None:
    assert main([str(FIXTURES / "swift_lora_sft"), "--quiet", "--output-dir", str(tmp_path)]) == 0
    text = (tmp_path / "static-analysis-report.md").read_text(encoding="utf-8")
    row = next(line for line in text.split("\n") if line.startswith("| 启动命令 |"))
    assert "全文见表后" in row
    assert "--output_dir output/support-assistant" not in row
    below = text.split("完整启动命令：")[1].split("## 审计评分总结")[0]
    assert "    --output_dir output/support-assistant\n" in below


def test_without_a_run_the_summary_says_what_to_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("nothing")
    for lang in ("zh", "en"):
        out = str(tmp_path / lang)
        assert main([str(tmp_path / "p"), "--lang", lang, "--output-dir", out]) == 0
        assert "--launch-command" in capsys.readouterr().out


def test_a_given_launch_command_is_named_as_such(tmp_path: Path) -> None:
    command = "swift sft --model Qwen/Qwen2.5-7B-Instruct --dataloader_num_workers 0"
    for lang, name in (("zh", "启动命令"), ("en", "the launch command")):
        out = tmp_path / lang
        root = tmp_path / "p"
        root.mkdir(exist_ok=True)
        arguments = ["--launch-command", command, "--lang", lang, "--output-dir", str(out)]
        assert main([str(root), "--quiet", *arguments]) == 0
        for path in out.glob("*.md"):
            text = path.read_text(encoding="utf-8")
            assert "launch-command>" not in text
        assert f"（{name}）" in text or f"({name})" in text


@pytest.mark.parametrize(
    ("note", "zh", "en"),
    [
        (
            "from_pretrained: transformers >= 4.36: sdpa where supported",
            "`sdpa`（框架默认，transformers ≥ 4.36）",
            "`sdpa` (default of transformers 4.36 and later)",
        ),
        (
            "from_pretrained: transformers < 4.36: eager",
            "`eager`（框架默认，transformers < 4.36）",
            "`eager` (default of transformers before 4.36)",
        ),
        (
            "transformers 4.46.3 to 5.24.0 training_args.py: bf16 False, fp16 False",
            "`bf16=False`、`fp16=False`（框架默认，transformers 4.46.3–5.24.0：training_args.py）",
            "`bf16=False`, `fp16=False` (default, transformers 4.46.3–5.24.0: training_args.py)",
        ),
        (
            "TRL's trainer tokenises the dataset before the first step",
            "TRL 的 Trainer 在第一步之前完成全部分词",
            "TRL's trainer tokenises the dataset before the first step",
        ),
        (
            "trl loads a model given by name; transformers >= 4.36: sdpa where supported",
            "trl 按名称加载模型；transformers >= 4.36：支持时用 sdpa",
            "trl loads a model given by name; transformers >= 4.36: sdpa where supported",
        ),
    ],
)
def test_the_kernel_that_a_model_has_by_default_is_named(note: str, zh: str, en: str) -> None:
    assert (default_text(note, "zh"), default_text(note, "en")) == (zh, en)


def test_the_larger_figure_of_an_effect_comes_first() -> None:
    both = Impact((10, 20), (-60, -20))
    assert impact_text(both, "en") == "memory −20% to −60%; throughput +10% to +20%"
    assert impact_text(Impact((30, 60), (-20, -10)), "zh").startswith("吞吐提升 30–60%")
