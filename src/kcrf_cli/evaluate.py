"""`kcrf evaluate`: compare predicted labels with gold ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kcrf_core.corpus import Corpus
    from kcrf_core.evaluation import Evaluation


@click.command(short_help="Score predicted labels against gold ones.")
@options.data
@click.option(
    "-m",
    "--model",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Label DATA with this model first. Default: the last two columns are gold and predicted.",
)
@options.format
@options.json
def evaluate(data: str, model: str | None, format_: str | None, as_json: bool) -> None:
    """Score DATA: tagged output with gold and predicted labels as its last two columns, or, with -m, labelled data.

    Prints accuracy, and for labels of the IOB kind (B-NP, I-NP, O and the like) precision, recall and F1 of spans
    as conlleval computes them; else the same per label.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll -o model.npz
      kcrf evaluate -m model.npz sample_data/pitch_accent.conll
      kcrf tag -m model.npz sample_data/pitch_accent.conll | kcrf evaluate - --json
    """
    from kcrf_core.errors import DataError
    from kcrf_core.evaluation import evaluate as score
    from kcrf_core.formats import read_corpus

    from . import render
    from .files import write_out

    if model is not None:
        scores = _with_model(data, model, format_)
    else:
        corpus = read_corpus(data, format_ or "conll")
        gold, predicted = _last_columns(corpus)
        if not set(gold) & set(predicted):
            raise DataError(
                "the last two columns have no value in common; is the file tagged? (or give a model with -m)", data
            )
        scores = score(gold, predicted, corpus.offsets)
    write_out(render.as_json(scores.to_dict()) if as_json else render.evaluation_text(scores))


def _with_model(data: str, model: str, format_: str | None) -> Evaluation:
    from kcrf_core.archives import load_dataset
    from kcrf_core.errors import DataError, FileFormatError
    from kcrf_core.evaluation import evaluate as score
    from kcrf_core.formats import read_corpus
    from kcrf_core.model import Model
    from kcrf_core.parallel import Workers
    from kcrf_core.schemes import detect_scheme

    from .files import is_archive

    fitted = Model.load(model)
    with Workers(1):
        if is_archive(data):
            stored = load_dataset(data)
            if not stored.encoding.same_as(fitted.encoding):
                raise FileFormatError(f"{data}: encoded unlike {model}: featurize it with --like {model}")
            dataset = stored.dataset
            # -1 is a label the model does not know: it gets a name that fits the scheme and equals no other.
            scheme = detect_scheme(fitted.labels)
            names = (*fitted.labels, "<unknown>" if scheme is None else "B-<unknown>")
            gold = None if dataset.labels is None else [names[number] for number in dataset.labels.tolist()]
            predicted = [fitted.labels[number] for number in fitted.tag(dataset).tolist()]
            offsets = dataset.offsets
        else:
            corpus = read_corpus(data, format_ or fitted.encoding.format)
            labelled = fitted.encoding.with_labels(corpus)
            gold, offsets = (corpus.columns[-1] if labelled else None), corpus.offsets
            predicted = fitted.tag_corpus(corpus)
    if gold is None:
        raise DataError("no gold labels to compare with", data)
    return score(gold, predicted, offsets, known_labels=fitted.labels)


def _last_columns(corpus: Corpus) -> tuple:
    """Gold and predicted labels: the last column, and the one before it or before `LABEL:p` columns."""
    from kcrf_core.errors import DataError

    columns = list(corpus.columns)
    predicted = columns.pop() if columns else ()
    while columns and _probabilities(columns[-1], predicted):
        columns.pop()
    if not columns:
        raise DataError(
            "one column only; expected gold and predicted labels as the last two (or give a model with -m)",
            corpus.source,
            int(corpus.lines[0]),
        )
    return columns[-1], predicted


def _probabilities(column: Sequence[str], predicted: Sequence[str]) -> bool:
    """Whether a column holds `LABEL:p` of one label throughout, or of the predicted ones."""
    labels, colons, numbers = zip(*(value.rpartition(":") for value in column), strict=True)
    if "" in colons or (len(set(labels)) > 1 and list(labels) != list(predicted)):
        return False
    try:
        return all(0 <= float(number) <= 1 for number in numbers)
    except ValueError:
        return False
