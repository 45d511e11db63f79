// Handlers by kind. A handler returns the result, a string or a buffer, or throws an error, after which the task may be
// retried. Nothing can end a handler from outside. One that takes long looks at signal, or hands it to what it awaits.
import { setTimeout as delay } from 'node:timers/promises';

export const handlers = new Map(Object.entries({
  render: async payload => Buffer.concat([Buffer.from('rendered '), payload]),

  // sleep sleeps for as many seconds as the payload says, and stops early when told.
  async sleep(payload, signal) {
    const seconds = Number(payload);
    if (Number.isNaN(seconds)) throw new Error(`"${payload}" is not a number of seconds`);
    return delay(seconds * 1000, 'slept', { signal });
  },

  // hang never looks. Its task ends on time all the same, and it keeps its slot.
  hang: () => new Promise(() => {}),
}));
