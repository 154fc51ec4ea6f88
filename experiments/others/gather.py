"""Public data sets in a design and a validation half. `gather.py FOLDER CLONES [NAME ...]`; `gather.py --list`.

CLONES is a folder with clones of the repositories in `SOURCES`, each as OWNER+NAME, OWNER/NAME or NAME, with or without
a work tree. Files are read from one fixed commit and their SHA-256 is checked. FOLDER/HALF/NAME/train.conll and
test.conll are written, HALF being design or validation, and FOLDER/README lists them. What is drawn at random is drawn
by SHA-256 of SEED and a name: the same on every machine. Of each kind of input (`KINDS`) the first two sets in that
order are for design, all others for validation.
"""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import re
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

Row = tuple[str, ...]  # columns, the label last
Rows = list[Row]  # of one sequence
Groups = dict[str, list[Rows]]  # sequences by recording, document, writer: never in both parts
Parts = tuple[Groups, Groups]
Files = dict[str, bytes]  # by path

SEED = 52
DESIGN = 2  # sets of each kind
EVERY = 4  # of four groups one is for the test, where a source has no test part
LIMIT, TEST_LIMIT = 40_000, 20_000  # positions
SPACE = "␣"


@dataclass(frozen=True)
class Source:
    """Files of a repository at a commit; the licence as its owner states it."""

    repository: str
    commit: str
    paths: tuple[str, ...]  # patterns
    sha256: str  # of all paths and contents, in the order of paths
    licence: str


@dataclass(frozen=True)
class DataSet:
    """One set: kind of its inputs, columns, what it is, where it comes from, and what makes its parts."""

    kind: str  # numbers, symbols or words
    columns: str
    about: str
    source: Source
    parts: Callable[[Files], Parts]


def drawn(names: Iterable[str], purpose: str) -> list[str]:
    """Return names in a random order that depends on SEED, purpose and the names alone."""
    return sorted(names, key=lambda name: hashlib.sha256(f"{SEED} {purpose} {name}".encode()).digest())


def every_fourth(groups: Groups) -> Parts:
    """Put every fourth group into the test part."""
    names = list(groups)
    test = names[EVERY - 1 :: EVERY]
    return {name: groups[name] for name in names if name not in set(test)}, {name: groups[name] for name in test}


def cut(groups: Groups, limit: int, purpose: str) -> list[Rows]:
    """Return sequences of groups that are drawn until `limit` positions are reached, in their first order."""
    taken, total = set(), 0
    for name in drawn(groups, purpose):
        size = sum(map(len, groups[name]))
        if total + size <= limit or not taken:
            taken.add(name)
            total += size
    return [rows for name, sequences in groups.items() if name in taken for rows in sequences]


def number(value: float) -> str:
    return f"{value:.5g}" if math.isfinite(value) else "0"


def table(files: Files, path: str, delimiter: str = ",") -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(files[path].decode("utf-8-sig")), delimiter=delimiter))


def blocks(sequences: Sequence[Rows], size: int) -> Groups:
    """Groups of consecutive sequences, where a source does not say where documents end."""
    return {f"{k:05d}": list(sequences[k : k + size]) for k in range(0, len(sequences), size)}


# Numbers: few long recordings, strokes, beats.


def exercises(files: Files) -> Parts:
    """The second of three recordings of each person is for the test: all its exercises are among the others."""
    folder = "bnpy/datasets/mocap6"
    actions = table(files, f"{folder}/actions_per_tstep.csv")
    groups: Groups = {}
    for sensors, action in zip(table(files, f"{folder}/sensor_data_per_tstep.csv"), actions, strict=True):
        values = [number(float(value)) for name, value in sensors.items() if name not in ("seq_id", "tstep_id")]
        assert (sensors["seq_id"], sensors["tstep_id"]) == (action["seq_id"], action["tstep_id"])
        groups.setdefault(sensors["seq_id"], [[]])[0].append((*values, action["action_name"]))
    test = {name: groups.pop(name) for name in ("1", "4")}
    return groups, test


def gestures(files: Files) -> Parts:
    """The third story of each of three persons is for the test; other stories of these persons are trained on."""

    def phase(row: dict[str, str]) -> str:
        return row["phase"].replace("Preparação", "Preparation")

    training: Groups = {}
    test: Groups = {}
    for path in sorted(files):
        name = Path(path).name[:2]
        rows = [
            (*(number(float(row[column])) for column in row if column not in ("timestamp", "phase")), phase(row))
            for row in table(files, path)
        ]
        (test if name.endswith("3") else training)[name] = [rows]
    return training, test


