"""Inputs of a term in groups that mean something to people: a column at one offset.

A group is removed by the code of no value, by zeros, the means of scaled numbers, or by dropping attributes, each of
which is a group of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..corpora import NUMBER_TRANSFORMS
from ..encoding import AttributeFeature, Feature, RealFeature, View, field_name, real_names
from ..kernels import NOTHING, Group, Inputs

MOST_COLUMNS = 32  # of a feature up to which each number is a group
UNSEEN_ATTRIBUTES = "attributes that training has not seen"
SHOWN_VALUES = 8  # of a pivot as text


@dataclass(frozen=True)
class InputGroup:
    """One column, or one feature, at one offset."""

    feature: Feature
    place: int  # of the offset in the feature's window
    columns: Group  # where it stands among columns
    column: str  # the name of a number among several; else that of the feature

    @property
    def bag_feature(self) -> AttributeFeature:
        assert isinstance(self.feature, AttributeFeature)
        return self.feature

    @property
    def offset(self) -> int | None:
        """Offset of the column, None for attributes."""
        return None if self.columns.bag else self.feature.config.seen[self.place]

    @property
    def name(self) -> str:
        """Name without a value: `word[-1]`."""
        return self.column if self.offset is None else f"{self.column}[{self.offset}]"

    def described(self, inputs: Inputs, row: int) -> str:
        """Return the name with the value of an input: `word[-1]=the`."""
        if self.columns.codes:
            assert not isinstance(self.feature, RealFeature | AttributeFeature)
            return field_name(self.feature, self.place, None, int(inputs.codes[row, self.columns.codes[0]]))
        if len(self.columns.real) == 1:
            return f"{self.name}={inputs.real[row, self.columns.real[0]]:.4g}"
        return self.name

    def taken_from(self, inputs: Inputs) -> Inputs:
        """Return the inputs without this group."""
        if self.columns.bag:
            return replace(inputs, bag=0 * inputs.own_bag, unseen=np.zeros(len(inputs)))
        if self.columns.codes:
            codes = inputs.codes.copy()
            codes[:, list(self.columns.codes)] = NOTHING
            return replace(inputs, codes=codes)
        real = inputs.real.copy()
        real[:, list(self.columns.real)] = 0.0
        return replace(inputs, real=real)


@dataclass(frozen=True)
class AttributeSlot:
    """One attribute of each position, by its number in the position, or all that training has not seen."""

    feature: AttributeFeature
    slot: int | None  # None: what is unseen

    def present(self, inputs: Inputs) -> np.ndarray:
        """Return True for each input that has it, [n]."""
        return inputs.unseen > 0 if self.slot is None else np.diff(inputs.own_bag.indptr) > self.slot

    def described(self, inputs: Inputs, row: int) -> str:
        if self.slot is None:
            return UNSEEN_ATTRIBUTES
        return self.feature.vocabulary.values[inputs.own_bag.indices[inputs.own_bag.indptr[row] + self.slot]]

    def taken_from(self, inputs: Inputs) -> Inputs:
        if self.slot is None:
            return replace(inputs, unseen=np.zeros(len(inputs)))
        bag = inputs.own_bag.copy()
        bag.data[bag.indptr[:-1][self.present(inputs)] + self.slot] = 0.0
        bag.eliminate_zeros()
        return replace(inputs, bag=bag)


def with_slots(groups: Sequence[InputGroup], inputs: Inputs) -> list[InputGroup | AttributeSlot]:
    """Return groups for these inputs, each attribute by itself."""
    out: list[InputGroup | AttributeSlot] = []
    for group in groups:
        if not group.columns.bag:
            out.append(group)
            continue
        most = int(np.diff(inputs.own_bag.indptr).max(initial=0))
        out += [AttributeSlot(group.bag_feature, slot) for slot in range(most)]
        if (inputs.unseen > 0).any():
            out.append(AttributeSlot(group.bag_feature, None))
    return out


def input_groups(views: Sequence[View]) -> list[InputGroup]:
    """Return the groups of features in these views, in the order of their columns."""
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
                if 1 < width <= MOST_COLUMNS and (feature.plain or feature.config.transform in NUMBER_TRANSFORMS):
                    own = [each.rpartition("[")[0] for each in real_names(feature)[:width]]
                    pairs = zip(columns, own, strict=True)
                    groups += [InputGroup(feature, place, Group(real=(column,)), each) for column, each in pairs]
                else:  # the numbers of a vector or an image mean something together
                    groups.append(InputGroup(feature, place, Group(real=tuple(columns)), name))
            else:
                groups.append(InputGroup(feature, place, Group(codes=(next_code,)), name))
                next_code += 1
    return groups


def input_text(groups: Sequence[InputGroup], inputs: Inputs, row: int) -> str:
    """Return the values of an input at its own position, or all values if it has none there, as text."""
    own = [group for group in groups if not group.columns.bag and group.feature.config.seen[group.place] == 0]
    parts = [group.described(inputs, row) for group in own or groups if not group.columns.bag]
    for group in groups:
        if group.columns.bag:
            values = group.bag_feature.vocabulary.values
            bag = inputs.own_bag
            parts += [values[a] for a in bag.indices[bag.indptr[row] : bag.indptr[row + 1]]]
    return ", ".join(parts[:SHOWN_VALUES]) + (", ..." if len(parts) > SHOWN_VALUES else "")
