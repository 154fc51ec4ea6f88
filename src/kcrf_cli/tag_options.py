"""The options of `kcrf tag` that ask for more than labels, and which of them go together."""

from __future__ import annotations

from typing import Any

import click

from .options import group

FREE = "?"
MOST_BEST = 10_000  # all labellings of a sequence are held at once

decoding = group(
    click.option(
        "--decode",
        type=click.Choice(["viterbi", "posterior"]),
        default="viterbi",
        help="Labels to give: the most probable labelling as a whole, or at each position the label of the largest "
        "marginal (of labellings that are possible, where transitions are forbidden). Default: viterbi.",
    ),
    click.option(
        "--scheme",
        type=click.Choice(["iob1", "iob2", "iobes", "bilou"]),
        help="Scheme of the labels: what it forbids is impossible. Default: what training forbade.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Keep the labels that INPUT has, and find the others around them; probabilities are given the kept ones.",
    ),
    click.option(
        "--free",
        metavar="LABEL",
        help="With --force: what stands where the label is not known. Default: what training took for labels that are "
        f"not observed, else {FREE}.",
    ),
)

output = group(
    click.option(
        "--marginals",
        type=click.Choice(["best", "all"]),
        help="Columns LABEL:p with the marginal probability, to six digits, of the predicted label or of each.",
    ),
    click.option(
        "--sequence-probability",
        is_flag=True,
        help="A column probability=P with the probability of the whole labelling of the sequence.",
    ),
    click.option(
        "--nbest",
        type=click.IntRange(min=1, max=MOST_BEST),
        metavar="K",
        help="The K best labellings of each sequence, each headed by a line '# RANK PROBABILITY'.",
    ),
    click.option(
        "--novelty",
        is_flag=True,
        help="A column novelty=R, from 0 to 1: how much of the position the pivots of the model leave unexplained.",
    ),
    click.option(
        "--explain",
        type=click.IntRange(min=1),
        metavar="K",
        help="Under each position, lines beginning with '#: ': the K pivots, features and transitions that speak most "
        "for its label against the runner-up.",
    ),
    click.option("--json-lines", is_flag=True, help="Write a JSON object for each sequence instead of its lines."),
)


def check(values: dict[str, Any]) -> None:
    """A usage error for options that contradict each other."""
    if values["free"] == "":
        raise click.UsageError("--free needs a mark: an empty column is none")
    if values["free"] is not None and not values["force"]:
        raise click.UsageError("--free says what --force leaves open: it goes with --force only")
    if values["nbest"] is None:
        return
    if values["decode"] == "posterior":
        raise click.UsageError("--nbest ranks whole labellings: it does not go with --decode posterior")
    if values["explain"] is not None:
        raise click.UsageError("--explain tells of one labelling: it does not go with --nbest")
    if values["sequence_probability"]:
        raise click.UsageError(
            "--nbest gives the probability of each labelling already: leave --sequence-probability out"
        )


def check_conllu(values: dict[str, Any]) -> None:
    """A usage error for what has no column in CoNLL-U."""
    for name in ("marginals", "sequence_probability", "nbest", "novelty", "explain"):
        if values[name]:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"CoNLL-U has no column for what {option} tells: give --json-lines, too")
