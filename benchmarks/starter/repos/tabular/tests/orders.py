"""The orders of a small shop, shared by the tests."""

from tabular import read, to_text

TEXT = '''\
# orders of the first week
order,customer,item,pieces,price,paid
1, ann, pen, 10, 1.5, yes
2, bob, ink, 2, 7.25, no
3, ann, "paper, A4", 3, 4, yes

4, cat, pen, 5, 1.5, no
5, bob, pen, , 1.5, yes
6, ann, ink, 1, 7.25, no
7, dan, "ruler ""30""", 2, 2.75, yes
8, cat, "paper, A4", 6, 4, yes
'''

CUSTOMERS = """\
name;city;price
ann;Bern;low
bob;Basel;high
cat;Bern;high
eve;Chur;low
"""


def orders():
    table = read(TEXT)
    print()
    print(to_text(table, digits=2))
    return table


def customers():
    return read(CUSTOMERS, separator=";")
