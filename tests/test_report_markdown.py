"""The Markdown reports: the agreed headings and columns, the same in both languages."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from report_builder.cli import main
from report_builder.marks import cell, code, fence, number, percent

FIXTURES = Path(__file__).parent.parent / "fixtures"
MAIN = "static-analysis-report.md"
GENERAL = "v0_training-acceleration-audit-report.md"
SWIFT = "v0_swift-optimization-report.md"
HEADINGS = (
    "# GPU 训练项目静态分析 — 优化建议报告",
    "## 项目概览",
    "## 审计评分总结",
    "### 通用训练加速审计（9 大类）",
    "### ms-swift 专项审计（10 大类）",
    "## 优化建议（按优先级排序）",
    "### 🔴 高优先级（预估提升 > 30%）",
    "### 🟡 中优先级（预估提升 10-30%）",
    "### 🟢 低优先级（预估提升 < 10%）",
    "## 推荐配置模板",
    "## Flash Attention 配置建议",
    "## DeepSpeed / 分布式配置建议",
    "## 所有报告索引",
)
OVERVIEW = (
    "项目路径",
    "启动命令",
    "检测到的训练框架",
    "模型类型",
    "模型规模",
    "优化目标",
    "分析时间",
)
CATEGORIES = (
    ("A", "并行策略", "7"),
    ("B", "训练框架", "6"),
    ("C", "显存优化", "5"),
    ("D", "计算优化", "6"),
    ("E", "通信优化", "4"),
    ("F", "数据与 I/O 优化", "10"),
    ("G", "训练策略", "6"),
    ("H", "多模态专项", "N/A"),
    ("I", "基础设施", "5"),
)
SWIFT_HEADINGS = (
    "# ms-swift 训练优化审计报告",
    "## 基本信息",
    "## 审计结果总览",
    "## 优先优化建议（按影响排序）",
    "### P0 — 立即执行（显著收益，零风险）",
    "### P1 — 强烈推荐（明显收益，低风险）",
    "### P2 — 建议尝试（中等收益，需测试）",
    "## 推荐配置修改",
    "## 常见优化决策树",
    "## 显存估算参考",
)


def reports(tmp: Path, name: str, lang: str, *arguments: str) -> dict[str, str]:
    root = tmp / f"{name}_{lang}"
    shutil.copytree(FIXTURES / name, root)
    out = tmp / f"out_{name}_{lang}"
    assert main([str(root), "--quiet", "--lang", lang, "--output-dir", str(out), *arguments]) == 0
    return {path.name: path.read_text(encoding="utf-8") for path in out.glob("*.md")}


@pytest.fixture(scope="module")
def zh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return reports(tmp_path_factory.mktemp("zh"), "swift_lora_sft", "zh")


@pytest.fixture(scope="module")
def en(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return reports(tmp_path_factory.mktemp("en"), "swift_lora_sft", "en")


def in_order(text: str, lines: tuple[str, ...]) -> bool:
    found = text.split("\n")
    places = [found.index(line) for line in lines]
    return places == sorted(places)


def prose(text: str) -> str:
    """The report without code blocks and inline code."""
    text = re.sub(r"^(`{3,}).*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "", text)


def test_main_report_has_the_agreed_headings_in_order(zh: dict[str, str]) -> None:
    assert in_order(zh[MAIN], HEADINGS)


def test_overview_has_the_agreed_rows(zh: dict[str, str]) -> None:
    section = zh[MAIN].split("## 审计评分总结")[0]
    rows = [line.split("|")[1].strip() for line in section.split("\n") if line.startswith("|")]
    assert [row for row in rows if row in OVERVIEW] == list(OVERVIEW)


def test_score_table_has_the_agreed_columns_and_rows(zh: dict[str, str]) -> None:
    section = zh[MAIN].split("### 通用训练加速审计（9 大类）")[1].split("###")[0]
    rows = [
        [part.strip() for part in line.split("|")[1:-1]]
        for line in section.split("\n")
        if line.startswith("|")
    ]
    assert rows[0] == ["#", "类别", "得分", "满分", "关键发现"]
    assert [(row[0], row[1], row[3]) for row in rows[2:11]] == list(CATEGORIES)
    assert rows[11][1] == "**总分**"
    assert rows[11][3] == "**49**"


def test_every_recommendation_has_its_five_parts_and_a_code_block(zh: dict[str, str]) -> None:
    section = zh[MAIN].split("## 优化建议（按优先级排序）")[1].split("\n## ")[0]
    entries = section.split("\n#### ")[1:]
    assert entries
    for position, entry in enumerate(entries, 1):
        assert entry.startswith(f"{position}. ")
        for part in ("当前状态", "推荐操作", "预估影响", "实施难度", "具体变更"):
            assert f"- **{part}**" in entry
        assert re.search(r"\n```\w+\n.+?\n```", entry, re.DOTALL)


def test_at_least_two_complete_scenarios_are_shown(zh: dict[str, str]) -> None:
    section = zh[MAIN].split("## 推荐配置模板")[1].split("\n## ")[0]
    scenarios = section.split("\n### 场景 ")[1:]
    assert len(scenarios) >= 2
    assert all("```yaml" in text and "启动：" in text for text in scenarios)
    assert "$" not in section


def test_advice_sections_name_version_installation_and_stage(zh: dict[str, str]) -> None:
    flash = zh[MAIN].split("## Flash Attention 配置建议")[1].split("\n## ")[0]
    assert all(f"- **{part}**" in flash for part in ("推荐版本", "安装方式", "集成方式"))
    distributed = zh[MAIN].split("## DeepSpeed / 分布式配置建议")[1].split("\n## ")[0]
    parts = ("推荐 ZeRO Stage", "是否需要 Offload", "推荐配置")
    assert all(f"- **{part}**" in distributed for part in parts)
    assert '"zero_optimization"' in distributed


def test_what_is_not_known_of_the_hardware_is_said(tmp_path: Path) -> None:
    texts = reports(tmp_path, "swift_lora_sft", "zh")
    known = reports(tmp_path / "known", "swift_lora_sft", "zh", "--gpu", "A100-80G")
    assert "需根据实际硬件调整" in texts[MAIN] or "GiB 显存放" in texts[MAIN]
    assert "A100-80G" in known[MAIN]


def test_index_lists_exactly_the_files_written(zh: dict[str, str]) -> None:
    section = zh[MAIN].split("## 所有报告索引")[1]
    listed = {name for name in re.findall(r"\| ([\w.-]+\.md) \|", section) if name.endswith(".md")}
    assert listed == set(zh)


def test_swift_report_has_the_agreed_headings(zh: dict[str, str]) -> None:
    assert in_order(zh[SWIFT], SWIFT_HEADINGS)
    assert "| 类别 | 得分 | 已启用 | 建议启用 |" in zh[SWIFT]
    assert re.search(r"\| A\. PEFT \| [\d.]+/12 \|", zh[SWIFT])
    assert re.search(r"\| \*\*总计\*\* \| \*\*[\d.]+/\d+\*\* \|", zh[SWIFT])
    for fact in ("模型：", "训练模式：", "微调方式：", "硬件：", "序列长度："):
        assert f"- {fact}" in zh[SWIFT]


def test_swift_decision_tree_marks_the_runs_branch(zh: dict[str, str]) -> None:
    tree = zh[SWIFT].split("## 常见优化决策树")[1].split("\n## ")[0]
    assert "否（已用 LoRA） ◀" in tree
    assert "是 → 切换为 LoRA（--tuner_type lora） ◀" not in tree


def test_general_report_lists_every_item_with_state_evidence_and_advice(zh: dict[str, str]) -> None:
    text = zh[GENERAL]
    for letter, title, _ in CATEGORIES:
        assert f"\n## {letter}. {title}（" in text
    assert text.count("| 检查项 | 状态 | 得分 | 证据 | 建议 |") == 9
    assert "## 瓶颈判断" in text


def test_diagnostics_are_told_in_the_language_of_the_report(
    zh: dict[str, str], en: dict[str, str]
) -> None:
    def messages(text: str, heading: str) -> list[str]:
        table = text.split(f"## {heading}\n")[1].split("\n## ")[0]
        return [line.split(" | ")[-1] for line in table.split("\n") if "| GPU" in line]

    chinese = messages(zh[GENERAL], "本次运行的诊断")
    english = messages(en[GENERAL], "Diagnostics of this run")
    assert len(chinese) == len(english) > 0
    assert all(re.search(r"[\u4e00-\u9fff]", message) for message in chinese)
    assert not any(re.search(r"[\u4e00-\u9fff]", message) for message in english)


def test_both_languages_have_the_same_structure(zh: dict[str, str], en: dict[str, str]) -> None:
    def structure(text: str) -> list[str]:
        lines = [line for line in text.split("\n") if re.match(r"#+ |\||- \*\*|```", line)]
        # A sentence that stands in place of what one language quotes has no code marks.
        return [re.sub(r"[^#|]", "", line) or line[:3] for line in lines]

    assert set(zh) == set(en)
    for name, text in zh.items():
        assert structure(text) == structure(en[name]), name


def test_english_reports_have_no_chinese(en: dict[str, str]) -> None:
    for name, text in en.items():
        assert not re.search(r"[\u4e00-\u9fff（）：；，。、]", prose(text)), name


def test_chinese_reports_have_no_english_sentences(zh: dict[str, str]) -> None:
    for name in (MAIN, SWIFT):
        for line in prose(zh[name]).split("\n"):
            spoken = re.sub(r"（来源：.*?）|https?://\S+", "", line)
            words = re.findall(r"(?<![\w./-])[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}", spoken)
            assert not words, (name, line)


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
@pytest.mark.parametrize("lang", ["zh", "en"])
def test_every_fixture_gets_well_formed_reports(tmp_path: Path, name: str, lang: str) -> None:
    for file, text in reports(tmp_path, name, lang).items():
        assert prose(text).count("\n# ") == 0
        assert text.startswith("# ")
        assert text.endswith("\n")
        assert not re.search(r"Unknown\(|None\b|\{\w+\}|<flake8|Undefined", prose(text)), file
        tables = re.findall(r"(?:^\|.*\n)+", prose(text), re.MULTILINE)
        for table in tables:
            counts = {
                len(re.findall(r"(?<!\\)\|", line)) for line in table.rstrip("\n").split("\n")
            }
            assert len(counts) == 1, (file, table[:200])


def test_text_in_cells_cannot_break_a_table() -> None:
    assert cell("a | b\nc <d>") == "a \\| b c &lt;d>"
    assert code("a | b") == "`a \\| b`"
    assert code("say `x`") == "`` say `x` ``"
    assert code("") == ""


def test_a_fence_is_longer_than_any_inside() -> None:
    assert fence("a\n```\nb", "text") == "````text\na\n```\nb\n````"


def test_numbers_are_short() -> None:
    assert [number(value) for value in (3.0, 2.5, 0.25, 10.0)] == ["3", "2.5", "0.25", "10"]
    assert [percent(share) for share in (None, 0.624, 1.0)] == ["—", "62%", "100%"]


def test_what_the_run_does_not_reach_is_named_and_not_counted(tmp_path: Path) -> None:
    root = tmp_path / "p"
    shutil.copytree(FIXTURES / "plain_ddp_vision", root)
    (root / "old_train.py").write_text(
        "import torch\nfrom vision.data import loader\nmodel = torch.compile(net)\n"
    )
    out = tmp_path / "out"
    assert main([str(root), "--quiet", "--lang", "en", "--output-dir", str(out)]) == 0
    general = (out / GENERAL).read_text(encoding="utf-8")
    (row,) = [line for line in general.split("\n") if line.startswith("| torch.compile |")]
    assert "| recommended | 0/1 |" in row
    assert "elsewhere: `old_train.py:3`, not reached, not counted" in row


@pytest.mark.parametrize("bits", ["", "quantization_bit: 4\n"])
def test_every_report_of_a_run_that_cannot_start_opens_with_why(tmp_path: Path, bits: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "sft.yaml").write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ndo_train: true\ndataset: alpaca_en_demo\n"
        f"template: qwen\noutput_dir: out\nfinetuning_type: full\n{bits}"
    )
    output = tmp_path / "out"
    launch = ["--launch-command", "llamafactory-cli train sft.yaml", "--lang", "en", "--quiet"]
    main([str(project), *launch, "--output-dir", str(output)])
    for name in (MAIN, GENERAL, "v0_llamafactory-optimization-report.md"):
        text = (output / name).read_text(encoding="utf-8")
        assert ("Fix first" in text) is bool(bits), name


_OLD_NAMES = """\
swift sft \\
    --model Qwen/Qwen2.5-7B-Instruct \\
    --train_type lora \\
    --dataset data/train.jsonl \\
    --lora_dropout_p 0.05 \\
    --output_dir out
