"""Hooks of mkdocs: names of options in a line of text are not broken at their hyphens."""

from __future__ import annotations

import re

OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def on_page_content(html: str, **_: object) -> str:
    """Return the HTML of a page whose options in inline code have the class `option`, which site.css keeps whole."""

    def code(match: re.Match) -> str:
        return "<code>" + OPTION.sub(r'<span class="option">\g<0></span>', match[1]) + "</code>"

    return re.sub(r"(?<!<pre>)<code>([^<\n]*-[^<\n]*)</code>", code, html)
