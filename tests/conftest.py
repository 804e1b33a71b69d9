"""What holds for all tests."""

from hypothesis import settings

# A busy machine holds an example up for seconds; no test here is about how long one takes.
settings.register_profile("dgm", deadline=None)
settings.load_profile("dgm")
