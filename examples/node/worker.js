// Runs tasks, several at once, until SIGTERM: node worker.js --slots 10 --queue default
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import Redis from 'ioredis';
import { attempt } from './attempt.js';
import { call, named, root, url } from './curfew.js';

const DRAIN = 30_000; // ms that handlers may go on after SIGTERM
const option = { type: 'string' };
const { slots = '10', queue = 'default', 'lease-ms': lease = '15000' } =
  parseArgs({ options: { slots: option, queue: option, 'lease-ms': option } }).values;

const r = new Redis(url, { maxRetriesPerRequest: null });
const blocked = r.duplicate(); // BLPOP keeps a connection busy
for (const connection of [r, blocked]) connection.on('error', error => console.error(error.message));

const name = `node-${randomUUID()}`; // no other worker has or had this name
const running = new Map(); // attempts by claim
let stopping = false, leaving = false, known = 0;
process.once('SIGTERM', () => { stopping = true; });

// ask calls a function of Curfew as this worker.
async function ask(what, ...args) {
  return named(await call(() => r.fcallBuffer(`curfew_${what}`, 1, root, name, ...args), Infinity));
}

// fetch starts tasks in the free slots, and returns when there may be more.
async function fetch() {
  const n = slots - running.size;
  const reply = await ask('fetch', 'slots', n, 'queues', queue, 'lease_ms', lease, 'seq', known + 1);
  for (const claim of reply.claims.map(named)) {
    const key = `${claim.id}=${claim.epoch}`, control = new AbortController();
    const ms = Math.min(claim.deadline_at ?? Infinity, claim.attempt_ends_at ?? Infinity) - reply.now;
    running.set(key, { control, done: attempt(ask, claim, ms, control).then(() => running.delete(key)) });
  }
  known++;
  stopping ||= String(reply.stop) === '1';
  const wait = reply.wait_ms / 1000;
  if (n > reply.claims.length && wait > 0 && !stopping) await blocked.blpop(reply.wake, wait).catch(() => delay(500));
}

// beat keeps the lease, and tells attempts to stop. Claims up to known that it does not name are given back.
async function beat() {
  for (; !leaving; await delay(lease / 3)) {
    const reply = await ask('heartbeat', 'claims', [...running.keys()].join(), 'known', known, 'lease_ms', lease);
    for (const { id, epoch } of reply.stops.map(named)) running.get(`${id}=${epoch}`)?.control.abort();
  }
}

beat();
while (!stopping) await (running.size < slots ? fetch() : Promise.race([...running.values()].map(({ done }) => done)));
const over = Date.now() + DRAIN;
while (Date.now() < over && [...running.values()].some(({ control }) => !control.signal.aborted)) await delay(50);
leaving = true; // a beat after the goodbye would take it back
await ask('heartbeat', 'lease', '0s'); // goodbye: what still runs is given back
process.exit();
