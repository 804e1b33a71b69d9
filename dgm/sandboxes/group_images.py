"""Images on several engines: made on each that answers, and on the others before a sandbox is opened there."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from dgm.domain import Snapshot
from dgm.errors import Infrastructure, UserError
from dgm.sandboxes import recipes
from dgm.sandboxes.container import IN_ENGINE
from dgm.sandboxes.image_store import BOUNDED, ImageStore, Progress

if TYPE_CHECKING:
    from dgm.sandboxes.engine_group import EngineMember

Make = Callable[[ImageStore], object]


class GroupImages:
    """The images of several engines as those of one; each method raises as ``ImageStore``'s, naming the engine."""

    def __init__(self, members: Sequence["EngineMember"]) -> None:
        self._members = members
        self._makers: dict[str, Make] = {}
        """Tag → how it is made, for engines that are away now."""

    def build(self, context: Snapshot, tag: str, *, network: bool) -> None:
        """Build the context's ``Dockerfile`` as ``tag`` on every engine."""
        self._make(tag, lambda store: store.build(context, tag, network=network))

    def hold(self, image: str, folder: str, tag: str) -> None:
        """Make ``tag``, the image with its ``folder`` as a workspace, on every engine."""
        before = self._makers.get(image)

        def make(store: ImageStore) -> None:
            if before is not None:
                before(store)
            store.hold(image, folder, tag)

        self._make(tag, make)

    def prepare(self, reference: str, tag: str) -> bool:
        """Make the start image of sandboxes on every engine; return whether one made it just now."""
        made: list[bool] = []

        def make(store: ImageStore) -> None:
            if not (store.has(tag) or store.has(reference)):
                store.pull(reference)
            made.append(store.prepare(reference, tag))

        self._make(tag, make)
        return any(made)

    def check(self, image: str) -> None:
        """Check on every engine that it has an image with the needed programs."""
        self._on_each(lambda member: member.engine.task_images.check(image))

    def has(self, reference: str) -> bool:
        """Return whether all engines that answer have an image of that name."""
        return all(store.has(reference) for store in self._stores)

    def offered(self, reference: str) -> bool:
        """Return whether a registry offers the image to the first engine that answers."""
        return self._stores[0].offered(reference)

    def pull(self, reference: str, progress: Progress | None = None) -> None:
        """Pull an image to every engine that lacks it."""

        def pull(member: "EngineMember") -> None:
            store = member.engine.task_images
            if not store.has(reference):
                store.pull(reference, progress)

        self._on_each(pull)

    def disk_bytes(self) -> int:
        """Return the bytes of all tasks' images on the engine that has the most."""
        return max(store.disk_bytes() for store in self._stores)

    def collect(
        self, limit_bytes: int, spared: Collection[str] = (), kinds: Collection[str] = BOUNDED
    ) -> Sequence[str]:
        """Remove the longest unused on each engine until all fit into the limit; return the removed tags."""
        gone = {tag for store in self._stores for tag in store.collect(limit_bytes, spared, kinds)}
        for member in self._members:
            member.forget_images(gone)
        return sorted(gone)

    def ensure_on(self, member: "EngineMember", image: str) -> None:
        """Make sure that an engine has the image of a sandbox, which may have been away when others made it."""
        if not image.startswith(IN_ENGINE):
            member.make_image(recipes.load(image).tag, lambda engine: engine.build(image))
            return
        tag = image.removeprefix(IN_ENGINE)
        if tag in self._makers:
            member.make_image(tag, lambda engine: self._makers[tag](engine.task_images))

    @property
    def _used(self) -> Sequence["EngineMember"]:
        used = [member for member in self._members if not member.problem]
        if not used:
            raise Infrastructure("none of the engines answers")
        return used

    @property
    def _stores(self) -> Sequence[ImageStore]:
        return [member.engine.task_images for member in self._used]

    def _make(self, tag: str, make: Make) -> None:
        """Make an image on every engine that answers, and remember how."""
        before = self._makers.get(tag)
        self._makers[tag] = make
        for member in self._used:
            # Its use is noted each time.
            member.forget_images([tag])
        try:
            self._on_each(lambda member: member.make_image(tag, lambda engine: make(engine.task_images)))
        except UserError:
            if before is None:
                del self._makers[tag]
            raise

    def _on_each(self, work: Callable[["EngineMember"], None]) -> None:
        """Do something on every engine that answers, in parallel."""
        used = self._used

        def attempt(member: "EngineMember") -> Exception | None:
            try:
                work(member)
            except UserError as error:
                return UserError(f"{member.address.url}: {error}")
            except Infrastructure as error:
                member.leave_alone(str(error))
                return Infrastructure(f"{member.address.url}: {error}")
            return None

        with ThreadPoolExecutor(len(used)) as threads:
            errors = [error for error in threads.map(attempt, used) if error is not None]
        for error in errors:
            if isinstance(error, UserError):
                raise error
        if len(errors) == len(used):
            raise errors[0]
