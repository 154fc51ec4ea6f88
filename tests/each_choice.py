"""A plugin of pytest: each value of each parameter every day, all combinations in the slow suite.

A test with several parameters that is marked `each_choice` is run every day with the first values of all parameters,
then with the second ones, and so on; shorter lists begin again. All other combinations are marked `slow`, except those
that have a value not yet tried, where parameters do not vary independently.
"""

from __future__ import annotations

from collections import defaultdict

import pytest


def places(combinations: list[dict]) -> list[dict[str, int]]:
    """Return, for each combination, the place of each value among those of its parameter."""
    values = defaultdict(list)  # by identity: not all of them can be compared
    for combination in combinations:
        for name, value in combination.items():
            if id(value) not in values[name]:
                values[name].append(id(value))
    return [{name: values[name].index(id(value)) for name, value in each.items()} for each in combinations]


def each_choice(combinations: list[dict]) -> list[bool]:
    """Return True for each combination to be tried every day."""
    found = places(combinations)
    sizes = {name: 1 + max(each[name] for each in found) for name in found[0]}
    turns = [{name: turn % size for name, size in sizes.items()} for turn in range(max(sizes.values()))]
    chosen = [each in turns for each in found]
    tried = {pair for each, taken in zip(found, chosen, strict=True) if taken for pair in each.items()}
    for number, each in enumerate(found):
        if not tried.issuperset(each.items()):
            chosen[number] = True
            tried.update(each.items())
    return chosen


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    families = defaultdict(list)
    for item in items:
        if item.get_closest_marker("each_choice"):
            families[item.nodeid.partition("[")[0]].append(item)
    for family in families.values():
        for item, chosen in zip(family, each_choice([item.callspec.params for item in family]), strict=True):
            if not chosen:
                item.add_marker(pytest.mark.slow)
