def label(airline, number):
    pass


def is_valid(text):
    pass
