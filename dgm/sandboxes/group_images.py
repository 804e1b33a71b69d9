"""Images on several engines: made on each that answers, and on the others before a sandbox is opened there."""

import hashlib
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor

from dgm.domain import Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.paths import cache_folder
from dgm.sandboxes import recipes
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.engine_member import EngineMember
from dgm.sandboxes.instance_images import InstanceStore, Progress

Make = Callable[[EngineMember], None]


class ImageMakers:
    """The ways in which images were made, to make them on further engines."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        self.members = members
        self._makers: dict[str, Make] = {}

    @property
    def used(self) -> Sequence[EngineMember]:
        """The engines that answer now.

        Raises:
            Infrastructure: none does.
        """
        found = [member for member in self.members if member.is_used]
        if not found:
            raise Infrastructure("none of the engines answers")
        return found

    def make(self, tag: str, make: Make) -> None:
        """Make an image on every engine that answers, and remember how.

        Raises:
            UserError: it cannot be made on one; the message names the engine.
            Infrastructure: all engines failed.
        """
        before = self._makers.get(tag)
        self._makers[tag] = make
        try:
            self.on_each(make)
        except UserError:
            if before is None:
                del self._makers[tag]
            raise

    def make_on(self, member: EngineMember, tag: str) -> None:
        """Make an image on one engine, if it is known how and it is not there; raise as ``make``."""
        if tag in self._makers and not member.has_ready(tag):
            self._makers[tag](member)

    def on_each(self, do: Make) -> None:
        """Do something on every engine that answers, at once; raise as ``make``."""
        used = self.used

        def attempt(member: EngineMember) -> Exception | None:
            try:
                do(member)
            except UserError as error:
                return UserError(f"{member.address.url}: {error}")
            except Infrastructure as error:
                member.leave_alone(str(error))
                return Infrastructure(f"{member.address.url}: {error}")
            return None

        with ThreadPoolExecutor(len(used)) as threads:
            failed = [error for error in threads.map(attempt, used) if error is not None]
        for error in failed:
            if isinstance(error, UserError):
                raise error
        if len(failed) == len(used):
            raise failed[0]


class GroupTaskImages:
    """The images of tasks, on several engines."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        self._makers = ImageMakers(members)

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Build the context's ``Dockerfile`` as ``tag`` on every engine; raise as for one."""

        def make(member: EngineMember) -> None:
            member.make_image(tag, lambda engine: engine.task_images.build(context, tag, network=network))

        self._makers.make(tag, make)

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``, the image with its ``folder`` as a workspace, on every engine; raise as for one."""

        def make(member: EngineMember) -> None:
            self._makers.make_on(member, image)
            member.make_image(tag, lambda engine: engine.task_images.hold(image, folder, tag))

        self._makers.make(tag, make)

    def check(self, image: str) -> None:
        """Check on every engine that it has an image with the needed programs; raise as for one."""
        self._makers.on_each(lambda member: member.engine.task_images.check(image))

    def ensure_on(self, member: EngineMember, tag: str) -> None:
        """Make an image on an engine that was away when the others made it; raise as for one."""
        self._makers.make_on(member, tag)


class GroupInstances:
    """The images for instances, on several engines."""

    def __init__(self, members: Sequence[EngineMember]) -> None:
        self._makers = ImageMakers(members)

    def has(self, reference: str) -> bool:
        """Return whether all engines that answer have an image of that name."""
        return all(member.engine.has_image(reference) for member in self._makers.used)

    def offered(self, reference: str) -> bool:
        """Return whether a registry offers the image to the first engine that answers."""
        return self._makers.used[0].engine.instances.offered(reference)

    def pull(self, reference: str, progress: Progress | None = None) -> None:
        """Pull an image to every engine that lacks it; raise as for one."""

        def pull(member: EngineMember) -> None:
            member.make_image(reference, lambda _: _pull_missing(member, reference, progress))

        self._makers.on_each(pull)

    def prepare(self, reference: str, tag: str) -> bool:
        """Make the start image of sandboxes on every engine; return whether one made it just now; raise as for one."""
        made: list[bool] = []

        def make(member: EngineMember) -> None:
            if not member.engine.has_image(tag):
                _pull_missing(member, reference, None)
            store = _store_of(member)
            member.make_image(tag, lambda _: made.append(store.prepare(reference, tag)))
            # Its use is noted each time.
            store.prepare(reference, tag)

        self._makers.make(tag, make)
        return any(made)

    def disk_bytes(self) -> int:
        """Return the bytes of all instance images on the engine that has the most."""
        return max(_store_of(member).disk_bytes() for member in self._makers.used)

    def collect(self, limit_bytes: int, spared: Collection[str] = ()) -> Sequence[str]:
        """Remove the longest unused on each engine until all fit into the limit; return the removed tags."""
        gone: set[str] = set()
        for member in self._makers.used:
            removed = _store_of(member).collect(limit_bytes, spared)
            member.forget_images(removed)
            gone.update(removed)
        return sorted(gone)

    def ensure_on(self, member: EngineMember, tag: str) -> None:
        """Make an image on an engine that was away when the others made it; raise as for one."""
        self._makers.make_on(member, tag)


def ensure_image(member: EngineMember, image: str, tasks: GroupTaskImages, instances: GroupInstances) -> None:
    """Make sure that an engine has the image of a sandbox; blocks.

    Raises:
        UserError: there is no such recipe, or the image cannot be made there.
        Infrastructure: the engine failed.
    """
    if image.startswith(IN_ENGINE):
        tag = image.removeprefix(IN_ENGINE)
        tasks.ensure_on(member, tag)
        instances.ensure_on(member, tag)
        return
    member.make_image(recipes.load(image).tag, lambda engine: engine.build(image))


def _pull_missing(member: EngineMember, reference: str, progress: Progress | None) -> None:
    if not member.engine.has_image(reference):
        _store_of(member).pull(reference, progress)


def _store_of(member: EngineMember) -> InstanceStore:
    """Return the store of one engine, whose notes are no other's: they say what is there."""
    which = hashlib.sha256(member.address.url.encode()).hexdigest()[:16]
    return InstanceStore(member.engine.client, cache_folder("instance-images", "engines", which))
