"use strict";
// The drawing: pan, zoom, find, hide kinds, and follow a vertex to its seed. All data is in the drawing itself; text is
// only ever set as text. Without this script the boxes are plain links.
(() => {
  const canvas = document.getElementById("canvas");
  if (!canvas) return;
  const world = document.getElementById("world");
  const panel = document.getElementById("panel");
  const find = document.getElementById("find");
  const boxes = [...document.querySelectorAll(".box")];
  const lines = [...document.querySelectorAll(".line")].map((element) =>
    ({ element, from: Number(element.dataset.from), to: Number(element.dataset.to) }));
  const size = canvas.viewBox.baseVal;
  const view = { x: 0, y: 0, scale: 1 };
  let chosen = -1;

  // --- pan and zoom: the world is moved and scaled in the units of the drawing.
  const apply = () => world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  const toDrawing = (event) => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(canvas.getScreenCTM().inverse());
    return { x: point.x, y: point.y };
  };
  const zoom = (factor, at) => {
    const scale = Math.min(40, Math.max(0.2, view.scale * factor));
    view.x = at.x - (at.x - view.x) * scale / view.scale;
    view.y = at.y - (at.y - view.y) * scale / view.scale;
    view.scale = scale;
    apply();
  };
  const middle = () => ({ x: size.width / 2, y: size.height / 2 });
  const fit = () => { Object.assign(view, { x: 0, y: 0, scale: 1 }); apply(); };
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.0015), toDrawing(event));
  }, { passive: false });

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 0) drag = { from: toDrawing(event), x: view.x, y: view.y, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const to = toDrawing(event);
    const screen = canvas.getScreenCTM().a;
    if (!drag.moved && Math.hypot(to.x - drag.from.x, to.y - drag.from.y) * screen > 4) {
      drag.moved = true;
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("dragging");
    }
    if (!drag.moved) return;
    view.x = drag.x + to.x - drag.from.x;
    view.y = drag.y + to.y - drag.from.y;
    apply();
  });
  let justDragged = false;
  const drop = () => {
    justDragged = Boolean(drag && drag.moved);
    drag = null;
    canvas.classList.remove("dragging");
  };
  canvas.addEventListener("pointerup", drop);
  canvas.addEventListener("pointercancel", drop);
  canvas.addEventListener("dragstart", (event) => event.preventDefault()); // boxes are links, which browsers drag

  // --- following: the chosen vertex, all paths from it toward the seeds, and what leads to it.
  const reach = (start) => {
    const seen = new Set([start]);
    const queue = [start];
    while (queue.length > 0) {
      const index = queue.shift();
      for (const line of lines) {
        if (line.from === index && !seen.has(line.to)) {
          seen.add(line.to);
          queue.push(line.to);
        }
      }
    }
    return seen;
  };
  const paint = () => {
    const text = find.value.trim().toLowerCase();
    const hidden = new Set([...document.querySelectorAll("#kinds input:not(:checked)")].map((input) => input.dataset.kind));
    const reached = chosen < 0 ? new Set() : reach(chosen);
    const related = new Set(reached);
    for (const line of lines) if (line.to === chosen) related.add(line.from);
    boxes.forEach((box, index) => {
      const found = text === "" || box.dataset.label.toLowerCase().includes(text);
      box.classList.toggle("gone", hidden.has(box.dataset.kind));
      box.classList.toggle("dim", !found || (chosen >= 0 && !related.has(index)));
      box.classList.toggle("chosen", index === chosen);
      box.classList.toggle("path", index !== chosen && reached.has(index));
    });
    for (const { element, from, to } of lines) {
      const path = reached.has(from) && reached.has(to);
      element.classList.toggle("gone", hidden.has(boxes[from].dataset.kind) || hidden.has(boxes[to].dataset.kind));
      element.classList.toggle("path", path);
      element.classList.toggle("into", !path && to === chosen);
      if (path || to === chosen) element.parentNode.append(element); // above others that share its lanes
      element.classList.toggle("dim", (chosen >= 0 && !path && to !== chosen) ||
        (text !== "" && (boxes[from].classList.contains("dim") || boxes[to].classList.contains("dim"))));
    }
  };
  const add = (parent, tag, text) => {
    const element = document.createElement(tag);
    element.textContent = text;
    parent.append(element);
    return element;
  };
  const describe = () => {
    panel.hidden = chosen < 0;
    panel.replaceChildren();
    if (chosen < 0) return;
    const box = boxes[chosen];
    add(panel, "h3", box.dataset.label);
    const links = add(panel, "p", "");
    add(links, "a", "only this").href = box.getAttribute("href");
    if (document.getElementById(box.dataset.anchor)) {
      links.append(" · ");
      add(links, "a", "in the list").href = "#" + encodeURIComponent(box.dataset.anchor);
    }
    links.append(" · ");
    const close = add(links, "button", "close");
    close.type = "button";
    close.addEventListener("click", () => choose(-1));
    const neighbors = (title, indices) => {
      add(panel, "strong", `${indices.length} ${title}`);
      const list = add(panel, "ul", "");
      for (const index of indices) {
        const button = add(add(list, "li", ""), "button", boxes[index].dataset.label);
        button.type = "button";
        button.className = "go";
        button.addEventListener("click", () => { choose(index); center(index); });
      }
    };
    neighbors("outgoing here", lines.filter((line) => line.from === chosen).map((line) => line.to));
    neighbors("incoming here", lines.filter((line) => line.to === chosen).map((line) => line.from));
  };
  const choose = (index) => {
    chosen = index;
    paint();
    describe();
  };
  const center = (index) => {
    const at = boxes[index].transform.baseVal.consolidate().matrix;
    const { width, height } = boxes[index].querySelector("rect").getBBox();
    view.x = size.width / 2 - (at.e + width / 2) * view.scale;
    view.y = size.height / 2 - (at.f + height / 2) * view.scale;
    apply();
  };
  canvas.addEventListener("click", (event) => {
    const box = event.target.closest(".box");
    if (justDragged) {
      justDragged = false;
      event.preventDefault();
    } else if (!box) {
      choose(-1);
    } else if (!event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault(); // with a modifier it stays a link
      choose(Number(box.dataset.index));
    }
  });

  // --- the tools
  document.getElementById("tools").hidden = false;
  document.getElementById("zoom-in").addEventListener("click", () => zoom(1.4, middle()));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(1 / 1.4, middle()));
  document.getElementById("fit").addEventListener("click", fit);
  find.addEventListener("input", paint);
  document.getElementById("kinds").addEventListener("change", paint);
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "+") zoom(1.4, middle());
    if (event.key === "-") zoom(1 / 1.4, middle());
    if (event.key === "0") fit();
    if (event.key === "Escape") choose(-1);
  });
  // A link to one vertex (#Shoot/garden-dev/a) shows it in the drawing as well.
  const fromFragment = () => {
    const anchor = decodeURIComponent(location.hash.slice(1));
    const index = boxes.findIndex((box) => box.dataset.anchor === anchor);
    if (anchor !== "" && index >= 0) choose(index);
  };
  window.addEventListener("hashchange", fromFragment);
  fromFragment();
})();
