"""A file of columns with letters that are not ASCII in every twentieth line: accents.py FILE [SENTENCES]."""

import sys

sentences = int(sys.argv[2]) if len(sys.argv) > 2 else None
with open(sys.argv[1], encoding="utf-8") as stream:
    for number, line in enumerate(stream):
        if sentences is not None and not line.strip():
            sentences -= 1
            if not sentences:
                break
        word, space, rest = line.partition(" ")
        if number % 20 == 0:
            word = word.replace("e", "é").replace("a", "ä").replace("o", "öß")
        sys.stdout.write(word + space + rest)
