// Reads the views of the coordinator and shows them. Whatever was answered is shown as text alone.
// The token is a variable of this script: it is never stored, and gone with the page.
"use strict";

const REFRESH_MS = 5000;
const ROWS = 25; // at most, of any table
const SAMPLES = 2000; // at most; then every second one goes
const ANSWER_WITHIN_MS = 40000;

const byId = (id) => document.getElementById(id);

let token = null;
let samples = [];
let epoch = null;
let asOf = null;
let timer = null;
let asking = false;
let again = false;
let question = 0;

// Asking.

/** What the coordinator did not answer, in words for the status line. */
class Unanswered extends Error {
  constructor(status, text, sent = null) {
    super(text);
    this.status = status;
    this.sent = sent;
  }
}

async function ask(path) {
  const sent = token;
  const headers = sent === null ? {} : { Authorization: `Bearer ${sent}` };
  const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
  let response;
  let body;
  try {
    response = await fetch(path, { headers, signal, cache: "no-store" });
    body = await response.text();
  } catch (error) {
    const why = error.name === "TimeoutError" ? "it took too long" : "it is gone, or the way to it";
    throw new Unanswered(0, `the coordinator does not answer: ${why}`);
  }
  let answer;
  try {
    answer = JSON.parse(body);
  } catch {
    throw new Unanswered(response.status, `${path}: ${response.status}, and what came is not JSON`);
  }
  if (!response.ok) {
    throw new Unanswered(response.status, `${answer.title}: ${answer.detail}`, sent);
  }
  return answer;
}

// Writing.

const count = (number) => number.toLocaleString("en");
const counted = (number, what) => `${count(number)} ${what}${number === 1 ? "" : "s"}`;

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return unit === 0 ? `${bytes} B` : `${(Math.floor(value * 10) / 10).toFixed(1)} ${units[unit]}`;
}

function age(seconds) {
  const whole = (length) => Math.floor(seconds / length);
  const [s, min, h, days] = [seconds % 60, whole(60) % 60, whole(3600) % 24, whole(86400)];
  if (days > 0) return `${days} d ${h} h`;
  if (h > 0) return `${h} h ${min} min`;
  return min > 0 ? `${min} min ${s} s` : `${s} s`;
}

const clock = (date) => date.toLocaleTimeString("en-GB");

/** An id's first digits, as a table of `pinfold inspect` has them. */
const short = (id) => id.slice(0, 8);

// Showing. A cell is { text, kind?, link?, full? }; what has not changed stays as it is, so that
// focus and selection do.

const text = (it) => ({ text: String(it) });
const number = (it) => ({ text: it, kind: "number" });
const words = (it) => ({ text: it, kind: "words" });
const id = (it) => ({ text: it, kind: "id" });
const link = (it, to, kind) => ({ text: String(it), link: `#q=${encodeURIComponent(to)}`, kind });
const checkpointLink = (generation) => link(generation, generation, "number");

function element(name, content) {
  const made = document.createElement(name);
  if (content !== undefined) made.textContent = content;
  return made;
}

function say(id, content) {
  const at = byId(id);
  if (at.textContent !== content) at.textContent = content;
}

function fillCell(at, cell) {
  at.className = cell.kind ?? "";
  let holder = at;
  if (cell.link !== undefined) {
    holder = at.querySelector("a") ?? at.appendChild(element("a"));
    holder.setAttribute("href", cell.link);
  }
  const label = cell.full === undefined ? null : at.querySelector("span") ?? element("span");
  if (label !== null) {
    if (label.parentNode === null) at.replaceChildren(element("meter"), label);
    const meter = at.querySelector("meter");
    Object.assign(meter, { min: 0, max: 1, low: 0.75, high: 0.9, optimum: 0, value: cell.full });
    meter.setAttribute("aria-label", cell.text);
    holder = label;
  }
  if (holder.textContent !== cell.text) holder.textContent = cell.text;
}

/** Shows rows in a table's body; a table without any is hidden. */
function fill(body, rows) {
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  rows.forEach((cells, at) => {
    const row = body.rows[at] ?? body.appendChild(element("tr"));
    const shape = cells.map((it) => `${it.link !== undefined}${it.full !== undefined}`).join();
    if (row.dataset.shape !== shape) {
      row.replaceChildren(...cells.map(() => element("td")));
      row.dataset.shape = shape;
    }
    cells.forEach((cell, column) => fillCell(row.cells[column], cell));
  });
  body.closest(".scroll").hidden = rows.length === 0;
}