def pump(files: Files) -> Parts:
    groups: Groups = {}
    for path in sorted(files):
        rows = []
        for row in table(files, path, ";"):
            values = [number(float(row[name])) for name in row if name not in ("datetime", "anomaly", "changepoint")]
            rows.append((*values, "anomaly" if float(row["anomaly"]) else "normal"))
        groups[path] = [rows]
    return every_fourth(groups)


def gaze(files: Files) -> Parts:
    """Every second of 500 samples a second; persons are groups."""
    from scipy.io import loadmat

    events = {1: "fixation", 2: "saccade", 3: "after_saccade", 4: "pursuit", 5: "blink", 6: "undefined"}
    groups: Groups = {}
    for path in sorted(files, key=lambda path: Path(path).name):
        data = loadmat(io.BytesIO(files[path]), struct_as_record=False, squeeze_me=True)["ETdata"].pos
        rows = []
        for t in range(2, len(data), 2):
            x, y = (float(value) for value in data[t, 3:5])
            speed = math.hypot(*(float(a - b) for a, b in zip(data[t, 3:5], data[t - 2, 3:5], strict=True)))
            rows.append((number(x), number(y), number(speed), events[int(data[t, 5])]))
        groups.setdefault(Path(path).name[:4], []).append(rows)
    return every_fourth(groups)


def strokes(files: Files) -> Parts:
    """Strokes of a sentence, measured by the median height of its strokes; the given split of writers."""
    folder = "ImadocSen-OnDB"
    given = files[f"{folder}/task1.txt"].decode().split("## test set ##")
    writers = [set(re.findall(r"\bwriter\w+", part)) for part in given]
    training: Groups = {}
    test: Groups = {}
    for path in sorted(files):
        if not path.endswith(".inkml"):
            continue
        writer = path.split("/")[-2]
        traces = []  # points and whether a word begins
        for group in ElementTree.fromstring(files[path]).iter("traceGroup"):
            for place, trace in enumerate(group.findall("trace")):
                points = [tuple(map(float, point.split()[:2])) for point in trace.text.split(",")]
                traces.append((points, place == 0))
        if not traces:
            continue
        heights = [max(y for _, y in points) - min(y for _, y in points) for points, _ in traces]
        scale = median(heights) or 1.0
        rows, before, right = [], traces[0][0][0], traces[0][0][0][0]
        for (points, first), height in zip(traces, heights, strict=True):
            left = min(x for x, _ in points)
            length = sum(math.dist(a, b) for a, b in itertools.pairwise(points))
            values = [
                points[0][0] - before[0],  # from the end of the stroke before
                points[0][1] - before[1],
                left - right,  # from the right edge of all strokes before
                max(x for x, _ in points) - left,
                height,
                length,
            ]
            rows.append((*(number(value / scale) for value in values), "begin" if first else "inside"))
            before, right = points[-1], max(right, *(x for x, _ in points))
        for part, own in zip((training, test), writers, strict=True):
            if writer in own:
                part.setdefault(writer.rstrip("abcdefghijk"), []).append(rows)
    assert not set(training) & set(test)
    return training, test


CLASSES = {"N": "NLRej", "S": "AaJS", "V": "VE", "F": "F", "Q": "/fQ"}  # of the AAMI
BEATS = {beat: kind for kind, every in CLASSES.items() for beat in every}
PACED = ("102", "104", "107", "217")
SAME = {"202": "201"}  # two recordings of one person


def beats(files: Files) -> Parts:
    """The first 1,000 beats of each recording: time from the beat before, to the next, ratio to the last ten."""
    groups: Groups = {}
    for path in sorted(files):
        record = Path(path).name[:3]
        if record in PACED:
            continue
        found = []  # seconds and kind
        for line in files[path].decode().splitlines()[1:]:
            cells = line.split()
            if cells[2] in BEATS:
                found.append((int(cells[1]) / 360, BEATS[cells[2]]))
        gaps = [b[0] - a[0] for a, b in itertools.pairwise(found)]
        rows = []
        for t in range(1, min(len(found) - 1, 1001)):
            recent = gaps[max(0, t - 11) : t - 1] or gaps[:1]
            ratio = gaps[t - 1] / (sum(recent) / len(recent))
            rows.append((number(gaps[t - 1]), number(gaps[t]), number(ratio), found[t][1]))
        groups.setdefault(SAME.get(record, record), []).append(rows)
    return every_fourth(groups)


