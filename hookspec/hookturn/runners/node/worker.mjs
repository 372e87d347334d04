// One worker thread: imports one hook module and runs its handlers. What the module does to its globals, its output or
// its timers stays in here.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { format, inspect } from 'node:util';
import { workerData } from 'node:worker_threads';

import * as hookturn from './hookturn.mjs';
import * as rolebox from './rolebox.mjs';

const { port, taken } = workerData;
const spec = JSON.parse(workerData.spec);
delete workerData.port; // the module has no business on our line
delete workerData.spec;
const { parse, stringify } = JSON;
const now = process.hrtime.bigint;
const contract = { hookturn, rolebox }[spec.contract];
const current = new AsyncLocalStorage(); // the call that code belongs to, also behind its promises and timers
const real = realpath(spec.path);
const url = pathToFileURL(real).href;

function realpath(path) {
  try {
    return realpathSync(path);
  } catch {
    return path; // the import says why
  }
}

// -- words ------------------------------------------------------------------------------------------

const MOST_TEXT = 64_000; // characters of output a call
const LONGEST_MESSAGE = 2_000;
let room = MOST_TEXT;

function log(level, text, call = current.getStore()) {
  if (room < 0) return;
  const all = String(text);
  room -= all.length + 20;
  const told = room >= 0 ? [level, all] : ['warning', 'it printed more than a call may; the rest is dropped'];
  // Without a prototype: a module may have spoilt that of all objects.
  post('log', call, { __proto__: null, level: told[0], text: told[1] });
}

function post(kind, call, value) {
  port.postMessage([kind, call && !call.over ? call.id : 0, stringify(value)]);
}

const logger = Object.freeze({
  debug: (...words) => log('debug', format(...words)),
  info: (...words) => log('info', format(...words)),
  warn: (...words) => log('warning', format(...words)),
  error: (...words) => log('error', format(...words)),
});

// What a module prints goes to its hook's log. `console` asks its streams for nothing but write().
function stream(level) {
  let rest = '';
  const write = (chunk, encoding, done) => {
    if (room >= 0) {
      const lines = (rest + (typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString())).split('\n');
      rest = lines.pop().slice(0, MOST_TEXT);
      for (const line of lines) if (line) log(level, line);
    }
    (typeof encoding === 'function' ? encoding : done)?.();
    return true;
  };
  const flush = () => {
    if (rest) log(level, rest);
    rest = '';
  };
  return { write, flush, on() {}, once() {}, removeListener() {}, listenerCount: () => 0 };
}
const printed = stream('info');
const complained = stream('warning');
globalThis.console = new console.Console({ stdout: printed, stderr: complained });
console.debug = logger.debug;
process.stdout.write = printed.write;
process.stderr.write = complained.write;
process.removeAllListeners('warning');
process.on('warning', (warning) => log('debug', `${warning.name}: ${warning.message}`));
// What a module leaves lying about must not end it: nobody waits for it.
process.on('unhandledRejection', (error) => log('error', `nobody caught ${describe(error).message}`));
process.on('uncaughtException', (error) => log('error', `nobody caught ${describe(error).message}`));

// Says what was thrown, whatever it is, and where in the module.
function describe(error) {
  let message = '';
  let place = '';
  try {
    if (error instanceof Error || (error && typeof error === 'object' && 'message' in error && 'stack' in error)) {
      message = `${error.name}: ${error.message}`;
      const stack = String(error.stack);
      for (const name of [url, real]) { // a frame has the one in ES modules, the other in CommonJS
        const at = stack.indexOf(`${name}:`);
        const [, line, column] = /^:(\d+)(?::(\d+))?/.exec(at < 0 ? '' : stack.slice(at + name.length)) ?? [];
        if (line && !place) place = column ? `${line}:${column}` : line;
      }
    } else {
      message = `it threw ${typeof error === 'string' ? error : inspect(error, { depth: 1, breakLength: Infinity })}`;
    }
  } catch {
    message = 'it threw something that cannot be looked at';
  }
  return { message: message.slice(0, LONGEST_MESSAGE), place };
}

// -- values -----------------------------------------------------------------------------------------

// JSON has fewer values than JavaScript: what would become something else on the way is refused.
function strict(key, value) {
  if (typeof value === 'number' && !Number.isFinite(value)) throw new TypeError(`${value} is no JSON`);
  if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`a ${typeof value} is no JSON`);
  if (value instanceof Map || value instanceof Set) throw new TypeError(`a ${value.constructor.name} is no JSON`);
  return value;
}

// Errors of ours, told from those of a module by identity: to look at one that a module threw may run its code.
const ours = new WeakMap(); // error -> kind

function refusal(kind, message) {
  const error = new Error(message);
  ours.set(error, kind);
  return error;
}

function pack(value, what) {
  try {
    const text = stringify(value, strict);
    if (text !== undefined && text.length > spec.longest) {
      throw new TypeError(`it has more than ${spec.longest.toLocaleString('en')} characters`);
    }
    return text ?? 'null';
  } catch (error) {
    throw refusal('answer', `${what} cannot be sent: ${describe(error).message.replace(/^TypeError: /, '').split('\n')[0]}`);
  }
}

// -- the module -------------------------------------------------------------------------------------

let owners = []; // objects that may hold handlers: the module's names, then its default export's

function find(names) {
  for (const owner of owners) {
    for (const name of names) if (typeof owner[name] === 'function') return owner[name].bind(owner);
  }
  return null;
}

