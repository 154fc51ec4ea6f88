"""Properties of characters that lower case, shapes and lexicons depend on: the same in training and in every tagger.

Python's own differ from version to version. `built` makes the table of the Python that runs it, for a new `TABLE`:

    python -c 'from kcrf_core.runtime.characters import packed; print(packed())'

A record has the kind of a character in bits 0-1 (1 capital, 2 other letter, 3 digit), bit 2 if it has case, bit 3 if it
is passed over in the search for the end of a word, bit 4 if U+0307 follows its small letter, and in bits 8-31 the
difference to that. The table is 8,704 numbers of pages of 128 characters (uint16), 256 records (uint32), the number of
characters whose case folding is not their small letter (uint32), these with up to three characters (4 uint32 each), and
the pages: a number of a record (uint8) for each character.
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
    """Return texts in lower case, as shapes or in folded case (lower, shape, fold), by the table."""
    return transformed(values, TRANSFORMS[transform], 0, unicode_table())


def built() -> bytes:
    """Make the table of this Python's version of Unicode, `unicodedata.unidata_version`."""
    words, folded = [], []
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
        if c.casefold() != small:
            folded.append((number, *map(ord, c.casefold()), 0, 0)[:4])
    numbers = {word: number for number, word in enumerate(sorted(set(words)))}
    pages: dict[bytes, int] = {}
    places = [
        pages.setdefault(bytes(map(numbers.__getitem__, words[at : at + PAGE])), len(pages))
        for at in range(0, len(words), PAGE)
    ]
    head = struct.pack(f"<{len(places)}H", *places) + struct.pack("<256I", *numbers, *[0] * (256 - len(numbers)))
    return head + b"".join([struct.pack("<I", len(folded)), *(struct.pack("<4I", *one) for one in folded), *pages])


def packed() -> str:
    """Return VERSION and TABLE of this Python as they stand in this file."""
    text = base64.b64encode(zlib.compress(built(), 9)).decode()
    lines = "\n".join(text[at : at + 118] for at in range(0, len(text), 118))
    return f'VERSION = "{unicodedata.unidata_version}"\nTABLE = """\n{lines}\n"""'


