"""Hints for users of CRFsuite, CRF++ and Wapiti: unknown options and commands, and arguments too many."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

import click

ALIKE = 0.8  # two names of which one is a slip of the other

COMMANDS = {
    "learn": "CRFsuite's learn is train here: kcrf train DATA -o model.npz",
    "crf_learn": "crf_learn is train here: kcrf train -c template DATA -o model.npz",
    "crf_test": "crf_test is tag here: kcrf tag -m model.npz DATA",
    "crfsuite": "crfsuite learn is kcrf train, crfsuite tag is kcrf tag",
    "wapiti": "wapiti train is kcrf train, wapiti label is kcrf tag",
    "label": "Wapiti's label is tag here: kcrf tag -m model.npz DATA",
    "test": "tag writes labels (kcrf tag -m model.npz DATA), evaluate -m scores them",
    "dump": "dump is inspect here: kcrf inspect model.npz --dump",
    "update": "there is no update: kcrf train --init old.npz goes on from a model",
    "convert": "kcrf import reads models of other programs, kcrf export writes them",
    "predict": "predict is tag here: kcrf tag -m model.npz DATA",
    "fit": "fit is train here: kcrf train DATA -o model.npz",
}

SOLVED = "leave it out: P is minimised until it is proven to be close to its optimum (--solver, --tolerance)"
STOP = "--tolerance 0.001 says when to stop"


def _of_crfsuite(value: str) -> str:
    """Translate `-p` of CRFsuite, CRF++ and Wapiti."""
    name, equals, number = value.partition("=")
    if equals:
        return {
            "c1": f"CRFsuite's -p {value} is --c1 {number}",
            "c2": f"CRFsuite's -p {value} is --c2 {number}",
            "feature.minfreq": f"CRFsuite's -p {value} is --min-count {number}",
            "feature.possible_states": "all pairs with labels have weights; --observed-features: those of DATA alone",
            "feature.possible_transitions": "all pairs of labels have weights: leave it out",
            "max_iterations": f"CRFsuite's -p {value} is --max-passes {number}",
        }.get(name, f"CRFsuite's -p {value}: {SOLVED}")
    if value.isdecimal():
        return f"CRF++'s -p {value} is --threads {value}"
    return f"Wapiti's -p {value} is -c {value}"


def _inverse(value: str) -> str:
    try:
        return f"Wapiti's rho2 {value} is --sigma2 {1 / float(value):g}"
    except (ValueError, ZeroDivisionError):
        return "Wapiti's rho2 R is --sigma2 1/R"


Hint = str | Callable[[str], str]  # {} stands for the value of the option


def _by_value(known: str, other: str, *values: str) -> Hint:
    """Return two hints as one, for values that are numbers (or are listed) and for others."""
    return lambda value: (known if value in values or (not values and value.isdecimal()) else other).replace(
        "{}", value
    )


TRAIN: dict[tuple[str, ...], Hint] = {
    ("-f", "--freq"): "CRF++'s -f {} is --min-count {}",
    ("-a", "--algorithm", "--algo"): _by_value(
        "an L1 penalty is --c1 C, and --c2 0 leaves no other", SOLVED, "CRF-L1", "sgd-l1"
    ),
    ("-p", "--pattern"): _of_crfsuite,
    ("-2", "--rho2"): _inverse,
    ("-1", "--rho1"): "Wapiti's rho1 {} is --c1 {}",
    ("-m", "--model"): _by_value(
        "CRF++'s -m {} is --max-passes {}", "the model to write is -o {}, one to start from --init {}"
    ),
    ("-t", "--textmodel"): _by_value(
        "Wapiti's -t {} is --threads {}", "CRF++'s -t is kcrf export model.npz --to crf++ -o model.txt, after training"
    ),
    ("--thread", "--nthread"): "--threads {}",
    ("--cost",): "CRF++'s cost {} is --sigma2 {}",
    ("-e", "--eta"): "--tolerance 0.001 says when to stop; data to score on the way is --dev FILE",
    ("-d", "--devel"): "Wapiti's -d {} is --dev {}",
    ("-i", "--maxiter"): "--max-passes {}",
    ("-w", "--stopwin", "--stopeps", "--objwin"): STOP,
    ("--epsilon", "--delta", "--period"): STOP,
    ("--compact",): "Wapiti's --compact is --prune 0",
    ("--type", "-T", "--me"): "models are chains; without an edge term in the configuration labels are independent",
    ("-g", "--split"): "CRFsuite's -g {} -x is kcrf crossval DATA --folds {}",
    ("-x", "--cross-validate"): "CRFsuite's -x is kcrf crossval DATA --folds 5",
    ("-l", "--log-to-file"): "--log FILE writes what happens, as JSON lines",
    ("-H", "--shrinking-size", "-s", "--sparse"): SOLVED,
    ("-C", "--convert"): "kcrf import reads the models of CRF++, text and binary",
    ("--rstate", "--sstate"): "a run that was stopped goes on with --init MODEL",
}
TAG: dict[tuple[str, ...], Hint] = {
    ("-r", "--reference"): "gold labels stand beside the predicted ones already: leave it out",
    ("-t", "--test"): "kcrf evaluate -m MODEL DATA scores labels",
    ("-p", "--post", "--probability"): "--sequence-probability tells p(y|x); Wapiti's -p is --decode posterior",
    ("-i", "--marginal"): "CRFsuite's -i is --marginals best",
    ("-l", "--marginal-all"): "CRFsuite's -l is --marginals all",
    ("--label",): "the label is the last column of a line: leave it out",
    ("-v", "--verbose"): "CRF++'s -v1 is --sequence-probability --marginals best, -v2 the same with --marginals all",
    ("-n",): "--nbest {}",
    ("-s", "--score"): "Wapiti's -s is --sequence-probability --marginals best",
    ("-c", "--check", "--cost-factor"): "kcrf evaluate -m MODEL DATA scores labels; scores cannot be scaled",
    ("--me",): "the model knows what it is: leave it out",
}
OPTIONS = {"train": TRAIN, "crossval": TRAIN, "tag": TAG, "evaluate": TAG}


def option_hint(command: str, option: str, arguments: Sequence[str]) -> str | None:
    """Return what to type in the place of an option that a command does not have."""
    for names, hint in OPTIONS.get(command, {}).items():
        if option in names:
            value = _value(option, arguments)
            return hint(value) if callable(hint) else hint.replace("{}", value or "N")
    return None


def _value(option: str, arguments: Sequence[str]) -> str:
    """Return the value of an option as it was typed; empty where there is none."""
    for place, argument in enumerate(arguments):
        if argument == option:
            following = arguments[place + 1 : place + 2]
            return following[0] if following and not following[0].startswith("-") else ""
        if argument.startswith(f"{option}="):
            return argument.partition("=")[2]
        if len(option) == 2 and argument.startswith(option):
            return argument[2:]
    return ""


def arguments_hint(command: str, extra: Sequence[str], given: Sequence[str]) -> str | None:
    """Return a hint where there are more arguments than a command takes: `given` are those that it took."""
    if len(given) != 1 or any(re.search(r"[\s'\"]", one) for one in (*given, *extra)):
        return None
    (data,), last = given, extra[-1]
    model = last if os.path.splitext(last)[1] else f"{last}.npz"
    return {
        ("train", 2): f"as CRF++ has it, that is kcrf train -c {data} {extra[0]} -o {model}",
        ("train", 1): f"the model is an option here: kcrf train {data} -o {model}",
        ("evaluate", 1): f"the model is an option here: kcrf evaluate -m {data} {last}",
        ("tag", 1): f"the output is an option here: kcrf tag -m MODEL {data} -o {last}",
        ("import", 1): f"the output is an option here: kcrf import {data} -o {last}",
        ("export", 1): f"the output is an option here: kcrf export {data} -o {last}",
    }.get((command, len(extra)))


def close_names(name: str, possible: Sequence[str]) -> list[str]:
    """Return those of the suggested names that the given one may be a slip of."""
    pairs = [(one, one.lstrip("-"), name.lstrip("-")) for one in possible]
    return [one for one, a, b in pairs if a.startswith(b) or SequenceMatcher(None, b, a).ratio() >= ALIKE]


def explain(error: click.UsageError, arguments: Sequence[str]) -> None:
    """Add a hint to a usage error, whose attributes click declares final; `arguments` are those of the command."""
    context = error.ctx
    command = context.info_name if context is not None else None
    if isinstance(error, click.NoSuchOption):
        vars(error).update(possibilities=close_names(error.option_name, error.possibilities or ()))
        hint = option_hint(command or "", error.option_name, arguments)
        if hint is not None:
            vars(error).update(possibilities=[], message=f"No such option '{error.option_name}': {hint}")
    elif context is not None and error.message.startswith("Got unexpected extra argument"):
        extra = re.findall(r"\((.*)\)$", error.message.rstrip("."))
        words = extra[0].split() if extra else []
        positional = [word for word in arguments if not word.startswith("-")]
        given = list(filter(None, positional[: positional.index(words[0])])) if {*words[:1]} & {*positional} else []
        hint = arguments_hint(command or "", words, given[-1:])
        if hint is not None:
            vars(error).update(message=f"{error.message}: {hint}")
