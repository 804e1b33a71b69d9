"""The items of a streamed response, and the assignment of events to them."""

from dgm.messages import JsonObject
from dgm.wires.responses_answer import count_item_chars
from dgm.wires.responses_items import CALLS, Item, Names, mend_item


class Output:
    """The output items so far; places are counted anew, regardless of the server's indices."""

    def __init__(self, request: JsonObject) -> None:
        """Take the request's body."""
        self.items: list[Item] = []
        self.spoken = False
        """Whether an item with content has arrived."""
        self._names = Names(request)
        self._slots: dict[int, Item] = {}

    def at(self, index: object) -> Item | None:
        """Return the item with the server's index, if any."""
        return self._slots.get(index) if isinstance(index, int) else None

    def is_said(self, item: JsonObject) -> bool:
        """Note whether an item has content; return whether any item so far had content."""
        self.spoken = self.spoken or str(item.get("type")) in CALLS or bool(count_item_chars([item]))
        return self.spoken

    def new(self, given: JsonObject, index: object) -> Item:
        """Add an item."""
        own = given.get("id")
        taken = {item.item.get("id") for item in self.items}
        item_id = (
            own
            if isinstance(own, str) and own and own not in taken
            else self._names.item_id(given.get("type"))
        )
        read = mend_item(given, item_id, self._names.call_id)
        item = Item(len(self.items), read, own)
        self.items.append(item)
        if isinstance(index, int):
            self._slots[index] = item
        self.is_said(read)
        return item

    def find(self, event: JsonObject, kind: str) -> Item | None:
        """Return the item of an event: by its index, else its id, else the last one of its type."""
        index, item_id = event.get("output_index"), event.get("item_id")
        item = self.at(index)
        if item is not None and item.kind == kind:
            return item
        if item_id:
            named = [one for one in self.items if item_id in (one.given_id, one.item.get("id"))]
            return next((one for one in named if one.kind == kind), None)
        last = next((one for one in reversed(self.items) if one.kind == kind and not one.done), None)
        return last if index is None else None

    def of_done(self, event: JsonObject, given: JsonObject) -> Item | None:
        """Return the item in a done event; None if it was never announced."""
        own, kind = given.get("id"), given.get("type")
        if own:
            named = next((one for one in self.items if one.given_id == own and not one.done), None)
            if named is not None:
                return named
        index = event.get("output_index")
        item = self.at(index)
        if item is None and index is None:
            item = next((one for one in self.items if one.kind == kind and not one.done), None)
        return item if item is not None and item.kind == kind and not item.done else None

    def final(self, given: object) -> object:
        """Return the output of the final response: unchanged if it is complete, else from the stream."""
        if not isinstance(given, list) or len(given) < len(self.items):
            return [item.final() for item in self.items]
        read = list(given)
        for place, entry in enumerate(given):
            if not isinstance(entry, dict):
                continue
            known = self.items[place] if place < len(self.items) else None
            if known is not None and known.kind == entry.get("type"):
                same = Item(place, known.mended(entry), None)
                same.parts, same.annotations = known.parts, known.annotations
                read[place] = same.final()
            else:
                item_id = entry.get("id") or self._names.item_id(entry.get("type"))
                read[place] = mend_item(entry, str(item_id), self._names.call_id)
        return given if all(new is old for new, old in zip(read, given, strict=True)) else read
