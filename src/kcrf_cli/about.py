"""Options of `kcrf` itself: versions of what it runs on, and scripts that complete its command lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from kcrf_core._version import __version__

PACKAGES = ("click", "numpy", "scipy", "pyyaml", "tqdm", "threadpoolctl")
OPTIONAL = ("matplotlib", "scikit-learn")
SHELLS = ("bash", "zsh", "fish")


def versions() -> str:
    """Return the versions that a bug report should have, one line each."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import numpy  # noqa: F401, brings its BLAS
    from threadpoolctl import threadpool_info

    from kcrf_core.system import available_threads

    lines = [("kcrf", __version__), ("Python", f"{platform.python_version()} ({platform.python_implementation()})")]
    for package in (*PACKAGES, *OPTIONAL):
        try:
            lines.append((package, version(package)))
        except PackageNotFoundError:
            lines.append((package, "not installed" + " (optional)" * (package in OPTIONAL)))
    lines += [("system", platform.platform()), ("cores", str(available_threads()))]
    for info in threadpool_info():  # libraries that have threads of their own, BLAS above all
        about = filter(None, (info["internal_api"], info["version"], info.get("architecture")))
        lines.append((info["user_api"], " ".join(about)))
    return "\n".join(f"{name}: {value}" for name, value in lines)


def completion(shell: str, command: click.Command) -> str:
    """Return the script that completes command lines in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # the shells of the option are those of click
    return kind(command, {}, "kcrf", "_KCRF_COMPLETE").source()


def _printing(name: str, help: str, show: Callable[[Any, click.Command], str], **more: Any) -> Any:
    """Return an option that prints what `show` returns and ends the program."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value and not ctx.resilient_parsing:
            click.echo(show(value, ctx.command))
            ctx.exit()

    return click.option(name, is_eager=True, expose_value=False, callback=callback, help=help, **more)


show_versions = _printing(
    "--show-versions",
    "Show the versions of kcrf and of what it runs on, and exit.",
    lambda value, command: versions(),
    is_flag=True,
)
show_completion = _printing(
    "--completion", "Print a script that completes command lines, and exit.", completion, type=click.Choice(SHELLS)
)
