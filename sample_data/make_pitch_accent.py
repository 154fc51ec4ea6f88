"""Write pitch_accent.conll: synthetic utterances whose words are labelled accented (1) or unaccented (0).

The data is synthetic: no recording and no corpus stands behind it. Words come from a hand-written vocabulary
with Zipf-like frequencies, their classes from a bigram grammar, durations from word length, class and
speaker, f0 from the speaker's register and a declining contour, all with noise. The seed is 2004.

Columns, separated by TAB: word, class, duration (s), f0 (Hz), energy (dB), label. Classes: N noun, V verb, A
adjective, R adverb, D determiner, P preposition, O pronoun, X auxiliary, C conjunction, F filler.

The labels y of an utterance are drawn, exactly, from a conditional random field,

    p(y) proportional to exp(sum_t s_t y_t - 4.5 [pairs 1 1] - 1.5 [pairs 0 0])

where [...] counts neighbours so labelled: accents avoid a clash, and lapses are broken up. The scores s_t are
computed from the values as written. Let long be the deviation of the duration from the mean for the word's
class and length, loud that of energy from the mean of the utterance, rise that of f0 from the mean of the
neighbouring words, each over its spread; content words are those of the classes N, V, A, R:

    s_t = BIAS[class] + BIGRAM[previous class, class]    (the second noun of a compound loses its accent, ...)
          content words:   + 1.8 long + 1.8 loud + 1.4 rise + 3.4 long * loud
                           - 1.6 if the word was said before in the utterance (given, not new)
          function words:  - 1.8 long + 0.8 loud + 0.4 rise + 1.6 long * loud

Long and loud together make an accent, long and soft a hesitation, and the sign of a feature depends on the
class of its word and of the word before: no linear score expresses that. The draw itself is the label noise.
"""

import argparse
import math
import random
from pathlib import Path

SEED = 2004
UTTERANCES = 500
SPEAKERS = 24

# In order of frequency.
VOCABULARY = {
    "N": "people time thing kids school house work year money car day way stuff family place game dog job "
    "home week town weather movie friend problem system state country summer team computer music "
    "garden water husband company college program lake insurance mother teacher kitchen city football "
    "winter hospital budget truck paper vacation restaurant basement neighborhood newspaper mountain "
    "camera recipe carpet fishing grandmother",
    "V": "know think get go say want see like make take work live look come watch find play read keep use "
    "start buy put try talk hear feel happen remember pay pick turn drive move grow figure believe "
    "spend travel recycle cook exercise camp paint vote enjoy",
    "A": "good big little nice different old bad hard new great long real small public whole young "
    "expensive interesting terrible beautiful wonderful easy local funny serious crazy important cold "
    "ridiculous comfortable",
    "R": "really just too then there now pretty here very probably always still never actually maybe again "
    "even usually ever away already basically definitely sometimes especially almost",
    "D": "the a that this some my all an your our any those no their every these her his",
    "P": "of to in for on with at about from up out like by down off over into through around after",
    "O": "i it you they we he that she them what something me everything somebody him us",
    "X": "is was do have are don't can would were did had be has could didn't should will can't been am may",
    "C": "and but so because if or when than until while though",
    "F": "uh um well yeah oh mean right okay huh",
}

# Bigram grammar: "^" starts an utterance.
GRAMMAR = {
    "^": {"O": 30, "C": 18, "F": 22, "D": 12, "R": 8, "P": 4, "N": 6},
    "N": {"P": 22, "X": 14, "C": 14, "N": 16, "V": 9, "R": 9, "O": 9, "F": 7},
    "V": {"D": 22, "P": 22, "O": 13, "N": 12, "R": 12, "A": 7, "F": 5, "V": 4, "C": 3},
    "A": {"N": 58, "A": 8, "C": 9, "P": 8, "R": 5, "F": 5, "O": 7},
    "R": {"V": 24, "A": 26, "R": 10, "O": 10, "D": 8, "P": 8, "N": 5, "F": 5, "X": 4},
    "D": {"N": 60, "A": 30, "R": 7, "F": 3},
    "P": {"D": 42, "N": 22, "O": 12, "A": 12, "V": 9, "F": 3},
    "O": {"X": 36, "V": 40, "R": 12, "P": 6, "F": 3, "C": 3},
    "X": {"V": 38, "R": 18, "D": 12, "A": 14, "O": 8, "X": 7, "F": 3},
    "C": {"O": 44, "D": 16, "N": 10, "R": 10, "F": 9, "V": 6, "A": 5},
    "F": {"O": 34, "D": 14, "C": 10, "N": 12, "R": 10, "A": 10, "F": 6, "P": 4},
}
CONTENT = frozenset("NVAR")
Word = tuple[str, str]  # with its class

