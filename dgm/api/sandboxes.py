"""Images of the sandboxes from a program (``dgm sandbox``); all of this needs Docker."""

from collections.abc import Mapping, Sequence

from dgm.api.records import Records, records_of
from dgm.blocking import ProgramWatcher, block, in_python
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions import sandbox_images


def images(*, engine: str | Sequence[str] | None = None) -> Records:
    """Return a row for each recipe, and one for each agent's own image.

    A recipe's row has the tag of its image, and whether that is built. An agent's image has no ``recipe``; its row has
    ``size_mb``, and ``used``: the time of its last use, in seconds since 1970.

    Args:
        engine: address of the Docker engine, such as ``ssh://user@host``, or several; None: the environment's.

    Raises:
        UserError: it is no address.
        Infrastructure: no Docker engine answers.
    """
    with in_python(), use_engine(engine):
        return records_of(sandbox_images.list_images())


def build_images(*recipes: str, engine: str | Sequence[str] | None = None) -> Mapping[str, str]:
    """Build the images of recipes that are not built yet, and return recipe → tag.

    Args:
        recipes: their names; none: ``python``.
        engine: as for ``images``.

    Raises:
        UserError: there is no such recipe.
        Infrastructure: no Docker engine answers, or a build failed.
    """
    with in_python(), use_engine(engine):
        return sandbox_images.build_images(recipes)


def clean_sandboxes(*, engine: str | Sequence[str] | None = None) -> Mapping[str, int]:
    """Remove images that are not needed, and sandboxes that dead processes left; return how many of each.

    Not needed are images of recipes that have changed, and agents' own images that were not used for a week. Blocks.
    Of bubblewrap, sandboxes are removed where Docker does not answer.

    Args:
        engine: as for ``images``.
    """

    async def perform(_: ProgramWatcher) -> Mapping[str, int]:
        with use_engine(engine):
            return await sandbox_images.remove_remains()

    return block(perform, None)
