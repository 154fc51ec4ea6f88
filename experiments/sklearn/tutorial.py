"""A script in the manner of the tutorials for sklearn-crfsuite, with nothing changed but its import lines.

tutorial.py TRAIN TEST    CoNLL files; the last column is the label
"""

import json
import sys
import time

import kcrf_core as sklearn_crfsuite  # was: import sklearn_crfsuite
from kcrf_core.scoring import metrics


def read_sentences(path):
    with open(path, encoding="utf-8") as stream:
        blocks = stream.read().strip().split("\n\n")
    return [[tuple(line.split()) for line in block.split("\n")] for block in blocks]


def word2features(sent, i):
    word, tag, *numbers = sent[i][:-1]
    features = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word[-2:]": word[-2:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
        "tag": tag,
    }
    # Measurements, where the data has some, as numbers in units that make them about as large as a word's 1.
    features.update({f"number{n}": float(value) / (0.1, 100, 50)[n] for n, value in enumerate(numbers)})
    for offset in (-2, -1, 1, 2):
        if 0 <= i + offset < len(sent):
            other, tag = sent[i + offset][:2]
            features.update({f"{offset:+d}:word.lower()": other.lower(), f"{offset:+d}:tag": tag})
        elif abs(offset) == 1:
            features["BOS" if offset < 0 else "EOS"] = True
    return features


def sent2features(sent):
    return [word2features(sent, i) for i in range(len(sent))]


def sent2labels(sent):
    return [row[-1] for row in sent]


def main():
    train_sents, test_sents = map(read_sentences, sys.argv[1:3])
    X_train, y_train = [sent2features(s) for s in train_sents], [sent2labels(s) for s in train_sents]
    X_test, y_test = [sent2features(s) for s in test_sents], [sent2labels(s) for s in test_sents]

    crf = sklearn_crfsuite.CRF(algorithm="lbfgs", c1=0, c2=0.1, max_iterations=100, all_possible_transitions=True)
    began = time.perf_counter()
    crf.fit(X_train, y_train)
    print(f"trained in {time.perf_counter() - began:.1f} s", file=sys.stderr)

    labels = list(crf.classes_)
    if "O" in labels:
        labels.remove("O")
    y_pred = crf.predict(X_test)
    print(metrics.flat_classification_report(y_test, y_pred, labels=labels), file=sys.stderr)
    for (one, other), weight in sorted(crf.transition_features_.items(), key=lambda item: -item[1])[:5]:
        print(f"{one:8} -> {other:8} {weight:9.4f}", file=sys.stderr)

    found = {"flat_f1": metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
