// Calls Curfew's functions with any client. What may pass is tried again, and a refusal is thrown.
import { setTimeout as delay } from 'node:timers/promises';

export const root = process.env.CURFEW_ROOT ?? 'curfew:{0}';
export const url = process.env.REDIS_URL ?? 'redis://localhost:6379';

// named returns a reply of names and values as an object. Values are buffers, or lists where docs/protocol.md says so.
export const named = words =>
  Object.fromEntries(words.flatMap((word, i) => (i % 2 ? [] : [[word.toString(), words[i + 1]]])));

// call returns what send returns, which calls a function. A repeat has no second effect if the arguments have an id, a seq
// or an epoch. It gives up after so many ms.
export async function call(send, patience) {
  for (const over = Date.now() + patience; ; await delay(500)) {
    try {
      return await send();
    } catch (error) {
      // A refusal, such as CURFEW INVALID or CURFEW LOST, stays one.
      if (error.message.startsWith('CURFEW ') || Date.now() > over) throw error;
      console.error(`tried again: ${error.message}`);
    }
  }
}
