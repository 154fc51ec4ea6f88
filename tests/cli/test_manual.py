"""The manual is up to date, names all keys and exit codes, and its examples run; `man/generate.py` writes it."""

from __future__ import annotations

import dataclasses
import importlib.util
import inspect
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from kcrf_cli.main import CLOSED_PIPE, EXIT_CODES, INTERRUPTED, TERMINATED, main
from kcrf_core.chains import CLIQUES
from kcrf_core.config import config, load_template, load_yaml, looks_like_template, parse_config
from kcrf_core.kernels import kernel_settings, kernel_types
from kcrf_core.maps import METHODS
from kcrf_core.objective.solvers import SOLVERS
from kcrf_core.scoring import SCHEMES

ROOT = Path(__file__).resolve().parents[2]
MAN = ROOT / "man"

specification = importlib.util.spec_from_file_location("generate", MAN / "generate.py")
assert specification is not None and specification.loader is not None
generate = importlib.util.module_from_spec(specification)
specification.loader.exec_module(generate)

COMMANDS: dict[str, click.Command] = {"kcrf": main} | {
    f"kcrf-{name}": command for name, command in main.commands.items()
}
PAGES = sorted(COMMANDS)

SECTIONS = ("SYNOPSIS", "DESCRIPTION", "OPTIONS", "COST", "EXIT STATUS", "EXAMPLES", "SEE ALSO")

# Success, run-time errors and usage are nobody's constants: Python, `main` and Click give them.
ALL_EXIT_CODES = {0, 1, click.UsageError.exit_code, *EXIT_CODES.values(), INTERRUPTED, CLOSED_PIPE, TERMINATED}

OPTION = re.compile(r"(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?![\w-]))")

# ----------------------------------------------------------------------------- reading pages


def source(page: str) -> str:
    return (MAN / f"{page}.md").read_text(encoding="utf-8")


def sections(page: str) -> dict[str, str]:
    """Markdown by section heading."""
    return generate.headed(source(page), "##")


def terms(markdown: str) -> list[str]:
    """The terms of definition lists."""
    return [block[0].strip("`") for block in generate.blocks(markdown) if len(block) > 1 and block[1].startswith(": ")]


def verbatim(markdown: str) -> list[str]:
    return ["\n".join([*block[1:], ""]) for block in generate.blocks(markdown) if block[0] == "```"]


def kcrf_calls(page: str) -> list[list[str]]:
    """The arguments of each `kcrf` in the examples of a page."""
    calls = []
    for script in verbatim(sections(page)["EXAMPLES"]):
        for command in re.split(r"[|\n]", script.replace("\\\n", " ")):
            words = shlex.split(command.split(" < ")[0])
            if words[:1] == ["kcrf"]:
                calls.append(words[1:])
    return calls


def option_names(page: str) -> set[str]:
    return {name for option in generate.options_of(COMMANDS[page]) for name in (*option.opts, *option.secondary_opts)}


EVERY_OPTION = set().union(*map(option_names, PAGES), {"--all"})  # `kcrf help COMMAND --all`


# ----------------------------------------------------------------------------- pages


def test_pages_are_those_that_commands_and_markdown_give():
    written = {path.stem: path.read_text(encoding="utf-8") for path in MAN.glob("*.1")}
    assert written == generate.pages()
    listed = [term.replace("`(1)", "") for term in terms(sections("kcrf")["COMMANDS"])]
    assert sorted(["kcrf", *listed]) == PAGES


def test_markdown_becomes_roff():
    text = "One *two* `--three` it's a-b, -2..2, 2\\*3.\n\n`key`\n: Its text.\n\n1. First\n2. Second\n"
    text += "\n```\na 'b' -c\n```\n"
    assert generate.body(text) == [
        ".PP",
        r"One \fItwo\fR \fB\-\-three\fR it\(aqs a-b, \-2..2, 2*3.",
        *(".TP", r"\fBkey\fR", "Its text."),
        *(".IP 1. 3", "First", ".IP 2. 3", "Second"),
        *(".PP", ".EX", r"a \(aqb\(aq \-c", ".EE"),
    ]


@pytest.mark.parametrize("page", PAGES)
def test_sections(page):
    found = sections(page)
    assert [name for name in found if name in SECTIONS] == list(SECTIONS)
    assert all(text for name, text in found.items() if name != "OPTIONS")
    assert source(page).startswith(f"# {page} - ")
    assert found["SYNOPSIS"].startswith(f"`{page.replace('-', ' ', 1)}`")


@pytest.mark.parametrize("page", PAGES)
def test_references_lead_to_pages(page):
    referred = set(re.findall(r"\b(kcrf[a-z-]*)`? ?\(1\)", source(page)))
    assert referred <= set(PAGES)
    also = set(re.findall(r"\b(kcrf[a-z-]*)`? ?\(1\)", sections(page)["SEE ALSO"]))
    assert page not in also
    assert also >= (set(PAGES) - {"kcrf"} if page == "kcrf" else {"kcrf"})


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_pages_render_without_warnings(page):
    command = ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-z", str(MAN / f"{page}.1")]
    rendered = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (rendered.returncode, rendered.stderr) == (0, "")