# Mean duration of a word: (offset + slope * letters) seconds.
DURATION = {
    "N": (0.13, 0.040),
    "V": (0.10, 0.036),
    "A": (0.13, 0.038),
    "R": (0.11, 0.034),
    "D": (0.06, 0.022),
    "P": (0.06, 0.028),
    "O": (0.06, 0.026),
    "X": (0.07, 0.026),
    "C": (0.08, 0.030),
    "F": (0.22, 0.025),
}
SPREAD = 0.35  # of a duration, relative to its mean

BIAS = {
    "N": 2.4,
    "V": 0.8,
    "A": 2.8,
    "R": 1.2,
    "D": -4.4,
    "P": -3.2,
    "O": -3.2,
    "X": -3.2,
    "C": -3.6,
    "F": -3.2,
}
BIGRAM = {
    ("N", "N"): -6.0,  # compound: SCHOOL teacher
    ("A", "N"): -4.8,  # the adjective carries the contrast
    ("D", "N"): 2.0,
    ("P", "N"): 2.0,
    ("V", "P"): 6.0,  # particle: pick UP
    ("X", "V"): -4.0,
    ("O", "V"): 2.0,
    ("R", "R"): -4.0,
    ("C", "O"): 4.8,  # contrast: but I
    ("F", "O"): 4.0,
    ("N", "X"): 3.0,
}
TRANSITION = ((-1.5, 0.0), (0.0, -4.5))  # [previous label][label]


def normal(rng: random.Random) -> float:
    """Nearly N(0, 1), from uniform draws alone: the same bits on every platform and Python version."""
    return math.fsum(rng.random() for _ in range(12)) - 6.0


def draw(rng: random.Random, weights: dict[str, float]) -> str:
    """One key, with probability proportional to its weight."""
    left = rng.random() * math.fsum(weights.values())
    for key, weight in weights.items():
        if left < weight:
            return key
        left -= weight
    return key  # rounding


def draw_words(rng: random.Random, zipf: dict[str, dict[str, float]]) -> list[Word]:
    """The words of one utterance with their classes; the last is a content word where the grammar allows."""
    length = 5 + int(rng.random() * 14)  # 5..18
    words: list[Word] = []
    previous = "^"
    for t in range(length):
        follow = GRAMMAR[previous]
        if t == length - 1:
            follow = {c: weight for c, weight in follow.items() if c in CONTENT} or follow
        word_class = draw(rng, follow)
        said = [w for w, c in words if c == word_class]
        if word_class in CONTENT and said and rng.random() < 0.2:
            word = said[int(rng.random() * len(said))]
        else:
            word = draw(rng, zipf[word_class])
        words.append((word, word_class))
        previous = word_class
    return words


def draw_acoustics(rng: random.Random, words: list[Word], speaker: dict[str, float]) -> list[list[float]]:
    """Duration, f0 and energy of each word, rounded as they are written."""
    rows = []
    for t, (word, word_class) in enumerate(words):
        last = t == len(words) - 1
        progress = t / (len(words) - 1)
        stretch = speaker["rate"] * (1.15 if last else 1.0) * (1.0 + SPREAD * normal(rng))
        duration = max(0.03, mean_duration(word, word_class) * stretch)
        f0 = speaker["register"] * (1.12 - 0.24 * progress) * (1.0 + 0.11 * normal(rng))
        weight = 1.5 if word_class in CONTENT else 0.0
        energy = speaker["level"] - 4.0 * progress + weight + 4.0 * normal(rng)
        rows.append([round(duration, 2), round(f0, 1), round(energy, 1)])
    return rows


