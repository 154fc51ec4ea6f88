"""What a term looks at, in groups that mean something to people: a column at one offset.

A group is taken away by what stands for nothing: the code of no value, zeros in the place of scaled numbers, which are
their means, no attribute. A kernel is evaluated on what is left, exactly as for any other input.

Of attributes, each that a position has is a group of its own where positions are explained (`AttributeSlot`). Over data
they go together by what stands before `=` or the last `:` of their names, as `w[-1]` of `w[-1]=the`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..encoding import AttributeFeature, Encoding, Feature, RealFeature, View, field_name, real_names
from ..kernels import NOTHING, Group, Inputs

MOST_COLUMNS = 32  # of a feature up to which each number is told for itself
MOST_PREFIXES = 200  # of attributes up to which they make groups; more are names of their own
UNSEEN_ATTRIBUTES = "attributes that training has not seen"
SHOWN_VALUES = 8  # of a pivot as text


@dataclass(frozen=True)
class InputGroup:
    """One column, or one feature, at one offset."""

    feature: Feature
    place: int  # of the offset in the feature's window
    columns: Group  # where it stands among columns
    column: str  # the name of a number among several; else that of the feature
    attributes: np.ndarray | None = None  # [A] bool, of those that are one group; None: all of them

    @property
    def bag_feature(self) -> AttributeFeature:
        """The feature, where it is one of attributes."""
        assert isinstance(self.feature, AttributeFeature)
        return self.feature

    @property
    def offset(self) -> int | None:
        """None for attributes, which have none."""
        return None if self.columns.bag else self.feature.config.seen[self.place]

    @property
    def name(self) -> str:
        """Without a value: `word[-1]`."""
        return self.column if self.offset is None else f"{self.column}[{self.offset}]"

    def described(self, inputs: Inputs, row: int) -> str:
        """With the value that an input has there: `word[-1]=the`."""
        if self.columns.codes:
            assert not isinstance(self.feature, RealFeature | AttributeFeature)
            return field_name(self.feature, self.place, int(inputs.codes[row, self.columns.codes[0]]))
        if len(self.columns.real) == 1:
            return f"{self.name}={inputs.real[row, self.columns.real[0]]:.4g}"
        return self.name

    def taken_from(self, inputs: Inputs) -> Inputs:
        """The inputs without this group."""
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
    """One attribute of each position: the first that it has, the second and so on; or those that training has not seen,
    which only count by their length.
    """

    feature: AttributeFeature
    slot: int | None  # None: what is unseen

    def present(self, inputs: Inputs) -> np.ndarray:
        """Where an input has it, [n] bool."""
        return inputs.unseen > 0 if self.slot is None else np.diff(inputs.own_bag.indptr) > self.slot

    def described(self, inputs: Inputs, row: int) -> str:
        """Its name."""
        if self.slot is None:
            return UNSEEN_ATTRIBUTES
        return self.feature.vocabulary.values[inputs.own_bag.indices[inputs.own_bag.indptr[row] + self.slot]]

    def taken_from(self, inputs: Inputs) -> Inputs:
        """The inputs without it."""
        if self.slot is None:
            return replace(inputs, unseen=np.zeros(len(inputs)))
        bag = inputs.own_bag.copy()
        bag.data[bag.indptr[:-1][self.present(inputs)] + self.slot] = 0.0
        bag.eliminate_zeros()
        return replace(inputs, bag=bag)


def with_slots(groups: Sequence[InputGroup], inputs: Inputs) -> list[InputGroup | AttributeSlot]:
    """Groups for these inputs: in the place of all attributes each that some of them have."""
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


def input_groups(encoding: Encoding, features: Sequence[str]) -> list[InputGroup]:
    """The groups of a term that looks at these features, in the order of its inputs."""
    return _placed(encoding.views(features), encoding.labels)


def dataset_groups(encoding: Encoding) -> list[InputGroup]:
    """The groups of all features, in the order of a dataset's columns; attributes by how their names begin."""
    out: list[InputGroup] = []
    for group in _placed([View.of(feature) for feature in encoding.features], encoding.labels):
        out += _by_prefix(group) if group.columns.bag else [group]
    return out


def _by_prefix(group: InputGroup) -> list[InputGroup]:
    prefixes = [_prefix(name) for name in group.bag_feature.vocabulary.values]
    distinct = list(dict.fromkeys(prefixes))
    if len(distinct) > MOST_PREFIXES:
        return [group]
    own = np.array(prefixes, dtype=object)
    return [replace(group, column=prefix, attributes=own == prefix) for prefix in distinct]


def _prefix(attribute: str) -> str:
    """What an attribute is about: `w[-1]` of `w[-1]=the`, `next:word` of `next:word:sat`, all of a plain name."""
    before, equals, _ = attribute.partition("=")
    if equals and before:
        return before
    return attribute.rpartition(":")[0] or attribute


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
    own = [group for group in groups if not group.columns.bag and group.feature.config.seen[group.place] == 0]
    parts = [group.described(inputs, row) for group in own or groups if not group.columns.bag]
    for group in groups:
        if group.columns.bag:
            values = group.bag_feature.vocabulary.values
            bag = inputs.own_bag
            parts += [values[a] for a in bag.indices[bag.indptr[row] : bag.indptr[row + 1]]]
    return ", ".join(parts[:SHOWN_VALUES]) + (", ..." if len(parts) > SHOWN_VALUES else "")
