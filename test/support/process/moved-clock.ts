import { readFileSync } from 'node:fs';

/**
 * Loaded into a service with `--import`: its wall clock is ahead of the real one by the milliseconds
 * in the file that MOVED_CLOCK_FILE names. As when the clock of a machine is set, timers and the
 * monotonic clock do not change. With MOVED_CLOCK_OF_DATABASE the clock of MongoDB is ahead as much,
 * as far as the service can tell, as when the time has really passed.
 */
const path = process.env.MOVED_CLOCK_FILE ?? '';
/** Far below what a test can notice, and at most 50 small reads per second. */
const READ_EVERY_MS = 20;

const realNowMs = Date.now;
let aheadMs = 0;
let readAtMs = -Infinity;

function movedByMs(): number {
  const monotonicMs = performance.now();
  if (monotonicMs - readAtMs >= READ_EVERY_MS) {
    aheadMs = Number(readFileSync(path, 'utf8'));
    readAtMs = monotonicMs;
  }
  return aheadMs;
}

const movedNowMs = (): number => realNowMs() + movedByMs();

Date.now = movedNowMs;
globalThis.Date = new Proxy(Date, {
  construct: (date, parts: unknown[], target: typeof Date) =>
    Reflect.construct(date, parts.length === 0 ? [movedNowMs()] : parts, target) as Date,
});

/** The part of a reply of MongoDB that is changed. */
interface Document {
  localTime?: Date;
}

if (process.env.MOVED_CLOCK_OF_DATABASE === 'true') {
  const { default: mongoose } = await import('mongoose');
  const { prototype } = mongoose.mongo.Db;
  const command = Reflect.get(prototype, 'command') as (...given: unknown[]) => Promise<Document>;
  Reflect.set(prototype, 'command', async function (this: unknown, ...given: unknown[]) {
    const reply = await command.apply(this, given);
    if (reply.localTime) reply.localTime = new Date(reply.localTime.getTime() + movedByMs());
    return reply;
  });
}
