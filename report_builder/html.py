"""The HTML report: one self-contained page made of the Markdown documents, with charts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from markdown_it import MarkdownIt

from report_builder.report import Report
from report_builder.scoring import ScoredAudit, ScoredCategory

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --on: #2e7d32; --mid: #b26a00;
  --off: #c62828; }
body { font: 16px/1.6 system-ui, -apple-system, "Segoe UI", "PingFang SC", "Microsoft YaHei",
  sans-serif; max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1, h2 { border-bottom: 1px solid var(--line); padding-bottom: .3rem; }
section + section { margin-top: 4rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left;
  vertical-align: top; }
th { background: var(--soft); }
code { font: .9em ui-monospace, Menlo, Consolas, monospace; background: var(--soft);
  padding: .1em .3em; border-radius: 3px; }
pre { background: var(--soft); padding: .8rem; overflow-x: auto; border-radius: 6px; }
pre code { background: none; padding: 0; }
nav ul { margin: .2rem 0; padding-left: 1.2rem; }
td:first-child { min-width: 6em; }
figure { margin: 1rem 0; }
figcaption { font-weight: 600; }
figure small { opacity: .75; }
svg text { font: 13px system-ui, "PingFang SC", "Microsoft YaHei", sans-serif; fill: currentColor; }
"""
_ROW, _LABEL, _WIDTH, _NUMBER = 26, 190, 360, 150


def page(report: Report, documents: Mapping[str, str], lang: str) -> str:
    """The whole page: charts, then every document as a section."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    titles = {name: _title(text) for name, text in documents.items()}
    charts = "".join(_chart(audit, lang) for audit in report.audits if audit.applies)
    sections, links = [], []
    for number, (name, text) in enumerate(documents.items()):
        # Evidence cells separate their lines by <br>, the only markup the documents use.
        body = markdown.render(text).replace("&lt;br&gt;", "<br>")
        body, contents = _with_anchors(body, f"d{number}")
        head, rest = _after_heading(body)
        sections.append(
            f'<section id="{escape(name)}">{head}{charts if number == 0 else ""}{rest}</section>'
        )
        links.append(
            f'<li><a href="#{escape(name)}">{escape(titles[name])}</a><ul>{contents}</ul></li>'
        )
    language = "zh-CN" if lang == "zh" else "en"
    title = next(iter(titles.values()))
    return (
        f'<!DOCTYPE html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<nav><ul>{''.join(links)}</ul></nav>\n{''.join(sections)}</body>\n</html>\n"
    )


def _with_anchors(body: str, prefix: str) -> tuple[str, str]:
    """The page with an id on each second-level heading, and links to them."""
    links: list[str] = []

    def anchored(match: re.Match[str]) -> str:
        anchor = f"{prefix}-{len(links) + 1}"
        links.append(f'<li><a href="#{anchor}">{match.group(1)}</a></li>')
        return f'<h2 id="{anchor}">{match.group(1)}</h2>'

    return re.sub(r"<h2>(.*?)</h2>", anchored, body), "".join(links)


def _title(text: str) -> str:
    return text.split("\n", 1)[0].lstrip("# ").strip()


def _after_heading(body: str) -> tuple[str, str]:
    """The page's first heading, and what follows it."""
    head, end, rest = body.partition("</h1>\n")
    return (head + end, rest) if end else ("", body)


def _chart(audit: ScoredAudit, lang: str) -> str:
    """Bars of attainment per category, as inline SVG."""
    rows = "".join(_bar(number, c, lang) for number, c in enumerate(audit.categories))
    height = _ROW * len(audit.categories)
    width = _LABEL + _WIDTH + _NUMBER
    chinese = lang == "zh"
    caption = f"{audit.audit.heading.say(lang)}{'：' if chinese else ': '}"
    caption += (
        f"{audit.score:g}/{audit.maximum} 分（按全部检查项计）"
        if chinese
        else f"{audit.score:g}/{audit.maximum} points over all items"
    )
    if audit.attainment is not None:
        share, reach = f"{audit.attainment:.0%}", round(audit.earned + audit.lost, 1)
        caption += (
            f"；本次运行可得 {reach:g} 分，达成度 {share}；无法静态判断 {audit.unknown} 项"
            if chinese
            else f"; attainment {share} of the {reach:g} that this run can earn; "
            f"{audit.unknown} items undetermined"
        )
    legend = (
        "条形为达成度（已得分 ÷ 本次运行可得分）；右侧为得分/满分，括号内为达成度，两者分母不同"
        if chinese
        else "Bars: attainment (points earned ÷ points this run can earn); right: score/max, and "
        "the attainment in brackets: their denominators differ"
    )
    return (
        f"<figure><figcaption>{escape(caption)}</figcaption>"
        f'<svg role="img" aria-label="{escape(caption)}" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">{rows}</svg><br>'
        f"<small>{escape(legend)}</small></figure>"
    )


def _bar(number: int, category: ScoredCategory, lang: str) -> str:
    top = number * _ROW
    label = f"{category.category.id} {category.category.title.say(lang)}"
    share = category.attainment
    if category.score is None:
        figure = "N/A"
    else:
        figure = f"{category.score:g}/{category.category.maximum}"
        figure += f" ({share:.0%})" if share is not None else " (—)"
    color = "--on" if (share or 0) >= 0.8 else "--mid" if (share or 0) >= 0.4 else "--off"
    bar = ""
    if share is not None:
        bar = (
            f'<rect x="{_LABEL}" y="{top + 5}" width="{share * _WIDTH:.1f}" height="{_ROW - 10}" '
            f'rx="3" style="fill: var({color})"/>'
        )
    return (
        f'<text x="0" y="{top + 17}">{escape(label)}</text>'
        f'<rect x="{_LABEL}" y="{top + 5}" width="{_WIDTH}" height="{_ROW - 10}" rx="3" '
        f'style="fill: var(--soft)"/>{bar}'
        f'<text x="{_LABEL + _WIDTH + 8}" y="{top + 17}">{escape(figure)}</text>'
    )
