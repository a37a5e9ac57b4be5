"""A command that is cut short is judged by what it says both as it stands and as it is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from checks_support import check_of, findings, runs_of

from flake8_gpu_training.checks.base import Judgement, Status
from flake8_gpu_training.runs.model import Run
from flake8_gpu_training.sources.shell import read_shell
from flake8_gpu_training.verdicts import judge

HEAD = (
    "llamafactory-cli train --stage sft --do_train true \\\n"
    "    --model_name_or_path Qwen/Qwen2.5-7B-Instruct{cut}"
)
MEANT = "    --finetuning_type lora --output_dir saves \\\n    --dataset alpaca_en --bf16 true\n"
CUTS = (
    " \\\n    #--cutoff_len 2048 \\\n",  # a comment
    " \\ \n",  # a blank behind the backslash
    " \\\n\n",  # an empty line
    "\n",  # no backslash
)


def cut(root: Path, between: str, meant: str = MEANT) -> Run:
    (run,) = runs_of(root, {"train.sh": HEAD.format(cut=between) + meant})
    return run


def judged(run: Run, code: str) -> Judgement:
    (verdict,) = judge(run, [check_of(code)])
    return verdict.judgement


@pytest.mark.parametrize("between", CUTS)
def test_what_both_readings_have_alike_is_known(tmp_path: Path, between: str) -> None:
    run = cut(tmp_path, between)
    assert run.meant is not None
    assert run.value("tuning") == "lora"  # the default, and what is meant
    assert judged(run, "GPU604").status is Status.ENABLED
    assert judged(run, "GPU203").status is Status.ENABLED  # on by default in both
    assert judged(run, "GPU625").status is Status.DISABLED
    assert judged(run, "GPU501").status is Status.RECOMMENDED  # neither has workers
    assert findings((run,), "GPU003")


@pytest.mark.parametrize("between", CUTS)
def test_what_the_lost_flags_decide_is_not_known(tmp_path: Path, between: str) -> None:
    run = cut(tmp_path, between, MEANT.rstrip() + " \\\n    --dataloader_num_workers 4\n")
    assert not run.practice("precision").known
    for code in ("GPU201", "GPU501"):
        judgement = judged(run, code)
        assert judgement.status is Status.UNKNOWN
        assert judgement.current.en.startswith("the command is cut short")
        assert not judgement.findings


def test_several_cuts_lose_all_that_follows(tmp_path: Path) -> None:
    more = "    --bf16 true \\\n    #--seed 1 \\\n    --use_dora true \\\n"
    run = cut(tmp_path, CUTS[0], more)
    assert run.meant is not None
    assert run.meant.settings["use_dora"].value is True
    assert judged(run, "GPU608").status is Status.UNKNOWN


@pytest.mark.parametrize(
    "follows",
    [
        "\nls \\\n    --all\n",  # a command of its own
        " > log.txt\n--bf16 true\n",  # behind a redirection nothing goes on
        "\ncat <<'END'\n--bf16 true\nEND\n",  # text
        ' \\\n    --output_dir "saves \\ \n"\n',
    ],
)
def test_a_whole_command_has_one_reading(tmp_path: Path, follows: str) -> None:
    run = cut(tmp_path, follows, "")
    assert run.meant is None


def test_a_sourced_scripts_command_loses_the_same(tmp_path: Path) -> None:
    script = HEAD.format(cut=CUTS[0]) + MEANT
    runs = runs_of(tmp_path, {"main.sh": "bash train.sh\n", "train.sh": script})
    assert all(run.meant is not None for run in runs)


def test_a_cut_in_a_pipeline_is_rejoined() -> None:
    text = HEAD.format(cut=CUTS[0]) + "    --bf16 true 2>&1 | tee log\n"
    command = read_shell(text, "train.sh").commands[0]
    assert [word.text for word in command.lost] == ["--bf16", "true"]
