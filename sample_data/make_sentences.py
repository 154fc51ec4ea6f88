"""Write sentences.conllu: synthetic English sentences in CoNLL-U with parts of speech, to try the format on.

Sentences come from a small grammar, with words that are nouns here and verbs there ("walks", "light", "can"), so that
neighbours tell what the word alone does not. Some have a multiword token ("don't"), some an empty node. Only ID, FORM,
LEMMA, UPOS, XPOS and MISC are filled in. The seed is 2004.
"""

import argparse
import random
from pathlib import Path

SEED = 2004
SENTENCES = 150

# (form, lemma, XPOS) of each UPOS; several forms are in more than one list.
WORDS = {
    "DET": [("the", "the", "DT"), ("a", "a", "DT"), ("that", "that", "DT"), ("her", "her", "PRP$")],
    "ADJ": [("light", "light", "JJ"), ("old", "old", "JJ"), ("open", "open", "JJ"), ("close", "close", "JJ")],
    "NOUN": [
        *(("dog", "dog", "NN"), ("walk", "walk", "NN"), ("walks", "walk", "NNS"), ("light", "light", "NN")),
        *(("can", "can", "NN"), ("house", "house", "NN"), ("saw", "saw", "NN"), ("plans", "plan", "NNS")),
    ],
    "PROPN": [("Ada", "Ada", "NNP"), ("May", "May", "NNP"), ("Tübingen", "Tübingen", "NNP")],
    "PRON": [("she", "she", "PRP"), ("they", "they", "PRP"), ("that", "that", "DT"), ("her", "she", "PRP")],
    "VERB": [
        *(("saw", "see", "VBD"), ("walks", "walk", "VBZ"), ("plans", "plan", "VBZ"), ("lights", "light", "VBZ")),
        *(("houses", "house", "VBZ"), ("opened", "open", "VBD"), ("likes", "like", "VBZ")),
    ],
    "INF": [("see", "see", "VB"), ("walk", "walk", "VB"), ("open", "open", "VB"), ("light", "light", "VB")],
    "AUX": [("can", "can", "MD"), ("may", "may", "MD"), ("will", "will", "MD")],
    "ADP": [("in", "in", "IN"), ("to", "to", "IN"), ("near", "near", "IN")],
    "ADV": [("close", "close", "RB"), ("often", "often", "RB"), ("here", "here", "RB")],
}
Row = tuple[str, str, str, str]  # form, lemma, UPOS, XPOS


def word(rng: random.Random, kind: str) -> Row:
    form, lemma, xpos = WORDS[kind][int(rng.random() * len(WORDS[kind]))]
    return form, lemma, "VERB" if kind == "INF" else kind, xpos


def noun_phrase(rng: random.Random) -> list[Row]:
    chance = rng.random()
    if chance < 0.25:
        return [word(rng, "PROPN")]
    if chance < 0.4:
        return [word(rng, "PRON")]
    return [word(rng, "DET")] + [word(rng, "ADJ")] * (rng.random() < 0.4) + [word(rng, "NOUN")]


def sentence(rng: random.Random) -> tuple[list[Row], int | None]:
    """Words, and at which of them a multiword token begins."""
    rows = noun_phrase(rng)
    token = None
    chance = rng.random()
    if chance < 0.25:
        token = len(rows)
        rows += [("do", "do", "AUX", "VBP"), ("n't", "not", "PART", "RB"), word(rng, "INF")]
    elif chance < 0.55:
        rows += [word(rng, "AUX"), word(rng, "INF")]
    else:
        rows.append(word(rng, "VERB"))
    if rng.random() < 0.7:
        rows += noun_phrase(rng)
    if rng.random() < 0.5:
        rows += [word(rng, "ADP"), *noun_phrase(rng)]
    elif rng.random() < 0.5:
        rows.append(word(rng, "ADV"))
    return [*rows, (".", ".", "PUNCT", ".")], token


def in_conllu(rng: random.Random, number: int) -> str:
    rows, token = sentence(rng)
    text = " ".join(form for form, *_ in rows).replace("do n't", "don't").replace(" .", ".")
    lines = [f"# sent_id = {number}", f"# text = {text}"]
    for place, (form, lemma, upos, xpos) in enumerate(rows):
        misc = "SpaceAfter=No" if place == len(rows) - 2 else "_"
        if place == token:
            lines.append(f"{place + 1}-{place + 2}\tdon't" + "\t_" * 8)
        lines.append(f"{place + 1}\t{form}\t{lemma}\t{upos}\t{xpos}\t_\t_\t_\t_\t{misc}")
    if number % 25 == 0:
        lines.insert(len(lines) - 1, f"{len(rows) - 1}.1\tso\tso\tADV\tRB" + "\t_" * 5)
    return "\n".join(lines) + "\n\n"


def make_corpus(seed: int = SEED, sentences: int = SENTENCES) -> str:
    """The whole file as text."""
    rng = random.Random(seed)
    return "".join(in_conllu(rng, number) for number in range(1, sentences + 1))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the synthetic sentences.")
    parser.add_argument("output", nargs="?", type=Path, default=Path(__file__).with_name("sentences.conllu"))
    parser.parse_args().output.write_bytes(make_corpus().encode("utf-8"))


if __name__ == "__main__":
    main()