TABLE = """
eNrtXAe41UQWPnnvJRc7OoKKyEMUwa7Yu2AXFezIrrs27LoW7K4iSrFjA+z0NhTpRYoCIjZEUGy761pWd9dd17arru739iQnk8zMTW7Kzb3vKfnP+9+dk0
xyJpMpZ2aSABhQA7VQByZYUIBmsA6sC+vB+rABbAgbQXPYGDYBBptCC2gJm8HmsAW0gi2hNWwFbaAe2sLW0A5lG9gW2sN20MHR2kFH2B52gB1hJ9gZdoFd
YTfYHTrBHrAn7AV7wz6wL+wH+8MBcCAcBAfDIXCoK52hixc+DA73wkKOgCPhKDgajnH1Y6ErHAfHe/vbVUVOqJKdX750K9rS3fl/IpwEJ8MpcCqcBqdDDz
gDesKv4Nc/s6s7s6j8NobYKfkN/BbOgrOd8DlwLpwHveB8uAAuhIswxsXIS+BSuAwuh9/BFXClE+8quBp6wzVwLVwH18MNcCPcBDfD7+EWjH0r9IHboC/c
DndAP+gPA2Ag3Inb74K78f89cC/cB/djaBA8AA/CQ/AwPOKkZTAMgaHwKIYeQz6u5dcTTmqfjH1lTxXl+NMZ5JUtw5rEnfPTMxxGwEgY5W0fjRwDYytcfs
cFbBsPE5pI3hwK3EnRROf/pFhHTIYpmVl/xv2dCtNguhueATNhFsyGOTAX5sGzXtz5sKDo+IXIRcjnHO35AAuL8bqWwNKAPS/AMi/8Iix3Qy9FpPjl0PKV
Sy5NS14p+wyvIl+rWPpWNEKevJ66/1gZsT8LeaPJ9Au55JJLLrnkkksuueSSSy655JJLLrnkkksuueSSSy655JJLLrnkkksuueSSSy655JJLLrnk8suUVc
jV8GaeE7nkkksuueSSSy655LIWiI0aZC2yDmkiLWQz5Lq2bqCONDGSiRvNjZDNka2QrZFtke2Q7ZHbITsgOyJ3Qx6CRBPmEcijkN2Q3ZG9kS8jX0G+hlyB
fB35BnIVcjXyLeQa5LvI95DvI4fVgnlWazz/DmDuiFw5BMypPRvMmcj5yAXIRcg1yHeQnyO/QC6/psH8Cfn8Ww3mh8iPkJ8ga9c0mOsgt0B2/qDBnIfs/F
GDORLZ6qsG89BvG1rs19BgHoQ8E3kLsg+yL3IAchDyCeTTyAnIWcilyOXIlQ0N1nf4+z3+Is0fGhogR44mhu2xbs/E3/m1/rYPkFe7tHEMxpmP9f9yV7/V
8PfZ+BL1i/F3ffccR+DvXOl8g1y9GdJAPoN8QdIXI5dI8VdieJqkv4HhOZL+FoaXSfoaDD8n6V9ieJ6kf4Xh5yX93xieKekDsNHrhexrkj6MEQWGM6LACE
YUGMmIAqMYUWA0IwqMYUSBsYwoMI4RBcYzosAERhTgjCgwkREFJjGiwGRGFJjCiALPMKLAVEYUmMaIAtMZUWAGIwrMZESBWYwoMJsRBeYwosBcRhSYx4gC
zzKiwHxGFFjAiAILGVFgESMKPMeIAs8zosBiRhRYwogCSxlR4AVGFFjGiAIvMqLAckYUeIkRBV5mRIFXGFHgVUYUeI0RBVYwosDrjOjVP0b06h8jCqxiRI
HVjCjwJiN69ZURvfrKiAJvM6LAO4wo8C4jCrzHiALvM6LAHxhR4I+MKPAnRvTaO0YU+DMjCnzIiAIfMaLAx4wo8AkjCvyFEQU+ZUSBzxhR4K+MKPA3RhT4
OyMKfM6IAv9gRIF/MqLAF4wo8C9G9NpPRvTaT0YU+JoRBb5hRIFvGdFrbxlR4Hvt/D9o5/+vdv4ftfP/pJ3/f9r5+6Bf2qnO129DfU9J74v6wZJ+O+qdJf
0O1LtIej9N74/6sZI+APVzJX0g6l3H+PrgNgAX4u/ubp8zBPXeQP2fjaGoX2f7267+KOo3SPpjqJ9tt1s1pD9u62388z/VRu2vu9dT/8rc40+SdeQpkm73
v6dJehdkH9Sh3u/Db8OwIel9MVwj6bdjuFbS78BwnaT3w7Ap6f0xbEn6AAwXJH2gZv9Ozf5dmv27Nfv3aPbv1ezfp9m/X7M/CMNtJf0BDG8t6Q9iuJ2kP4
ThbST9YQxvK+mPYLi9pA/G8HaSPgTDHSR9qGb/Uc3+Y5r9xzX7T2j2n9TsP6XZf1qzPwzDZ0n6cAyfLekjMHyOpI/E8LmSPgrD50n6aAz3kvQxGD5f0sdi
+AJJH6fZH6/Zn6DZ55r9iZr9SZr9yZr9KZr9aRi+QtKnY3iq5NPOQH2ipM9y93dx9dmSbseZrx2/sF71jxej3lvatgTDs6X4S1GfLOnL3P3C3ouSbsd5VT
t+Vb3vf9v1f3W96o+vcXVxvrel/fa2j+p9f90+/uN61X//pJ78a9HefOruF+f7TIpvb/sa9Zul6/0Gwy9J6f0W9RWS/h93vzjfd5Jux/lJO/4KrvrvV3LV
f7+Kq/771Vz133tz1X+/hqv++7Vc9d+v46r/fj1X/fcbuOq/38hV//0mrvrvN3PVf/89V/33W7jqv9/KVf+9D1f999u46r/35ar/fjtX/fc7uOq/9+Oq/9
6fq/77AK767wO56r/fyVX//S6u+u93c9V/v4er/vu9XPXf7+Oq/34/V/33QVz13x/gqv/+IFf994e46r8/zFX//RGu+u+Dueq/D+Gq/z6Uq/77o1z13x/j
qv/+OFf99ye46r8/yVX//Smu+u9Pc9V/H8ZV/304V/33EVz130dy1X8fxVX/fTRX/fcxXPXfx3LVfx/HVf99PFf99wlc9d85V/33iVz13ydx1X+fzFX/fQ
pX/fdnuOq/T+Wq/z6Nq/77dK767zO46r/P5Kr/Pour/vtsrvrvc7jqv8/lqv8+j6v++7Nc9d/nc9V/X8BV/30hV/33RVz13+FH7N+AaMNw9YtcvcbVL3X1
Wim+HadO0u045o/kW/Z241uazlDvbWK76M6fbOrqvVy9hatf4uotUb9Fir+Zu/8yM9HUlSV+ajy4m5qHwolvmaFImADTOR3maI1lgmXVmKXMi+2htkWgWU
I52v0t2pHwPCe4R5nb2j9bNzPbtkVtyzb1GGpntt/G3tV+O7MDRdse/0z67djR3rAD7jfsOAZi3XVM+ouRJop24qlx09k16BwOdmlmHruzbeKYLVrp+8qD
UWJfoQgWQtd9yJsKlrazEWDnUQH/4yjILoZbOWXbYtYmm2wCm8Nmm5mhRTm8MEtYzzTr6upKlGsbp5jQzOyJ4a5du7bW0DwCSe9ldAkDKWeSy/pl1cLkAi
1jAW8vNVuxM8pr6JLAbhHpTxxuhEPs9iN75nRdnLzk+RwU/GBgCv3+gsxbRuUBhn8JbiPgBg3DT4+TI4bezUQlsNTNgIpdkWRFS7FyPTFPUnDKZsHp1cOj
+m1lwdOK++VS1rT9JeO72Q7Chne5cZG+aU952yxnrR78u0/5WZRuy5LvEhSKTuNnih0KyyLwfkU19u37pVe7N1Bk35CiOC2BX27dQyLtiz9qRyzvPyXEkg
qGV70kr9Fyr9lvcCSLIBkqaV+9fgv8/C8qn1r+ezsCGrn41y/sW2r+S9cUkv9FCbTP4uW/sOMeDCJEe9SkqSYh5Pr1/A9y7K0Y2V+83Wks3SsVTa1//aJ1
Dc1/7zbI+R/PvpL/Ui4UtU9OVD3/1RyKW/wCW7iQ+mf4Nozw6xcNXmCjWKKllJPrxVIKnwVW7PufuPGzvI5EOtxrfEtZCoZbzkvlPMi7LKkjE9ePfZlIkm
zfMAwj0nzYeNMqkXMWeFkcWj3CPDDdgXP/6918LD9QH56nQBK3CqSEuS2+oeePH9W9IK8F86qD1qlbfmZjZOV8uHmnWICdnOPxf4KhiTMCM34pANGByVUm
wf2NGz+eHcjoOsrKEZCrSEi7FFRFZeyaMdZzIMopVHDM0BTLKES7FTHHC6msKw12WPunDHMCu/3S7WeJ/SCPcCD19fm9g9T+q91CQfhWCfrjgPF6rPQVyr
gbIDypGH5HhuUhdv6LJqS4r1WKSdxRuPBX0t3/0vH1lNSU0/87vXvq/Aa/gFpy2dSnmDCsJzck+YWY02OJ/Z80EwCe1+YNuvxbUCL7AxMZad0dYFCd1+av
EqWY/FY9i5LUFum2WYEjCyN++miuXvLX3PMdFR9O5IBMhgAP23VHvSEEiIm0JHPZhfKgnisjc1msRzQ9ETi8apZ6uBCFkTS/fKj7o+NDD5Kw48VxInSGi1
g62Oc7+eTTLRPvIOknIU4nzTlrjx7du4Ork/1u3Xo6dZfiH3fc8cefrjdFskdhKXNElrY7Ufsq18iagmgzqF3X20ulcKcYz8YfMwvUuf9o4cz+52yqsyFi
HIHschjquH+jOmfQ6OSyG6NONGDFa9obaKjVYD+aakKOSiGoO467LRwbhqI2FDVBxmoaO1eCQtVEy4RIvv586JGdxbLwwYcceBAtErsd7AEHVKU3o0u1g0
6PK19/zKkqOsZMP/7R/WhvxjpigFS8+pHs18rWYS9UpBAWjJg9i+igpKMqNVNCC7VGBeeH7EtJPKiu8HxV4vnpCs53p0twFukpGI2DDKpS7OV6tx4p2wKO
D1659pGsJTY0bxQKpWLbo6usM1Zv8UKaRWl8p49XyuuLCvKDWftL221De9vPFIbZ6LTb7nt2Mvfda58d9T2n7bGf82gU3Q/spUxPDWpsC5jpeP9N6ckPeX
Qe2BaGrnKVX8zLrybBM4Fh99df4LUXp+PNl0Q+YhTao0ZdSKrpL9BngfybGzh/bBUC63PC1XbfqGRYLjdWQP6HNK3u0y8p5t6dNU3DW7A1LCO8KVTbNzfZ
WPShaIWh+DfE/0rg+lrKpFOBrJsZI54vI54Vir4/UfUt1dR4lgdlvQDWyJ15wLP4/ga5SYYANxD8p8Gqh8ghRKM6TI1VQtL4Z0H9U9EjZYnHa1bJx1GqMY
hIMsqqzvstaV37QiH6tod1IMGPCCoLJXp5SDbsC6j4eumt/nisuqOdMmFF+2flXpVVZv5HRobgxytitOEx4sf3D9Le1BYxkaE/lOhm6v5SnLTG9fOS1L+s
xlub+pDDso6/EPSqnqaDaVZxviJifjTy+ZISo2F7HiT+KjKUszoWdv0Ayfpk95n0ku54pL8e6/mbCtxfiE5fnPIBGeZ/+ofZyrbvvz0BYnYi+jF4z32woh
aMyurfEuQfRDwwl23+l1V+IuxX1wVpbG9q8+SA5Otn4e+dx/VWYrxJ8bNZ/053/6mVyLp8xq1mpePHH6CWvrsp05v8+mQHPYtZkLhPN9RY4r0lfxSYtJpL
87DaCKPUeCZ8fjz+gCHkLSMjsnzo89dG/OcvQ7NAmpD3l4fl+XwwUpUniJquB8t/YSar+ife4whPS7r+wtLekA24/6nfv3TKsVXqfS59lguKn2JL29fJz8
Ja9BhFwPVZkR1jatPe27d2BfIvO2n/lM68d+9Cm84It6v865cqghHvTcdy7UuPsvtvWpfrD0Q72dJrguHrW1Xx/5SGz7Kq4r+U+z2SiPsjtTzKWAJiuLlU
DNTPaWTuHyZeFwB1ddaK6IYMfWE69kqsEfTmO0jrtFYZHk1xxa7QeCXO5LfqBFvKW7BGmL9dk67GhT0RApLlLOtejCIfvA4vPj1DRSd0fBT/9JI/kGH72t
hINhsR43xVG///fOYfmuR8SMzEJj06/ZtuFb3e6tuPOX+c5nmTJKlIdv7yxx/63dcXAoK+dBOafU1yUbS6/mHGNdsqMwP1jxmWvchjLxhZTXD9vbL2U7Q/
sHZAXkK0C0fWbbsR8gx/E3jeo+RzA9Uq8qHrX0X5IyZYKjvQTvipPMjqvftqP2kjf8AhdGgVmVNN/dKSoy4U4X1m5DGQ4pggO2C/X2v/1VFCQT4G5CdByr
NDJ/YzQwQg+hg3vp+TUEa+5ceELtmGHgZmxDe+15ojTeXrLzGR9pupibuOwNnCkqtYgd/By7r1jPjqeDVa7+DP/WkTfpXqfFIuvnijk6KV2Iqmxyor/UHf
t6rS/BaEPTCd9XAnaTXZOBIxXjRyy0Ta9TeIeNJQezxRfFrYkGZESVfie9vE0o5+L7QPi0Koww6l9mf1fE7MDAvvP7PZvxahUQYuFZ6PTFxGKzz/Wnbqm8
YsQePPl1WqAFRvZaXi848pW4Es50dyJP3ey/8BwRsDEQ==
"""