"""


def test_what_several_places_need_is_told_of_each(tmp_path: Path) -> None:
    (tmp_path / "train.sh").write_text(_OLD_NAMES, encoding="utf-8")
    main([str(tmp_path), "--quiet", "--lang", "en", "--output-dir", str(tmp_path / "out")])
    text = (tmp_path / "out" / "static-analysis-report.md").read_text(encoding="utf-8")
    assert (
        "write --tuner_type instead of --train_type; "
        "write --lora_dropout instead of --lora_dropout_p; or pin ms-swift<" in text
    )
    assert "(`train.sh:3`, `:5`)" in text
    assert "+    --lora_dropout 0.05 \\" in text
    assert "no release is pinned: with the newest that installs here the run fails at start" in text


def test_other_runs_of_which_the_same_is_said_share_a_row(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d", "e"):
        text = _OLD_NAMES.replace("out\n", f"out/{name}\n")
        (tmp_path / f"{name}.sh").write_text(f"NPROC_PER_NODE=2 {text}", encoding="utf-8")
    main([str(tmp_path), "--quiet", "--lang", "zh", "--output-dir", str(tmp_path / "out")])
    text = (tmp_path / "out" / "static-analysis-report.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| `") and "训练 |" in line]
    assert " 等 4 个 | 训练 | ms-swift | " in row
    assert "GPU007 参数在该版本中已改名或删除 ×2、" in row


def test_a_launch_command_in_full_has_what_sets_its_processes(tmp_path: Path) -> None:
    text = _OLD_NAMES.replace("out\n", f"out/{'x' * 200}\n")
    (tmp_path / "a.sh").write_text(f"A=1 NPROC_PER_NODE=2 {text}", encoding="utf-8")
    main([str(tmp_path), "--quiet", "--lang", "en", "--output-dir", str(tmp_path / "out")])
    text = (tmp_path / "out" / "static-analysis-report.md").read_text(encoding="utf-8")
    assert "```bash\nNPROC_PER_NODE=2 \\\nswift sft \\\n" in text


def test_a_script_in_a_launch_command_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    flags = " ".join(f"--flag_{n} {n}" for n in range(30))
    command = f"accelerate launch --mixed_precision=bf16 scripts/train.py {flags} --hook=a/b.py"
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/train.py").write_text("import torch\n", encoding="utf-8")
    given = ["--quiet", "--launch-command", command, "--output-dir", str(tmp_path / "out")]
    main([str(tmp_path), *given])
    text = (tmp_path / "out" / "static-analysis-report.md").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    start = lines.index("accelerate launch \\")
    assert lines[start + 1 : start + 3] == ["--mixed_precision=bf16 \\", "scripts/train.py \\"]
    assert "--hook=a/b.py" in lines


def test_an_engine_that_no_run_starts_is_said_in_a_sentence(tmp_path: Path) -> None:
    root = tmp_path / "swift_lora_sft"
    shutil.copytree(FIXTURES / "swift_lora_sft", root)
    (root / "chat.py").write_text("import sglang\n", encoding="utf-8")
    assert main([str(root), "--quiet", "--lang", "en", "--output-dir", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / MAIN).read_text(encoding="utf-8")
    audit = (tmp_path / "out" / "v0_sglang-optimization-report.md").read_text(encoding="utf-8")
    told = "The project names SGLang (`chat.py:1`), but no run is seen to start it"
    for document in (text, audit):
        assert told in document
    section = text.split("SGLang inference optimization audit (10 categories)")[1]
    assert "| A |" not in section.split("## Recommendations")[0]
    assert "Qwen2.5-7B" not in audit.split("## Overview")[0]


def test_an_optimizer_that_is_not_known_is_said_to_be_counted_as_adam(tmp_path: Path) -> None:
    root = tmp_path / "swift_lora_sft"
    shutil.copytree(FIXTURES / "swift_lora_sft", root)
    script = root / "train.sh"
    flag = '--optim "$1"'
    text = script.read_text(encoding="utf-8").replace("swift sft", f"swift sft {flag}")
    script.write_text(text.replace("    --deepspeed configs/ds_z3_offload.json \\\n", ""))
    assert main([str(root), "--quiet", "--lang", "en", "--output-dir", str(tmp_path / "out")]) == 0
    written = (tmp_path / "out" / MAIN).read_text(encoding="utf-8")
    assert "the states of Adam are counted" in written