/** Shows pairs of a name and a text in a list of descriptions. */
function describe(list, pairs) {
  const parts = pairs.flatMap(([name, content, kind]) => {
    const value = element("dd", content);
    value.className = kind ?? "";
    return [element("dt", name), value];
  });
  const same = parts.length === list.children.length
    && parts.every((it, at) => it.isEqualNode(list.children[at]));
  if (!same) list.replaceChildren(...parts);
}

/** The first rows of a table, and under which note. */
function listed(name, first, row, note, total = first.length) {
  const more = total > ROWS ? ` The first ${ROWS} are shown.` : "";
  say(`${name}-note`, note + more);
  fill(byId(name), first.slice(0, ROWS).map(row));
}

// The parts of the page.

function showJob(job) {
  const { policy } = job;
  const bound = (bytes) => (bytes === null ? "unbounded" : size(bytes));
  say("title", job.namespace);
  document.title = `pinfold ${job.namespace}`;
  describe(byId("job"), [
    ["namespace", job.namespace],
    ["epoch", job.epoch, "id"],
    ["first operator", job.operator, "id"],
    ["turns of a conversation", count(policy.turns)],
    ["bytes of a conversation", bound(policy.conversation_bytes)],
    ["bytes of the job", bound(policy.job_bytes)],
    ["quarantine bars", `the ${policy.quarantine}`],
    ["coordinator", `pinfold ${job.version}`],
  ]);
}

function showTotals({ totals, limits, policy }) {
  const row = (what, now, most, written) => {
    if (most === null) return [text(what), number(written(now)), number("–"), text("")];
    const full = most === 0 ? Number(now > 0) : now / most;
    const share = full > 0 && full < 0.001 ? "under 0.1 %" : `${(full * 100).toFixed(1)} %`;
    return [
      text(what), number(written(now)), number(written(most)),
      { text: share, full: Math.min(full, 1) },
    ];
  };
  fill(byId("totals"), [
    row("all bytes", totals.bytes, null, size),
    row("bytes retained", totals.bytes_retained, policy.job_bytes, size),
    row("bytes pinned", totals.bytes_pinned, limits.bytes_pinned, size),
    row("bytes unscoped", totals.bytes_unscoped, limits.bytes_unscoped, size),
    row("bytes in doubt", totals.bytes_in_doubt, limits.bytes_in_doubt, size),
    row("bytes quarantined", totals.bytes_quarantined, limits.bytes_quarantined, size),
    row("checkpoints", totals.checkpoints, null, count),
    row("collectable", totals.collectable, null, count),
    row("pins", totals.pins, limits.pins, count),
    row("owners", totals.owners, limits.owners, count),
    row("conversations", totals.conversations, limits.conversations, count),
    row("live turns", totals.turns, null, count),
    row("expired turns", totals.expired_turns, limits.expired_turns, count),
  ]);
}

function showInspection(all) {
  fill(byId("blockers"), all.blockers.map((it) => {
    return [text(it.name), number(count(it.checkpoints)), number(size(it.bytes))];
  }));
  const { stuck, quarantined, conversations } = all;
  const why = "in doubt, collecting, quarantined or lost. Follow a number to see who lifts it.";
  listed("stuck", stuck.first, (it) => [
    checkpointLink(it.checkpoint), text(it.state), number(size(it.bytes)),
    words(it.blockers.join(", ")),
  ], stuck.total === 0 ? "Nothing." : `${counted(stuck.total, "checkpoint")}: ${why}`, stuck.total);
  listed("quarantine", quarantined.first, (it) => [
    checkpointLink(it.checkpoint), number(size(it.bytes)), number(count(it.objects)),
    number(count(it.unknown)), link(short(it.endpoint), it.endpoint, "id"),
  ], quarantined.total === 0 ? "No deletion has an unknown outcome."
    : `${counted(quarantined.total, "checkpoint")}, ${size(all.totals.bytes_quarantined)}: `
      + "a deletion may still happen. Repeat the delete or probe, and report with Deleted.",
  quarantined.total);
  listed("retained", conversations.first, (it) => [
    number(size(it.bytes)), number(count(it.turns)), number(count(it.expired_turns)),
    link(it.conversation + (it.forgotten ? " (forgotten)" : ""), it.conversation, "id"),
  ], `${counted(all.totals.turns, "live turn")} of `
    + `${counted(conversations.total, "conversation")} refer to `
    + `${size(all.totals.bytes_retained)}.`, conversations.total);
}

function showPins({ pins, total, in_doubt: doubtful }) {
  const row = (it) => [
    number((it.at_least ? "≥ " : "") + age(it.age_seconds)), text(it.purpose),
    checkpointLink(it.checkpoint), id(short(it.owner)), number(String(it.incarnation)),
    number(size(it.bytes)), id(it.pin),
  ];
  listed("doubtful", doubtful.first, row, doubtful.total === 0 ? "None."
    : `${counted(doubtful.total, "pin")}: the memory may still be touched. Time proves nothing: `
      + "the owner settles it; or, on proof made outside, an operator settles or fences it.",
  doubtful.total);
  listed("oldest", pins, row, total === 0 ? "None."
    : `${counted(total, "pin")}; ≥ where a pin is older than the coordinator's process.`, total);
}

