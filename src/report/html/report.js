"use strict";
// Values at the pointer, lines that can be switched off, tables that sort. Without it the page shows all the same.
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const pictures = [...figure.querySelectorAll("svg")];
  const buttons = [...figure.querySelectorAll(".names button")];
  const off = new Set();
  const hint = document.createElement("div");
  hint.className = "hint";
  hint.hidden = true;
  figure.append(hint);
  buttons.forEach((button, line) => button.addEventListener("click", () => {
    if (!off.delete(line)) off.add(line);
    button.setAttribute("aria-pressed", String(!off.has(line)));
    for (const svg of pictures) svg.querySelectorAll("g[data-line]")[line].style.display = off.has(line) ? "none" : "";
  }));
  pictures.forEach((svg, size) => {
    const show = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = svg.viewBox.baseVal.width / box.width;
      const x = (event.clientX - box.left) * scale;
      const y = (event.clientY - box.top) * scale;
      // The nearest point decides which place is meant; all lines say what they have there.
      let best = null;
      data.lines.forEach((line, number) => {
        if (off.has(number)) return;
        for (const point of line.points) {
          const far = Math.hypot(point[size][0] - x, (point[size][1] - y) / 4);
          if (!best || far < best.far) best = { far, x: point[size][0], words: point[2] };
        }
      });
      hint.hidden = !best || best.far > 60;
      if (hint.hidden) return;
      const head = document.createElement("b");
      head.textContent = best.words;
      hint.replaceChildren(head);
      data.lines.forEach((line, number) => {
        const there = (point) => Math.abs(point[size][0] - best.x) <= 1 && point[2] === best.words;
        const point = off.has(number) ? undefined : line.points.find(there);
        if (!point) return;
        const row = document.createElement("div");
        row.textContent = (line.name ? line.name + ": " : "") + point[3];
        hint.append(row);
      });
      const frame = figure.getBoundingClientRect();
      const room = frame.width - hint.offsetWidth - 8;
      hint.style.left = Math.max(4, Math.min(event.clientX - frame.left + 14, room)) + "px";
      hint.style.top = Math.max(4, event.clientY - frame.top - hint.offsetHeight - 12) + "px";
    };
    svg.addEventListener("pointermove", show);
    svg.addEventListener("pointerdown", show);
    svg.addEventListener("pointerleave", () => { hint.hidden = true; });
  });
}
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.querySelectorAll("thead tr:last-child th")];
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim();
    const number = parseFloat(text.replace(/[^0-9.+-].*$/, ""));
    return Number.isNaN(number) ? text : number;
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      // A second row goes with the one above it.
      const groups = [];
      for (const row of body.rows) {
        if (row.classList.contains("second") && groups.length) groups[groups.length - 1].push(row);
        else groups.push([row]);
      }
      groups.sort(([a], [b]) => {
        const [one, other] = [value(a, column), value(b, column)];
        const order = typeof one === "number" && typeof other === "number" ? one - other : String(one).localeCompare(String(other), undefined, { numeric: true });
        return up ? order : -order;
      });
      body.append(...groups.flat());
    });
  });
}
