// Shows the categories and the latest messages of one. The URL's hash names it.

const REFRESH_MS = 5000;
const MESSAGES = 20;

const byId = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token");

async function ask(path) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const response = await fetch(path, { headers });
  if (response.status === 401) byId("token-form").hidden = false;
  if (response.ok) return response;
  const body = await response.json().catch(() => null);
  throw new Error(body?.error?.message ?? `the server answered ${response.status}`);
}

function show(name, rows, state, isError = false) {
  const status = byId(`${name}-state`);
  status.textContent = state;
  status.classList.toggle("error", isError);
  status.hidden = state === "";
  byId(name).hidden = rows.length === 0;
  byId(name).tBodies[0].replaceChildren(...rows);
}

function cell(content, className = "") {
  const td = document.createElement("td");
  td.className = className;
  td.append(content);
  return td;
}

function row(cells, isCurrent = false) {
  const tr = document.createElement("tr");
  tr.append(...cells);
  if (isCurrent) tr.setAttribute("aria-current", "true");
  return tr;
}

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = bytes;
  for (; value >= 1024 && unit < units.length - 1; unit += 1) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

// To the second; the whole time is in the tooltip.
function time(text) {
  const td = cell(text ? text.slice(0, 19).replace("T", " ") : "–", "time");
  td.title = text ?? "";
  return td;
}

const chosen = () => decodeURIComponent(location.hash.slice(1));

function categoryRow(category) {
  const button = document.createElement("button");
  button.className = "link";
  button.textContent = category.category;
  button.onclick = () => { location.hash = encodeURIComponent(category.category); };
  const acknowledged = category.guarantee === "fast" ? "before it is on disk" : "once on disk";
  return row(
    [
      cell(button),
      cell(category.records.toLocaleString("en"), "n"),
      cell(size(category.bytes), "n"),
      time(category.last_time),
      cell(acknowledged),
    ],
    category.category === chosen(),
  );
}

async function showCategories() {
  try {
    const { categories } = await (await ask("/api/categories")).json();
    const empty = "Nothing has arrived yet: perflab log CATEGORY MESSAGE sends something.";
    show("categories", categories.map(categoryRow), categories.length === 0 ? empty : "");
  } catch (error) {
    show("categories", [], `Can't list the categories: ${error.message}`, true);
  }
}

function messageRow(line) {
  const text = line.message ?? JSON.stringify(line.row ?? line.row_error);
  const message = cell(text, "message");
  message.title = text;
  return row([cell(line.offset.toLocaleString("en"), "n"), time(line.time), message]);
}

async function showMessages() {
  const category = chosen();
  if (category === "") return show("messages", [], "Choose a category.");
  byId("messages-command").textContent = `perflab tail ${category} --follow`;
  try {
    const query = new URLSearchParams({ category, latest: MESSAGES });
    const text = await (await ask(`/api/tail?${query}`)).text();
    const lines = text.trim().split("\n").map((line) => JSON.parse(line));
    const messages = lines.filter((line) => "offset" in line).reverse();
    const isDamaged = lines.some((line) => line.end && !line.end.complete);
    const state = isDamaged ? "Some messages are damaged: perflab check says which." : "";
    const empty = messages.length === 0 ? `No messages in ${category}.` : state;
    return show("messages", messages.map(messageRow), empty, isDamaged);
  } catch (error) {
    return show("messages", [], `Can't read ${category}: ${error.message}`, true);
  }
}

async function refresh() {
  await Promise.all([showCategories(), showMessages()]);
}

byId("token-form").onsubmit = (event) => {
  event.preventDefault();
  token = byId("token").value;
  sessionStorage.setItem("token", token);
  refresh();
};
addEventListener("hashchange", refresh);
setInterval(() => { if (!document.hidden) refresh(); }, REFRESH_MS);
refresh();
