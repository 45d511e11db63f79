// Runs the tasks of a queue, several at once, until SIGTERM: QUEUE=default SLOTS=10 node worker.js
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import Redis from 'ioredis';
import { handlers } from './handlers.js';

const { REDIS_URL = 'redis://localhost:6379', CURFEW_ROOT = 'curfew:{0}', QUEUE = 'default' } = process.env;
const SLOTS = process.env.SLOTS ?? 10, LEASE_MS = process.env.LEASE_MS ?? 15_000;
const name = `node-${randomUUID()}`; // no other worker has or had this name
const r = new Redis(REDIS_URL, { maxRetriesPerRequest: null });
const blocked = r.duplicate(); // BLPOP keeps a connection busy
for (const connection of [r, blocked]) connection.on('error', error => console.error(error.message));
const running = new Map(); // attempts by claim
let stopping = false, leaving = false, known = 0;
process.once('SIGTERM', () => { stopping = true; blocked.disconnect(); }); // a second one ends this program at once
// A list of names and values becomes an object. Values are buffers, or lists.
const named = words => Object.fromEntries(words.flatMap((word, i) => (i % 2 ? [] : [[`${word}`, words[i + 1]]])));

// ask calls a function until Redis answers. A repeat has no second effect. What Curfew refuses is thrown.
async function ask(what, ...args) {
  for (;; await delay(500)) {
    try {
      return named(await r.fcallBuffer(`curfew_${what}`, 1, CURFEW_ROOT, name, ...args));
    } catch (error) {
      if (error.message.startsWith('CURFEW ')) throw error;
      console.error(`tried again: ${error.message}`);
    }
  }
}

// attempt runs the handler of a claim, and reports how it ended. now is the clock of Redis at the claim.
async function attempt({ id, epoch, kind, payload, deadline_at = Infinity, attempt_ends_at = Infinity }, now, control) {
  const ms = Math.min(deadline_at, attempt_ends_at) - now;
  const timer = ms < 2 ** 31 && setTimeout(() => control.abort(), ms); // a heartbeat tells of a later end
  const handler = handlers.get(`${kind}`);
  let outcome = ['release', 'no handler', 'delay', '1s'];
  try {
    if (handler) outcome = ['result', Buffer.from(await handler(payload, control.signal))];
  } catch (error) {
    // After a limit the class names it, so the error counts as a timeout even if the clock of Redis is a little behind.
    const limit = +attempt_ends_at < +deadline_at ? 'timeout' : 'deadline';
    outcome = ['error', String(error), 'class', control.signal.aborted ? limit : 'error'];
  }
  clearTimeout(timer);
  const { status } = await ask('settle', id, epoch, ...outcome).catch(({ message }) => ({ status: message }));
  console.log(`${id} ${status}`); // CURFEW LOST: the task has ended, or another worker has it
}

// fetch starts tasks in the free slots, and returns when there may be more.
async function fetch() {
  const free = SLOTS - running.size;
  const reply = await ask('fetch', 'slots', free, 'queues', QUEUE, 'lease_ms', LEASE_MS, 'seq', known + 1);
  for (const claim of reply.claims.map(named)) {
    const key = `${claim.id}=${claim.epoch}`, control = new AbortController();
    running.set(key, Object.assign(attempt(claim, reply.now, control).finally(() => running.delete(key)), { control }));
  }
  known++;
  if ((stopping ||= `${reply.stop}` === '1') || free === reply.claims.length || reply.wait_ms < 1) return;
  await blocked.blpop(reply.wake, reply.wait_ms / 1000).catch(() => delay(500));
}

// beat keeps the lease, and tells attempts to stop. Claims up to known that it does not name are given back.
async function beat() {
  for (; !leaving; await delay(LEASE_MS / 3)) {
    const reply = await ask('heartbeat', 'claims', [...running.keys()].join(), 'known', known, 'lease_ms', LEASE_MS);
    for (const { id, epoch } of reply.stops.map(named)) running.get(`${id}=${epoch}`)?.control.abort();
  }
}
beat();
while (!stopping) await (running.size < SLOTS ? fetch() : Promise.race([delay(500), ...running.values()]));
while ([...running.values()].some(({ control }) => !control.signal.aborted)) await delay(50);
leaving = true; // a beat after the goodbye would take it back
await ask('heartbeat', 'lease', '0s'); // goodbye: what still runs is given back
process.exit();