def home(files: Files) -> Parts:
    """Events of sensors in a home, day by day: sensor, hour, seconds since the event before, seconds that it lasted.

    Events of one sensor that follow each other within five minutes are one.
    """
    folder = "source/source-code/our_project_project/data/houseC"

    def read(kind: str) -> list[list[str]]:
        return [line.split("\t") for line in files[f"{folder}.{kind}"].decode().split("\n") if line.strip()]

    names = {key.strip(): name.strip() for key, name in read("activity_names")}
    activities = [(int(a), int(a) + int(length), names[key.strip()]) for a, length, key in read("activities")]
    groups: Groups = {}
    before, runs = 0, []  # sensor, begin, end and time since the event before of consecutive events of one sensor
    for begin, length, sensor in sorted((int(a), int(b), c.strip()) for a, b, c in read("sensors")):
        if runs and runs[-1][0] == sensor and begin - before < 300:
            runs[-1][2] = max(runs[-1][2], begin + length)
        else:
            runs.append([sensor, begin, begin + length, min(begin - before, 3600)])
        before = begin
    for sensor, begin, end, gap in runs:
        label = next((name for start, stop, name in activities if start <= begin <= stop), "none")
        time = datetime.fromtimestamp(begin, timezone.utc)
        row = (f"s{sensor}", number(time.hour + time.minute / 60), str(gap), str(min(end - begin, 3600)), label)
        groups.setdefault(str(time.date()), [[]])[0].append(row)
    return every_fourth(groups)


# Symbols: letters, amino acids, pitches.


def chords(files: Files) -> Parts:
    groups: Groups = {}
    (text,) = files.values()
    for cells in csv.reader(io.StringIO(text.decode())):
        if cells and cells[0] != "Choral_ID":
            values = [cell.strip() for cell in cells]
            groups.setdefault(values[0], [[]])[0].append((*values[2:-1], values[-1]))
    return every_fourth(groups)


def by_beginning(words: Iterable[Rows]) -> Parts:
    """Words that begin alike, and so most forms of one word, are one group."""
    groups: Groups = {}
    for rows in words:
        groups.setdefault("".join(row[0] for row in rows[:4]), []).append(rows)
    return every_fourth(dict(sorted(groups.items())))


def phonemes(files: Files) -> Parts:
    words = []
    (text,) = files.values()
    for line in text.decode("latin-1").splitlines():
        cells = line.split("\t")
        if len(cells) >= 2 and cells[0].isalpha() and len(cells[0]) == len(cells[1]):
            words.append(list(zip(cells[0], cells[1], strict=True)))
    return by_beginning(words)


def morphemes(files: Files) -> Parts:
    words = []
    (text,) = files.values()
    for line in text.decode().splitlines():
        word, parts = line.split("\t")[:2]
        morphs = parts.split(" @@")
        if "".join(morphs) == word and word.isalpha():
            marks = ["begin" if k == 0 else "inside" for morph in morphs for k in range(len(morph))]
            words.append(list(zip(word, marks, strict=True)))
    return by_beginning(words)


def diacritics(files: Files) -> Parts:
    """Arabic letters and the vowel signs on them; the given validation part is trained on."""

    def read(path: str) -> Groups:
        groups: Groups = {}
        for line in dict.fromkeys(files[path].decode().splitlines()):
            text = re.sub(r"\(\s*\d+\s*/\s*\d+\s*\)", "", line)
            letters: list[list[str]] = []
            for character in re.sub(r"\s+", " ", text).strip():
                if unicodedata.category(character) == "Mn" and letters:
                    mark = unicodedata.name(character).removeprefix("ARABIC ")
                    letters[-1][1] += "+" + mark.replace(" ", "_").lower()
                else:
                    letters.append([SPACE if character == " " else character, ""])
            if 5 <= len(letters) <= 300:
                groups[line] = [[(letter, marks.lstrip("+") or "none") for letter, marks in letters]]
        return groups

    return read("dataset/val.txt"), read("dataset/test.txt")


