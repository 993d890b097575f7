import { ApiError, Posthorn, PosthornError } from '@posthorn/client';
import type { Scene } from '../../round.ts';
import type { Subject } from './changed-configuration.ts';
import { type Probe, type ProbedChange, PROMISED_MS } from './probes.ts';

/** How many messages each gateway gets before a change: they come for longer than entries are kept that nobody follows. */
const BEFORE = 8;
/** How many messages it gets that must go by the new configuration. */
const AFTER = 4;
const PROBE_EVERY_MS = 400;
/** From the moment of the fault on: what was followed last counts for a second more. */
const CHANGED_EVERY_MS = 100;
/** On a machine that is busy with other things. */
const SENT_WITHIN_MS = 180_000;

/** A subject, and the key that sends its messages. */
export type KeyedSubject = Subject & Required<Pick<Subject, 'apiKey'>>;

/** Changes one subject after the other, with messages before and after it. `beforeChange` is called right before the first. */
export async function probeChanges(
  scene: Scene,
  subjects: readonly KeyedSubject[],
  beforeChange: () => void,
): Promise<ProbedChange[]> {
  const probings = subjects.map((subject) => new Probing(scene, subject));
  const until = (what: string, check: (each: Probing) => boolean): Promise<void> =>
    scene.until(what, () => probings.every(check), SENT_WITHIN_MS);
  try {
    await until('messages before the changes', (each) => each.sent() >= BEFORE);
    beforeChange();
    const changing = probings.map(async (each, index) => {
      await scene.pause(index * CHANGED_EVERY_MS);
      await each.change();
    });
    await Promise.all(changing);
    await until('messages after the changes', (each) => each.sentLater() >= AFTER);
  } finally {
    await Promise.all(probings.map((each) => each.stop()));
  }
  return probings.map((each) => each.result());
}

/** Sends the message of a subject to each gateway again and again, from its creation on. */
class Probing {
  readonly #subject: KeyedSubject;
  /** By gateway. */
  readonly #probes: readonly Probe[][];
  readonly #stopped = new AbortController();
  readonly #sending: Promise<unknown>;
  #beganAtMs = Infinity;
  #changedAtMs = Infinity;

  constructor({ baseUrls, pause }: Scene, subject: KeyedSubject) {
    this.#subject = subject;
    this.#probes = baseUrls.map(() => []);
    this.#sending = Promise.all(
      baseUrls.map((baseUrl, index) => this.#sendTo(baseUrl, index, pause)),
    );
    // `stop` reports it.
    this.#sending.catch(() => undefined);
  }

  /** How many messages every gateway has responded to. */
  sent(): number {
    return Math.min(...this.#probes.map(({ length }) => length));
  }

  /** How many of them were sent when the new configuration alone counted. */
  sentLater(): number {
    const fromMs = this.#changedAtMs + PROMISED_MS;
    const isLater = ({ sentAtMs }: Probe): boolean => sentAtMs >= fromMs;
    return Math.min(...this.#probes.map((probes) => probes.filter(isLater).length));
  }

  async change(): Promise<void> {
    this.#beganAtMs = Date.now();
    await this.#subject.change();
    this.#changedAtMs = Date.now();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#sending;
  }

  result(): ProbedChange {
    const { name, before, after, meanwhile = [] } = this.#subject;
    const [beganAtMs, changedAtMs] = [this.#beganAtMs, this.#changedAtMs];
    return { name, before, after, meanwhile, beganAtMs, changedAtMs, probes: this.#probes.flat() };
  }

  async #sendTo(baseUrl: string, index: number, pause: Scene['pause']): Promise<void> {
    const { message, apiKey } = this.#subject;
    const { messages } = new Posthorn({ baseUrl, apiKey, maxRetries: 0 });
    while (!this.#stopped.signal.aborted) {
      const sentAtMs = Date.now();
      const accepted = messages.send(message).then(({ id }) => ({ status: 202, messageId: id }));
      const answer = await accepted.catch(refused);
      this.#probes[index]?.push({ sentAtMs, gateway: index + 1, ...answer });
      await pause(PROBE_EVERY_MS);
    }
  }
}

/** Without a response the status is 0. */
function refused(error: unknown): Pick<Probe, 'status' | 'messageId'> {
  if (!(error instanceof PosthornError)) throw error;
  return { status: error instanceof ApiError ? error.status : 0, messageId: null };
}
