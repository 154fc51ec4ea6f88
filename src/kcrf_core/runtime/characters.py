"""Properties of characters that lower case, shapes and lexicons depend on: the same in training and in every tagger.

Python's own differ from version to version. `built` makes the table of the Python that runs it, for a new `TABLE`:

    python -c 'from kcrf_core.runtime.characters import packed; print(packed())'

A record has the kind of a character in bits 0-1 (1 capital, 2 other letter, 3 digit), bit 2 if it has case, bit 3 if it
is passed over in the search for the end of a word, bit 4 if U+0307 follows its small letter, and in bits 8-31 the
difference to that. The table is 8,704 numbers of pages of 128 characters (uint16), 256 records (uint32), and the pages:
a number of a record (uint8) for each character.
"""

from __future__ import annotations

import base64
import struct
import unicodedata
import zlib
from collections.abc import Sequence
from functools import cache

from . import TRANSFORMS
from ._runtime import transformed

VERSION = "14.0.0"
PAGE = 128
SURROGATES = range(0xD800, 0xE000)


@cache
def unicode_table() -> bytes:
    """Return the table."""
    return zlib.decompress(base64.b64decode("".join(TABLE.split())))


def by_characters(values: Sequence[str], transform: str) -> list[str]:
    """Return texts after a transform of `OF_CHARACTERS`, by the table."""
    return transformed(values, TRANSFORMS.index(transform), 0, unicode_table())


def built() -> bytes:
    """Make the table of this Python's version of Unicode, `unicodedata.unidata_version`."""
    words = []
    for number in range(0x110000):
        if number in SURROGATES:
            words.append(0)
            continue
        c = chr(number)
        small = c.lower()
        kind = 1 if c.isupper() else 2 if c.isalpha() else 3 if c.isdigit() else 0
        has_case = (c + "\u03a3").lower()[-1] == "\u03c2"  # a capital sigma at the end of a word
        passed_over = not has_case and ("a" + c + "\u03a3").lower()[-1] == "\u03c2"
        flags = 4 * has_case + 8 * passed_over + 16 * (len(small) > 1)
        words.append(kind + flags + ((ord(small[0]) - number) & 0xFFFFFF) * 256)
    numbers = {word: number for number, word in enumerate(sorted(set(words)))}
    pages: dict[bytes, int] = {}
    places = [
        pages.setdefault(bytes(map(numbers.__getitem__, words[at : at + PAGE])), len(pages))
        for at in range(0, len(words), PAGE)
    ]
    head = struct.pack(f"<{len(places)}H", *places) + struct.pack("<256I", *numbers, *[0] * (256 - len(numbers)))
    return head + b"".join(pages)


def packed() -> str:
    """Return VERSION and TABLE of this Python as they stand in this file."""
    text = base64.b64encode(zlib.compress(built(), 9)).decode()
    lines = "\n".join(text[at : at + 118] for at in range(0, len(text), 118))
    return f'VERSION = "{unicodedata.unidata_version}"\nTABLE = """\n{lines}\n"""'


