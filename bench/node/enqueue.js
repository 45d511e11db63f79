// Measures how many tasks a second Node enqueues: BullMQ's add, and curfew_enqueue through ioredis and node-redis,
// beside a script that writes a hash and an entry of a sorted set. One after another, and with 16 calls under way.
//
//   REDIS_URL=redis://127.0.0.1:6380 node enqueue.js [tasks] [rounds]
//
// It removes all data of this Redis, which must have Curfew's functions.
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { createClient } from 'redis';

const url = process.env.REDIS_URL;
if (!url) throw new Error('give REDIS_URL: all data of that Redis is removed');
const [tasks = 10_000, rounds = 5] = process.argv.slice(2).map(Number);
const root = 'bench:{0}', payload = '{"page":"index"}';
const words = ['render', 'payload', payload, 'timeout', '1h', 'max_retries', '3'];

const ioredis = new Redis(url, { maxRetriesPerRequest: null });
const node = createClient({ url });
node.on('error', error => console.error(error.message));
await node.connect();
const queue = new Queue('bench', { connection: ioredis });
await queue.waitUntilReady();
ioredis.defineCommand('bare', {
  numberOfKeys: 1,
  lua: `redis.call('HSET', KEYS[1] .. ':' .. ARGV[1], 'kind', ARGV[2], 'payload', ARGV[3])
    return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[1])`,
});

const page = JSON.parse(payload);
const ways = {
  'BullMQ add': () => queue.add('render', page, { attempts: 4 }),
  'curfew_enqueue, ioredis': () => ioredis.fcall('curfew_enqueue', 1, root, ...words),
  'curfew_enqueue, node-redis': () => node.fCall('curfew_enqueue', { keys: [root], arguments: words }),
  'HSET and ZADD, ioredis': i => ioredis.bare('bare', i, 'render', payload),
};

// rate returns how many tasks a second it enqueues.
async function rate(enqueue, atOnce) {
  let next = 0;
  const lane = async () => {
    while (next < tasks) await enqueue(next++);
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: atOnce }, lane));
  return tasks / (performance.now() - start) * 1000;
}

const measured = new Map();
for (let round = 0; round < rounds; round++) {
  for (const atOnce of [1, 16]) {
    for (const [way, enqueue] of Object.entries(ways)) {
      await ioredis.flushall();
      await ioredis.fcall('curfew_open', 1, root);
      const name = `${way}, ${atOnce === 1 ? 'one by one' : `${atOnce} under way`}`;
      measured.set(name, [...measured.get(name) ?? [], await rate(enqueue, atOnce)]);
    }
  }
}
console.log(`tasks a second, ${tasks} calls in each of ${rounds} turns: median (least to most)`);
for (const [name, rates] of measured) {
  rates.sort((a, b) => a - b);
  const [least, median, most] = [rates[0], rates[rates.length >> 1], rates.at(-1)].map(Math.round);
  console.log(`${name.padEnd(40)} ${String(median).padStart(7)} (${least} to ${most})`);
}
await queue.close();
await node.close();
ioredis.disconnect();
