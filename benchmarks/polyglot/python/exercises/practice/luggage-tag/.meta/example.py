import re


def label(airline, number):
    if not re.fullmatch("[A-Z]{2}", airline):
        raise ValueError("an airline has two upper-case letters")
    if not 0 <= number <= 999999:
        raise ValueError("a number has up to six digits")
    return f"{airline}{number:06d}{number % 7}"


def is_valid(text):
    found = re.fullmatch("[A-Z]{2}([0-9]{6})([0-9])", text)
    return found is not None and int(found[1]) % 7 == int(found[2])
