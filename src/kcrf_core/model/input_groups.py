"""What a term looks at, in groups that mean something to people: a column at one offset.

A group is taken away by what stands for nothing: the code of no value, zeros in the place of scaled numbers, which are
their means, no attributes at all. A kernel is evaluated on what is left, exactly as for any other input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..encoding import AttributeFeature, Encoding, Feature, RealFeature, View, field_name, real_names
from ..kernels import NOTHING, Group, Inputs

MOST_COLUMNS = 32  # of a feature up to which each number is told for itself
SHOWN_VALUES = 8  # of a pivot as text


@dataclass(frozen=True)
class InputGroup:
    """One column, or one feature, at one offset."""

    feature: Feature
    place: int  # of the offset in the feature's window
    columns: Group  # where it stands among columns
    column: str  # the name of a number among several; else that of the feature

    @property
    def offset(self) -> int | None:
        """None for attributes, which have none."""
        return None if self.columns.bag else self.feature.config.window[self.place]

    @property
    def name(self) -> str:
        """Without a value: `word[-1]`."""
        return self.column if self.offset is None else f"{self.column}[{self.offset}]"

    def described(self, inputs: Inputs, row: int) -> str:
        """With the value that an input has there: `word[-1]=the`."""
        if self.columns.codes:
            return field_name(self.feature, self.place, int(inputs.codes[row, self.columns.codes[0]]))
        if len(self.columns.real) == 1:
            return f"{self.name}={inputs.real[row, self.columns.real[0]]:.4g}"
        return self.name

    def taken_from(self, inputs: Inputs) -> Inputs:
        """The inputs without this group."""
        if self.columns.bag:
            return replace(inputs, bag=0 * inputs.bag, unseen=np.zeros(len(inputs)))
        if self.columns.codes:
            codes = inputs.codes.copy()
            codes[:, list(self.columns.codes)] = NOTHING
            return replace(inputs, codes=codes)
        real = inputs.real.copy()
        real[:, list(self.columns.real)] = 0.0
        return replace(inputs, real=real)


def input_groups(encoding: Encoding, features: Sequence[str]) -> list[InputGroup]:
    """The groups of a term that looks at these features, in the order of its inputs."""
    return _placed(encoding.views(features), encoding.labels)


def dataset_groups(encoding: Encoding) -> list[InputGroup]:
    """The groups of all features, in the order of a dataset's columns."""
    return _placed([View.of(feature) for feature in encoding.features], encoding.labels)


def _placed(views: Sequence[View], labels: Sequence[str]) -> list[InputGroup]:
    groups: list[InputGroup] = []
    next_code = next_real = 0
    for view in views:
        feature, name = view.feature, view.feature.config.name
        if isinstance(feature, AttributeFeature):
            groups.append(InputGroup(feature, 0, Group(bag=True), name))
            continue
        for place in view.places:
            if isinstance(feature, RealFeature):
                width = len(feature.mean)
                columns = range(next_real, next_real + width)
                next_real += width
                if 1 < width <= MOST_COLUMNS and feature.plain:
                    own = [each.rpartition("[")[0] for each in real_names(feature, labels)[:width]]
                    groups += [
                        InputGroup(feature, place, Group(real=(column,)), each)
                        for column, each in zip(columns, own, strict=True)
                    ]
                else:  # the numbers of a vector or a picture mean something together
                    groups.append(InputGroup(feature, place, Group(real=tuple(columns)), name))
            else:
                groups.append(InputGroup(feature, place, Group(codes=(next_code,)), name))
                next_code += 1
    return groups


def input_text(groups: Sequence[InputGroup], inputs: Inputs, row: int) -> str:
    """What an input has at its own position, or at all if that is nothing: for people to see what it is like."""
    own = [group for group in groups if not group.columns.bag and group.feature.config.window[group.place] == 0]
    parts = [group.described(inputs, row) for group in own or groups if not group.columns.bag]
    return ", ".join(parts[:SHOWN_VALUES]) + (", ..." if len(parts) > SHOWN_VALUES else "")