function showWork({ work }) {
  const oldest = [...work].sort((one, two) => two.age_seconds - one.age_seconds);
  const objects = work.reduce((sum, it) => sum + it.objects.length, 0);
  const generation = (it) => it.checkpoint.split("@").pop();
  listed("work", oldest, (it) => [
    number(age(it.age_seconds)), number(String(it.number)), checkpointLink(generation(it)),
    number(count(it.objects.length)), id(short(it.owner)), number(String(it.incarnation)),
  ], work.length === 0 ? "None is handed out and not reported."
    : `${counted(objects, "object")} handed out and not reported. What nobody reports is handed `
      + "out again by a later Collect.");
}

// Curves.

function takeSample(job) {
  if (epoch !== job.epoch) samples = [];
  epoch = job.epoch;
  const { bytes_retained: retained, bytes: all, expired_turns: expired } = job.totals;
  samples.push({ at: Date.now(), retained, all, expired });
  if (samples.length > SAMPLES) samples = samples.filter((_, at) => at % 2 === 1);
  drawCurve("retained", size);
  drawCurve("all", size);
  drawCurve("expired", count);
}

function drawCurve(name, written) {
  const values = samples.map((it) => it[name]);
  const most = Math.max(...values);
  const [first, last] = [samples[0].at, samples[samples.length - 1].at];
  const height = (value) => 58 - (most === 0 ? 0 : (value / most) * 54);
  const points = samples.map(({ at }, place) => {
    const x = last === first ? 0 : ((at - first) / (last - first)) * 300;
    return `${x.toFixed(1)},${height(values[place]).toFixed(1)}`;
  });
  if (points.length === 1) points.push(`300,${height(values[0]).toFixed(1)}`);
  const now = values[values.length - 1];
  const note = `${written(now)} now, ${written(Math.min(...values))} to ${written(most)} `
    + `in ${age(Math.round((last - first) / 1000))}`;
  const curve = byId(`curve-${name}`);
  curve.firstElementChild.setAttribute("points", points.join(" "));
  curve.setAttribute("aria-label", note);
  say(`curve-${name}-note`, note);
}

// Refreshing.

function report(content, isBad) {
  say("status", content);
  byId("status").className = isBad ? "bad" : "";
  byId("stale").hidden = !isBad || asOf === null;
  byId("main").classList.toggle("stale", isBad && asOf !== null);
}

/** Something was not answered: what was shown before stays, and is marked. */
function complain(error) {
  const wantsToken = error.status === 401;
  if (wantsToken && error.sent !== token) return; // it was sent before the token was given
  const wrong = wantsToken && token !== null;
  if (wantsToken) {
    const form = byId("token-form");
    if (form.hidden) {
      form.hidden = false;
      byId("token").focus();
    }
    token = null;
  }
  report(wrong ? "the token is wrong: bring the coordinator's" : error.message, true);
}

/** A page that nobody sees goes on with its curves, and leaves the large views alone. */
async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  again = false;
  clearTimeout(timer);
  try {
    const most = `limit=${ROWS}`;
    const paths = ["/v1/job", `/v1/inspection?${most}`, `/v1/pins?${most}`, "/v1/work"];
    const [job, ...rest] = await Promise.all((document.hidden ? ["/v1/job"] : paths).map(ask));
    takeSample(job);
    if (rest.length > 0) {
      const [inspection, pins, work] = rest;
      showJob(job);
      showTotals(job);
      showInspection(inspection);
      showPins(pins);
      showWork(work);
      asOf = new Date();
      say("as-of", clock(asOf));
    }
    byId("token-form").hidden = true;
    report(byId("refresh").checked ? "up to date" : "paused", false);
    await answer(false);
  } catch (error) {
    complain(error instanceof Unanswered ? error : new Unanswered(0, `this page: ${error}`));
  }
  asking = false;
  if (again) refresh();
  else next();
}

/** Comes again, unless it is paused or waits for the token. */
function next() {
  clearTimeout(timer);
  const waits = !byId("refresh").checked || !byId("token-form").hidden;
  if (!waits) timer = setTimeout(refresh, REFRESH_MS);
}

// Searching.

/** What the address asks for, as in `#q=7`. */
const asked = () => (new URLSearchParams(location.hash.slice(1)).get("q") ?? "").trim();

