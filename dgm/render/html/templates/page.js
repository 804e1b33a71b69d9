(() => {
  "use strict";
  const tip = document.getElementById("tip");
  const shown = (event) => {
    const about = event.target instanceof Element ? event.target.closest("[data-t]") : null;
    tip.hidden = !about;
    if (!about) return;
    tip.textContent = about.dataset.t;
    const box = tip.getBoundingClientRect();
    const right = event.clientX + 14 + box.width > innerWidth;
    const below = event.clientY + 18 + box.height > innerHeight;
    tip.style.left = Math.max(4, right ? event.clientX - box.width - 10 : event.clientX + 14) + "px";
    tip.style.top = Math.max(4, below ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
  };
  addEventListener("pointermove", shown);
  addEventListener("pointerdown", shown);
  addEventListener("scroll", () => { tip.hidden = true; }, true);

  for (const frame of document.querySelectorAll(".zoom")) {
    const svg = frame.querySelector("svg");
    const whole = svg.viewBox.baseVal;
    const width = whole.width, height = whole.height;
    let x = 0, y = 0, scale = 1;
    const draw = () => {
      const w = width / scale, h = height / scale;
      x = Math.min(Math.max(0, x), width - w);
      y = Math.min(Math.max(0, y), height - h);
      svg.setAttribute("viewBox", [x, y, w, h].join(" "));
      frame.classList.toggle("in", scale > 1);
    };
    const zoom = (factor, atX, atY) => {
      const before = scale;
      scale = Math.min(40, Math.max(1, scale * factor));
      x += atX * (width / before - width / scale);
      y += atY * (height / before - height / scale);
      draw();
    };
    const tools = frame.querySelector(".tools");
    tools.hidden = false;
    const actions = { in: () => zoom(1.6, 0.5, 0.5), out: () => zoom(1 / 1.6, 0.5, 0.5), all: () => zoom(0, 0, 0) };
    tools.addEventListener("click", (event) => {
      const action = actions[event.target.value];
      if (action) action();
    });
    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const box = svg.getBoundingClientRect();
      zoom(event.deltaY < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    }, { passive: false });
    svg.addEventListener("pointermove", (event) => {
      if (event.buttons !== 1 || scale === 1) return;
      const box = svg.getBoundingClientRect();
      x -= event.movementX * width / scale / box.width;
      y -= event.movementY * height / scale / box.height;
      draw();
    });
  }

  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details[data-p]:not([open])")) {
      part.open = true;
      opened.push(part);
    }
  });
  addEventListener("afterprint", () => {
    for (const part of opened.splice(0)) part.open = false;
  });
})();
