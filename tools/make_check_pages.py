"""Write docs/checks/: one page a check, and an index; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from flake8_gpu_training.checks.registry import all_checks
from flake8_gpu_training.pages import page

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "checks"


def pages() -> dict[str, str]:
    checks = all_checks()
    rows = "\n".join(
        f"| [{c.code}]({c.code}.md) | {c.name} | {c.priority.value} | {c.title.en} |"
        for c in checks
    )
    index = f"# Checks\n\n| code | name | priority | what |\n|---|---|---|---|\n{rows}\n"
    return {"README.md": index, **{f"{check.code}.md": page(check) for check in checks}}


def main() -> int:
    wanted = pages()
    if "--check" in sys.argv[1:]:
        there = {p.name: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.md")}
        if there != wanted:
            print("docs/checks/ is stale: run python tools/make_check_pages.py")
            return 1
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.glob("*.md"):
        old.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
