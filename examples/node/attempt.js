import { handlers } from './handlers.js';

// attempt runs a claim for up to so many ms, and reports how it ended. ask calls a function of Curfew as this worker.
export async function attempt(ask, { id, epoch, kind, payload }, ms, control) {
  const timer = ms < 2 ** 31 && setTimeout(() => control.abort(), ms); // a heartbeat tells of a later end
  let outcome = ['release', 'no handler', 'delay', '1s'];
  try {
    const handler = handlers.get(String(kind));
    if (handler) outcome = ['result', await handler(payload, control.signal)];
  } catch (error) {
    outcome = ['error', String(error)];
  }
  clearTimeout(timer);
  if (control.signal.aborted) outcome = ['release', 'stopped']; // Redis decides whether the time was up
  try {
    console.log(`${id} ${(await ask('settle', id, epoch, ...outcome)).status}`);
  } catch (refused) {
    console.log(`${id} ${refused.message}`); // CURFEW LOST: the task has ended, or another worker has it
  }
}