def thai(files: Files) -> Parts:
    (text,) = files.values()
    groups: Groups = {}
    for line in dict.fromkeys(text.decode().splitlines()):
        rows = [
            (SPACE if character.isspace() else character, "begin" if k == 0 else "inside")
            for word in line.split("|")
            for k, character in enumerate(word)
        ]
        if rows:
            groups[line] = [rows]
    return every_fourth(groups)


def membrane(files: Files) -> Parts:
    """Proteins that share ten or more stretches of six amino acids, directly or by others, are one group."""
    proteins: dict[str, Rows] = {}
    for path in sorted(files):
        lines = files[path].decode().split()
        for name, residues, places in zip(lines[::3], lines[1::3], lines[2::3], strict=True):
            if len(residues) <= 600:
                proteins[name] = list(zip(residues, places, strict=True))
    parent = {name: name for name in proteins}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    shared: dict[tuple[str, str], int] = {}
    seen: dict[str, list[str]] = {}
    for name, rows in proteins.items():
        letters = "".join(row[0] for row in rows)
        for piece in sorted({letters[k : k + 6] for k in range(len(letters) - 5)}):
            for other in seen.setdefault(piece, []):
                shared[other, name] = shared.get((other, name), 0) + 1
            seen[piece].append(name)
    for (a, b), count in shared.items():
        if count >= 10:
            parent[root(b)] = root(a)
    groups: Groups = {}
    for name, rows in proteins.items():
        groups.setdefault(root(name), []).append(rows)
    return every_fourth(groups)


ENTITIES = {
    "人名": "PER", "法人名": "CORP", "政治的組織名": "POL", "その他の組織名": "ORG", "地名": "LOC", "施設名": "FAC",
    "製品名": "PRO", "イベント名": "EVENT",
}  # fmt: skip


def japanese(files: Files) -> Parts:
    """Names in sentences of Wikipedia, character by character; an article is a group."""
    groups: Groups = {}
    for sentence in json.loads(files["ner.json"]):
        labels = ["O"] * len(sentence["text"])
        for entity in sentence["entities"]:
            begin, end = entity["span"]
            labels[begin:end] = [f"{'I' if k else 'B'}-{ENTITIES[entity['type']]}" for k in range(end - begin)]
        text = [SPACE if character.isspace() else character for character in sentence["text"]]
        if text:
            groups.setdefault(sentence["curid"], []).append(list(zip(text, labels, strict=True)))
    return every_fourth(groups)


# Words.


def conllu(text: bytes, columns: Callable[[list[str]], Row | None]) -> Groups:
    """Sentences of a treebank, each a group of its own: the split of the treebank is taken."""
    sentences: list[Rows] = [[]]
    for line in [*text.decode().split("\n"), ""]:
        cells = line.split("\t")
        if not line.strip():
            sentences.append([])
        elif cells[0].isdigit() and (row := columns(cells)) is not None:
            sentences[-1].append(row)
    return {f"{k:05d}": [rows] for k, rows in enumerate(sentences) if rows}


def treebank(columns: Callable[[list[str]], Row | None]) -> Callable[[Files], Parts]:
    def parts(files: Files) -> Parts:
        (training,), (test,) = ([files[path] for path in files if which in path] for which in ("-train.", "-test."))
        return conllu(training, columns), conllu(test, columns)

    return parts


def word(text: str) -> str:
    return re.sub(r"\s+", SPACE, text)


def language(cells: list[str]) -> Row | None:
    found = re.search(r"CSID=(\w+)", cells[9])
    return (word(cells[1]), found[1]) if found else None


def archive(files: Files) -> zipfile.ZipFile:
    (content,) = files.values()
    return zipfile.ZipFile(io.BytesIO(content))


def telugu(files: Files) -> Parts:
    text = archive(files).read("indian/telugu.pos").decode("utf-8")
    sentences = []
    for line in dict.fromkeys(text.splitlines()):
        pairs = [token.rsplit("_", 1) for token in line.split() if re.fullmatch(r".+_[A-Z]+", token)]
        if pairs and not line.startswith("<"):
            sentences.append([(form, tag) for form, tag in pairs])
    return every_fourth(blocks(sentences, 20))


