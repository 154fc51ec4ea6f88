"""Label tasks of Label Studio by gold labels, in the place of a person: `label_tasks.py GOLD TASKS ... > export.json`.

GOLD is a file of words and labels, TASKS are files of `kcrf next --to labelstudio`. The output has the form of Label
Studio's exports: all tasks, each with an annotation, whose regions are runs of words with the same label.
"""

from __future__ import annotations

import json
import sys
from itertools import groupby

with open(sys.argv[1], encoding="utf-8") as gold:
    sequences = [[line.split("\t") for line in block.split("\n") if line] for block in gold.read().split("\n\n")]
labels_of = {" ".join(word for word, _ in rows): [label for _, label in rows] for rows in sequences}

tasks = []
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as stream:
        tasks += json.load(stream)
for number, task in enumerate(tasks, 1):
    text, regions, words = task["data"]["text"], [], iter(task["data"]["text"].split())
    end = -1
    for label, run in groupby(labels_of[text]):
        part = " ".join(next(words) for _ in run)
        start, end = end + 1, end + 1 + len(part)
        value = {"start": start, "end": end, "text": part, "labels": [label]}
        regions.append({"id": f"r{start}", "from_name": "label", "to_name": "text", "type": "labels", "value": value})
    task |= {"id": number, "annotations": [{"id": number, "was_cancelled": False, "result": regions}]}
json.dump(tasks, sys.stdout, ensure_ascii=False, indent=1)
