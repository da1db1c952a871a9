/* Asks the database that catalogue.json names. A worker reads the parts that it needs over the network. */
import { bytesText } from "./elements.js";

const stop = document.getElementById("stop");

export const catalogue = await (await fetch("catalogue.json", { cache: "no-cache" })).json();

let worker;
let asked = 0;
const waiting = new Map();

const start = () => {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data }) => {
    const { resolve, reject } = waiting.get(data.id);
    waiting.delete(data.id);
    stop.hidden = waiting.size === 0;
    if (data.error) { reject(new Error(data.error)); return; }
    document.getElementById("read").textContent =
      `(${bytesText(catalogue.size)}; ${bytesText(data.bytes)} of it read, in ${data.requests} requests)`;
    resolve(data);
  };
};

/* `bind` is a list for ?1, ?2, or an object for :name. */
export const ask = (sql, bind) => new Promise((resolve, reject) => {
  asked += 1;
  waiting.set(asked, { resolve, reject });
  stop.hidden = false;
  const url = new URL(catalogue.database, location.href).href;
  worker.postMessage({ id: asked, url, size: catalogue.size, sql, bind });
});

stop.addEventListener("click", () => {
  worker.terminate();
  for (const { reject } of waiting.values()) reject(new Error("stopped"));
  waiting.clear();
  stop.hidden = true;
  start();
});

start();
