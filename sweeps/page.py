"""The report as one HTML file that needs nothing else: its text, its pictures, its interactive plots."""

import base64
import html as escaping
import re
from pathlib import Path

from markdown_it import MarkdownIt

from sweeps.plots import Plot, plots
from sweeps.results import Results

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 72rem; margin: 2rem auto; }
body { padding: 0 1rem; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.2rem; border-bottom: 1px solid #d8dee4; padding-bottom: .2rem; }
.table, .figure { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; white-space: nowrap; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e6eaee; text-align: left; }
th { background: #f4f6f8; }
img { max-width: 100%; image-rendering: pixelated; }
pre { background: #f4f6f8; padding: .6rem; overflow-x: auto; }
"""


def html(markdown: str, results: Results) -> str:
    """The page of one sweep."""
    return page(markdown, plots(results), title=results.folder.name, folder=results.folder.path)


def page(markdown: str, drawn: list[Plot], *, title: str, folder: Path) -> str:
    """Markdown and plots as a page; pictures are looked up in `folder`, and become part of it.

    What Markdown would take for HTML is shown as it stands.
    """
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    body = body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
    body = re.sub(r'<img src="([^"]+)"', lambda found: f'<img src="{_inlined(folder / found[1])}"', body)
    figures = [_figure(plot, first=place == 0) for place, plot in enumerate(drawn)]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f"<title>{escaping.escape(title)}</title><style>{STYLE}</style></head><body>",
            body,
            *figures,
            "</body></html>",
            "",
        ]
    )


def _figure(plot: Plot, *, first: bool) -> str:
    """The first one brings plotly's program along, 4.5 MB, so that no network is needed to look at it."""
    drawn = plot.figure.to_html(full_html=False, include_plotlyjs=first, default_height="480px")
    title, shows = escaping.escape(plot.title), escaping.escape(plot.shows)
    return f'<h2>{title}</h2><p>{shows}</p><div class="figure">{drawn}</div>'


def _inlined(path: Path) -> str:
    return f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}"
