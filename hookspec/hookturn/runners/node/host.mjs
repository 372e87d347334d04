// The main thread of the resident Node process: passes lines between its parent and one worker thread a hook module.
// It reads no payload and runs no hook, so that it always answers.
//
// A line is `<kind> <module> <call> <JSON>`. From the parent:
//   load     what a module is (once, before its first call)
//   call     a call; the JSON is preceded by the milliseconds that it has
//   dispose  the same, but nothing is started for it
//   tell     the parent's answer to an `ask` of a call
//   drop     stop a call whose time is over: its worker ends, whatever it does
//   forget   end a module
// To the parent:
//   ready    Node's version
//   done     a call's result
//   fail     a call's failure
//   lost     a call that ended with its worker, and why
//   gone     a dropped call, once it has ended
//   ask      a call wants something of the parent
//   log      words of a module; call 0: outside of any call
// When the parent is gone, the channel closes, and this process ends with all that it started.
import net from 'node:net';
import { MessageChannel, Worker, receiveMessageOnPort } from 'node:worker_threads';

const [channelFd, settings] = process.argv.slice(2);
const { memory, minimum, folder } = JSON.parse(settings);
try {
  process.chdir(folder);
} catch {
  // It is gone: we stay where we are.
}
const [major, minor] = process.versions.node.split('.').map(Number);
const atLeast = (...versions) => versions.some(([a, b]) => (major === a && minor >= b)) || major > versions.at(-1)[0];

const modules = new Map(); // number -> Module
const channel = new net.Socket({ fd: Number(channelFd), readable: true, writable: true });

const send = (kind, module, call, text = '{}') => channel.write(`${kind} ${module} ${call} ${text}\n`);

function end() {
  try {
    process.kill(-process.pid, 'SIGKILL'); // our whole group: a worker in a blocking call must not hold us up
  } catch {
    process.kill(process.pid, 'SIGKILL');
  }
}

// How this Node runs TypeScript: by itself, with an option, or not at all.
function typescript() {
  if (process.features.typescript) return { option: [] };
  return major > 22 || (major === 22 && minor >= 6) ? { option: ['--experimental-strip-types'] } : null;
}

function options(path) {
  const found = [];
  // `export` in a .js file without a package.json that says "type": "module". On by default later.
  if (!atLeast([20, 19], [22, 7])) found.push('--experimental-detect-module');
  if (/\.[mc]?ts$/.test(path)) found.push(...typescript().option);
  return found;
}

// One worker thread: a module from its import to its end.
class Run {
  constructor(module) {
    this.module = module;
    this.calls = new Map(); // id -> the call
    this.posted = 0;
    this.loaded = false;
    this.why = '';
    this.dropped = []; // calls whose parent waits for the end
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    this.taken = new Int32Array(new SharedArrayBuffer(4)); // messages that the worker has begun with
    this.worker = new Worker(new URL('./worker.mjs', import.meta.url), {
      workerData: { port: port2, taken: this.taken, spec: module.spec },
      transferList: [port2],
      stdout: true,
      stderr: true,
      env: { ...process.env, ...module.env },
      execArgv: options(module.path),
      resourceLimits: { maxOldGenerationSizeMb: memory, maxYoungGenerationSizeMb: 32 },
    });
    // The worker's own words come by the port; what Node itself says in there is of no use to anybody.
    this.worker.stdout.resume();
    this.worker.stderr.resume();
    this.port.on('message', (message) => this.heard(message));
    this.worker.on('error', (error) => {
      this.why ||= error?.code === 'ERR_WORKER_OUT_OF_MEMORY'
        ? `it needed more than the ${memory} MB of memory that a module has`
        : `its thread failed: ${String(error?.message ?? error).slice(0, 500)}`;
    });
    this.worker.on('exit', (code) => this.ended(code));
  }

  post(call) {
    this.calls.set(call.id, call);
    call.order = ++this.posted;
    this.port.postMessage(['call', call.id, call.until, call.body]);
  }

  // While a module is being imported, every call counts as begun: the import may be what does not end.
  begun(call) {
    return !this.loaded || call.order <= Atomics.load(this.taken, 0);
  }

  heard([kind, id, text]) {
    if (kind === 'loaded') {
      this.loaded = true;
    } else if (kind === 'broken') { // it could not be imported: nothing to keep
      for (const call of this.calls.values()) send('fail', this.module.number, call.id, text);
      this.calls.clear();
      this.module.retire(this);
      this.worker.terminate();
    } else if (kind === 'done' || kind === 'fail') {
      if (this.calls.delete(id)) send(kind, this.module.number, id, text);
    } else if (kind === 'log') {
      send(kind, this.module.number, this.calls.has(id) ? id : 0, text);
    } else if (this.calls.has(id)) {
      send(kind, this.module.number, id, text);
    }
  }

