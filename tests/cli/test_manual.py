"""The manual says what the program does: options, choices, exit codes, keys, and examples that run."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import click
import pytest

from kcrf_cli.main import CLOSED_PIPE, EXIT_CODES, INTERRUPTED, TERMINATED, main
from kcrf_core import __version__
from kcrf_core.chains import CLIQUES
from kcrf_core.config import config, load_template, load_yaml, looks_like_template, parse_config
from kcrf_core.kernels import kernel_settings, kernel_types
from kcrf_core.scoring import SCHEMES
from kcrf_core.solvers import SOLVERS

ROOT = Path(__file__).resolve().parents[2]
MAN = ROOT / "man"

COMMANDS: dict[str, click.Command] = {"kcrf": main} | {
    f"kcrf-{name}": command for name, command in main.commands.items()
}
PAGES = sorted(COMMANDS)

SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COST", "EXIT STATUS", "EXAMPLES", "SEE ALSO")

# Success, run-time errors and usage are nobody's constants: Python, `main` and Click give them.
ALL_EXIT_CODES = {0, 1, click.UsageError.exit_code, *EXIT_CODES.values(), INTERRUPTED, CLOSED_PIPE, TERMINATED}

OPTION = re.compile(r"(?<![\w-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?![\w-]))")

CHARACTERS = {r"\-": "-", r"\(ha": "^", r"\(ti": "~", r"\(aq": "'", r"\(dq": '"', r"\(rs": "\\", r"\e": "\\", r"\&": ""}

# ----------------------------------------------------------------------------- reading pages


def source(page: str) -> str:
    return (MAN / f"{page}.1").read_text(encoding="utf-8")


def plain(roff: str) -> str:
    """Roff without fonts, macro names and quotes; an escape that is not listed here is an error."""
    text = re.sub(r"\\f[BIRP]", "", roff)
    text = re.sub(r"\\(?:\(..|.)", lambda found: CHARACTERS[found[0]], text)
    return "\n".join(
        re.sub(r"^\.[A-Z]{1,2}\b ?", "", line).replace('"', "") if line.startswith(".") else line
        for line in text.split("\n")
    )


def sections(page: str) -> dict[str, str]:
    """Roff by section heading."""
    parts = re.split(r"^\.SH +(.+)$", source(page), flags=re.MULTILINE)
    return {heading.strip('"'): body.strip("\n") for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def entries(roff: str) -> list[tuple[str, str]]:
    """Tag and text of each `.TP` paragraph, as plain text."""
    out = []
    for paragraph in re.split(r"^\.TP\n", roff, flags=re.MULTILINE)[1:]:
        tag, _, text = paragraph.partition("\n")
        out.append((plain(tag).strip(), plain(text)))
    return out


def verbatim(roff: str) -> list[str]:
    return [plain(block) for block in re.findall(r"^\.EX\n(.*?)^\.EE", roff, flags=re.MULTILINE | re.DOTALL)]


def kcrf_calls(page: str) -> list[list[str]]:
    """The arguments of each `kcrf` in the examples of a page."""
    calls = []
    for script in verbatim(sections(page)["EXAMPLES"]):
        for command in re.split(r"[|\n]", script.replace("\\\n", " ")):
            words = shlex.split(command.split(" < ")[0])
            if words[:1] == ["kcrf"]:
                calls.append(words[1:])
    return calls


# ----------------------------------------------------------------------------- asking the program


def option_parameters(page: str) -> list[click.Option]:
    command = COMMANDS[page]
    context = click.Context(main, info_name="kcrf", **main.context_settings)
    if command is not main:
        context = click.Context(command, parent=context, info_name=command.name)
    return [parameter for parameter in command.get_params(context) if isinstance(parameter, click.Option)]


def option_names(page: str) -> set[str]:
    return {name for option in option_parameters(page) for name in (*option.opts, *option.secondary_opts)}


EVERY_OPTION = set().union(*map(option_names, PAGES))


# ----------------------------------------------------------------------------- pages


def test_every_command_has_a_page_and_every_page_a_command():
    assert sorted(path.stem for path in MAN.glob("*.1")) == PAGES
    listed = [tag.removesuffix(" (1)") for tag, _ in entries(sections("kcrf")["COMMANDS"])]
    assert sorted(["kcrf", *listed]) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_header_and_sections(page):
    first = source(page).split("\n", 1)[0]
    assert shlex.split(first) == [".TH", page.upper(), "1", "", f"kcrf {__version__}", "User Commands"]
    found = sections(page)
    assert [name for name in found if name in SECTIONS] == list(SECTIONS)
    assert all(found.values())
    assert plain(found["NAME"]).startswith(f"{page} - ")
    assert plain(found["SYNOPSIS"]).startswith(page.replace("-", " ", 1))


@pytest.mark.parametrize("page", PAGES)
def test_references_lead_to_pages(page):
    referred = set(re.findall(r"\b(kcrf[a-z-]*) ?\(1\)", plain(source(page))))
    assert referred <= set(PAGES)
    also = set(re.findall(r"\b(kcrf[a-z-]*) ?\(1\)", plain(sections(page)["SEE ALSO"])))
    assert page not in also
    assert also >= (set(PAGES) - {"kcrf"} if page == "kcrf" else {"kcrf"})


@pytest.mark.parametrize("page", PAGES)
def test_hyphens_of_options_are_minus_signs(page):
    """A bare hyphen may be rendered as a character that cannot be pasted into a shell."""
    body = source(page).split("\n", 1)[1]
    assert not re.findall(r"(?<![\w\\-])-{1,2}[A-Za-z].*", body)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
@pytest.mark.parametrize("page", PAGES)
def test_pages_render_without_warnings(page):
    command = ["groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-z", str(MAN / f"{page}.1")]
    rendered = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (rendered.returncode, rendered.stderr) == (0, "")


# ----------------------------------------------------------------------------- options


@pytest.mark.parametrize("page", PAGES)
def test_options_section_lists_the_options_of_the_command(page):
    listed = [sorted(OPTION.findall(tag)) for tag, _ in entries(sections(page)["OPTIONS"])]
    real = [sorted([*option.opts, *option.secondary_opts]) for option in option_parameters(page)]
    assert sorted(listed) == sorted(real)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_mentions_an_option_that_does_not_exist(page):
    text = plain(source(page))
    for name in set(OPTION.findall(text)):
        assert name in EVERY_OPTION, f"{page}: no command has {name}"
    # Named together with its command, an option must be one of that very command.
    for command, name in re.findall(rf"\bkcrf ([a-z-]+)\s+({OPTION.pattern})", text):
        assert name in option_names(f"kcrf-{command}"), f"{page}: kcrf {command} has no {name}"


@pytest.mark.parametrize("page", PAGES)
def test_option_paragraphs_name_every_choice_and_a_default(page):
    options = {frozenset([*option.opts, *option.secondary_opts]): option for option in option_parameters(page)}
    for tag, text in entries(sections(page)["OPTIONS"]):
        option = options[frozenset(OPTION.findall(tag))]
        assert text.strip(), f"{page}: nothing is said about {tag}"
        words = set(re.findall(r"[\w+-]+", text))
        if isinstance(option.type, click.Choice):
            assert set(option.type.choices) <= words, f"{page}: choices of {tag}"
        if option.required:
            assert "Required." in text, f"{page}: {tag} is required"
        elif option.default not in (None, False) and isinstance(option.default, (int, float, str)):
            assert f"Default: {option.default}." in text, f"{page}: default of {tag}"


@pytest.mark.parametrize("page", PAGES)
def test_every_option_has_a_help_text(page):
    for option in option_parameters(page):
        assert option.help and option.help.strip().endswith("."), f"{page}: {option.opts}"


@pytest.mark.parametrize("page", PAGES)
def test_help_ends_with_an_example(page):
    *before, last = inspect.cleandoc(COMMANDS[page].help or "").split("\n\n")
    first, *lines = last.removeprefix("\b\n").split("\n")
    assert before and first == "Example:"
    assert lines and all(line.startswith("  ") for line in lines)
    assert lines[0].startswith("  kcrf ") and "sample_data/" in last


# ----------------------------------------------------------------------------- exit codes, configuration


def test_exit_codes_are_those_of_the_program():
    listed = [int(tag) for tag, _ in entries(sections("kcrf")["EXIT STATUS"])]
    assert listed == sorted(ALL_EXIT_CODES)


@pytest.mark.parametrize("page", sorted(set(PAGES) - {"kcrf"}))
def test_exit_codes_of_commands_are_among_them(page):
    listed = [int(tag) for tag, _ in entries(sections(page)["EXIT STATUS"])]
    assert listed == sorted(set(listed)) and set(listed) <= ALL_EXIT_CODES
    assert {0, 1, 2} <= set(listed)


def test_configuration_section_names_every_key_and_choice():
    text = source("kcrf").split("\n.SH CONFIGURATION\n")[1].split("\n.SH ")[0]
    bold = set(re.findall(r"[\w.%-]+", " ".join(plain(line) for line in text.split("\n") if line.startswith(".B"))))
    keys = {"column", "conjunction"}  # a feature's `columns` of one, and its `parts`
    for section in ("Config", "FeatureConfig", "TermConfig", "KernelConfig", "MapConfig", "TrainingConfig"):
        keys |= {item.name for item in dataclasses.fields(getattr(config, section))}
    keys = (keys | {*kernel_settings()}) - {"parts", "settings", "own_window"}
    choices = {*config.TRANSFORMS, *kernel_types(), *config.MAPS, *config.selections(), *SOLVERS}
    choices |= {*config.PRECISIONS, *config.SCALES, *CLIQUES, *SCHEMES}
    assert keys | choices <= bold, sorted((keys | choices) - bold)


def test_configuration_examples_are_accepted():
    texts = verbatim(sections("kcrf")["CONFIGURATION"])
    assert [looks_like_template(text) for text in texts] == [False, True]
    described = parse_config(load_yaml(texts[0], "kcrf.1"))
    assert described.features and len(described.mapped_terms) > 1 and described.label_terms
    assert parse_config(load_template(texts[1], "kcrf.1")).label_terms


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
SHORT = ("kcrf-export", "kcrf-import", "kcrf-inspect")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[] if page in SHORT else [pytest.mark.slow]) for page in PAGES]
)
def test_examples_run(shell, page):
    blocks = "\n".join(verbatim(sections(page)["EXAMPLES"]))
    done = shell(f"set -e +o pipefail\n{blocks}")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "kcrf: " not in done.stderr
