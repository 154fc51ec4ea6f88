"""Sections of a file of the C library `kcrf_runtime`; its `internal.h` describes them."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from .._lazy import deferred
from ..errors import ConfigError
from ..runtime import QUANTIZED, pair_table, text_table, weight_rows

if TYPE_CHECKING:
    import numpy as np

    from ..chains import Edges
    from .model import ScoreCalibration
else:
    np = deferred("numpy")  # models of CRFsuite need none

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
ITEM_BYTES = dict(zip(SECTIONS, (4 * len(META) + 48, 1, 8, 56, 24, 16, 16, 64, 24, 4, 2, 1, 8, 4, 1, 4), strict=True))
NONE, NONE64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
VALUE, CONJUNCTION, LEXICON, NUMBER, BAG = range(5)
OF_CONJUNCTIONS, OF_PAIRS, IN_HALVES = 1, 2, 4
PackedNames: TypeAlias = tuple[Any, Any, Any]  # text [bytes], where names begin, their lengths; arrays of any kind
# Width, where the weights of rows begin and end [D+1], their columns [K], weights [K].
WeightRows: TypeAlias = tuple[int, Any, Any, Any]
TOO_LARGE = "the model has more than 4,294,967,295 weights, values of features or bytes of text"
WORTH_FILLING = 4  # a row is whole that has weights for at least one in so many columns


def attribute_image(
    labels: Sequence[str],
    names: PackedNames,
    weights: WeightRows,
    transitions: Any,  # [Y, Y]
    ends: tuple[Any, Any] | None = None,  # scores [Y] of first and last labels; None: zeros
    **more: int,  # members of `struct meta`
) -> bytes:
    """Return the file of a linear model with a row of weights for each attribute, by the bytes of their names."""
    image = Image(QUANTIZED["none"])
    return image.packed(_describe_attributes(image, labels, labels, names, weights, transitions, ends, **more))


def attribute_sections(
    labels: Sequence[str],
    places: array[int],  # [2 Y] where labels begin in the text and their lengths, then a zero byte
    names: PackedNames,
    weights: WeightRows,
    transitions: Any,  # [Y, Y]
) -> list[tuple[int, Any]]:
    """Return the sections of such a model, for `RuntimeModel`; their text is that of the names."""
    image = Image(QUANTIZED["none"], names[0])
    return image.sections(_describe_attributes(image, labels, places, names, weights, transitions))


def _describe_attributes(
    image: Image,
    labels: Sequence[str],
    label_names: Sequence[str] | array[int],
    names: PackedNames,
    weights: WeightRows,
    transitions: Any,
    ends: tuple[Any, Any] | None = None,
    **more: int,
) -> bytes:
    count, width = len(names[1]), weights[0]
    image.add_family(Family(BAG, count, table=image.table(names), number=0))
    image.add("fields", array("I", [0, 0, 0, 1, 0, 0]))
    kind = IN_HALVES * (width < len(labels))
    image.add_term([kind, width, 0, 1, 0, 0, 0, 0], [image.add_rows(weights), count, 0, 0])
    zeros = bytes(8 * len(labels))
    start, end = (image.add("numbers", own) for own in ends or (zeros, zeros))
    place = {"start": start, "end": end, "edges": image.add("numbers", transitions)}
    return image.described(label_names, place, labels=len(labels), order=1, attributes=1, format=1, **more)


def packed_names(names: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return names as one text, and their places in it and lengths."""
    lengths = np.fromiter(map(len, names), np.int64, len(names))
    return np.frombuffer(b"".join(names), np.uint8), np.cumsum(lengths) - lengths, lengths


class RuntimeLimitError(ConfigError):
    """A model of a kind that the library supports, and larger than it takes."""

    def __init__(self, what: str):
        super().__init__(f"{what}: tag with kcrf itself")
        self.what = what


