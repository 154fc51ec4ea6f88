"""The `kcrf` command: its subcommands, and the one place that turns errors into exit codes.

0 fine   1 run-time or I/O   2 usage and configuration   3 bad data   4 a file that is not what it should be
5 numeric failure   6 a figure below --fail-under   130 Ctrl-C   141 closed pipe   143 SIGTERM
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from keyword import iskeyword
from types import FrameType
from typing import Any, NoReturn

import click

from kcrf_core import errors
from kcrf_core._version import __version__
from kcrf_core.system import check_room_for_blas

from . import options
from .io.files import STDOUT
from .io.progress import discard, say
from .render.visible import shown

# BLAS works on one thread throughout (see `Workers`), but without this setting it starts one for each
# core, which wait busily: on 16 cores a second of processor time in each command.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# In errors of threads and of libraries that are loaded.
NO_MEMORY_LEFT = "can't start new thread", "failed to map segment", "cannot allocate"

FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EFBIG)
INTERRUPTED, CLOSED_PIPE, TERMINATED = 130, 141, 143
EXIT_CODES = {
    errors.ConfigError: 2,
    errors.DataError: 3,
    errors.FileFormatError: 4,
    errors.NumericError: 5,
    errors.BelowTarget: 6,
    errors.Interrupted: INTERRUPTED,
}


class Terminated(BaseException):
    """SIGTERM, as an exception, so that temporary files are removed on the way out."""


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextlib.contextmanager
def no_lost_signals() -> Iterator[None]:
    """Send signals again whose exceptions came where Python only prints them, such as in callbacks of its importer."""
    before = sys.unraisablehook
    numbers: dict[Any, int] = {Terminated: signal.SIGTERM, KeyboardInterrupt: signal.SIGINT}

    def hook(found: Any) -> None:
        if found.exc_type not in numbers:
            before(found)
            return
        from threading import Timer, main_thread

        # Later and by another thread, as this is no place to raise either.
        number, send = numbers[found.exc_type], getattr(signal, "pthread_kill", None)
        by = Timer(0.02, send, (main_thread().ident, number)) if send else Timer(0.02, signal.raise_signal, (number,))
        by.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _show_warning(before: Any, message: Warning | str, category: type[Warning], *where: Any) -> None:
    """Print one line for a warning that is meant for users, unless the command is quiet."""
    context = click.get_current_context(silent=True)  # which other threads do not have
    if not issubclass(category, UserWarning):
        before(message, category, *where)
    elif context is None or not context.params.get("quiet"):
        say(f"warning: {message}")


class _Group(click.Group):
    """Runs a command and turns errors into exit codes. An unexpected error is a bug and shows its traceback."""

    # Here and not around main(): Click itself would turn Ctrl-C and a closed pipe into exit code 1.

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        with exit_codes():  # --help and --version write already
            return super().make_context(*arguments, **more)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Click's own way to show the help without arguments is an error whose message is the help, since 8.2.
        if args[:1] in ([], ["help"]):
            names, every = [name for name in args if not name.startswith("-")][1:2], {"--all", "--help-all"} & {*args}
            args = [*names, "--help-all" if names and every else "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        ctx.meta[options.ARGUMENTS] = args[1:]  # for the footers of pages
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # Click would import all of them.
        for title, summaries in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(list(summaries.items()), col_max=12)

    def invoke(self, ctx: click.Context) -> Any:
        with contextlib.suppress(ValueError):  # signals belong to the main thread, and this is another
            signal.signal(signal.SIGTERM, _on_sigterm)
            if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
                signal.signal(signal.SIGINT, signal.default_int_handler)
        with exit_codes(), no_lost_signals(), warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            check_room_for_blas("NumPy")
            result = super().invoke(ctx)
            if sys.stdout is not None:
                sys.stdout.flush()
            return result


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Print one line and exit with a code for each kind of error that can be expected."""
    try:
        yield
    except KeyboardInterrupt as error:
        _leave(str(error) or "interrupted", INTERRUPTED)
    except Terminated:
        _leave("terminated", TERMINATED)
    except BrokenPipeError:
        discard(sys.stdout)
        sys.exit(CLOSED_PIPE)
    except click.ClickException as error:
        vars(error).update(message=shown(error.message))  # Click writes it, with the names that were typed
        raise
    except errors.KcrfError as error:
        code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
        _leave(options.with_flags(str(error), error.settings), code)
    except OSError as error:
        discard(sys.stdout)  # it may be what failed, and what it still holds is useless
        # Whatever writes a file names it, so what is full and has no name is where Click writes.
        name = STDOUT if error.filename is None and error.errno in FULL else error.filename
        where = "" if name is None else f"{name or repr('')}: "
        _leave(f"{where}{error.strerror or error}", 1)
    except RuntimeError as error:  # Python wraps signals that arrive while a module defines a class, up to 3.11
        if isinstance(error.__cause__, KeyboardInterrupt | Terminated):
            stopped = isinstance(error.__cause__, Terminated)
            _leave("terminated" if stopped else "interrupted", TERMINATED if stopped else INTERRUPTED)
        _leave_if_full(error)
        raise
    except ImportError as error:
        _leave_if_full(error)
        raise
    except MemoryError:
        _leave("out of memory: a smaller --size, a frequency cut-off (--min-count) or less data will help", 1)


def _leave_if_full(error: Exception) -> None:
    """End the program after an error that says in words of its own that no memory is left."""
    if any(words in str(error) for words in NO_MEMORY_LEFT):
        _leave(f"out of memory, or of what may be used of it (ulimit -v): {error}", 1)


def _leave(message: str, code: int) -> NoReturn:
    """Print an error and end the program."""
    say(f"kcrf: {message}")
    sys.exit(code)


GROUPS = {
    "First steps": {
        "train": "Train a model.",
        "tag": "Label sequences with a model.",
        "evaluate": "Score predicted labels against gold ones.",
    },
    "Better models": {
        "tune": "Find a configuration.",
        "crossval": "Cross-validate, over a grid if wanted.",
        "audit": "Find doubtful labels.",
        "curve": "Show what more data would bring.",
        "guarantee": "Find thresholds for review and for sets of labels.",
        "next": "Choose sequences to label next.",
        "inspect": "Show the contents of a model, basis or dataset.",
    },
    "Large data": {
        "featurize": "Encode data into an .npz file or a folder of shards.",
        "select-basis": "Choose pivots (inducing points) for a kernel.",
    },
    "Other tools": {"import": "Read a model of another program.", "export": "Write a model for another program."},
}
SUMMARIES = {name: summary for group in GROUPS.values() for name, summary in group.items()}


class _Commands(Mapping[str, click.Command]):
    """The subcommands by name, each imported when it is asked for, so that `tag` waits for no other."""

    def __getitem__(self, name: str) -> click.Command:
        summary, module = SUMMARIES[name], name.replace("-", "_") + "_" * iskeyword(name)
        command = getattr(import_module(f".commands.{module}", __package__), module)
        command.short_help = summary
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(SUMMARIES)

    def __len__(self) -> int:
        return len(SUMMARIES)


CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=_Group, commands=_Commands(), context_settings=CONTEXT)
@click.version_option(__version__, prog_name="kcrf")
def main() -> None:
    """Label sequences with kernelised conditional random fields.

    Data is CoNLL-style text: one position per line, columns separated by TAB or spaces, the label last, a
    blank line between sequences. CoNLL-U and CRFsuite attribute files work too, plain or compressed.

    \b
    Example:
      kcrf train sample_data/pitch_accent.conll -o model.npz
      kcrf tag -m model.npz sample_data/pitch_accent.conll | kcrf evaluate -
    """