def spanish(files: Files) -> Parts:
    def read(name: str) -> Groups:
        text = archive(files).read(f"conll2002/{name}").decode("utf-8")
        sentences = [[tuple(line.split(" ")) for line in part.split("\n") if line] for part in text.split("\n\n")]
        return {f"{k:05d}": [rows] for k, rows in enumerate(sentences) if rows}

    return read("esp.train"), read("esp.testb")


def chat(files: Files) -> Parts:
    """Posts of chat rooms, without those that the system writes; a session is a group."""
    groups: Groups = {}
    opened = archive(files)
    for name in sorted(opened.namelist()):
        if name.endswith(".xml"):
            for post in ElementTree.fromstring(opened.read(name)).iter("Post"):
                tokens = [(one.get("word"), one.get("pos")) for one in post.iter("t")]
                rows = [(word(form), tag) for form, tag in tokens if form and tag]
                if rows and post.get("class") != "System":
                    groups.setdefault(name, []).append(rows)
    return every_fourth(groups)


def ingredients(files: Files) -> Parts:
    """Lines of ingredients, with quantities, units, foods and more; a recipe is a group."""
    groups: Groups = {}
    for recipe in table(files, "data/TASTEset.csv"):
        text, sequences = recipe["ingredients"], []
        entities = json.loads(recipe["ingredients_entities"])
        for line in re.finditer(r"[^\n]+", text):
            rows, before = [], None
            for token in re.finditer(r"\w+|[^\w\s]", line[0]):
                place = line.start() + token.start()
                inside = next((one for one in entities if one["start"] <= place < one["end"]), None)
                label = "O" if inside is None else f"{'I' if inside is before else 'B'}-{inside['type']}"
                rows.append((token[0], label))
                before = inside
            if rows:
                sequences.append(rows)
        if sequences and text not in groups:
            groups[text] = sequences
    return every_fourth(groups)


def logs(files: Files) -> Parts:
    """Words of messages: constant, or variable where the template has a gap; three messages of each template."""
    groups: Groups = {}
    for path in sorted(files):
        seen: dict[str, dict[str, None]] = {}
        for row in table(files, path):
            tokens, template = row["Content"].split(), row["EventTemplate"].split()
            messages = seen.setdefault(row["EventTemplate"], {})
            if len(tokens) != len(template) or row["Content"] in messages or len(messages) == 3:
                continue
            messages[row["Content"]] = None
            rows = [(a, "variable" if "<*>" in b else "constant") for a, b in zip(tokens, template, strict=True)]
            groups.setdefault(f"{path} {row['EventTemplate']}", []).append(rows)
    return every_fourth(groups)


def nltk(name: str, sha256: str, licence: str) -> Source:
    path = f"packages/corpora/{name}.zip"
    return Source("nltk/nltk_data", "5db857e6f7df11eabb5e5665836db9ec8df07e28", (path,), sha256, licence)


