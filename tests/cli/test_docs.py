"""Pages in docs/ and at the root: sessions run as shown, options and commands exist, links lead somewhere.

Pages and what commands print are compared by the rule that stands at the head of `tests/console.py`: words and counts
of data exactly, figures of optimisation to what processors, compilers and BLAS libraries differ by.
"""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from console import code_blocks, differences, steps
from kcrf_cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")), *DOCS]

JUDGED = "Viterbi; accuracy 79.10 on 60 held-out sequences in 3 folds, 500 positions"

CITATION = re.compile(r"experiments/(\w+)/README\.md")
NUMBER = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")

OPTION = re.compile(r"(?<![\w^-])(?:--[A-Za-z][\w-]*|-[A-Za-z](?![\w-]))")
# Where one command ends and another may begin.
SEPARATOR = re.compile(r"\n|\||&|;|\$ |\$\(")


def options_of(command: click.Command) -> set[str]:
    context = click.Context(command, info_name=command.name, **main.context_settings)
    return {name for each in command.get_params(context) for name in (*each.opts, *each.secondary_opts)}


OPTIONS = {name: options_of(command) for name, command in main.commands.items()}
EVERY_OPTION = set().union(options_of(main), *OPTIONS.values())


def page_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def mistakes(words: str) -> list[str]:
    """What a call of `kcrf`, or a part of one, has that the program does not know; nothing for other programs."""
    first, *rest = words.split() or [""]
    if first == "kcrf" and rest and not rest[0].startswith("-"):
        first = rest[0]
        if re.fullmatch(r"[a-z][a-z-]*", first) and first not in OPTIONS:
            return [f"kcrf {first}"]
    elif first != "kcrf" and first not in OPTIONS and not first.startswith("-"):
        return []
    return [name for name in OPTION.findall(words) if name not in OPTIONS.get(first, EVERY_OPTION)]


def prose(path: Path) -> str:
    """A page without fenced blocks and comments, and without the first column of tables.

    What other programs call their options stands in first columns.
    """
    text = re.sub(r"^```.*?^```$|<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^\|[^|\n]*\|", "|", text, flags=re.MULTILINE)


def links(path: Path) -> list[str]:
    """What a page links to within the project, without anchors."""
    found = re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8"))
    return [link.partition("#")[0] for link in found if "://" not in link and not link.startswith("#")]