function handlers() {
  const found = new Set();
  for (const owner of owners) {
    for (let at = owner; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
      for (const name of Object.getOwnPropertyNames(at)) {
        if (!['constructor', 'default', 'module.exports'].includes(name) && typeof owner[name] === 'function') found.add(name);
      }
    }
  }
  return [...found].slice(0, 50);
}

let general = null; // a default export that is a function itself

async function load() {
  if (spec.digest && createHash('sha256').update(readFileSync(spec.path)).digest('hex') !== spec.digest) {
    throw new Error('it is not what was trusted');
  }
  const names = await import(url);
  owners = [names];
  // CommonJS compiled from TypeScript has its default export in another one.
  for (let value = names.default, depth = 0; value && depth < 2; value = value.default, depth++) {
    if (typeof value === 'object') owners.push(value);
    else if (typeof value === 'function' && !general) general = value;
  }
  let onLoadError = '';
  const onLoad = find(contract.ON_LOAD);
  if (onLoad) {
    try {
      await onLoad(contract.context({ spec, log: logger, call: {}, env: process.env, effect() {}, ask: nobody }));
    } catch (error) {
      if (contract.NEEDS_ON_LOAD) throw error;
      onLoadError = describe(error).message;
    }
  }
  return { handlers: handlers(), general: general !== null, onLoadError };
}

const nobody = () => Promise.reject(new Error('there is no call that this belongs to'));

const loaded = load().then(
  (found) => {
    port.postMessage(['loaded', 0, '']);
    return found;
  },
  (error) => {
    const { message, place } = describe(error);
    port.postMessage(['broken', 0, stringify({ kind: 'load', message, place })]);
    return null;
  },
);

// -- calls ------------------------------------------------------------------------------------------

let env = process.env; // what the last call came with
let changed = '';
const asked = new Map(); // number -> what settles it
let questions = 0;

function environment(changes) {
  const text = changes ? stringify(changes) : '';
  if (text !== changed) {
    for (const name of Object.keys(parse(changed || '{}'))) {
      if (name in base) process.env[name] = base[name];
      else delete process.env[name];
    }
    for (const [name, value] of Object.entries(changes ?? {})) {
      if (value === null) delete process.env[name];
      else process.env[name] = value;
    }
    changed = text;
    env = Object.freeze({ ...process.env });
  }
  return env;
}
const base = Object.freeze({ ...process.env });
env = base;

async function run(id, until, body) {
  const call = { id, over: false };
  try {
    const found = await loaded;
    if (!found || now() > until) return; // nobody waits for it any more
    room = MOST_TEXT;
    const text = await current.run(call, () => handle(call, parse(body), found));
    printed.flush();
    complained.flush();
    call.over = true;
    port.postMessage(['done', id, text]);
  } catch (error) {
    printed.flush();
    complained.flush();
    call.over = true;
    const kind = ours.get(error);
    const told = kind ? { __proto__: null, kind, message: error.message } : { __proto__: null, kind: 'threw', ...describe(error) };
    port.postMessage(['fail', id, stringify(told)]);
  }
}

async function handle(call, { names, general: any, needed, payload, context, env: changes }, found) {
  if (!names) return stringify({ ran: true, value: found });
  const handler = find(names) ?? (any ? general : null);
  if (!handler) {
    if (!needed) return '{"ran":false}';
    throw refusal('missing', found.handlers.join(', '));
  }
  const effects = [];
  const effect = (kind, words) => {
    if (call.over) log('warning', `${kind}() after the handler had ended has no effect`);
    else effects.push([kind, words === undefined || words === null ? '' : String(words)]);
  };
  const ask = (question) => new Promise((resolve, reject) => {
    if (call.over) {
      reject(new Error('the handler has ended'));
      return;
    }
    const number = ++questions;
    asked.set(number, { resolve, reject });
    port.postMessage(['ask', call.id, pack({ number, ...question }, 'the value')]);
  });
  const ctx = contract.context({ spec, log: logger, call: context ?? {}, env: environment(changes), effect, ask, payload });
  const before = contract.EDITED && payload ? snapshot(payload) : null;
  const value = await contract.invoke(handler, payload, ctx);
  const parts = [`"ran":true,"value":${contract.RETURNS ? pack(value, 'what it returned') : 'null'}`];
  if (effects.length) parts.push(`"effects":${pack(effects, 'its words')}`);
  const edits = before ? edited(payload, before) : [];
  if (edits.length) parts.push(`"payload":{${edits.join(',')}}`);
  return `{${parts.join(',')}}`;
}

// The JSON of a payload's fields, to see which of them a handler edited in place.
function snapshot(payload) {
  return Object.entries(payload).map(([name, value]) => [name, stringify(value)]);
}

function edited(payload, before) {
  const edits = [];
  for (const [name, old] of before) {
    const text = pack(payload[name], `the edited ${name}`);
    if (text !== old) edits.push(`${stringify(name)}:${text}`);
  }
  return edits;
}

function told(text) {
  const { number, value, error } = parse(text);
  const question = asked.get(number);
  asked.delete(number);
  if (error === undefined) question?.resolve(value);
  else question?.reject(new Error(error));
}

port.on('message', ([kind, id, until, text]) => {
  if (kind === 'tell') {
    told(text);
    return;
  }
  Atomics.add(taken, 0, 1);
  run(id, until, text);
});
