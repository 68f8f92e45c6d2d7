// Keeps the page up to date: asks the server for the parts that it has escaped already, and puts them in place.
const EVERY_MS = 2000;
let version = "";

async function refresh() {
  try {
    const answer = await fetch("/now", { cache: "no-store" });
    document.getElementById("lost").hidden = answer.ok;
    if (!answer.ok) return;
    document.getElementById("now").innerHTML = await answer.text();
    const newest = answer.headers.get("X-Pictures");
    if (newest === version) return;
    const pictures = await fetch("/pictures", { cache: "no-store" });
    if (!pictures.ok) return;
    document.getElementById("pictures").innerHTML = await pictures.text();
    version = newest;
  } catch {
    document.getElementById("lost").hidden = false;
  }
}

async function run() {
  await refresh();
  setTimeout(run, EVERY_MS);
}

run();