def anchors(path: Path) -> set[str]:
    """Headings as GitHub and others make anchors of them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


# The page whose session is run every day; the others take a minute together.
EVERYDAY = "migrating.md"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(path, id=page_id(path), marks=[pytest.mark.slow] if path.name != EVERYDAY else [])
        for path in DOCS
        if "$ kcrf" in path.read_text(encoding="utf-8")
    ],
)
def test_sessions(shell, tmp_path, page):
    """A page from top to bottom, in one directory: files are saved, commands say what the page shows."""
    for kind, what, text in steps(page):
        if kind == "file":
            (tmp_path / what).write_text(text, encoding="utf-8")
            continue
        done = shell(f"exec 2>&1; {what}")
        assert done.returncode == 0, (what, done.stdout)
        assert not differences(text, done.stdout), what


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_commands_and_options_exist(page):
    blocks, text = (block for _, block in code_blocks(page)), prose(page)
    calls = [call.strip() for block in blocks for call in SEPARATOR.split(block.replace("\\\n", " "))]
    calls = [call for call in calls if call.startswith("kcrf ")] + re.findall(r"`([^`]+)`", text)
    found = [f"{wrong} in '{call}'" for call in calls for wrong in mistakes(call.partition(" # ")[0])]
    found += [name for name in OPTION.findall(re.sub(r"`[^`]+`", "", text)) if name not in EVERY_OPTION]
    assert not found


@pytest.mark.parametrize(
    ("shown", "said", "alike"),
    [
        # words, lines, counts of data, settings
        ("400 sequences", "400  sequences\n", True),
        ("400 sequences", "401 sequences", False),
        ("400 sequences", "400 positions", False),
        ("4,539 positions", "4,538 positions", False),
        ("one\ntwo", "one", False),
        ("one", "one\ntwo", False),
        ("F1", "F2", False),
        (
            "certified: within 0.0007 of the optimum (tolerance 0.001)",
            "certified: within 0.0009 of the optimum (tolerance 0.001)",
            True,
        ),
        (
            "certified: within 0.0007 of the optimum (tolerance 0.001)",
            "certified: within 0.0007 of the optimum (tolerance 0.01)",
            False,
        ),
        ("sigma2: node 1, edge 1; Viterbi", "sigma2: node 3, edge 1; Viterbi", False),
        # data that is repeated, the label beside it, and its probability
        ("it\tO\t0.08\t127.1\t1\t1:0.835783\t1", "it\tO\t0.08\t127.1\t1\t1:0.833122\t1", True),
        ("it\tO\t0.08\t127.1\t1\t1:0.835783\t1", "it\tO\t0.08\t127.2\t1\t1:0.835783\t1", False),
        ("it\tO\t0.08\t127.1\t1\t1:0.835783\t1", "it\tO\t0.08\t127.1\t1\t1:0.835783\t0", False),
        ("it\tO\t0.08\t127.1\t1\t1:0.835783\t1", "it\tO\t0.08\t127.1\t1\t1:0.795783\t1", False),
        # what was predicted
        ("accuracy 80.14 % (892 of 1,113 positions)", "accuracy 80.32 % (894 of 1,113 positions)", True),
        ("accuracy 80.14 % (892 of 1,113 positions)", "accuracy 80.14 % (892 of 1,114 positions)", False),
        ("accuracy 80.14 % (892 of 1,113 positions)", "accuracy 79.14 % (881 of 1,113 positions)", False),
        ("0  84.20  82.31  83.24  667  652", "0  84.10  82.46  83.27  667  654", True),
        ("0  84.20  82.31  83.24  667  652", "0  84.20  82.31  83.24  668  652", False),
        ("0  84.20  82.31  83.24  667  652", "0  84.20  82.31  84.24  667  652", False),
        ("0  84.20  82.31  83.24  667  652", "0  84.20  82.31  83.24  667  670", False),
        ("F1 of labels: macro 81.00, weighted 81.88", "F1 of labels: macro 80.00, weighted 81.88", False),
        ("whole sequences right 25.00 % (25 of 100)", "whole sequences right 24.00 % (24 of 100)", True),
        ("whole sequences right 25.00 % (25 of 100)", "whole sequences right 20.00 % (20 of 100)", False),
        ("whole sequences right 25.00 % (25 of 100)", "whole sequences right 25.00 % (25 of 101)", False),
        ("expected calibration error 0.98 %", "expected calibration error 3.42 %", False),
        ("log-loss 0.4146", "log-loss 0.4069", False),
        ("log-loss 0.4146", "log-loss 0.4149", True),
        (
            "degree=3  79.71 ± 1.77  12.40 ± 3.97  viterbi  0.00092  *",
            "degree=3  79.51 ± 1.65  12.20 ± 4.21  viterbi  0.00099",
            True,
        ),
        (
            "degree=3  79.71 ± 1.77  12.40 ± 3.97  viterbi  0.00092",
            "degree=3  78.71 ± 1.77  12.40 ± 3.97  viterbi  0.00092",
            False,
        ),
        (
            "accuracy %  74.21  72.51  +1.71  0.088  -0.17 to +3.57",
            "accuracy %  74.03  72.51  +1.53  0.12  -0.36 to +3.39",
            True,
        ),
        (
            "accuracy %  74.21  72.51  +1.71  0.088  -0.17 to +3.57",
            "accuracy %  74.21  72.51  +1.71  0.02  -0.17 to +3.57",
            False,
        ),
        ("m.kcrf: 184,192 bytes for kcrf-tag", "m.kcrf: 184,200 bytes for kcrf-tag", True),
        ("m.kcrf: 184,192 bytes for kcrf-tag", "m.kcrf: 284,192 bytes for kcrf-tag", False),
        ("9 of 796 labels of data (1.1307 %) differ", "11 of 796 labels of data (1.3819 %) differ", True),
        ("9 of 796 labels of data (1.1307 %) differ", "11 of 797 labels of data (1.3802 %) differ", False),
        # what it took, and what was found
        ("  20 passes, 2.3 s, peak memory 198 MiB", "16 passes, 11.2 s, peak memory 97 MiB", True),
        ("  20 passes, 2.3 s", "60 passes, 2.3 s", False),
        ("P 1268.760976, at least 1267.92", "P 1269.684444, at least 1268.58", True),
        ("P 1268.760976, at least 1267.92", "P 1288.760976, at least 1267.92", False),
        ("-2.9074 all others", "2.9074 all others", False),
        ("-2.9074 all others", "-2.8850 all others", True),
        ("-2.9074 all others", "-2.7850 all others", False),
        (
            "f0  109136.9  4872.4  22.40  2.2e-08  73.9  70.3 +- 12.3  taken",
            "f0  109003.2  4866.1  22.39  2.3e-08  73.7  70.2 +- 12.4  taken",
            True,
        ),
        (
            "f0  109136.9  4872.4  22.40  2.2e-08  73.9  70.3 +- 12.3  taken",
            "f0  109136.9  4872.4  22.40  0.05  73.9  70.3 +- 12.3  taken",
            False,
        ),
        (
            "f0  109136.9  4872.4  22.40  2.2e-08  73.9  70.3 +- 12.3  taken",
            "f0  109136.9  4872.4  22.40  2.2e-08  73.9  70.3 +- 12.3  like noise",
            False,
        ),
        # a search, and long work
        (f"sigma2: node 1, edge 1; {JUDGED}", f"sigma2: node 3.16, edge 1; {JUDGED}", True),
        (f"sigma2: node 1, edge 1; {JUDGED}", f"sigma2: node 10, edge 1; {JUDGED}", False),
        (f"sigma2: node 1, edge 1; {JUDGED}", f"sigma2: node 1, edge 1; {JUDGED.replace('79', '77')}", False),
        ("one\ntwo\n", "one\ntrainings, about 2 min left: 3 of 15 (fold 2)\ntwo\n", True),
    ],
)
def test_figures_are_compared(shown, said, alike):
    assert (differences(shown, said) == []) == alike


def test_mistakes_are_found():
    assert mistakes("kcrf train data.conll --kernel poly -o model.npz") == []
    assert mistakes("kcrf train data.conll --folds 3") == ["--folds"]
    assert mistakes("kcrf learn data.conll") == ["kcrf learn"]
    assert mistakes("train --sgima2 1") == ["--sgima2"]
    assert mistakes("--sgima2") == ["--sgima2"]
    assert mistakes("crf_learn -f 3 --freq") == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page):
    missing = {(page.parent / link).resolve() for link in links(page) if not (page.parent / link).exists()}
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_anchors_are_headings(page):
    for link, anchor in re.findall(r"\]\(([^)\s#]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert anchor in anchors(page.parent / link if link else page), f"{link}#{anchor}"


def test_every_page_is_in_the_readme():
    assert {f"docs/{path.name}" for path in DOCS} <= set(links(ROOT / "README.md"))


def cited_blocks(page):
    """Yield paragraphs and tables with the experiments that they cite, a table with those of the paragraphs around."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    blocks = [block.strip() for block in re.split(r"\n\s*\n", text)]
    for number, block in enumerate(blocks):
        around = blocks[max(number - 1, 0) : number + 2] if block.startswith("|") else [block]
        cited = {name for part in around for name in CITATION.findall(part)}
        if cited:
            yield block, cited


