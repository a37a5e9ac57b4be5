"""noqa comments silence the statement that they stand in."""

from flake8_gpu_training.noqa import is_file_silenced, is_silenced, statement_span


def _silenced(text, line, code, is_python=False):
    lines = text.splitlines(keepends=True)
    return is_silenced(lines, statement_span(lines, line, is_python), code)


def test_a_bare_comment_silences_every_code():
    assert _silenced("lr: 1  # noqa\n", 1, "GPU201")


def test_named_codes_silence_only_themselves():
    assert _silenced("bf16: false  # noqa: GPU201\n", 1, "GPU201")
    assert _silenced("bf16: false  # noqa: E501, GPU2\n", 1, "GPU201")
    assert not _silenced("bf16: false  # noqa: GPU301\n", 1, "GPU201")


def test_the_end_of_a_continued_command_speaks_for_its_start():
    script = "swift sft \\\n  --model x \\\n  --lr 1  # noqa: GPU301\nswift pt\n"
    assert _silenced(script, 1, "GPU301")
    assert not _silenced(script, 4, "GPU301")


def test_any_line_of_a_python_call_speaks_for_it():
    source = "x = 1\nloader = DataLoader(\n    data,\n    batch_size=1,\n)  # noqa: GPU501\ny = 2\n"
    assert _silenced(source, 2, "GPU501", is_python=True)
    assert not _silenced(source, 1, "GPU501", is_python=True)


def test_a_loop_is_not_silenced_by_a_comment_in_its_body():
    source = "for a in b:\n    f(a)  # noqa\n"
    assert not _silenced(source, 1, "GPU350", is_python=True)


def test_broken_python_falls_back_to_the_line():
    assert _silenced("print 'x'  # noqa\n", 1, "GPU001", is_python=True)


def test_a_file_can_opt_out_as_a_whole():
    assert is_file_silenced(["# flake8: noqa\n", "x\n"])
    assert not is_file_silenced(["# flake8: noqa: GPU501\n"])