TABLE = """
eNrtXHnQHUUR/+33vZn9kgAJgZwECIEcJAFCOEOAJEAIkIQEAiREUbzvG7xFxANv8cQDBcUTT1RQEUQUNYJAAEl5/GFJ+Z9VVllllVpl1bP3np2d2Z3Z47
2XZLpfv71mt2d6Znp6umcX8DCGcfTAwOFjApMwGVNwAA7EQZiKaTgY03EIDsUMzMQszMYczMVhmIfDcQSOxHwchQWER+MYLMQiLA6PFmAJjsVSLMNyHIfj
cQJW4ESsxEk4GafgVJyG07EKZ2A1zsRZOBtrsDbGdTgn3T8X56X7Ca7H+diAC3BhfHwRNmITNqfXFwwELx4Qn30ftxTObA3/L8Gl2IbLcDmuwHbswJXYiW
fgmXtZ6a4qtN9hYJCTZ+HZuBrPCfefi+fh+XgBXogX4cV4CaV4KdHL8HK8Aq/Eq/BqvCZM91q8DtfgWrweb8Ab8Sa8GW/BW/E2XEep347r8Q7cgHfiXXg3
3oMb8V68j86/Hx+g/w/iQ/gwPkJ7N+Gj+Bg+jk/gk2FePoWb8Wl8hvY+S/Q5SV63hLn9vHHJvlCQ+K0tyCrA20ai5rL8fBFfwu34cnr+K0Rfxdc6br9fV5
z7Bu4YEdmsxTfDHH0r/P+20R3fwXdb4/69eHsnvo8fxPs/xF24Gz/Cj/ET3IOfpmnvxX2F+39GdD/Rz8OjBxQcfkHl+iUeVFz5FX6d7v8Gu+K931bk+CFt
+3LocLTw4cZP+B3RI53l79EhyOSx2uPH7orrbeDjIzMuOHTo0KFDhw4dOnTo0KFDhw4dOnTo0KFDhw4dOnTo0KFDhw4dOnTo0KFDhw4dOnS4b+ITRE/i90
4SDh06dOjQoUOHDh3uBxjAGNE4UY+IEXGiCaLJwbFHx0SMEjE6yaYSTSOaSzSPaD7RAqKFRIuIFhMtIVpBtIaIWLD1RBuIthBtJbqG6CGih4keIXqU6DGi
x4meIHqS6CmiPUR/JPoT0Z+JbhsHu3oePX8p2DKi3TeD3bmzz+4iupfoPqL7ifYQ/YHo70T/INp1bZ/9j+iBp/rsr0RPE/2NaHxPn00imkO07i99dg/Ruq
f77Haiuf/ss7X/6s9Y1e+zs4iuIrqO6HqiG4huJLqJ6BaiW4nuILqb6EGiXUS7+33+b9r+h7ZE7L/9Phw42DuBJ5uxFOJT07QQpudMC5YZYOHjSFuNcQbO
x1gZ++S8lneyM2GJF8TbwgXL51wc38WOCTZHTbD58+nosCOOpL0FbOHRwaWFi9jiKNmx9GPRdsmS4MRSuu4FaTyCyZNY9DPIU5TskstN87lR9YwQjp9gFx
0XsLhwzlz5WjPwSq75BeAE8nEG4imfSxeHAIGMfPoH/KAZHh62bX4Inz59OmZj1iymbcr6xizAFMZ6vV5Juw7gMoYJtpP2N27cOE+CaRVgW5fVLQyCZOzx
gEa90B4x0wioeiO1ZSyoVNHZQKARo19yu6eH5HKWOGUnHycPL31eCH62q8xhNl5E7LnXPcDLihArgXjX87L8hBLx5GGmKoNllYHOSiRwkXKcK4/hQ/ywbf
rhqK5PmulKPz0qjstl3KTrpeljsSPhkRbXFOqr9prVxsN5EbLaj+RZyDfnYi3BLzwmE0qwpxMR0m3SjTP+WeuV6gYF/p6QJNQEWbuNb6nkn/wiPcLT/ygj
XGgYafcSrEYelzlTOAJHCIxK+efLz5HJv9A+JfmnFxRKzrz8CX+el79QJo38CxkMnpLKP+ET34xkL7qSz1qeJTTll+WvMuy5gfiL50NlGZc0UbVZ+RPtqp
V/Wg2i/M345+QvSKGgn8KksvzzEjJtfkoNp+l/XsbD05c/UXhKpViiKcXspqlyjY+DG9e/tfLj6UAi3J4q3zJOaojbeZnkIV7iwkCWlJ/GsiRLIn/P87xK
9rr5Ji+RHEcqYm330FlgsgEX/8vDvJEdKE/Pa4CNWQUhY7HG92T5ZEnjAqUaLO0O0qDOM2FT4tzz6PRyI8Dy8H76t5iahDMwb18BJAOY2GUs6tc0vRkftF
SORhKB2EU0eknVRUU4oWWYEkLSTtHhnGEU2yiqzQrD+UIt7jmFrdN/uWmOctgv158l1yHOcFC7fNnoIOj//LDgJ7aVxXismK8b5c9vUBtILCkDu6PF9mAs
/0SFFMfaXDMxnYUn9kq9+i9PL+dkrMn4H47uteWNrIFysW3KLibal7Oryb5v6B6zD2zUcACkVls66cqqoET8ykxWco8nGFGfl/xXVjmO7FZZRDa9Rag2rp
xZeOb5i3z1gr0WP2+DOYSJFUKGwsKOzdF0CoHEkWbjy/abQf5ZLbFrIx4xepjAeQPjtCOGpDFGR1n7yF+vTo8dEeruT+5L9q6MwegYwfO2bdvOGdVgdHwp
wfboKHzqjh1btyI+jvhv2bIz7LtR+k2bNm/eLqsi0aLgOR8Rly5b6VexR475ic6I9LqsL3ONu06gmtuOEL34LwqcBX/hqV4ASYr1ROecS8d0fWovnDSGUo
5T9BIFVoxpHyjBuATBUhsGB12Bajg2PaeHg7QwroUxFbOxYUtFtTdImGkJ9vHnteevS8LCZ68586woSBwPsKtXD2Q0i4oa7IYjrlh+Q1dVdA+rP/+R7ejU
Y10xQSpGP+y2vF2D3e+kEfqe4ciSDFDCXV15SqJArdehfygoivWkumN/lbV/ukN/d70Mt5Ef3xsOtNCVjMP1cT/KnVPcr45cZ2CniT3JGoVfljqYXbUtWF
njadSiML+T5yvNxiJfXJh1hnA+YHRqsKZQx2PlihNPXslOP+W0ZfKVK05aFS6NiuqDRimWHqqUrU9Cp/pnwsoPcXau1IXaKFfzZt68m6g9gbr6zQK8QXDa
zF9SucRIO6JWFaSW+wuyFyirXKX/mPvK/mwZbc+YCozFdsMV8teo1nj1Sw3fexjT9NKArcc9vSrM67c429T0UYgwFLca+8vC9OU5p5MfcWctg5ktk6wVqq
6fqv5WyzXe5k1tB8CGPJgr1uJnJ0SVDIUZiGw12OCgcgoxVINpWC2kjn2mGp8KS8qs52u8dDnKICYRNrOswbzfUte09/3qatcNIOolgrlAidwe7KZ9io4v
t97Bz8cGO9tp/laVWe3WLxVvKP/KxFAvrzDQ4Qbpze2DupU6wxBatIesKlO2l0zyamrn2fS/tuZbh2Yg7ovHtIXqVT3pGIwN0F9R4R+tXF9SMhsO/CDmUW
Q0iY7pyg/YjcnxmvRSc7zSXjdaf9NB/aI6fybtAy3Kv/5itsb8s7cnkHgnqpfBp+YDrwoYNRrfLOSHigVz7cq/Ufup4D9YE2TY1tRse4B9/Ez/3rmptWLw
JsVeE/+uV/+Rlmi7fZp2s/L05hPU8tqtmV/78okGehteENPVDWM8eW8pmwXadnPBDyvNMMrmM3r/uPmEQfOWkVfZPmT/tWe+/lIrAsEhn4WHRX8+vFrtCV
XuevDshZm2+l/yHoc+L/XGCy69Iauo/9rvX4btmJe9zyV7uVBcxVZ3rBPXwvJoGYWifLxyYKzNOn37NuhAWbFtx6d67NO606rOCrOrefmFjuCZvenYlL+w
lD1707qpPVBtZAuvCerjWwOx/3KKj/OB2C9Nv0dSUT+C5snNJWBg5kbNIP85jdbtQ+u4APLRWV4xDHlyYNo4Euup3nyHEKflDSyaYsfuaL5i4vzOG8E89x
asp7O3x+r1ON2KEAic2+x7Bk1eHYdPPj0TNR3t/Mj88YI90KJ+HTbYeSMMnjew+f/e438YSX+IYWZt767/plun5R08f0P/cZ31Jja5sHt+8/mHXPtyIED1
pRut+EYyKDpY+7Dlns0bClD+mGHjIE8QMOIjGH/vln8N/YP9A8QQYtA42tbtnmYN/wis9yhdNzCoJq+NfxXkkzhYup1oW34qD229dz/olTbiBxy0U6tKSY
160eyhpwX9mFl5D2rco+KD4P3a4NeLMgrxHogrQZrxiR6cCSPZQfU9cfpMkmggN3ePNmSrvQ2s4hvf+82dLPf1F0Oo+81U66FD6S0sjWIpv4PXtvas+Or4
ILS3+nN/ksOvq8GnZvAlnZ0UIrGd5oc3yr/q+1YD8m9Bt2C67emObTc5uBIMXjSK20Td+BsqVhpKyxOTTwt7gkc0Os6lT88loR25LqQPi0JrsKPselvrcw
wFph8/27m+H8FQJi4d+yOt22jH/tfGuR8NL8Hw/WVdNYDBRVY69z/W1AJt+kcc2H7v5f/vOt5k
"""
