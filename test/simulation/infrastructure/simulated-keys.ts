import type { Message } from '@posthorn/domain/message.ts';
import type { MessageDocument } from '@posthorn/platform/mongo/documents.ts';
import type {
  ClaimedKey,
  KeyHolder,
  KeyHolders,
} from '@posthorn/platform/mongo/messages/idempotency-keys.ts';
import type { MessageStore } from '@posthorn/platform/mongo/messages/messages.ts';
import type { SimulatedMongo } from './simulated-mongo.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** What the stores need of a process. */
type Requester = Pick<SimulatedProcess, 'request'>;

/** The claims of idempotency keys, whose ages are by the clock of the database (idempotency-keys.ts). */
export interface SimulatedKeys {
  /** Returns the store of messages with claims, and the look-ups of keys. */
  connectedTo: (process: Requester, store: MessageStore) => MessageStore & KeyHolders;
}

interface Claim {
  messageId: string;
  bodyHash: string;
  atMs: number;
}

export function createSimulatedKeys(
  mongo: SimulatedMongo,
  { nowMs }: { nowMs: () => number },
): SimulatedKeys {
  const claims = new Map<string, Claim>();
  /** Returns false when another message has the key. */
  const claim = ({ id: messageId, idempotency }: Message): boolean => {
    if (!idempotency) return true;
    const { key, bodyHash } = idempotency;
    const found = claims.get(key);
    if (!found) claims.set(key, { messageId, bodyHash, atMs: nowMs() });
    return (found?.messageId ?? messageId) === messageId;
  };
  const holderOf = ({ messageId: id, bodyHash, atMs }: Claim): KeyHolder | ClaimedKey => {
    const ageMs = nowMs() - atMs;
    // Simulated collections are untyped. Only the message store writes to this one.
    const message = mongo.collection('messages').get(id) as MessageDocument | undefined;
    if (!message) return { kind: 'claimed', claimedFor: id, ageMs };
    const { publisherId, isOrdered = false } = message;
    const sizes = { targetCount: 1, storedBytes: 1 };
    return {
      kind: 'holder',
      id,
      ageMs,
      bodyHash,
      publisherId,
      isOrdered,
      ...sizes,
      claimedFor: id,
    };
  };
  return {
    connectedTo: (process, store) => ({
      ...store,
      insertAll: (all) => insertClaimed({ process, store, claim }, all),
      findKeyHolders: (_companyId, keys) =>
        request(process, `look ${keys.length} keys up`, () => {
          const found = keys.flatMap((key): [string, Claim][] => {
            const held = claims.get(key);
            return held ? [[key, held]] : [];
          });
          return new Map(found.map(([key, held]) => [key, holderOf(held)]));
        }),
      releaseKeys: (_companyId, held) =>
        request(process, `release ${held.length} keys`, () => {
          for (const { key, found } of held) {
            if (claims.get(key)?.messageId === found.claimedFor) claims.delete(key);
          }
        }),
    }),
  };
}

interface Claiming {
  process: Requester;
  store: MessageStore;
  claim: (message: Message) => boolean;
}

/** Claims the keys before the messages are stored. Without a response it is unknown who has them. */
async function insertClaimed(
  { process, store, claim }: Claiming,
  all: readonly Message[],
): ReturnType<MessageStore['insertAll']> {
  if (all.every(({ idempotency }) => !idempotency)) return store.insertAll(all);
  const claimed = await request(process, 'claim keys', () => all.map(claim)).catch(() => null);
  const mine = all.filter(({ idempotency }, n) => !idempotency || claimed?.[n] === true);
  // Their claims are here, and not in the database.
  const outcomes = await store.insertAll(mine.map((each) => ({ ...each, idempotency: null })));
  const found = new Map(mine.map((each, n) => [each, outcomes[n]]));
  return all.map((each) => found.get(each) ?? (claimed ? 'repeated' : 'refused'));
}

function request<T>(process: Requester, what: string, effect: () => T): Promise<T> {
  const noResponse = (): Error => new Error('no response');
  let result: T;
  return process.request({
    what,
    effects: [() => (result = effect())],
    respond: () => result,
    noResponse,
  });
}
