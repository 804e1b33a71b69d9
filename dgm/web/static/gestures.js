// Mouse, touch and pen on an element, as what they mean: pan, zoom, tap, double tap, hover.

const TAP = 6; // pixels that a finger may slip
const DOUBLE_TAP_MS = 350;
const WHEEL_STEP = 120; // what one notch of a wheel reports, in pixels

// ``on`` has pan(dx, dy), zoom(steps, x, y), tap(x, y, touch), doubleTap(x, y) and hover(x, y), or hover() outside.
export function listenTo(element, on) {
  const pointers = new Map(); // pointer → its last position
  let travelled = 0;
  let lastTap = { at: -Infinity, x: 0, y: 0 };
  const positionOf = event => {
    const box = element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  element.addEventListener("pointerdown", event => {
    if (event.button) return;
    element.setPointerCapture(event.pointerId);
    if (!pointers.size) travelled = 0;
    pointers.set(event.pointerId, positionOf(event));
  });

  element.addEventListener("pointermove", event => {
    const position = positionOf(event);
    const before = pointers.get(event.pointerId);
    if (!before) {
      on.hover(...position);
      return;
    }
    const [dx, dy] = [position[0] - before[0], position[1] - before[1]];
    travelled += Math.abs(dx) + Math.abs(dy);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, position);
    if (travelled <= TAP) return;
    if (!other) {
      on.pan(dx, dy);
      return;
    }
    // Two fingers: their distance zooms, and their middle pans.
    const [was, is] = [before, position].map(point => Math.hypot(point[0] - other[0], point[1] - other[1]));
    const middle = [(position[0] + other[0]) / 2, (position[1] + other[1]) / 2];
    on.pan(dx / 2, dy / 2);
    if (was > 0 && is > 0) on.zoom(Math.log(is / was) / 0.35, ...middle);
  });

  const lift = event => {
    const position = pointers.get(event.pointerId);
    if (!position) return;
    pointers.delete(event.pointerId);
    if (pointers.size || travelled > TAP || event.type !== "pointerup") return;
    const now = event.timeStamp;
    const near = Math.hypot(position[0] - lastTap.x, position[1] - lastTap.y) < 24;
    if (near && now - lastTap.at < DOUBLE_TAP_MS) {
      on.doubleTap(...position);
      lastTap = { at: -Infinity, x: 0, y: 0 };
      return;
    }
    on.tap(...position, event.pointerType === "touch");
    lastTap = { at: now, x: position[0], y: position[1] };
  };
  element.addEventListener("pointerup", lift);
  element.addEventListener("pointercancel", lift);
  element.addEventListener("pointerleave", () => on.hover());

  element.addEventListener(
    "wheel",
    event => {
      event.preventDefault();
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 40 : 1;
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (sideways) on.pan(-(event.deltaX || event.deltaY) * unit, event.deltaX ? -event.deltaY * unit : 0);
      else on.zoom((-event.deltaY * unit) / WHEEL_STEP, ...positionOf(event));
    },
    { passive: false },
  );
}