KINDS = ("numbers", "symbols", "words")
UNKNOWN = "none stated in the repository"
SETS = {
    "exercises": DataSet(
        "numbers",
        "12 numbers",
        "exercises in six recordings of two persons' joints (CMU motion capture, mocap6)",
        Source(
            "bnpy/bnpy",
            "ffc2242427451aa6a61dcac1473c47577a5ade6f",
            ("bnpy/datasets/mocap6/actions_per_tstep.csv", "bnpy/datasets/mocap6/sensor_data_per_tstep.csv"),
            "98fcee34e1d4edbfd9288e45990badb528dbafb2f987b1cad2e1e5b2529129d3",
            "BSD of the repository",
        ),
        exercises,
    ),
    "gestures": DataSet(
        "numbers",
        "18 numbers",
        "phases of gestures of three persons who tell stories (UCI, Gesture Phase Segmentation)",
        Source(
            "Fmelle/Gesture-Phase-Segmentation",
            "78dd0d6ce1050740faf3252d6af81a9714d1dbe1",
            ("data_files/raw/*_raw.csv",),
            "bb5e6b72959932f32acba2a978a2bfd2ac496a2bea440716b2d388406673b048",
            UNKNOWN,
        ),
        gestures,
    ),
    "pump": DataSet(
        "numbers",
        "8 numbers",
        "anomalies of a water pump (SKAB)",
        Source(
            "waico/SKAB",
            "b2c0d46c2971dcbfe71e26087b6d231998bb91c2",
            ("data/other/*.csv", "data/valve1/*.csv", "data/valve2/*.csv"),
            "92b5c70d805536b086bebe563d5a273d54c4fb3ff2a2ac08746a0f99f2bb288a",
            "GPL-3.0",
        ),
        pump,
    ),
    "gaze": DataSet(
        "numbers",
        "3 numbers",
        "movements of eyes (Andersson et al.), labels of one expert",
        Source(
            "richardandersson/EyeMovementDetectorEvaluation",
            "3e12416ab3fd6254c81811cf03f8e5d67c5d7129",
            ("annotated_data/data used in the article/*_RA.mat",),
            "cd90e0d2310ed31e6e5ac21c76a230af8c5ab4e2b4dacf3395119337a5b90eb5",
            "GPL-3.0",
        ),
        gaze,
    ),
    "strokes": DataSet(
        "numbers",
        "6 numbers",
        "strokes of a pen: which begins a word (ImadocSen-OnDB)",
        Source(
            "HCDigitalScholarship/handwriting",
            "911a74fb35e7ab7eea322e2e2480e956a513cffb",
            ("ImadocSen-OnDB/task1.txt", "ImadocSen-OnDB/data/words/*.inkml"),
            "21257676747662d1a84ee0faf618ee8cc2004423e34fcdb1408c0b15dec064e2",
            UNKNOWN,
        ),
        strokes,
    ),
    "beats": DataSet(
        "numbers",
        "3 numbers",
        "classes of heart beats from their times (MIT-BIH arrhythmia database)",
        Source(
            "almagiulianoalbo/TFI-PDB",
            "3cebf275e27861e869df4947eb636c2e7b938e5a",
            ("data/mitbih_database/[0-9][0-9][0-9]annotations.txt",),
            "719e7aeea779dc6cc9f87aa12c3d43244195728e2b9e136048be315ccdf5c610",
            UNKNOWN,
        ),
        beats,
    ),
    "home": DataSet(
        "numbers",
        "tag, 3 numbers",
        "activities in a home with sensors (van Kasteren, house C)",
        Source(
            "agnesvanbelle/TL",
            "22d0103a65b7478ddb285d3beffe91f9eb1a5975",
            ("source/source-code/our_project_project/data/houseC.*",),
            "a8261aee38fb667f8d8ddc16bce1d5a5fad34afb1c7c19fa6baa08fb8f4a6a4f",
            UNKNOWN,
        ),
        home,
    ),
    "chords": DataSet(
        "symbols",
        "14 tags",
        "chords of Bach's chorales (UCI, Bach Choral Harmony)",
        Source(
            "BITSgithub/bach",
            "d1bea0707aee4cf851ec9aecf51797674ee874af",
            ("jsbach_chorals_harmony.data",),
            "261da6eba9f7a8a49b860e2a804edbcdabc212f8cd14daca80066ac97d24b6c9",
            UNKNOWN,
        ),
        chords,
    ),
    "phonemes": DataSet(
        "symbols",
        "letter",
        "phonemes of English letters (NETtalk)",
        Source(
            "yamato796/nettalk",
            "6f15f80248a5481d2d7a3b028e70b5c1e321d51f",
            ("nettalk.data",),
            "f00e158cfdedccbbc187998dae0f06eeca07fbd9c293b769ab57fd4291228d94",
            UNKNOWN,
        ),
        phonemes,
    ),
    "morphemes": DataSet(
        "symbols",
        "letter",
        "morphemes of Czech words (SIGMORPHON 2022)",
        Source(
            "sigmorphon/2022SegmentationST",
            "ac161e1107e423577e922b05f8c43c6ebad6722a",
            ("data/ces.word.train.tsv",),
            "fe0b882705bd2793942ad5a488663a7a63847765a753808a2cd988000c26218e",
            UNKNOWN,
        ),
        morphemes,
    ),
    "diacritics": DataSet(
        "symbols",
        "letter",
        "vowel signs of Arabic letters (Tashkeela)",
        Source(
            "AliOsm/arabic-text-diacritization",
            "e083579c03e489936200b69d792fd426bb576743",
            ("dataset/val.txt", "dataset/test.txt"),
            "c5fc71364364dc1f9ed2467a83d8e9ea6af4214b41bd4cc972ea5cdc71529303",
            "MIT",
        ),
        diacritics,
    ),
    "thai": DataSet(
        "symbols",
        "letter",
        "words in Thai social media (Wisesight)",
        Source(
            "PyThaiNLP/wisesight-sentiment",
            "c1d063649abc3a6870b5fd1aae26cd1c64bdde7b",
            ("word-tokenization/wisesight-1000-samples-tokenised.label",),
            "4e8e71fa48000cefc56a12c3befdc8b00223d95be55dae13f062ab33bc7fd0cf",
            "CC0",
        ),
        thai,
    ),
    "membrane": DataSet(
        "symbols",
        "amino acid",
        "places of amino acids in and around membranes (DeepTMHMM)",
        Source(
            "andregodinhodtu/TMHMM",
            "10d0fc93159f099b31761c56f48f825a195501fe",
            ("data/raw_data/TM_sequences.3line", "data/raw_data/SP+TM_sequences.3line"),
            "91f396efe7d7fbe31af48d477b8f8af4c7bdfdd6d0543377a37e35ce21e176df",
            "GPL-3.0",
        ),
        membrane,
    ),
    "japanese": DataSet(
        "symbols",
        "character",
        "names in Japanese Wikipedia (Stockmark)",
        Source(
            "stockmarkteam/ner-wikipedia-dataset",
            "5e525c2132c0e87cce890b8b92639a0cf357c1f3",
            ("ner.json",),
            "a221bd284b703e1b702efb445a9b756c74537ad00352f02d4e8dda638ab9c5d5",
            "CC BY-SA 3.0",
        ),
        japanese,
    ),
    "telugu": DataSet(
        "words",
        "word",
        "parts of speech in Telugu (IIIT Hyderabad)",
        nltk(
            "indian", "4413a71063057fc854e69f51b2d8269e72a51486e5baebfd9b9909cab9f471d9", "distributed with permission"
        ),
        telugu,
    ),
    "spanish": DataSet(
        "words",
        "word, tag",
        "names in Spanish news (CoNLL-2002)",
        nltk("conll2002", "055f2a3752bb1b32da3d353148bf5e2836789a149630151cd0375b834f070459", UNKNOWN),
        spanish,
    ),
    "chat": DataSet(
        "words",
        "word",
        "parts of speech in chat rooms (NPS Chat)",
        nltk(
            "nps_chat",
            "2d06a301026f11ef3d09d468f51a9d82ae5204377f92eb942f9d62b880205025",
            "non-commercial research and education",
        ),
        chat,
    ),
    "languages": DataSet(
        "words",
        "word",
        "languages of words in Turkish-German talk (UD SAGT)",
        Source(
            "UniversalDependencies/UD_Turkish_German-SAGT",
            "9df27ce241d28d25f40b27f616468563771fb6e7",
            ("qtd_sagt-ud-train.conllu", "qtd_sagt-ud-test.conllu"),
            "3369d45451753508811308e87aeabe4231058f33df16b7e5238b0c8e592795ae",
            "CC BY-SA 4.0",
        ),
        treebank(language),
    ),
    "welsh": DataSet(
        "words",
        "word, tag",
        "grammatical relations in Welsh (UD CCG)",
        Source(
            "UniversalDependencies/UD_Welsh-CCG",
            "78e19757e590d92bba26cbd145f56779ce61d2a3",
            ("cy_ccg-ud-train.conllu", "cy_ccg-ud-test.conllu"),
            "b2058ad7d5baa2eea6fd3a6c1381c19d12fdb9e973b6d18eb0416736c623459a",
            "CC BY-SA 4.0",
        ),
        treebank(lambda cells: (word(cells[1]), cells[3], cells[7].split(":")[0])),
    ),
    "coptic": DataSet(
        "words",
        "word",
        "parts of speech in Coptic (UD Scriptorium)",
        Source(
            "UniversalDependencies/UD_Coptic-Scriptorium",
            "f14b8952b3a75053e9611dcaa35918864ab9b0be",
            ("cop_scriptorium-ud-train.conllu", "cop_scriptorium-ud-test.conllu"),
            "fdf3e67f26357069e8268c7a30ed8f24af1ca60bc6bb03d48235bc8f72fe50e2",
            "CC BY 4.0",
        ),
        treebank(lambda cells: (word(cells[1]), cells[4])),
    ),
    "ingredients": DataSet(
        "words",
        "word",
        "parts of lines of ingredients (TASTEset)",
        Source(
            "taisti/TASTEset",
            "80bb783f521023db9193a90202fa9339afc8f678",
            ("data/TASTEset.csv",),
            "544dd1728279dbc0a5f57621a0fad95bd212e1281d587b5466c356a9ab4a2081",
            "MIT",
        ),
        ingredients,
    ),
    "logs": DataSet(
        "words",
        "word",
        "variables in messages of 16 systems (Loghub)",
        Source(
            "logpai/loghub",
            "dd61d0952749ee7963bde24220d1be5ede023033",
            ("*/*_2k.log_structured.csv",),
            "1674e7bacf2f1b0051c01912afdbae26d8c991f45f3bf39b4af01b4026ed35ec",
            "research and academic use",
        ),
        logs,
    ),
}


