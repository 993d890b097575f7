import { unavailable } from '../api-error.ts';

/** Waits until Kafka has the records of a message. */
export interface PublicationWait {
  /** Rejects with ApiError 503 once nobody here will publish them any more, or the wait is given up. */
  published: Promise<unknown>;
  /** Ends the wait, for a request whose time is over. Without effect afterwards. */
  giveUp: () => void;
}

const nothing = (): void => undefined;

/** The wait for a message whose records Kafka has. */
export const PUBLISHED: PublicationWait = { published: Promise.resolve(null), giveUp: nothing };

/** The wait for a message that is published elsewhere, or not at all. */
export function notPublishedHere(): PublicationWait {
  const published = Promise.reject<null>(unavailable('kafka_unavailable'));
  published.catch(nothing);
  return { published, giveUp: nothing };
}

/** The waits for the messages of one publication, as many as requests that wait. */
export class PublicationWaits {
  readonly #waiting = new Map<string, Set<PromiseWithResolvers<null>>>();

  add(id: string): PublicationWait {
    const wait = Promise.withResolvers<null>();
    // It may end before its request awaits it.
    wait.promise.catch(nothing);
    const ofMessage = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, ofMessage.add(wait));
    return {
      published: wait.promise,
      giveUp: () => {
        ofMessage.delete(wait);
        if (ofMessage.size === 0 && this.#waiting.get(id) === ofMessage) this.#waiting.delete(id);
        wait.reject(unavailable('deadline_over'));
      },
    };
  }

  /** Ends the waits for these messages. */
  resolve(published: readonly { tracked: { id: string } }[]): void {
    if (this.#waiting.size === 0) return;
    for (const { tracked } of published) {
      for (const wait of this.#waiting.get(tracked.id) ?? []) wait.resolve(null);
      this.#waiting.delete(tracked.id);
    }
  }

  /** Ends all waits, because nothing more is published. */
  rejectAll(): void {
    for (const ofMessage of this.#waiting.values()) {
      for (const wait of ofMessage) wait.reject(unavailable('kafka_unavailable'));
    }
    this.#waiting.clear();
  }
}
