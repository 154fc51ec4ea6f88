"""Write addresses.conll: invented addresses with the parts of an address as labels (standard library only, seeded)."""

import random

STREETS = "Maple,Harbor,Lincoln,Quarry,Juniper,Dover,Ashford,Milton,Cedar,Orchard,Bristol,Preston,Clay,Garnet,Hollis"
OTHERS = "Linden,Marlow,Newton,Salem,Troy"
CITIES = "Dover,Ashford,Milton,Bristol,Preston,Lincoln,Newton,Salem,Troy,Marlow,Eastbrook,Northfield,Wexham,Granby"
NAMES, TOWNS = f"{STREETS},{OTHERS}".split(","), CITIES.split(",")
SUFFIXES = ["St", "Ave", "Rd", "Ln", "Dr", "Blvd", "Court"]
STATES = ["OH", "VT", "ME", "NY", "PA"]


def address(rng):
    """Return the words of an address with their labels."""
    rows = [(str(rng.randint(1, 2999)), "Number")]
    rows += [(word, "Street") for word in rng.sample(NAMES, rng.choice([1, 1, 1, 2]))]
    if rng.random() < 0.8:
        rows.append((rng.choice(SUFFIXES), "Suffix"))
    if rng.random() < 0.35:
        rows += [(rng.choice(["Apt", "Unit", "#"]), "Unit"), (rng.choice([str(rng.randint(1, 40)), "B", "C"]), "Unit")]
    rows.append((rng.choice(TOWNS), "City"))
    if rng.random() < 0.2:
        rows.append((rng.choice(["Falls", "Park", "Springs"]), "City"))
    if rng.random() < 0.9:
        rows.append((rng.choice(STATES), "State"))
    if rng.random() < 0.75:
        rows.append((str(rng.randint(10000, 99999)), "Zip"))
    return rows


if __name__ == "__main__":
    rng = random.Random(5)
    blocks = ["".join(f"{word}\t{label}\n" for word, label in address(rng)) for _ in range(120)]
    with open("addresses.conll", "w", encoding="utf-8", newline="\n") as stream:
        stream.write("\n".join(blocks))
