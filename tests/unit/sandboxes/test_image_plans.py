"""Images of tasks: planned on the head, made on the nodes."""

import pickle

import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.sandboxes.image_store import ImagePlans

CONTEXT = {"Dockerfile": Entry(b"FROM dgm/python\n")}


class Store:
    """Takes notes of what is asked of it."""

    def __init__(self, *images, offered=()):
        self.images, self.on_offer, self.log = set(images), offered, []

    def has(self, reference):
        return reference in self.images

    def offered(self, reference):
        return reference in self.on_offer

    def pull(self, reference):
        self._make("pull", reference)

    def prepare(self, reference, tag):
        self._make("prepare", tag)

    def build(self, context, tag, *, network):
        assert (dict(context), network) == (CONTEXT, False)
        self._make("build", tag)

    def hold(self, image, folder, tag):
        self._make(f"hold {image}{folder}", tag)

    def check(self, reference):
        self.log.append(("check", reference))

    def _make(self, how, tag):
        self.log.append((how, tag))
        self.images.add(tag)


def make(plans, image, store):
    """Make an image as a node does, from pickled steps."""
    for step in pickle.loads(pickle.dumps(plans.steps(image))):
        step(store)
    return store.log


def test_a_recipe_needs_no_step():
    assert ImagePlans("auto").steps("python") == ()


def test_a_dockerfile_is_built_and_held_and_checked():
    plans = ImagePlans("auto")
    plans.build(CONTEXT, "dgm/task:1", network=False)
    plans.check("dgm/task:1")
    plans.check("dgm/task:1")
    plans.hold("dgm/task:1", "/app", "dgm/task-workspace:1")
    assert make(plans, "docker:dgm/task:1", Store()) == [("build", "dgm/task:1"), ("check", "dgm/task:1")]
    log = make(plans, "docker:dgm/task-workspace:1", Store())
    assert log[0] == ("build", "dgm/task:1")
    assert log[-1] == ("hold dgm/task:1/app", "dgm/task-workspace:1")


def test_an_instance_is_made_once_of_the_first_source_that_there_is():
    plans = ImagePlans("auto")
    plans.prepare(["team/one", "swebench/one"], "dgm/instance:1")
    store = Store(offered=["swebench/one"])
    for _ in range(2):
        log = make(plans, "docker:dgm/instance:1", store)
    assert log == [("pull", "swebench/one"), ("prepare", "dgm/instance:1")]
    assert make(plans, "docker:dgm/instance:1", Store("team/one")) == [("prepare", "dgm/instance:1")]


def test_an_image_that_only_the_head_has_says_what_to_do():
    with pytest.raises(UserError, match=r"docker save mine:1 \| ssh NODE docker load"):
        make(ImagePlans("auto"), "docker:mine:1", Store())
    assert make(ImagePlans("auto"), "docker:mine:1", Store("mine:1")) == [("check", "mine:1")]


def test_bubblewrap_on_the_nodes_has_no_images():
    with pytest.raises(UserError, match=r"scale\.node_engine=bubblewrap: the image x needs Docker"):
        ImagePlans("bubblewrap").check("x")
