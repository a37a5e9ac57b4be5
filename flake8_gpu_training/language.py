"""Text in the two languages the reports are written in."""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """The same statement in Chinese and in English."""

    zh: str
    en: str

    def fill(self, **values: object) -> Text:
        """Both languages with ``{name}`` fields filled."""
        return Text(self.zh.format(**values), self.en.format(**values))

    def say(self, lang: str) -> str:
        """The statement in ``lang`` (``zh`` or ``en``)."""
        return self.zh if lang == "zh" else self.en
