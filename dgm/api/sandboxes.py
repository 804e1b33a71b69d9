"""Images of the sandboxes from a program (``dgm sandbox``); all of this needs Docker."""

from collections.abc import Mapping

from dgm.api.records import Records, records_of
from dgm.blocking import block
from dgm.sessions import sandbox_images


def images() -> Records:
    """Return a row for each recipe: the tag of its image, and whether that is built.

    Raises:
        Infrastructure: no Docker engine answers.
    """
    return records_of(sandbox_images.list_images())


def build_images(*recipes: str) -> Mapping[str, str]:
    """Build the images of recipes that are not built yet, and return recipe → tag.

    Args:
        recipes: their names; none: ``python``.

    Raises:
        UserError: there is no such recipe.
        Infrastructure: no Docker engine answers, or a build failed.
    """
    return sandbox_images.build_images(recipes)


def clean_sandboxes() -> Mapping[str, int]:
    """Remove images of recipes that have changed, and sandboxes that dead processes left; return how many of each.

    Blocks. Of bubblewrap, sandboxes are removed where Docker does not answer.
    """
    return block(lambda _: sandbox_images.remove_remains(), None)
