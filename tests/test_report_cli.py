"""The report command: files, exit statuses, options, and what it never does."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from report_builder.cli import main
from report_builder.files import OutputError, write_all

SCHEMA = json.loads(
    (
        Path(__file__).parent.parent / "report_builder/schema/static-analysis-report.schema.json"
    ).read_text()
)
FIXTURES = Path(__file__).parent.parent / "fixtures"
MAIN = "static-analysis-report.md"
GENERAL = "v0_training-acceleration-audit-report.md"
SWIFT = "v0_swift-optimization-report.md"
JSON = "static-analysis-report.json"
HTML = "static-analysis-report.html"
TRAIN = """\
#!/bin/bash
export NPROC_PER_NODE=8
swift sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --tuner_type lora \\
    --dataset data/train.jsonl \\
    --torch_dtype bfloat16 \\
    --max_length 4096 \\
    --per_device_train_batch_size 1 \\
    --logging_steps 1 \\
    --output_dir output/a
"""


@pytest.fixture(autouse=True)
def fixed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "demo"
    root.mkdir()
    (root / "train.sh").write_text(TRAIN)
    (root / "requirements.txt").write_text("ms-swift==4.6.0\n")
    return root


def out_of(root: Path) -> Path:
    return root.with_name(f"{root.name}_static_analysis")


def read_json(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / JSON).read_text(encoding="utf-8"))
    jsonschema.validate(data, SCHEMA)
    return data


def test_files_of_a_swift_project(project: Path) -> None:
    assert main([str(project)]) == 0
    written = {path.name for path in out_of(project).iterdir()}
    assert written == {MAIN, GENERAL, SWIFT, JSON, HTML, "recommended.patch"}


def test_json_says_what_the_run_is(project: Path) -> None:
    assert main([str(project), "--quiet"]) == 0
    data = read_json(out_of(project))
    assert data["frameworks"]["training"] == "swift"
    (run,) = data["runs"]
    assert (run["id"], run["kind"], run["primary"]) == ("train.sh:3", "train", True)
    assert run["settings"]["tuner_type"] == {
        "value": "lora",
        "path": "train.sh",
        "line": 5,
        "origin": "flag",
    }
    assert data["project"]["model"]["parameters"] == 7615616512
    assert [audit["id"] for audit in data["audits"]] == ["general", "swift"]
    assert data["audits"][0]["max"] == 49  # text model: H does not apply
    ranks = [entry["rank"] for entry in data["recommendations"]]
    assert ranks == list(range(1, len(ranks) + 1))
    order = ["high", "medium", "low"]
    priorities = [order.index(entry["priority"]) for entry in data["recommendations"]]
    assert priorities == sorted(priorities)


def test_scores_of_categories_add_up(project: Path) -> None:
    main([str(project), "--quiet"])
    for audit in read_json(out_of(project))["audits"]:
        scores = [c["score"] for c in audit["categories"] if c["score"] is not None]
        assert sum(scores) == pytest.approx(audit["score"], abs=0.05)
        maxima = [c["max"] for c in audit["categories"] if c["max"] is not None]
        assert sum(maxima) == audit["max"]
        assert all(c["score"] <= c["max"] for c in audit["categories"] if c["max"] is not None)


def test_the_patch_applies_and_its_findings_go(project: Path) -> None:
    main([str(project), "--quiet"])
    before = read_json(out_of(project))
    patched = {r["code"] for r in before["recommendations"] if r["patch"]}
    assert {"GPU301", "GPU804"} <= patched
    patch = out_of(project) / "recommended.patch"
    subprocess.run(["patch", "-p1", "-i", str(patch)], cwd=project, check=True, capture_output=True)
    main([str(project), "--quiet"])
    after = read_json(out_of(project))
    left = {r["code"] for r in after["recommendations"]}
    assert not patched & left
    assert not left - {r["code"] for r in before["recommendations"]}
    assert after["audits"][1]["attainment"] > before["audits"][1]["attainment"]


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_a_patch_removes_findings_and_adds_none(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    shutil.copytree(FIXTURES / name, root)
    assert main([str(root), "--quiet"]) == 0
    before = read_json(out_of(root))
    patch = out_of(root) / "recommended.patch"
    if not patch.exists():
        assert all(entry["patch"] is None for entry in before["recommendations"])
        return
    subprocess.run(["git", "apply", "-p1", str(patch)], cwd=root, check=True)
    assert main([str(root), "--quiet"]) == 0
    after = read_json(out_of(root))
    codes = [{entry["code"] for entry in data["recommendations"]} for data in (before, after)]
    assert codes[1] < codes[0]


def test_each_recommendations_own_patch_applies(project: Path) -> None:
    main([str(project), "--quiet"])
    for entry in read_json(out_of(project))["recommendations"]:
        if entry["patch"]:
            subprocess.run(
                ["git", "apply", "--check", "-p1"],
                cwd=project,
                input=entry["patch"].encode(),
                check=True,
            )


def test_two_runs_give_the_same_bytes(project: Path, tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        assert main([str(project), "--quiet", "--sarif", "--output-dir", str(folder)]) == 0
    contents = [{p.name: p.read_bytes() for p in folder.iterdir()} for folder in folders]
    assert contents[0] == contents[1]
    assert "2023-11-14 22:13:20 UTC" in contents[0][MAIN].decode()


def test_the_project_is_not_touched(project: Path) -> None:
    def state() -> dict[str, tuple[bytes, int]]:
        return {
            str(path.relative_to(project)): (path.read_bytes(), path.stat().st_mtime_ns)
            for path in project.rglob("*")
            if path.is_file()
        }

    before = state()
    main([str(project), "--quiet"])
    assert state() == before


def test_reports_inside_the_project_are_not_read_as_part_of_it(project: Path) -> None:
    folder = project / "reports"
    for _ in range(2):
        assert main([str(project), "--quiet", "--output-dir", str(folder)]) == 0
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / "leftover.sh").write_text(TRAIN)
    main([str(project), "--quiet", "--output-dir", str(folder)])
    assert {n: (folder / n).read_bytes() for n in first} == first


def test_reports_written_into_the_project_itself_do_not_change_it(project: Path) -> None:
    arguments = [str(project), "--quiet", "--output-dir", str(project)]
    assert main(arguments) == 0
    first = (project / JSON).read_bytes()
    assert main(arguments) == 0
    assert (project / JSON).read_bytes() == first


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (b"\xff\xfe.sh", TRAIN.encode()),
        (b"broken.py", b"from transformers import Trainer\ndef (:\n"),
        (b"python2.py", b"import torch\nprint 'x'\n"),
        (b"binary.yaml", bytes(range(256))),
        (b"deep.json", b"[" * 100_000),
        (b"bomb.yaml", b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"),
        (b"book.ipynb", b'{"cells": 3}'),
        (b"empty.py", b""),
    ],
)
def test_no_file_crashes_the_report(project: Path, name: bytes, content: bytes) -> None:
    with open(os.path.join(os.fsencode(project), name), "wb") as file:  # noqa: PTH118, PTH123
        file.write(content)
    assert main([str(project), "--quiet"]) == 0
    assert read_json(out_of(project))["frameworks"]["training"] == "swift"


def test_a_terminal_without_chinese_gets_escapes(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    assert main([str(project)]) == 0
    assert b"ms-swift" in raw.getvalue()


def test_files_of_an_earlier_run_that_no_longer_apply_are_removed(project: Path) -> None:
    main([str(project), "--quiet", "--sarif"])
    own = out_of(project) / "notes.txt"
    own.write_text("mine")
    (project / "train.sh").unlink()
    (project / "requirements.txt").unlink()
    main([str(project), "--quiet"])
    written = {path.name for path in out_of(project).iterdir()}
    assert written == {MAIN, GENERAL, JSON, HTML, "notes.txt"}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_project_without_runs_gets_full_reports(tmp_path: Path, lang: str) -> None:
    root = tmp_path / "empty"
    root.mkdir()
    assert main([str(root), "--quiet", "--lang", lang]) == 0
    data = read_json(out_of(root))
    assert data["frameworks"]["training"] == "generic"
    assert data["recommendations"] == []
    statuses = {i["status"] for c in data["audits"][0]["categories"] for i in c["items"]}
    assert statuses == {"unknown"}
    text = (out_of(root) / MAIN).read_text(encoding="utf-8")
    assert ("未找到" if lang == "zh" else "none found") in text


def test_a_path_with_a_trailing_slash_or_dots_names_the_same_output(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    assert main([".", "--quiet"]) == 0
    assert (out_of(project) / MAIN).is_file()
    monkeypatch.chdir(project.parent)
    (out_of(project) / MAIN).unlink()
    assert main(["demo/", "--quiet"]) == 0
    assert (out_of(project) / MAIN).is_file()


def test_relative_paths_stay_relative(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.parent)
    assert main(["demo", "--quiet", "--sarif"]) == 0
    for path in out_of(project).iterdir():
        assert str(project.parent) not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "PROJECT"),
        (["nowhere"], "nowhere"),
        (["demo", "--gpu", "GTX1"], "GTX1"),
        (["demo", "--num-gpus", "0"], "--num-gpus"),
        (["demo", "--gpu-memory", "lots"], "--gpu-memory"),
        (["demo", "--model-params", "big"], "--model-params"),
        (["demo", "--model-params", "8"], "such as 7B"),
        (["demo", "--fail-under", "101"], "--fail-under"),
        (["demo", "--lang", "fr"], "--lang"),
        (["demo", "--no-such-option"], "--no-such-option"),
        (["demo", "--output-dir", "demo/train.sh"], "demo/train.sh"),
        (["demo", "--output-dir", "demo/train.sh/deeper"], "train.sh"),
    ],
)
def test_wrong_usage_is_one_line_on_stderr_and_status_2(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(project.parent)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("gpu-report: ")
    assert message in captured.err


def test_help_and_version_are_no_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    assert "--launch-command" in capsys.readouterr().out


def test_fail_under_compares_the_attainment(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(project), "--quiet", "--fail-under", "0"]) == 0
    assert main([str(project), "--quiet", "--fail-under", "99"]) == 1
    assert "below 99%" in capsys.readouterr().err
    assert (out_of(project) / MAIN).is_file()


def test_summary_names_framework_scores_advice_and_files(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(project), "--lang", "en"]) == 0
    out = capsys.readouterr().out
    assert "ms-swift" in out
    assert re.search(
        r"General training acceleration audit: [\d.]+/49 points over all items; "
        r"attainment \d+% of the [\d.]+ that this run can earn",
        out,
    )
    assert re.search(r"\n\d+ recommendations\n  1\. \[\w+\] GPU\d{3} ", out)
    assert all(path.name in out for path in out_of(project).iterdir())
    assert capsys.readouterr().err == ""


def test_quiet_says_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(project), "--quiet"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_hardware_that_the_user_names_is_used(project: Path) -> None:
    arguments = ["--quiet", "--gpu", "H100", "--num-gpus", "4", "--num-nodes", "2"]
    assert main([str(project), *arguments]) == 0
    data = read_json(out_of(project))
    hardware = data["project"]["hardware"]
    assert (hardware["gpus_per_node"], hardware["nodes"]) == (4, 2)
    assert hardware["gpu"].startswith("H100")
    assert data["advice"]["flash_attention"]["version"] == "FA3"
    assert data["memory"]["fits"] is True


def test_a_card_too_small_is_told(project: Path) -> None:
    assert main([str(project), "--quiet", "--gpu-memory", "12"]) == 0
    assert read_json(out_of(project))["memory"]["fits"] is False


def test_model_size_that_the_user_names_is_used(project: Path) -> None:
    assert main([str(project), "--quiet", "--model-params", "72B"]) == 0
    assert read_json(out_of(project))["project"]["model"]["parameters"] == 72_000_000_000


def test_a_launch_command_makes_the_primary_run(project: Path) -> None:
    command = "NPROC_PER_NODE=2 swift sft --model Qwen/Qwen2.5-3B --tuner_type full --dataset d"
    assert main([str(project), "--quiet", "--launch-command", command]) == 0
    data = read_json(out_of(project))
    assert data["project"]["launch_command"] == command
    primary = next(run for run in data["runs"] if run["primary"])
    assert primary["settings"]["tuner_type"]["value"] == "full"


@pytest.mark.parametrize(
    ("command", "warned"),
    [("bash nosuch.sh", True), ("bash train.sh", False), ("swift sft --model a/b-7B", False)],
)
def test_a_launch_command_that_starts_no_run_is_told(
    project: Path, capsys: pytest.CaptureFixture[str], command: str, warned: bool
) -> None:
    arguments = ["--quiet", "--lang", "en", "--launch-command", command]
    assert main([str(project), *arguments]) == 0
    errors = capsys.readouterr().err
    assert ("no run found for the launch command; reporting on train.sh" in errors) is warned
    assert errors.count("\n") == warned
    text = (out_of(project) / MAIN).read_text(encoding="utf-8")
    assert ("matched no run" in text) is warned


def test_what_could_not_be_told_is_counted_beside_the_attainment(project: Path) -> None:
    assert main([str(project), "--quiet"]) == 0
    general = read_json(out_of(project))["audits"][0]
    unknown = [i for c in general["categories"] for i in c["items"] if i["status"] == "unknown"]
    text = (out_of(project) / MAIN).read_text(encoding="utf-8")
    assert unknown
    assert f"无法静态判断 {len(unknown)} 项" in text


def test_what_the_memory_estimate_lacks_is_told_with_how_to_supply_it(project: Path) -> None:
    (project / "train.sh").write_text(TRAIN.replace("Qwen/Qwen2.5-7B-Instruct", "models/ours"))
    assert main([str(project), "--quiet"]) == 0
    text = (out_of(project) / MAIN).read_text(encoding="utf-8")
    assert "无法估算本次运行的显存：模型规模未知" in text


def test_an_unreadable_launch_command_is_no_crash(project: Path) -> None:
    assert main([str(project), "--quiet", "--launch-command", "swift sft 'unclosed $( ("]) == 0


def test_what_stood_there_stays_when_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old")
    (tmp_path / "b.md").mkdir()
    with pytest.raises(OutputError, match=r"b\.md"):
        write_all(tmp_path, {"a.md": "new", "b.md": "new"}, ())
    assert (tmp_path / "a.md").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.md", "b.md"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_wrong_usage(project: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    assert main([str(project), "--output-dir", str(locked / "out")]) == 2


def test_html_is_one_self_contained_page_with_charts(project: Path) -> None:
    main([str(project), "--quiet"])
    page = (out_of(project) / HTML).read_text(encoding="utf-8")
    assert page.count("<svg") == 2
    assert not re.search(r"""(?:src|href)=["'](?!#)(?!https?://[^"']*["'] ?>?)""", page)
    assert "<script" not in page
    assert "<link" not in page


def test_markup_in_the_project_is_shown_not_interpreted(tmp_path: Path) -> None:
    root = tmp_path / "odd"
    root.mkdir()
    (root / "train.sh").write_text(
        "swift sft --model 'a|b<script>alert(1)</script>`x`' --dataset d --tuner_type lora\n"
    )
    assert main([str(root), "--quiet"]) == 0
    page = (out_of(root) / HTML).read_text(encoding="utf-8")
    assert "<script" not in page
    rows = [
        line
        for line in (out_of(root) / MAIN).read_text(encoding="utf-8").split("\n")
        if line.startswith("| 启动命令")
    ]
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 3


def test_sarif_is_written_when_asked_for(project: Path) -> None:
    assert main([str(project), "--quiet", "--sarif"]) == 0
    log = json.loads((out_of(project) / "static-analysis-report.sarif").read_text())
    assert log["version"] == "2.1.0"
    assert log["runs"][0]["results"]


@pytest.mark.parametrize("launch", ["python train.py", "bash run.sh"])
def test_a_program_that_does_not_compile_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], launch: str
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("import torch\nloss.backward(\nx = = 1\n")
    (project / "run.sh").write_text("python train.py --lr 1\n")
    output = tmp_path / "out"
    command = [str(project), "--launch-command", launch, "--lang", "en"]
    assert main([*command, "--output-dir", str(output)]) == 0
    told = capsys.readouterr()
    assert "train.py:" in told.err
    assert "does not compile (train.py:" in told.out
    text = (output / "static-analysis-report.md").read_text(encoding="utf-8")
    assert "> ⚠️ Fix first: the program of the launch command does not compile: `train.py:" in text
    (project / "train.py").write_text("print('no training')\n")
    main([*command, "--output-dir", str(output)])
    assert "does not compile" not in capsys.readouterr().out


def test_a_program_that_is_not_there_is_no_program_that_does_not_compile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "run.sh").write_text("python prepare.py\nbash scripts/made.sh\npython made.py\n")
    (project / "prepare.py").write_text("print('writes made.py')\n")
    command = [str(project), "--launch-command", "bash run.sh", "--lang", "en"]
    assert main([*command, "--output-dir", str(tmp_path / "out")]) == 0
    told = capsys.readouterr()
    assert "not in the project (made.py" in told.out
    assert "does not compile" not in told.out
    text = (tmp_path / "out" / "static-analysis-report.md").read_text(encoding="utf-8")
    assert "is not in the project, so it cannot be audited: `made.py" in text
    assert "does not compile" not in text


WRAPPER = """\
import subprocess
import tempfile

