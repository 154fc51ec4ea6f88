"""Write the manual pages man/*.1 from the commands and from man/*.md; with --check, fail if they are stale.

NAME and prose stand in man/<page>.md. OPTIONS lists all options of the command in the sections of its help: names,
choices and help are those of the program. Text under the heading of an option in man/options.md, or in the page's own
section OPTIONS, takes the place of its help where that is too short; a heading without text stands for the help alone.
Of Markdown there are headings, paragraphs, `code` (bold), *emphasis*, fenced code, definition lists (a term, then a
line that begins with ": "), numbered lists and quotes (indented).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from kcrf_cli import options
from kcrf_cli.main import CONTEXT, main
from kcrf_core import __version__

HERE = Path(__file__).resolve().parent
ESCAPES = {"\\": r"\e", "^": r"\(ha", "~": r"\(ti", "'": r"\(aq", "`": r"\(ga"}
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z0-9-]*")
INLINE = re.compile(r"`([^`]+)`|\*((?:\\.|[^*\\])+)\*|\\(.)|([^`*\\]+)")


def escaped(text: str, literal: bool) -> str:
    """Escape plain text; in `literal` text all hyphens are minus signs, which can be pasted into a shell."""
    out = "".join(ESCAPES.get(letter, letter) for letter in text)
    return out.replace("-", r"\-") if literal else re.sub(r"(?<![a-z])-|-(?![a-z])", r"\\-", out)


def font(name: str, text: str) -> str:
    """Return literal text in another font."""
    return rf"\f{name}{escaped(text, True)}\fR"


def inline(text: str) -> str:
    """Turn one line of Markdown into roff."""
    out = []
    for code, emphasis, single, plain in INLINE.findall(text):
        if code:
            out.append(font("B", code))
        elif emphasis:
            out.append(font("I", re.sub(r"\\(.)", r"\1", emphasis)))
        else:
            out.append(escaped(single or plain, False))
    return re.sub(r"^([.'])", r"\\&\1", "".join(out))


def verbatim(lines: list[str]) -> list[str]:
    """Turn lines of code into roff."""
    return [".EX", *(re.sub(r"^\.", r"\\&.", escaped(line, True)) for line in lines), ".EE"]


def blocks(markdown: str) -> list[list[str]]:
    """Split Markdown into blocks of lines; a block of code is one, with its fences."""
    out: list[list[str]] = [[]]
    fenced = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            fenced = not fenced
            out += [["```"]] if fenced else [[]]
        elif fenced or line.strip():
            out[-1].append(line)
        else:
            out.append([])
    return [block for block in out if block]


def body(markdown: str) -> list[str]:
    """Turn Markdown into roff."""
    out: list[str] = []
    for block in blocks(markdown):
        first = block[0]
        if first == "```":
            out += [".PP", *verbatim(block[1:])]
        elif first.startswith("### "):
            out.append(f'.SS "{inline(first[4:])}"')
        elif first.startswith("> "):
            out += [".RS", *(inline(line[2:]) for line in block), ".RE"]
        elif re.match(r"\d+\. ", first):
            for line in block:
                number = re.match(r"(\d+\.) (.*)", line)
                out += [f".IP {number[1]} 3", inline(number[2])] if number else [inline(line.strip())]
        elif len(block) > 1 and block[1].startswith(": "):
            out += [".TP", inline(first), *(inline(line[2:] if line.startswith(": ") else line) for line in block[1:])]
        elif first.startswith(": "):
            out += [".IP", *(inline(line[2:] if line.startswith(": ") else line) for line in block)]
        else:
            out += [".PP", *map(inline, block)]
    following = [(before, line) for before, line in zip(["", *out], out, strict=False)]
    return [line for before, line in following if line != ".PP" or not before.startswith((".SS", ".SH"))]


def headed(markdown: str, level: str) -> dict[str, str]:
    """Split Markdown at the headings of a level: the text under each."""
    parts = re.split(rf"^{level} (.+)\n", markdown, flags=re.MULTILINE)
    return dict(zip((name.strip() for name in parts[1::2]), (text.strip("\n") for text in parts[2::2]), strict=True))


def sections_of(command: click.Command) -> dict[str, list[click.Option]]:
    """Return the options of a command by section, in the order of its help."""
    context = click.Context(main, info_name="kcrf", **CONTEXT)
    if command is not main:
        context = click.Context(command, parent=context, info_name=command.name)
    return options.sections_of(command, context)


def options_of(command: click.Command) -> list[click.Option]:
    """List the options of a command, in the order of its help."""
    return [one for members in sections_of(command).values() for one in members]


def tag(option: click.Option) -> str:
    """Return the names of an option, and its choices or what its value is called, as roff."""
    names = ", ".join(font("B", name) for name in sorted([*option.opts, *option.secondary_opts], key=len))
    if option.is_flag or option.count:
        return names
    if isinstance(option.type, click.Choice):
        return f"{names} " + "|".join(font("B", choice) for choice in option.type.choices)
    value = option.metavar or option.type.name.upper()
    optional = value.startswith("[")
    return f"{names} {'[' * optional}{font('I', value.strip('[]'))}{']' * optional}"


def entry(option: click.Option, longer: str) -> list[str]:
    """Return the paragraph of an option: its help, or the longer text of Markdown with the default of the help."""
    text, default = re.fullmatch(r"(.*?)\s*(Default: .*)?", option.help or "", re.DOTALL).groups()
    last = "Required." if option.required else default or ""
    if longer:
        lines = body(longer)
        lines = lines[1:] if lines[0] == ".PP" else lines
    else:
        lines = [inline(FLAG.sub(r"`\g<0>`", re.sub(r"([\\*`])", r"\\\1", text)))]
    if last and not re.search(r"^Default: ", longer, re.MULTILINE):
        lines.append(inline(re.sub(r"([\\*`])", r"\\\1", last)))
    return [".TP", tag(option), *filter(None, lines)]


def page(name: str, command: click.Command, markdown: str, shared: dict[str, str]) -> str:
    """Return a manual page."""
    title, _, rest = markdown.partition("\n")
    out = [
        f'.TH {name.upper()} 1 "" "kcrf {__version__}" "User Commands"',
        ".SH NAME",
        inline(title.removeprefix("# ")),
    ]
    sections = headed(rest, "##")
    own = headed(sections.get("OPTIONS", ""), "###")
    for heading, text in sections.items():
        out.append(f'.SH "{heading}"' if " " in heading else f".SH {heading}")
        if heading != "OPTIONS":
            out += body(text)[1:] if body(text)[:1] == [".PP"] else body(text)
            continue
        for title, members in sections_of(command).items():
            out += [f'.SS "{title}"'] if command is not main else []
            for option in members:
                long = options.flag(str(option.name))
                long = long if long in option.opts else max(option.opts, key=len)
                out += entry(option, own.pop(long, shared.get(long, "")))
    if own:
        raise SystemExit(f"man/{name}.md: the command has no {', '.join(own)}")
    return "\n".join(out) + "\n"


def pages() -> dict[str, str]:
    """Return all pages by name."""
    commands = {"kcrf": main, **{f"kcrf-{name}": command for name, command in main.commands.items()}}
    shared = headed((HERE / "options.md").read_text(encoding="utf-8"), "###")
    unknown = shared.keys() - {
        name for command in commands.values() for one in options_of(command) for name in one.opts
    }
    if unknown:
        raise SystemExit(f"man/options.md: no command has {', '.join(sorted(unknown))}")
    texts = {name: (HERE / f"{name}.md").read_text(encoding="utf-8") for name in commands}
    return {name: page(name, command, texts[name], shared) for name, command in commands.items()}


def run(check: bool) -> None:
    """Write the pages, or compare them with what they should be."""
    stale = []
    for name, text in pages().items():
        path = HERE / f"{name}.1"
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(path.name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if stale:
        raise SystemExit(f"stale: {', '.join(stale)}; run make man")


if __name__ == "__main__":
    run("--check" in sys.argv[1:])