def half(name: str) -> str:
    """Return "design" or "validation": the first two sets of a kind in a random order are for design."""
    names = [other for other in SETS if SETS[other].kind == SETS[name].kind]
    return "design" if name in drawn(names, "halves")[:DESIGN] else "validation"


def opened(source: Source, clones: Path) -> Files:
    """Read the files of a source from a clone and check their digest."""
    owner, name = source.repository.split("/")
    places = [clones / place for place in (f"{owner}+{name}/repo", f"{owner}+{name}", f"{owner}/{name}", name)]
    clone = next((place for place in places if place.exists()), None)
    if clone is None:
        raise SystemExit(f"{clones}: there is no clone of {source.repository}")

    def git(*arguments: str, **more: bytes) -> bytes:
        return subprocess.run(["git", "-C", clone, *arguments], stdout=subprocess.PIPE, check=True, **more).stdout

    every = git("ls-tree", "-r", "-z", "--name-only", "--full-tree", source.commit).decode().split("\0")
    paths = sorted(path for path in every if any(fnmatchcase(path, pattern) for pattern in source.paths))
    wanted = "".join(f"{source.commit}:{path}\n" for path in paths)
    stream = io.BytesIO(git("cat-file", "--batch", input=wanted.encode()))
    files, digest = {}, hashlib.sha256()
    for path in paths:
        files[path] = stream.read(int(stream.readline().split()[2]))
        stream.read(1)
        digest.update(path.encode() + b"\0" + hashlib.sha256(files[path]).digest())
    if digest.hexdigest() != source.sha256:
        raise SystemExit(f"{source.repository}: SHA-256 {digest.hexdigest()}, expected {source.sha256}")
    return files