import torch
import yaml


def configure(model):
    config = {"model_name_or_path": model, "stage": "sft", "finetuning_type": "lora"}
    with tempfile.NamedTemporaryFile(mode="w", suffix=".yaml", delete=False) as file:
        yaml.dump(config, file)
        return file.name


for model in ("a", "b"):
    name = configure(model)
    subprocess.run(["bash", "-c", f"llamafactory-cli train {name}"], check=True)
"""


def test_items_of_a_run_whose_settings_a_program_writes_are_unknown(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "scripts").mkdir(parents=True)
    (project / "examples").mkdir()
    recipe = (
        "stage: sft\nmodel_name_or_path: a\ntemplate: qwen\ndataset: b\nfinetuning_type: lora\n"
    )
    (project / "examples" / "a.yaml").write_text(recipe)
    (project / "examples" / "a.sh").write_text("llamafactory-cli train examples/a.yaml\n")
    (project / "scripts" / "train_many.py").write_text(WRAPPER)
    output = tmp_path / "out"
    for command, is_known in (
        ("python scripts/train_many.py", False),
        ("llamafactory-cli train examples/a.yaml", True),
    ):
        given = [str(project), "--launch-command", command, "--lang", "en", "--quiet"]
        assert main([*given, "--output-dir", str(output)]) == 0
        report = json.loads((output / "static-analysis-report.json").read_text())
        (audit,) = (a for a in report["audits"] if a["id"] == "llamafactory")
        items = {item["id"]: item for c in audit["categories"] for item in c["items"]}
        statuses = {items[name]["status"] for name in ("fused-adam", "dora", "pissa")}
        assert ("not_applicable" in statuses) is False
        assert (statuses == {"unknown"}) is not is_known
        text = (output / "v0_llamafactory-optimization-report.md").read_text(encoding="utf-8")
        assert "not a LlamaFactory run" not in text
        assert "ms-swift run" not in text


def test_the_launched_script_chooses_the_audit(tmp_path: Path) -> None:
    (tmp_path / "stage1.sh").write_text("llamafactory-cli train sft.yaml\n", encoding="utf-8")
    (tmp_path / "sft.yaml").write_text(
        "stage: sft\ndo_train: true\nmodel_name_or_path: Qwen/Qwen2.5-7B-Instruct\n"
        "finetuning_type: lora\ndataset: d\ntemplate: qwen\noutput_dir: o\n",
        encoding="utf-8",
    )
    (tmp_path / "train.py").write_text(
        "from trl import SFTConfig, SFTTrainer\n\n"
        'SFTTrainer("Qwen/Qwen3-0.6B", args=SFTConfig("o"), train_dataset=d).train()\n',
        encoding="utf-8",
    )
    out = ["--quiet", "--output-dir", str(tmp_path / "out")]
    for launch, framework in (
        ("python train.py", "transformers"),
        ("llamafactory-cli train sft.yaml", "llamafactory"),
    ):
        assert main([str(tmp_path), "--launch-command", launch, *out]) == 0
        data = read_json(tmp_path / "out")
        assert [audit["id"] for audit in data["audits"]] == ["general", framework]


LISTS = {
    "hf": {
        "train.py": "from transformers import AutoModelForCausalLM, Trainer, TrainingArguments\n\n"
        'm = AutoModelForCausalLM.from_pretrained("Qwen/Qwen2.5-7B", attn_implementation=["fa"])\n'
        'args = TrainingArguments("out", optim=["adamw_torch"], lr_scheduler_type=["cosine"])\n'
        "Trainer(model=m, args=args).train()\n"
    },
    "llamafactory": {
        "lora.yaml": "stage: [sft]\ndo_train: true\nmodel_name_or_path: Qwen/Qwen2.5-7B-Instruct\n"
        "finetuning_type: [lora]\ndataset: [d]\ntemplate: [qwen]\nflash_attn: [fa2]\n"
        "optim: [adamw_torch]\nper_device_train_batch_size: [1]\ncutoff_len: [2048]\n"
        "output_dir: o\n",
        "train.sh": "llamafactory-cli train lora.yaml\n",
    },
    "swift": {
        "c.yaml": "model: Qwen/Qwen2.5-7B-Instruct\nrlhf_type: [grpo]\nattn_impl: [sdpa]\n"
        "tuner_type: [lora]\ntorch_dtype: [bfloat16]\ndeepspeed: [zero2]\n",
        "train.sh": "swift rlhf c.yaml --dataset a\n",
    },
    "flow": {
        "c.yaml": "model:\n  model_name_or_path: black-forest-labs/FLUX.1-dev\n"
        "  model_type: [flux1]\n  finetune_type: [lora]\ntrain:\n  trainer_type: [grpo]\n",
        "train.sh": "ff-train c.yaml\n",
    },
}


@pytest.mark.parametrize("name", sorted(LISTS))
def test_lists_in_place_of_names_end_in_a_report(tmp_path: Path, name: str) -> None:
    for path, text in LISTS[name].items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert main([str(tmp_path), "--quiet", "--output-dir", str(tmp_path / "out")]) == 0
    assert read_json(tmp_path / "out")["runs"]