def unsupported(what: str, remedy: str = "", settings: Sequence[str] = ()) -> ConfigError:
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

    def __init__(self, value_bytes: int, text: Any = None):  # text: all that names and labels stand in
        self.value_bytes, self.has_text = value_bytes, text is not None
        self.parts: dict[str, list[memoryview]] = {name: [] for name in SECTIONS}
        self.sizes = dict.fromkeys(SECTIONS, 0)
        self.add("text", b"\0" if text is None else text)

    def add(self, section: str, rows: Any) -> int:
        """Put items behind those of a section; return the number of the first."""
        first, view = self.sizes[section], memoryview(rows)
        count = view.nbytes // ITEM_BYTES[section]
        if first + count > NONE and section != "values":
            raise RuntimeLimitError(TOO_LARGE)
        self.parts[section].append(view if view.c_contiguous else memoryview(view.tobytes()))
        self.sizes[section] += count
        return first

    def table(self, names: PackedNames, codes: np.ndarray | None = None) -> tuple[int, int]:
        """Add the hash table of names with their codes [n], or 0, 1, ...; return its first slot and its bits."""
        numbers = None if codes is None else codes.astype(np.uint32)
        first = -1 if self.has_text else self.sizes["text"]
        low, high, slots, bits = text_table(*names, numbers, first)
        if not self.has_text:
            self.add("text", memoryview(names[0])[low:high])
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
        self.add("parts", array("I", [number for row in rows for number in row]))
        self.add("families", array("I", family.row(first)))

    def add_term(self, small: Sequence[int], wide: Sequence[int]) -> None:
        """Add a `struct term`, by its numbers of 32 and of 64 bits."""
        self.add("terms", struct.pack("<8I4Q", *small, *wide))

    def add_rows(self, weights: WeightRows, source: np.ndarray | None = None) -> int:
        """Add rows of weights, all or by their numbers, -1 for none; return the place of their first start."""
        try:
            starts, columns, values = weight_rows(*weights, source, self.sizes["columns"], WORTH_FILLING)
        except OverflowError:
            raise RuntimeLimitError(TOO_LARGE) from None
        self.add("columns", columns)
        self.add("values", values if self.value_bytes == 8 else np.asarray(values).astype(f"<f{self.value_bytes}"))
        return self.add("starts", starts)

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
        more |= {"labels": len(labels), "columns": len(columns), "comments": len(comments), "order": 1}
        more["calibrated"] = calibration is not None
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
        sharpness = 1.0 if calibration is None else calibration.sharpness
        return self.described((*labels, *columns, *comments), place, sharpness, **more)

    def described(
        self, names: Sequence[str] | array[int], place: dict[str, int], sharpness: float = 1.0, **more: int
    ) -> bytes:
        """Return a `struct meta` of members and of places among the numbers, 0 where none is given.

        `names` may be places and lengths in the text.
        """
        if isinstance(names, array):
            self.add("names", names)
        else:
            for text in (name.encode() for name in names):
                self.add("names", array("I", [self.add("text", text + b"\0"), len(text)]))
        more["value_bytes"] = self.value_bytes
        places = [place.get(name, 0) for name in ("start", "end", "edges", "triples", "offsets")]
        return struct.pack(f"<{len(META)}Id5Q", *(more.get(name, 0) for name in META), sharpness, *places)

    def sections(self, meta: bytes) -> list[tuple[int, Any]]:
        """Return the number of items and the bytes of each section."""
        self.add("meta", meta)
        sections: list[tuple[int, Any]] = []
        for name in SECTIONS:
            parts = self.parts[name]
            whole = parts[0].cast("B") if len(parts) == 1 else b"".join(parts)
            sections.append((self.sizes[name], whole))
        return sections

    def packed(self, meta: bytes) -> bytes:
        """Return the file."""
        body, table, at = list[Any](), list[int](), 24 + 24 * len(SECTIONS)
        self.add("meta", meta)
        for number, (name, item) in enumerate(ITEM_BYTES.items()):
            size = self.sizes[name] * item
            table += number | item << 32, at, self.sizes[name]
            body += *self.parts[name], bytes(-size % 8)
            at += size + -size % 8
        header = struct.pack("<QQ", FILE_VERSION | len(SECTIONS) << 32, at)
        return b"".join([MAGIC, header, struct.pack(f"<{len(table)}Q", *table), *body])
