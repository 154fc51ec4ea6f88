"""Sections of a file of the C library `kcrf_runtime`; its `internal.h` describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..errors import ConfigError
from ..runtime import QUANTIZED, pair_table, text_table, weight_rows

if TYPE_CHECKING:
    from ..chains import Edges
    from .model import ScoreCalibration

MAGIC, FILE_VERSION = b"KCRFTAG\0", 3
SECTIONS = (
    *("meta", "text", "names", "families", "parts", "slots", "pairs", "terms", "fields", "starts", "columns"),
    *("values", "numbers", "states", "unicode", "codes"),
)
META = (
    *("labels", "columns", "attributes", "reach", "order", "edges_apart", "posterior", "bonus", "value_bytes"),
    *("row_width", "sorted_bag", "calibrated", "pair_states", "transitions", "separator", "header", "comments"),
    *("format", "bag_family", "reserved"),
)
ITEM_BYTES = (4 * len(META) + 48, 1, 8, 56, 24, 16, 16, 64, 24, 4, 2, 1, 8, 4, 1, 4)  # of sections
NONE, NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
VALUE, CONJUNCTION, LEXICON, NUMBER, BAG = range(5)
PackedNames: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]  # text [bytes], where names begin, their lengths
# Width, where the weights of rows begin and end [D+1], their columns [K], weights [K].
WeightRows: TypeAlias = tuple[int, np.ndarray, np.ndarray, np.ndarray]
WORTH_FILLING = 4  # a row is whole that has weights for at least one in so many columns


def attribute_image(labels: Sequence[str], names: PackedNames, weights: WeightRows, edges: Edges) -> bytes:
    """Return the file of a linear model with a row of weights for each attribute, by the bytes of their names."""
    image, count = Image(QUANTIZED["none"]), len(names[1])
    every = np.arange(count)
    image.add_family(Family(BAG, count, table=image.table(names, every), number=0))
    image.add("fields", np.array([[0, 0, 0, 1, 0, 0]], "<u4"))
    image.add_term([0, len(labels), 0, 1, 0, 0, 0, 0], [image.add_rows(weights, every), count, 0, 0])
    return image.packed(image.meta(labels, edges, attributes=1, format=1))


def packed_names(names: Sequence[bytes]) -> PackedNames:
    """Return names as one text, and their places in it and lengths."""
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    return np.frombuffer(b"".join(names), np.uint8), np.cumsum(lengths) - lengths, lengths


class RuntimeLimitError(ConfigError):
    """A model of a kind that the library supports, and larger than it takes."""

    def __init__(self, what: str):
        super().__init__(f"{what}: tag with kcrf itself")
        self.what = what


def unsupported(what: str, *settings: str, remedy: str = "") -> ConfigError:
    told = f"{what}, which the runtime does not support: tag with kcrf itself"
    return ConfigError(f"{told}, {remedy}" if remedy else told, settings=settings)


@dataclass
class Family:
    """A family before families have their numbers, which are in the order of columns."""

    kind: int
    codes: int
    column: int = NONE
    transform: int = 0
    length: int = 0
    parts: list[tuple[int | Family, ...]] = field(default_factory=list)  # family, offset, pairs, bits, codes, flags
    table: tuple[int, int] = (0, 0)  # first slot and bits
    missing: int = NONE
    numbers: int = 0
    number: int = -1
    values: Sequence[str] = ()  # of a column as it is: others of the column may be looked up by them
    encode: Callable[[Sequence[str]], np.ndarray] | None = None  # codes of values of its column, negative for none

    def row(self, first_part: int) -> list[int]:
        about = [self.kind, self.column, self.transform, self.length, first_part, len(self.parts), *self.table]
        leads = len(self.values) > 0
        return [*about, self.codes, self.missing, leads, 0, self.numbers & NONE, self.numbers >> 32]


class Image:
    """The sections of a file while they are filled."""

    def __init__(self, value_bytes: int):
        self.value_bytes = value_bytes
        self.parts: dict[str, list[np.ndarray]] = {name: [] for name in SECTIONS}
        self.sizes = dict.fromkeys(SECTIONS, 0)
        self._add_text(b"\0")

    def add(self, section: str, rows: np.ndarray) -> int:
        """Put items behind those of a section; return the number of the first."""
        first = self.sizes[section]
        if first + len(rows) > NONE and section != "values":
            raise RuntimeLimitError(
                "the model has more than 4,294,967,295 weights, values of features or bytes of text"
            )
        self.parts[section].append(np.ascontiguousarray(rows))
        self.sizes[section] += len(rows)
        return first

    def _add_text(self, text: bytes | bytearray) -> int:
        return self.add("text", np.frombuffer(text, np.uint8))

    def table(self, names: PackedNames, codes: np.ndarray) -> tuple[int, int]:
        """Add the hash table of names with their codes [n]; return its first slot and its bits."""
        text, slots, bits = text_table(*names, codes.astype(np.uint32), self.sizes["text"])
        self._add_text(text)
        return self.add("slots", slots), bits

    def _table(self, values: Iterable[str], codes: np.ndarray) -> tuple[int, int]:
        return self.table(packed_names([value.encode("utf-8", "surrogatepass") for value in values]), codes)

    def _pairs(self, keys: np.ndarray, numbers: np.ndarray, flags: np.ndarray | None = None) -> tuple[int, int]:
        flags = np.zeros(len(keys), np.uint32) if flags is None else flags.astype(np.uint32)
        slots, bits = pair_table(keys.astype(np.uint64), numbers.astype(np.uint32), flags)
        return self.add("pairs", slots), bits

    def _numbers(self, values: np.ndarray) -> int:
        return self.add("numbers", np.asarray(values, dtype=np.float64).ravel())

    def add_family(self, family: Family) -> None:
        first = self.sizes["parts"]
        rows = [[own.number if isinstance(own, Family) else int(own) & NONE for own in part] for part in family.parts]
        self.add("parts", np.array(rows, np.uint32).reshape(-1, 6))
        self.add("families", np.array([family.row(first)], np.uint32))

    def add_term(self, small: Sequence[int], wide: Sequence[int]) -> None:
        """Add a `struct term`, by its numbers of 32 and of 64 bits."""
        self.add("terms", np.concatenate([np.array(small, "<u4").view("u1"), np.array(wide, "<u8").view("u1")])[None])

    def add_rows(self, weights: WeightRows, source: np.ndarray) -> int:
        """Add rows of weights, by their numbers, -1 for none; return the place of their first start."""
        starts, columns, values = weight_rows(*weights, source, self.sizes["columns"], WORTH_FILLING)
        self.add("columns", columns)
        self.add("values", values.astype(f"<f{self.value_bytes}").view("u1"))
        return self.add("starts", starts.astype(np.uint32))

    def meta(
        self,
        labels: Sequence[str],
        edges: Edges,
        columns: Sequence[str] = (),
        comments: Sequence[str] = (),
        transitions: np.ndarray | None = None,  # other than those of `edges`
        calibration: ScoreCalibration | None = None,
        bonuses: np.ndarray | None = None,
        **more: int,
    ) -> bytes:
        """Return the description of a model; `more` are members of `struct meta`."""
        states, place = edges.states(), dict[str, int]()
        transitions = edges.transitions if transitions is None else transitions
        place["start"], place["end"] = self._numbers(edges.start), self._numbers(edges.end)
        place["edges"] = self._numbers(transitions if states is None else states.pairs(transitions[None]))
        place["triples"] = place["offsets"] = 0
        more |= {"labels": len(labels), "columns": len(columns), "comments": len(comments), "order": 1}
        more |= {"value_bytes": self.value_bytes, "calibrated": calibration is not None}
        if states is not None:
            assert edges.triples is not None
            place["triples"] = self._numbers(states.blocks(edges.triples))
            own = (states.first, states.second, states.begin, states.into, states.into_begin, states.block)
            self.add("states", np.concatenate(own).astype(np.int32))
            more |= {"order": 2, "pair_states": len(states.first), "transitions": len(states.triples)}
        if bonuses is not None:
            pairs = bonuses[:-1] if states is None else states.pairs(bonuses[None, :-1])
            more["bonus"] = 1 + self._numbers(np.concatenate([bonuses[-1], pairs.ravel()]))
        if calibration is not None:
            place["offsets"] = self._numbers(calibration.offsets)
        texts = [name.encode() for name in (*labels, *columns, *comments)]
        self.add("names", np.array([[self._add_text(text + b"\0"), len(text)] for text in texts], "<u4").reshape(-1, 2))
        sharpness = 1.0 if calibration is None else calibration.sharpness
        small = np.array([more.get(name, 0) for name in META], "<u4")
        places = [place[name] for name in ("start", "end", "edges", "triples", "offsets")]
        return small.tobytes() + np.array([sharpness]).tobytes() + np.array(places, "<u8").tobytes()

    def packed(self, meta: bytes) -> bytes:
        """Return the file."""
        body, table, at = list[Any](), list[int](), 24 + 24 * len(SECTIONS)
        self.add("meta", np.frombuffer(meta, np.uint8)[None])
        for number, (name, item) in enumerate(zip(SECTIONS, ITEM_BYTES, strict=True)):
            size = self.sizes[name] * item
            assert size == sum(part.nbytes for part in self.parts[name]), name
            table += number | item << 32, at, self.sizes[name]
            body += *self.parts[name], bytes(-size % 8)
            at += size + -size % 8
        rest = b"".join([np.array(table, "<u8").tobytes(), *body])
        head = np.array([FILE_VERSION | len(SECTIONS) << 32, 24 + len(rest)], "<u8")
        return MAGIC + head.tobytes() + rest