def lacking_figures(block, known):
    """Return the figures with a decimal point that no known number is rounded to, errors standing for accuracies."""
    lacking = []
    for figure in NUMBER.findall(re.sub(r"`[^`]*`", "", block)):
        value, decimals = float(figure.replace(",", "")), len(figure.partition(".")[2])
        half = 0.5 * 10**-decimals + 1e-9
        if decimals and not any(abs(one - value) <= half or abs(100 - one - value) <= half for one in known):
            lacking.append(figure)
    return lacking


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "figures.md"], ids=page_id)
def test_figures_are_those_of_the_experiments_that_are_cited(page):
    """Pages follow tables of experiments that are measured anew; `figures.py` fills figures.md."""
    for block, cited in cited_blocks(page):
        readmes = [(ROOT / "experiments" / name / "README.md").read_text(encoding="utf-8") for name in cited]
        known = [float(number.replace(",", "")) for text in readmes for number in NUMBER.findall(text)]
        assert lacking_figures(block, known) == [], block


def test_figures_that_are_not_those_of_an_experiment_are_found():
    assert lacking_figures("93.6 % and 5.1 of 1,000 in `--sigma2 0.7`", [93.62, 94.9]) == []
    assert lacking_figures("93.6 % and 5.2", [93.55, 94.9]) == ["5.2"]
    assert lacking_figures("1,234.5 s", [1234.0]) == ["1,234.5"]
