"""Eats memory until it is stopped"""

eaten = []
while True:
    eaten.append(bytearray(b"x") * 50_000_000)
