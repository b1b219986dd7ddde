"use strict";
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.querySelector("button").addEventListener("click", () => sort(table, heads, column));
  });
}
function sort(table, heads, column) {
  const up = heads[column].getAttribute("aria-sort") !== "ascending";
  const body = table.tBodies[0];
  const value = (row) => {
    const cell = row.cells[column];
    if (cell.dataset.sort === undefined) return cell.textContent === "–" ? "" : cell.textContent;
    return cell.dataset.sort === "" ? "" : Number(cell.dataset.sort);
  };
  const rows = [...body.rows].map((row) => [value(row), row]);
  rows.sort(([a], [b]) => {
    if (a === "" || b === "") return (a === "") - (b === "");
    const order = typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true });
    return up ? order : -order;
  });
  body.append(...rows.map(([, row]) => row));
  heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? (up ? "ascending" : "descending") : "none"));
}
