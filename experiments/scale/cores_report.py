"""Tables of README.md and a plot of what `cores.py` measured, perhaps elsewhere: cores_report.py RESULTS PICTURE."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from readme import fill, table

README = Path(__file__).parent / "README.md"
TITLES = {"passes": "seconds per pass", "commands": "seconds of a command"}


def numbers(results: dict) -> list[int]:
    """All numbers of threads that something was measured with."""
    groups = (jobs for version in results["versions"].values() for jobs in version.values())
    return sorted({int(number) for jobs in groups for found in jobs.values() for number in found})


def seconds(results: dict, group: str) -> str:
    """A row for each job and version."""
    threads = numbers(results)
    several = len(results["versions"]) > 1
    rows = []
    for name in dict.fromkeys(name for version in results["versions"].values() for name in version.get(group, ())):
        for version, found in results["versions"].items():
            own = found.get(group, {}).get(name)
            if not own:
                continue
            most = str(max(map(int, own)))
            gain = f"{own['1'] / own[most]:.1f}" if "1" in own else "-"
            figures = [f"{own[str(number)]:.3g}" if str(number) in own else "-" for number in threads]
            rows.append([f"{name} ({version})" if several else name, *figures, gain])
    return table([TITLES[group], *(counted(number) for number in threads), "gain"], rows)


def counted(number: int) -> str:
    return f"{number} thread{'s' * (number > 1)}"


def traffic(results: dict) -> str:
    """The least bytes of passes, how long a bare copy takes for them, and how long the pass takes."""
    copy = {int(number): rate for number, rate in results.get("copy", {}).items()}
    rows = [["bare copy, GB/s", "", *(f"{copy[number] / 1e9:.0f}" for number in sorted(copy))]]
    version = list(results["versions"].values())[-1]
    for name, least in results.get("bytes", {}).items():
        own = version.get("passes", {}).get(name, {})
        shares = (
            f"{least / copy[number] / own[str(number)]:.2f}" if str(number) in own else "-" for number in sorted(copy)
        )
        rows.append([f"{name}: share of the copy's rate", f"{least / 1e6:,.0f}", *shares])
    return table(["", "least MB a pass", *(counted(number) for number in sorted(copy))], rows)


def picture(path: str, results: dict) -> None:
    """How many times faster than one thread of the first version that was measured so."""
    versions = results["versions"]
    groups = [group for group in TITLES if any(group in one for one in versions.values())]
    size = (5.5 * len(groups), 4.5)
    figure, [panels] = plt.subplots(1, len(groups), figsize=size, layout="constrained", sharey=True, squeeze=False)
    most = max(numbers(results))
    for axes, group in zip(panels, groups, strict=True):
        axes.plot([1, most], [1, most], color="grey", linewidth=1)
        for style, (version, found) in zip(("-o", "--s", ":^"), reversed(versions.items()), strict=False):
            for place, (name, own) in enumerate(found.get(group, {}).items()):
                ones = (other.get(group, {}).get(name, {}).get("1") for other in versions.values())
                one = next((value for value in ones if value), None)
                if one is None:
                    continue
                threads = sorted(map(int, own))
                label = name if len(versions) == 1 else f"{name} ({version})"
                axes.plot(threads, [one / own[str(t)] for t in threads], style, color=f"C{place}", label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:g}")
        axes.set_xlabel("threads")
        axes.set_title(TITLES[group].replace("seconds", "speed"))
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=7)
    panels[0].set_ylabel("times faster than one thread")
    figure.savefig(path, dpi=120, metadata={"Software": None})


def main() -> None:
    results = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    parts = [seconds(results, group) for group in TITLES if any(group in one for one in results["versions"].values())]
    if results.get("copy"):
        parts.append(traffic(results))
    fill(README, "\n\n".join(parts), name="threads", taken_with=". ".join(results["taken_with"]))
    picture(sys.argv[2], results)


if __name__ == "__main__":
    main()