function whyPart(why) {
  const pairs = [["state", why.state]];
  if (why.endpoint !== null) {
    pairs.push(["endpoint", why.endpoint, "id"], ["bytes", size(why.bytes)]);
    pairs.push(["objects", count(why.objects)]);
  }
  const rows = why.blockers.map((it) => [
    text(it.name), words(it.what), text(it.who.join(", ")), words(it.how),
  ]);
  const head = ["blocker", "what", "who lifts it", "how"];
  return { title: `Checkpoint ${why.checkpoint}`, pairs, head, rows };
}

function ledgerPart(ledger) {
  const pairs = [
    ["live turns", count(ledger.turns.length)], ["bytes", size(ledger.bytes)],
    ["expired turns", count(ledger.expired_turns)], ["forgotten", ledger.forgotten ? "yes" : "no"],
  ];
  const rows = ledger.turns.map((it) => [checkpointLink(it.checkpoint), id(it.turn)]);
  const title = `Conversation ${ledger.conversation}`;
  return { title, pairs, head: ["checkpoint", "turn, in order of first publication"], rows };
}

/** An endpoint and a conversation are written alike: both are asked for. */
async function partsOf(query) {
  if (/^[0-9a-f]{32}$/.test(query)) {
    const ledger = ask(`/v1/conversations/${query}`).catch((error) => {
      if (error.status === 404) return null;
      throw error;
    });
    const [endpoint, conversation] = await Promise.all([ask(`/v1/endpoints/${query}`), ledger]);
    const parts = endpoint.checkpoints.map(whyPart);
    return conversation === null ? parts : [...parts, ledgerPart(conversation)];
  }
  const generation = /^(?:[0-9a-f]{32}@)?([0-9]{1,20})$/.exec(query);
  if (generation === null) {
    throw new Unanswered(400, "give a generation such as 7, or an id of 32 hexadecimal digits");
  }
  return [whyPart(await ask(`/v1/checkpoints/${generation[1]}`))];
}

function showPart(at, { title, pairs, head, rows }) {
  at.querySelector("h3").textContent = title;
  describe(at.querySelector("dl"), pairs);
  at.querySelector(".scroll").setAttribute("aria-label", title);
  const names = element("tr");
  names.replaceChildren(...head.map((name) => element("th", name)));
  at.querySelector("thead").replaceChildren(names);
  fill(at.querySelector("tbody"), rows);
}

function showParts(parts) {
  const at = byId("answer-parts");
  while (at.children.length > parts.length) at.lastElementChild.remove();
  while (at.children.length < parts.length) {
    at.append(byId("answer-part").content.firstElementChild.cloneNode(true));
  }
  parts.forEach((part, place) => showPart(at.children[place], part));
}

/** Answers what the address asks for; a person who has just asked is led to the answer. */
async function answer(isNew) {
  const query = asked().toLowerCase();
  question += 1;
  const mine = question;
  byId("answer").hidden = query === "";
  if (query === "") return;
  if (isNew) {
    byId("search").value = query;
    say("answer-title", `Why is ${query} still here?`);
    say("answer-note", "asking the coordinator");
    showParts([]);
  }
  let parts = null;
  let note = "";
  try {
    parts = await partsOf(query);
    if (parts.length === 0) {
      note = "No checkpoint of this endpoint is here, and no turn of such a conversation was ever "
        + "published.";
    } else if (parts.every((part) => part.rows.length === 0)) note = "Nothing is left of it.";
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    if (error.status === 401) complain(error);
    note = error.message;
  }
  if (mine !== question) return; // something else was asked meanwhile
  say("answer-note", note);
  if (parts !== null) showParts(parts);
  if (isNew && parts !== null) byId("answer-title").focus();
}

// What a person does.

byId("search-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const hash = `#q=${encodeURIComponent(byId("search").value.trim())}`;
  if (location.hash === hash) answer(true);
  else location.hash = hash;
});
addEventListener("hashchange", () => answer(true));

byId("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = byId("token");
  const given = field.value.trim();
  field.value = "";
  if (!/^[\x21-\x7e]+$/.test(given)) {
    report("a token is of printable ASCII characters, without spaces", true);
    return;
  }
  token = given;
  refresh();
});

byId("refresh").addEventListener("change", (event) => {
  if (event.target.checked) refresh();
  else {
    clearTimeout(timer);
    if (byId("status").className === "" && asOf !== null) report("paused", false);
  }
});
byId("now").addEventListener("click", refresh);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && byId("refresh").checked) refresh();
});

document.addEventListener("keydown", (event) => {
  const writes = event.target.matches?.("input:not([type=checkbox])");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || writes) return;
  event.preventDefault();
  byId("search").focus();
  byId("search").select();
});

refresh();
if (asked() !== "") answer(true);