# ----------------------------------------------------------------------------- options


@pytest.mark.parametrize("page", PAGES)
def test_no_page_mentions_an_option_that_does_not_exist(page):
    text = source(page)
    for name in set(OPTION.findall(text)):
        assert name in EVERY_OPTION, f"{page}: no command has {name}"
    # Named together with its command, an option must be one of that very command.
    for command, name in re.findall(rf"\bkcrf ([a-z-]+)\s+({OPTION.pattern})", text):
        assert name in option_names(f"kcrf-{command}"), f"{page}: kcrf {command} has no {name}"


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"kcrf"}))
def test_pages_have_the_sections_of_the_help(page):
    text = (MAN / f"{page}.1").read_text(encoding="utf-8").partition(".SH OPTIONS\n")[2].partition("\n.SH")[0]
    before, *found = re.split(r'^\.SS "(\w+)"\n', text, flags=re.MULTILINE)
    sections = generate.sections_of(COMMANDS[page])
    assert before == "" and found[::2] == list(sections)
    for written, members in zip(found[1::2], sections.values(), strict=True):
        assert all(generate.tag(option) in written.split("\n") for option in members)


@pytest.mark.parametrize("page", PAGES)
def test_options_have_a_help_text_with_their_default(page):
    for option in generate.options_of(COMMANDS[page]):
        assert option.help and option.help.strip().endswith("."), f"{page}: {option.opts}"
        default = option.to_info_dict()["default"]
        if not option.required and default not in (None, False) and isinstance(default, (int, float, str)):
            assert f"Default: {default}." in option.help, f"{page}: default of {option.opts}"


@pytest.mark.parametrize("page", PAGES)
def test_help_ends_with_an_example(page):
    *before, last = inspect.cleandoc(COMMANDS[page].help or "").split("\n\n")
    first, *lines = last.removeprefix("\b\n").split("\n")
    assert before and first == "Example:"
    assert lines and all(line.startswith("  ") for line in lines)
    assert lines[0].startswith("  kcrf ") and "sample_data/" in last


# ----------------------------------------------------------------------------- exit codes, configuration


def test_exit_codes_are_those_of_the_program():
    listed = list(map(int, terms(sections("kcrf")["EXIT STATUS"])))
    assert listed == sorted(ALL_EXIT_CODES)


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"kcrf"}))
def test_exit_codes_of_commands_are_among_them(page):
    listed = list(map(int, terms(sections(page)["EXIT STATUS"])))
    assert listed == sorted(set(listed)) and set(listed) <= ALL_EXIT_CODES
    assert {0, 1, 2} <= set(listed)


def test_configuration_section_names_every_key_and_choice():
    text = re.sub(r"(?s)```.*?```", "", sections("kcrf")["CONFIGURATION"])
    bold = set(re.findall(r"[\w.%-]+", " ".join(re.findall(r"`([^`]+)`", text))))
    keys = {"column", "conjunction"}  # a feature's `columns` of one, and its `parts`
    names = ("Config", "FeatureConfig", "TermConfig", "KernelConfig", "MapConfig", "TrainingConfig", "RulesConfig")
    for section in names:
        keys |= {item.name for item in dataclasses.fields(getattr(config, section)) if item.init}
    keys = (keys | {*kernel_settings()}) - {"parts", "settings", "own_window"}
    choices = {*config.transforms(), *kernel_types(), *config.MAPS, *METHODS, config.GRADIENT, *SOLVERS}
    choices |= {*config.PRECISIONS, *config.SCALES, *CLIQUES, *SCHEMES}
    assert keys | choices <= bold, sorted((keys | choices) - bold)


def test_configuration_examples_are_accepted():
    texts = verbatim(sections("kcrf")["CONFIGURATION"])
    assert [looks_like_template(text) for text in texts] == [False, True]
    described = parse_config(load_yaml(texts[0], "kcrf.md"))
    assert described.features and len(described.mapped_terms) > 1 and described.label_terms
    assert parse_config(load_template(texts[1], "kcrf.md")).label_terms


# ----------------------------------------------------------------------------- examples


@pytest.mark.parametrize("page", PAGES)
def test_examples_are_calls_that_the_program_accepts(page):
    calls = kcrf_calls(page)
    assert calls
    for name, *arguments in calls:
        assert name in main.commands
        main.commands[name].make_context(name, arguments).close()
    if page != "kcrf":
        assert page in {f"kcrf-{name}" for name, *_ in calls}


# Pages whose examples are run every day; those of the others take seconds each.
SHORT = ("kcrf-import", "kcrf-inspect")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in SHORT else [pytest.mark.slow]) for page in PAGES]
)
def test_examples_run(shell, page):
    # What five seconds are enough for depends on the machine.
    blocks = "\n".join(verbatim(sections(page)["EXAMPLES"])).replace("--budget 5s", "--effort small")
    done = shell(f"set -e +o pipefail\n{blocks}")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "kcrf: " not in done.stderr