def mean_duration(word: str, word_class: str) -> float:
    offset, slope = DURATION[word_class]
    return offset + slope * len(word)


def over_neighbours(values: list[float], t: int) -> float:
    """How far value t lies above the mean of the values beside it."""
    beside = values[max(0, t - 1) : t] + values[t + 1 : t + 2]
    return values[t] - math.fsum(beside) / len(beside)


def accent_scores(words: list[Word], acoustics: list[list[float]]) -> list[float]:
    """The score of an accent on each word: s_t of the module's docstring."""
    durations, f0s, energies = (list(column) for column in zip(*acoustics, strict=True))
    register = math.fsum(f0s) / len(f0s)
    level = math.fsum(energies) / len(energies)
    scores = []
    for t, (word, word_class) in enumerate(words):
        long = (durations[t] / mean_duration(word, word_class) - 1.0) / SPREAD
        loud = (energies[t] - level) / 4.0
        rise = over_neighbours(f0s, t) / (0.14 * register)
        score = BIAS[word_class]
        if t > 0:
            score += BIGRAM.get((words[t - 1][1], word_class), 0.0)
        if word_class in CONTENT:
            score += 1.8 * long + 1.8 * loud + 1.4 * rise + 3.4 * long * loud
            if word in [said for said, _ in words[:t]]:
                score -= 1.6
        else:
            score += -1.8 * long + 0.8 * loud + 0.4 * rise + 1.6 * long * loud
        scores.append(score)
    return scores


def log_add(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def draw_labels(rng: random.Random, scores: list[float]) -> list[int]:
    """The accents of one utterance: messages from the right, then one draw per word from the left."""
    beta = [(0.0, 0.0)]  # [label] log of the sum over everything to the right; last word first
    for score in reversed(scores[1:]):
        off, on = beta[-1][0], score + beta[-1][1]
        zero, one = (log_add(to_zero + off, to_one + on) for to_zero, to_one in TRANSITION)
        beta.append((zero, one))
    labels: list[int] = []
    for score, (off, on) in zip(scores, reversed(beta), strict=True):
        odds = score + on - off
        if labels:
            odds += TRANSITION[labels[-1]][1] - TRANSITION[labels[-1]][0]
        labels.append(int(rng.random() < 1.0 / (1.0 + math.exp(-odds))))
    return labels


def make_corpus(seed: int = SEED, utterances: int = UTTERANCES) -> str:
    """The whole file as text."""
    rng = random.Random(seed)
    zipf = {
        word_class: {word: (rank + 1.5) ** -1.2 for rank, word in enumerate(text.split())}
        for word_class, text in VOCABULARY.items()
    }
    speakers = [
        {
            "register": (115.0 if k % 2 else 195.0) * (1.0 + 0.10 * normal(rng)),
            "level": 64.0 + 2.0 * normal(rng),
            "rate": 1.0 + 0.08 * normal(rng),
        }
        for k in range(SPEAKERS)
    ]
    blocks = []
    for _ in range(utterances):
        speaker = speakers[int(rng.random() * SPEAKERS)]
        words = draw_words(rng, zipf)
        acoustics = draw_acoustics(rng, words, speaker)
        labels = draw_labels(rng, accent_scores(words, acoustics))
        rows = zip(words, acoustics, labels, strict=True)
        blocks.append("".join(f"{w}\t{c}\t{d:.2f}\t{f:.1f}\t{e:.1f}\t{y}\n" for (w, c), (d, f, e), y in rows))
    return "\n".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the synthetic pitch accent data.")
    default = Path(__file__).with_name("pitch_accent.conll")
    parser.add_argument("output", nargs="?", type=Path, default=default)
    output = parser.parse_args().output
    output.write_bytes(make_corpus().encode("utf-8"))


if __name__ == "__main__":
    main()