  drop(id) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    const others = [...this.calls.values()].some((other) => this.begun(other));
    if (!this.begun(call) && others) { // another call holds the thread, and has a limit of its own
      send('gone', this.module.number, id);
      return;
    }
    const what = this.begun(call) ? `its call of ${call.what} ran over its time limit` : 'a timer of it never ended';
    this.dropped.push(id);
    this.stop(`the module was stopped, since ${what}`);
  }

  stop(why) {
    this.why = why;
    this.module.retire(this);
    this.settle();
    this.worker.terminate();
  }

  // Says what became of the calls: those that had not begun go to another thread, once.
  settle() {
    for (const call of this.calls.values()) {
      if (this.begun(call) || call.again || this.module.forgotten) {
        send('lost', this.module.number, call.id, JSON.stringify({ why: this.why }));
      } else {
        call.again = true;
        this.module.post(call);
      }
    }
    this.calls.clear();
  }

  ended(code) {
    for (let left; (left = receiveMessageOnPort(this.port)); ) this.heard(left.message);
    this.port.close();
    this.module.retire(this);
    this.why ||= this.loaded ? `it called process.exit(${code})` : `it called process.exit(${code}) while it was imported`;
    this.settle();
    for (const id of this.dropped) send('gone', this.module.number, id);
  }
}

class Module {
  constructor(number, spec) {
    this.number = number;
    this.spec = spec;
    const { path, env } = JSON.parse(spec);
    this.path = path;
    this.env = env;
    this.run = null;
    this.forgotten = false;
  }

  call(id, rest, dispose) {
    if (dispose && !this.run) {
      send('done', this.number, id, '{"ran":false}');
      return;
    }
    if (/\.[mc]?ts$/.test(this.path) && !typescript()) {
      const message = `TypeScript needs Node 22.6 or newer, and this is ${process.versions.node}`;
      send('fail', this.number, id, JSON.stringify({ kind: 'node', message }));
      return;
    }
    const at = rest.indexOf(' ');
    const next = rest.indexOf(' ', at + 1);
    this.post({
      id,
      until: process.hrtime.bigint() + BigInt(rest.slice(0, at)) * 1_000_000n, // the same clock in all threads
      what: rest.slice(at + 1, next),
      body: rest.slice(next + 1),
      again: false,
    });
  }

  post(call) {
    this.run ??= new Run(this);
    this.run.post(call);
  }

  retire(run) {
    if (this.run === run) this.run = null;
  }
}

function received(line) {
  const [kind, number, id] = line.split(' ', 3);
  const rest = line.slice(kind.length + number.length + id.length + 3);
  const module = modules.get(number);
  if (kind === 'load') {
    if (!module) modules.set(number, new Module(number, rest));
  } else if (!module) {
    if (kind === 'drop') send('gone', number, id);
    else if (kind === 'call') send('lost', number, id, '{"why":"the module was forgotten"}');
    else if (kind === 'dispose') send('done', number, id, '{"ran":false}');
  } else if (kind === 'call' || kind === 'dispose') {
    module.call(Number(id), rest, kind === 'dispose');
  } else if (kind === 'tell') {
    module.run?.port.postMessage(['tell', Number(id), 0, rest]);
  } else if (kind === 'drop') {
    if (module.run?.calls.has(Number(id))) module.run.drop(Number(id));
    else send('gone', number, id);
  } else if (kind === 'forget') {
    modules.delete(number);
    module.forgotten = true;
    module.run?.stop('the module was forgotten');
  }
}

let parts = [];
channel.on('data', (chunk) => {
  let from = 0;
  for (let at; (at = chunk.indexOf(10, from)) >= 0; from = at + 1) {
    parts.push(chunk.subarray(from, at));
    // The parent writes ASCII only.
    const line = (parts.length === 1 ? parts[0] : Buffer.concat(parts)).toString('latin1');
    parts = [];
    received(line);
  }
  if (from < chunk.length) parts.push(chunk.subarray(from));
});
for (const event of ['end', 'error', 'close']) channel.on(event, end);
// Whoever stops a terminal's group means the agent, which then stops us.
for (const signal of ['SIGINT', 'SIGHUP']) process.on(signal, () => {});

if (major < minimum[0] || (major === minimum[0] && minor < minimum[1])) {
  send('old', 0, 0, JSON.stringify({ node: process.versions.node }));
} else {
  send('ready', 0, 0, JSON.stringify({ node: process.versions.node }));
}
