// Runs playground.wasm once for each message. The program reads standard input and writes standard output (WASI), so it
// needs only the few functions below.
"use strict";

const BAD_DESCRIPTOR = 8;
const NOT_SUPPORTED = 52;

class Exit extends Error {
  constructor(code) {
    super(`exit ${code}`);
    this.code = code;
  }
}

function run(module, input) {
  let memory;
  let read = 0;
  const out = { 1: [], 2: [] };
  const view = () => new DataView(memory.buffer);
  // The buffers of an array of (address, length).
  const buffers = (at, count) => Array.from({ length: count }, (_, nth) => {
    const address = view().getUint32(at + 8 * nth, true);
    return new Uint8Array(memory.buffer, address, view().getUint32(at + 8 * nth + 4, true));
  });
  const none = (count, bytes) => {
    view().setUint32(count, 0, true);
    view().setUint32(bytes, 0, true);
    return 0;
  };
  const functions = {
    args_sizes_get: none,
    args_get: () => 0,
    environ_sizes_get: none,
    environ_get: () => 0,
    fd_read(descriptor, at, count, size) {
      if (descriptor !== 0) return BAD_DESCRIPTOR;
      let total = 0;
      for (const buffer of buffers(at, count)) {
        const part = input.subarray(read, read + buffer.length);
        buffer.set(part);
        read += part.length;
        total += part.length;
      }
      view().setUint32(size, total, true);
      return 0;
    },
    fd_write(descriptor, at, count, size) {
      if (!out[descriptor]) return BAD_DESCRIPTOR;
      let total = 0;
      for (const buffer of buffers(at, count)) {
        out[descriptor].push(buffer.slice());
        total += buffer.length;
      }
      view().setUint32(size, total, true);
      return 0;
    },
    clock_time_get(_clock, _precision, at) {
      view().setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    random_get(at, size) {
      crypto.getRandomValues(new Uint8Array(memory.buffer, at, size));
      return 0;
    },
    proc_exit(code) {
      throw new Exit(code);
    },
  };
  const known = new Proxy(functions, { get: (all, name) => all[name] ?? (() => NOT_SUPPORTED) });
  const imports = Object.fromEntries(WebAssembly.Module.imports(module).map(({ name }) => [name, known[name]]));
  const program = new WebAssembly.Instance(module, { wasi_snapshot_preview1: imports }).exports;
  memory = program.memory;
  let failed;
  try {
    program._start();
  } catch (error) {
    if (!(error instanceof Exit)) failed = error.message;
    else if (error.code !== 0) failed = error.message;
  }
  const said = (descriptor) => {
    const decoder = new TextDecoder();
    return out[descriptor].map((bytes) => decoder.decode(bytes, { stream: true })).join("") + decoder.decode();
  };
  return failed ? { failed: said(2).trim() || failed } : JSON.parse(said(1));
}

const program = fetch("playground.wasm").then((response) => {
  if (!response.ok) throw new Error(`playground.wasm: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}).then((bytes) => WebAssembly.compile(bytes));

onmessage = async ({ data }) => {
  try {
    postMessage(run(await program, new TextEncoder().encode(JSON.stringify(data))));
  } catch (error) {
    postMessage({ failed: `the playground cannot run: ${error.message}` });
  }
};