def write(path: Path, sequences: Sequence[Rows]) -> None:
    for rows in sequences:
        for row in rows:
            if any(not value or value != value.strip() or re.search(r"[\t\n\r]", value) for value in row):
                raise SystemExit(f"{path}: {row}")
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n\n".join("\n".join("\t".join(row) for row in rows) for rows in sequences)
    path.write_text(text + "\n", encoding="utf-8", newline="\n")


def built(name: str, clones: Path) -> list[list[Rows]]:
    """Return the training and the test sequences of a set."""
    parts = SETS[name].parts(opened(SETS[name].source, clones))
    return [
        cut(groups, limit, f"{name} {part}")
        for part, groups, limit in zip(("train", "test"), parts, (LIMIT, TEST_LIMIT), strict=True)
    ]


def counts(sequences: Sequence[Rows]) -> str:
    return f"{len(sequences):,} / {sum(map(len, sequences)):,}"


def main(folder: Path, clones: Path, names: Sequence[str]) -> None:
    lines = []
    for name in names:
        parts = built(name, clones)
        for part, sequences in zip(("train", "test"), parts, strict=True):
            write(folder / half(name) / name / f"{part}.conll", sequences)
        labels = len({row[-1] for rows in parts[0] for row in rows})
        cells = [half(name), name, SETS[name].kind, SETS[name].columns, *map(counts, parts), str(labels)]
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    header = ["half", "set", "kind", "columns before the label", "train: sequences / positions", "test", "labels"]
    text = [f"| {' | '.join(header)} |", f"|{' --- |' * len(header)}", *sorted(lines)]
    (folder / "README").write_text("\n".join(text) + "\n", encoding="utf-8")


def listed() -> Iterator[str]:
    for name, one in SETS.items():
        yield f"{half(name)}\t{name}\t{one.kind}\t{one.source.repository}\t{one.source.commit}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--list"]:
        print(*listed(), sep="\n")
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or list(SETS))
