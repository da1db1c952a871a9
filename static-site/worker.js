/* Runs SQL over a database on a web server, and fetches only the bytes that SQLite reads. */
import sqlite3InitModule from "./sqlite3.js";

// Bytes. Smaller parts need more requests, larger parts fetch more unused bytes: a search, a package,
// a binary and a statement need 72 requests with 4 KiB, 42 requests and 0.8 MB with 16 KiB.
const PART = 16 * 1024;
const LARGEST = 512 * 1024;
const MOST_ROWS = 1000;

/** The bytes of one file, fetched in parts and cached. */
class RemoteFile {
  constructor(url, size) {
    this.url = url;
    this.size = size;
    this.parts = new Map();
    this.bytes = 0;
    this.requests = 0;
    this.next = 0; // The end of the last fetched part.
    this.length = PART;
  }

  read(start, length) {
    const found = new Uint8Array(length);
    for (let at = start; at < start + length;) {
      const part = Math.floor(at / PART) * PART;
      if (!this.parts.has(part)) this.fetch(part);
      const bytes = this.parts.get(part).subarray(at - part, start + length - part);
      if (bytes.length === 0) break; // Past the end of the file.
      found.set(bytes, at - start);
      at += bytes.length;
    }
    return found;
  }

  fetch(part) {
    // Sequential reads fetch parts that grow, so that a scan needs few requests.
    this.length = part === this.next ? Math.min(2 * this.length, LARGEST) : PART;
    const end = Math.min(part + this.length, this.size);
    const request = new XMLHttpRequest();
    request.open("GET", this.url, false); // SQLite waits for each read.
    request.setRequestHeader("Range", `bytes=${part}-${end - 1}`);
    request.responseType = "arraybuffer";
    request.send();
    const bytes = new Uint8Array(request.response ?? new ArrayBuffer());
    if (request.status !== 206 || bytes.length !== end - part) {
      throw new Error(`the server sent status ${request.status} and ${bytes.length} bytes for a part of ${this.url}; if the catalogue was replaced, load this page again`);
    }
    this.requests += 1;
    this.bytes += bytes.length;
    this.next = end;
    for (let at = part; at < end; at += PART) {
      this.parts.set(at, bytes.subarray(at - part, at - part + PART));
    }
  }
}

/** Registers a VFS (https://sqlite.org/vfs.html) with one read-only file. */
const installVfs = (sqlite3, file) => {
  const { capi, wasm } = sqlite3;
  const io = new capi.sqlite3_io_methods();
  const vfs = new capi.sqlite3_vfs();
  const usual = new capi.sqlite3_vfs(capi.sqlite3_vfs_find(null));
  vfs.$iVersion = 1;
  io.$iVersion = 1;
  vfs.$szOsFile = capi.sqlite3_file.structInfo.sizeof;
  vfs.$mxPathname = 1024;
  vfs.$xRandomness = usual.$xRandomness;
  vfs.$xSleep = usual.$xSleep;
  const done = () => capi.SQLITE_OK;
  const refused = () => capi.SQLITE_READONLY;
  let failure = null;
  sqlite3.vfs.installVfs({
    io: {
      struct: io,
      methods: {
        xClose: done, xLock: done, xUnlock: done, xSync: done,
        xWrite: refused, xTruncate: refused,
        xFileControl: () => capi.SQLITE_NOTFOUND,
        xSectorSize: () => PART,
        xDeviceCharacteristics: () => capi.SQLITE_IOCAP_IMMUTABLE,
        xCheckReservedLock: (_, out) => { wasm.poke32(out, 0); return capi.SQLITE_OK; },
        xFileSize: (_, out) => { wasm.poke64(out, BigInt(file.size)); return capi.SQLITE_OK; },
        xRead: (_, out, length, offset) => {
          try {
            wasm.heap8u().set(file.read(Number(offset), length), Number(out));
            return capi.SQLITE_OK;
          } catch (error) {
            failure = error;
            return capi.SQLITE_IOERR_READ;
          }
        },
      },
    },
    vfs: {
      struct: vfs,
      name: "range",
      methods: {
        xOpen: (_, name, handle, flags, flagsOut) => {
          if (!(flags & capi.SQLITE_OPEN_MAIN_DB)) return capi.SQLITE_CANTOPEN;
          new capi.sqlite3_file(handle).$pMethods = io.pointer;
          wasm.poke32(flagsOut, flags);
          return capi.SQLITE_OK;
        },
        xAccess: (_, name, flags, out) => { wasm.poke32(out, 0); return capi.SQLITE_OK; },
        xDelete: refused,
        xFullPathname: (_, name, length, out) =>
          wasm.cstrncpy(out, name, length) < length ? capi.SQLITE_OK : capi.SQLITE_CANTOPEN,
        xCurrentTime: (_, out) => {
          wasm.poke(out, 2440587.5 + Date.now() / 86400000, "double");
          return capi.SQLITE_OK;
        },
      },
    },
  });
  return () => { const error = failure; failure = null; return error; };
};

const requireRanges = async (url) => {
  const stopped = new AbortController();
  const answer = await fetch(url, { headers: { Range: "bytes=0-99" }, signal: stopped.signal });
  stopped.abort(); // A server without ranges sends the whole file.
  if (answer.status === 200) throw new Error("this web server does not support byte ranges, which the page needs to read parts of the database");
  if (answer.status !== 206) throw new Error(`${url}: status ${answer.status}`);
};

let opened;
const open = async (url, size) => {
  await requireRanges(url);
  const sqlite3 = await sqlite3InitModule();
  const file = new RemoteFile(url, size);
  const failure = installVfs(sqlite3, file);
  const db = new sqlite3.oo1.DB({ filename: "file:catalogue?immutable=1", flags: "r", vfs: "range" });
  db.exec("PRAGMA temp_store = memory; PRAGMA cache_size = -65536");
  return { db, file, failure };
};

const answer = async ({ id, url, size, sql, bind }) => {
  try {
    opened ??= open(url, size);
    const { db, file, failure } = await opened;
    const columns = [];
    const rows = [];
    let more = false;
    const statement = db.prepare(sql);
    try {
      if (bind) statement.bind(bind);
      if (statement.columnCount) columns.push(...statement.getColumnNames());
      while (!more && statement.step()) {
        if (rows.length < MOST_ROWS) rows.push(statement.get([]));
        else more = true;
      }
    } catch (error) {
      throw failure() ?? error;
    } finally {
      statement.finalize();
    }
    postMessage({ id, columns, rows, more, bytes: file.bytes, requests: file.requests });
  } catch (error) {
    postMessage({ id, error: error.message });
  }
};

// Statements run in the order in which they arrive.
let last = Promise.resolve();
onmessage = ({ data }) => { last = last.then(() => answer(data)); };
