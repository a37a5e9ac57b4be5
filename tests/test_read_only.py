"""The report starts no process, opens no socket and writes only into its output directory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

# The hook sees every audited event of the interpreter, of C code too; it cannot be removed.
PROGRAM = """
import os, sys
project, output = sys.argv[1:3]
import report_builder.cli
allowed = (os.path.realpath(output),)
events = []

def hook(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec",
                 "os.posix_spawn", "os.spawn") or event.startswith("socket."):
        events.append(event)
    elif event == "open":
        path, mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if isinstance(path, (str, bytes)) and writes:
            check(path)
    elif event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink",
                   "os.truncate", "os.chmod", "os.utime", "shutil.rmtree", "shutil.move"):
        for path in arguments[:2] if event in ("os.rename", "os.link") else arguments[:1]:
            check(path)

def check(path):
    full = os.path.realpath(os.fsdecode(path))
    if not any(full == root or full.startswith(root + os.sep) for root in allowed):
        events.append(f"writes {full}")

sys.dont_write_bytecode = True
sys.addaudithook(hook)
status = report_builder.cli.main([project, "--output-dir", output, "--quiet"])
print(status, events)
"""


def test_a_report_touches_nothing_but_its_output(tmp_path):
    output = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, "-B", "-c", PROGRAM, str(FIXTURES / "swift_lora_sft"), str(output)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "0 []\n", done.stdout + done.stderr
    assert (output / "static-analysis-report.md").exists()
