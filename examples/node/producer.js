// Enqueues a task, waits for its end without polling, and prints the result:
//
//   node producer.js render '{"page": "index"}' --timeout 30s
//
// Without a payload, standard input is the payload.
import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { RESP_TYPES, createClient } from 'redis';

const option = { type: 'string' };
const { values: { timeout = '1m', queue = 'default' }, positionals: [kind, text] } =
  parseArgs({ options: { timeout: option, queue: option }, allowPositionals: true });
const { REDIS_URL: url = 'redis://localhost:6379', CURFEW_ROOT: root = 'curfew:{0}' } = process.env;
const client = createClient({ url });
const listener = client.duplicate(); // a connection that subscribes sends no other commands
for (const connection of [client, listener]) connection.on('error', error => console.error(error.message));
await Promise.all([client.connect(), listener.connect()]);
const binary = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });

// named returns a list of names and values as an object.
const named = words => Object.fromEntries(words.flatMap((word, i) => (i % 2 ? [] : [[`${word}`, words[i + 1]]])));

// call calls a function, for up to 30 s until Redis answers. What Curfew refuses is thrown.
async function call(what, ...args) {
  for (const over = Date.now() + 30_000; ; await delay(500)) {
    try {
      return await binary.fCall(`curfew_${what}`, { keys: [root], arguments: args });
    } catch (error) {
      if (error.message.startsWith('CURFEW ') || Date.now() > over) throw error;
      console.error(`tried again: ${error.message}`);
    }
  }
}

// result returns the reply of curfew_result for a task that has ended.
async function result(id) {
  let look;
  // First subscribe and then look: otherwise an end between the two would be missed.
  await listener.subscribe(`${root}:ended`, ended => ended === id && look?.());
  for (;;) {
    const message = new Promise(resolve => { look = resolve; });
    const record = named(await call('result', id));
    if (!record.channel) return record;
    // A message may be lost. So it looks when the time of the task is up, and every 30 s.
    const [seconds, microseconds] = await client.time();
    const left = (record.until ?? Infinity) - seconds * 1000 - microseconds / 1000;
    await Promise.race([message, delay(Math.max(50, Math.min(left, 30_000)), null, { ref: false })]);
  }
}

await call('open');
// With an id of its own the call can be repeated, and makes one task.
const id = `${root.slice(root.lastIndexOf('{') + 1, -1)}-${randomUUID()}`;
const payload = text ?? await buffer(process.stdin);
await call('enqueue', kind, 'id', id, 'payload', payload, 'timeout', timeout, 'queue', queue);
console.error(id);
const record = await result(id);
if (String(record.status) === 'COMPLETED') {
  process.stdout.write(record.result);
} else {
  console.error(`${record.status}: ${record.error}`);
  process.exitCode = 1;
}
client.destroy();
listener.destroy();
