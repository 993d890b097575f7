import type { KeepTrying } from '@posthorn/platform/async/keep-trying.ts';
import { createLoop } from '@posthorn/platform/async/loop.ts';
import type { RequestedErasures } from '@posthorn/platform/mongo/messages/requested-erasures.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';

/** The messages whose payload a client has erased in the last two minutes: nothing of them is sent any more. */
export interface ErasedMessages {
  has: (messageId: string) => boolean;
  add: (messageId: string) => void;
  remove: (messageId: string) => void;
  /** Reads the notes of all again, because some may have been missed. */
  refresh: () => void;
  start: () => void;
  /** Reads the notes again, unless every change of them is known. When that fails, what is known stays. */
  tick: () => Promise<void>;
  stop: () => Promise<void>;
}

interface ErasedMessagesDeps {
  erasures: Pick<RequestedErasures, 'listNoted'>;
  /** Drops the cached payload of a message. */
  forgetPayload: (messageId: string) => void;
  /** Returns true while `add` and `remove` are called for every change of a note. */
  areChangesFollowed: () => boolean;
  keepTrying: KeepTrying;
  logger: Pick<Logger, 'warn'>;
}

/**
 * While changes are not followed. What was followed last counts for a second more, and a read may take half a second: a message is
 * known as erased within two seconds (docs/contract.md C7.13).
 */
const EVERY_MS = 500;
/** 5 MB. Of more, the earliest are forgotten: their deliveries are recorded as cancelled by then. */
const MAX_MESSAGES = 50_000;

/**
 * The record of a first attempt has the payload, and is not looked up before it is sent, so the dispatcher has to know
 * which messages are erased. Resolves when the notes are read: before that nothing may be sent.
 */
export async function openErasedMessages({
  erasures,
  forgetPayload,
  areChangesFollowed,
  keepTrying,
  logger,
}: ErasedMessagesDeps): Promise<ErasedMessages> {
  /** The earliest first. */
  const ids = new Set<string>();
  const version = { current: 1, read: 0 };

  function add(id: string): void {
    ids.delete(id);
    ids.add(id);
    forgetPayload(id);
    if (ids.size <= MAX_MESSAGES) return;
    for (const earliest of ids) {
      ids.delete(earliest);
      return;
    }
  }

  /** One that is announced during the read may not be in it, and stays. */
  async function read(): Promise<void> {
    const { current } = version;
    const before = [...ids];
    const noted = new Set(await erasures.listNoted(MAX_MESSAGES));
    for (const id of before) if (!noted.has(id)) ids.delete(id);
    for (const id of [...noted].reverse()) if (!ids.has(id)) add(id);
    version.read = current;
  }

  await keepTrying('read the erased messages', read);
  const { start, tick, stop } = createLoop({
    name: 'erased messages',
    everyMs: EVERY_MS,
    run: async () => {
      if (version.read === version.current && areChangesFollowed()) return;
      await read();
    },
    logger,
  });
  return {
    has: (id) => ids.has(id),
    add,
    remove: (id) => void ids.delete(id),
    refresh() {
      version.current += 1;
      void tick();
    },
    start,
    tick,
    stop,
  };
}
