"""Patches that ``patch -p1`` and ``git apply`` take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from flake8_gpu_training.checks.base import Change, Edit
from flake8_gpu_training.facts import Location
from flake8_gpu_training.patches import unified_diff


def edit(path: str, line: int, column: int, old: str, new: str) -> Edit:
    return Edit(Location(path, line, column), old, new)


def change(*edits: Edit) -> Change:
    return Change("text", "", edits)


def applied(root: Path, diff: str) -> None:
    assert diff
    (root / "change.patch").write_bytes(diff.encode())
    subprocess.run(["git", "apply", "-p1", "change.patch"], cwd=root, check=True)


def test_edits_of_several_changes_in_one_file_apply(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text("swift sft \\\n    --model a \\\n    --max_length 2048\n")
    diff = unified_diff(
        tmp_path,
        [
            change(edit("train.sh", 3, 22, "", " \\\n    --attn_impl flash_attn")),
            change(edit("train.sh", 2, 13, "a", "b")),
        ],
    )
    applied(tmp_path, diff)
    assert script.read_text() == (
        "swift sft \\\n    --model b \\\n    --max_length 2048 \\\n    --attn_impl flash_attn\n"
    )


@pytest.mark.parametrize(
    "text", ["x: 1\ny: 2", "x: 1\r\ny: 2\r\n", "x: 1\ny: 2\n\n\n", "名: 1\ny: 2\n"]
)
def test_line_ends_and_a_missing_last_one_are_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "folder" / "run.yaml"
    path.parent.mkdir()
    path.write_bytes(text.encode())
    applied(tmp_path, unified_diff(tmp_path, [change(edit("folder/run.yaml", 2, 4, "2", "3"))]))
    assert path.read_bytes() == text.replace("y: 2", "y: 3").encode()


def test_added_lines_take_the_line_ends_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_bytes(b"x: 1\r\ny: 2\r\n")
    applied(tmp_path, unified_diff(tmp_path, [change(edit("run.yaml", 2, 1, "", "a: 1\n"))]))
    assert path.read_bytes() == b"x: 1\r\na: 1\r\ny: 2\r\n"


def test_an_overlapping_change_is_left_out_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("x: 1\ny: 2\n")
    diff = unified_diff(
        tmp_path,
        [
            change(edit("run.yaml", 1, 4, "1", "5")),
            change(edit("run.yaml", 1, 4, "1", "6"), edit("run.yaml", 2, 4, "2", "7")),
        ],
    )
    applied(tmp_path, diff)
    assert path.read_text() == "x: 5\ny: 2\n"


def test_a_setting_is_inserted_once_and_the_first_value_stands(tmp_path: Path) -> None:
    path = tmp_path / "train.sh"
    path.write_text("swift sft --model a\n")
    diff = unified_diff(
        tmp_path,
        [
            change(edit("train.sh", 1, 20, "", " \\\n    --attn_impl flash_attn")),
            change(edit("train.sh", 1, 20, "", " \\\n    --packing true \\\n    --attn_impl sdpa")),
        ],
    )
    applied(tmp_path, diff)
    assert path.read_text() == (
        "swift sft --model a \\\n    --attn_impl flash_attn \\\n    --packing true\n"
    )


def test_a_change_whose_settings_are_all_there_adds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("x: 1\n")
    one = change(edit("run.yaml", 1, 1, "", "bf16: true\n"))
    assert unified_diff(tmp_path, [one, one]) == unified_diff(tmp_path, [one])


@pytest.mark.parametrize(
    "wrong",
    [
        edit("run.yaml", 1, 4, "9", "5"),
        edit("run.yaml", 9, 1, "", "a: 1\n"),
        edit("run.yaml", 1, 99, "", "a"),
        edit("absent.yaml", 1, 1, "", "a"),
        edit("../outside.yaml", 1, 1, "", "a"),
        edit("book.ipynb", 1, 1, "", "a"),
        edit("binary.yaml", 1, 1, "", "a"),
    ],
)
def test_what_does_not_match_the_files_gives_no_patch(tmp_path: Path, wrong: Edit) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "run.yaml").write_text("x: 1\n")
    (root / "book.ipynb").write_text("{}")
    (root / "binary.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "outside.yaml").write_text("x: 1\n")
    assert unified_diff(root, [change(wrong)]) == ""


def test_files_come_in_order_of_their_paths(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yaml"):
        (tmp_path / name).write_text("x: 1\n")
    changes = [change(edit(name, 1, 4, "1", "2")) for name in ("b.yaml", "a.yaml")]
    diff = unified_diff(tmp_path, changes)
    assert diff.index("a/a.yaml") < diff.index("a/b.yaml")
    assert diff == unified_diff(tmp_path, reversed(changes))


def test_a_replacement_that_two_changes_ask_for_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text("attn: sdpa\ny: 2\n")
    replaced = edit("run.yaml", 1, 7, "sdpa", "flash")
    diff = unified_diff(
        tmp_path,
        [change(replaced), change(replaced, edit("run.yaml", 2, 1, "", "packing: true\n"))],
    )
    applied(tmp_path, diff)
    assert path.read_text() == "attn: flash\npacking: true\ny: 2\n"


def test_a_nested_key_is_not_written_at_the_top_of_a_yaml_file(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("data:\n  size: 1\n")
    assert unified_diff(tmp_path, [change(edit("run.yaml", 1, 1, "", "data.workers: 4\n"))]) == ""
    assert unified_diff(tmp_path, [change(edit("run.yaml", 1, 1, "", "workers: 4\n"))])


def test_a_name_with_blanks_is_found_by_patch(tmp_path: Path) -> None:
    (tmp_path / "my run.yaml").write_text("x: 1\n")
    diff = unified_diff(tmp_path, [change(edit("my run.yaml", 1, 4, "1", "2"))])
    applied(tmp_path, diff)
    assert (tmp_path / "my run.yaml").read_text() == "x: 2\n"
    assert diff.startswith("--- a/my run.yaml\t\n")


@pytest.mark.parametrize(
    ("text", "place", "left"),
    [
        ("run \\\n    --slow \\\n    --lr 1\n", (2, 5), "run \\\n    --lr 1\n"),
        ("run \\\n    --lr 1 \\\n    --slow\n", (3, 5), "run \\\n    --lr 1\n"),
        ("run --lr 1 --slow \\\n    --b 2\n", (1, 12), "run --lr 1 \\\n    --b 2\n"),
        ("run --slow --lr 1\n", (1, 5), "run --lr 1\n"),
        ("run \\\n    --slow --lr 1\n", (2, 5), "run \\\n    --lr 1\n"),
    ],
)
def test_a_flag_is_dropped_with_the_line_that_it_is_alone_on(
    tmp_path: Path, text: str, place: tuple[int, int], left: str
) -> None:
    script = tmp_path / "run.sh"
    script.write_text(text)
    applied(tmp_path, unified_diff(tmp_path, [change(edit("run.sh", *place, "--slow", ""))]))
    assert script.read_text() == left


@pytest.mark.parametrize(("quote", "joined"), [("'", True), ('"', False)])
def test_a_command_in_single_quotes_stays_on_its_line(
    tmp_path: Path, quote: str, joined: bool
) -> None:
    (tmp_path / "a.sh").write_text(f"CMD={quote}swift sft --model a{quote}\neval $CMD\n")
    place = Location("a.sh", 1, 6 + len("swift sft --model a"))
    change = Change("bash", "", (Edit(place, "", " \\\n    --b 1 \\\n    --c 2"),))
    diff = unified_diff(tmp_path, [change])
    assert ("+CMD='swift sft --model a --b 1 --c 2'\n" in diff) is joined
    assert (" \\\n+    --b 1 \\\n" in diff) is not joined
