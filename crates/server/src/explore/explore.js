// Shows the answer to the query that is in the URL.

const byId = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search).get("query") ?? "";
let token = sessionStorage.getItem("token");

async function ask() {
  const headers = { "Content-Type": "application/json" };
  if (token) headers.Authorization = `Bearer ${token}`;
  const response = await fetch("/api/query", { method: "POST", headers, body: query });
  if (response.status === 401) byId("token-form").hidden = false;
  const body = await response.json().catch(() => null);
  if (!response.ok) throw new Error(body?.error?.message ?? `the server answered ${response.status}`);
  return body;
}

function cell(tag, content, isNumber) {
  const element = document.createElement(tag);
  element.className = isNumber ? "n" : "";
  element.append(content);
  return element;
}

function shown(value) {
  if (value === null) return "–";
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "number" ? value.toLocaleString("en") : value;
}

function fill({ columns, rows, stats }) {
  const isNumber = ({ kind }) => kind === "int" || kind === "float";
  const head = columns.map((column) => cell("th", column.name, isNumber(column)));
  byId("answer").tHead.rows[0].replaceChildren(...head);
  const lines = rows.map((row) => {
    const tr = document.createElement("tr");
    tr.append(...columns.map((column) => cell("td", shown(row[column.name]), isNumber(column))));
    return tr;
  });
  byId("answer").tBodies[0].replaceChildren(...lines);
  byId("answer").hidden = rows.length === 0;
  const milliseconds = (stats.elapsed_ns / 1e6).toFixed(1);
  const scanned = `${stats.rows_scanned.toLocaleString("en")} rows in ${milliseconds} ms`;
  const whole = stats.complete ? "" : `; incomplete: ${stats.missing.join("; ")}`;
  byId("state").textContent = `${stats.since} to ${stats.until}: ${scanned}${whole}`;
}

async function show() {
  byId("query").textContent = query;
  try {
    fill(await ask());
  } catch (error) {
    byId("state").textContent = error.message;
    byId("state").classList.add("error");
  }
}

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value;
  sessionStorage.setItem("token", token);
  byId("token-form").hidden = true;
  byId("state").classList.remove("error");
  show();
});
show();
