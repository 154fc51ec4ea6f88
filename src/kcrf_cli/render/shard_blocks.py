"""Shards as lines, so that `tag` can write what it finds out about them: a number in the source, and a gold label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from kcrf_core.corpora import COLUMN_FORMAT, FORMATS, Block, Layout, ParsedBlock
from kcrf_core.encoding import UNKNOWN, UNOBSERVED, Dataset, Encoding
from kcrf_core.model import ShardFolder
from kcrf_core.system import sequence_chunks

ROWS_AT_ONCE = 1 << 14
BY_TABS = Layout(separator="\t", header=False)


@dataclass(frozen=True)
class ShardBlock(ParsedBlock):
    """Some sequences of a shard, and lines that stand for them."""

    dataset: Dataset | None = None

    @classmethod
    def of(cls, dataset: Dataset, encoding: Encoding) -> ShardBlock:
        lines = list(map(str, dataset.lines.tolist()))
        if dataset.labels is not None:
            names: dict[int, str | None] = dict(enumerate(encoding.labels))
            names |= {UNKNOWN: "<unknown>", UNOBSERVED: encoding.unobserved}
            lines = [f"{line}\t{names[label]}" for line, label in zip(lines, dataset.labels.tolist(), strict=True)]
        for end in dataset.offsets[1:].tolist():
            lines[end - 1] += "\n"
        block = Block(1, ("\n".join(lines) + "\n").encode())
        (found,) = FORMATS[COLUMN_FORMAT].parse([block], dataset.source or "", layout=BY_TABS)
        return cls(found.block, found.corpus, found.separator, found.ends, found.layout, dataset=dataset)


def shard_blocks(folder: ShardFolder) -> Iterator[Callable[[], ShardBlock]]:
    """Yield functions that make blocks of the shards, one after another, for any thread to call."""
    for dataset in folder.datasets():
        for span in sequence_chunks(dataset.offsets, ROWS_AT_ONCE):
            yield partial(ShardBlock.of, dataset.span(*span), folder.encoding)
