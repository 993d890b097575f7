import type { QuotaConfig } from '../config.ts';

import { ApiError } from '../api-error.ts';

/**
 * Quotas that no operator has a reason to change: links of one app that may be used, open invitations of one company, and
 * bytes of custom headers.
 */
export const FIXED_QUOTAS = { portalLinks: 1_000, invitations: 1_000, headerBytes: 8_192 } as const;

/** A setting, or a quota that is fixed. */
type QuotaName = keyof QuotaConfig | keyof typeof FIXED_QUOTAS;

/** The quotas of things that an owner creates one by one. */
type CountedQuota = Exclude<QuotaName, 'QUOTA_TARGETS_PER_MESSAGE' | 'headerBytes'>;

const WHAT: Record<QuotaName, string> = {
  QUOTA_PROJECTS_PER_COMPANY: 'projects for each company',
  QUOTA_APPS_PER_COMPANY: 'apps for each company',
  QUOTA_WEBHOOKS_PER_APP: 'webhooks for each app',
  QUOTA_GLOBAL_WEBHOOKS_PER_PROJECT: 'global webhooks for each project',
  QUOTA_EVENT_TYPES_PER_PROJECT: 'event types for each project',
  QUOTA_KEYS_PER_COMPANY: 'API keys for each company',
  portalLinks: 'links to its portal for each app',
  invitations: 'open invitations for each company',
  QUOTA_TARGETS_PER_MESSAGE: 'webhooks that one message goes to',
  headerBytes: 'bytes of custom headers for each webhook',
};

/** docs/contract.md C3.6. */
export function quotaExceeded(quota: QuotaName, limit: number): ApiError {
  return new ApiError('quota_exceeded', `The limit is ${limit} ${describe(quota)}.`);
}

/** Names the setting too, where an operator can change the quota. */
function describe(quota: QuotaName): string {
  return quota in FIXED_QUOTAS ? WHAT[quota] : `${WHAT[quota]} (${quota})`;
}

interface Creation<Created> {
  setting: CountedQuota;
  companyId: string;
  /** The company, app or project that has them. */
  ownerId: string;
  /** Counts what the owner has, up to this number. */
  count: (upTo: number) => Promise<number>;
  /** How many it creates; 1 when left out. */
  amount?: number;
  create: () => Promise<Created>;
}

export interface Quotas {
  /**
   * Creates one more, or `amount`, unless its owner would have more than it may. Throws ApiError 409 then. Exact within this
   * process; other gateways may exceed a quota by what they create in the same moment.
   */
  createWithin: <Created>(creation: Creation<Created>) => Promise<Created>;
  /** Throws ApiError 409 when so many are more than an owner may have. */
  assertWithin: (setting: CountedQuota, count: number) => void;
  /** Notes that the owner was created just now, and has nothing yet. */
  noteEmpty: (setting: CountedQuota, ownerId: string) => void;
}

/**
 * Counting 1,000,000 apps takes MongoDB half a second. So a count is used again for this time while the
 * owner has less than 90 % of its quota.
 */
const COUNT_IS_VALID_MS = 10_000;
const COUNT_AGAIN_FROM = 0.9;
const MAX_OWNERS = 10_000;
/** The operator is notified from this share on. */
const NEAR = 0.8;

/** An owner that has nearly reached its quota, for the operator. */
interface NearQuota {
  setting: CountedQuota;
  companyId: string;
  ownerId: string;
  count: number;
  limit: number;
}

/** For a person (docs/operator-events.md). */
export function describeNearQuota({ setting, ownerId, count, limit }: NearQuota): string {
  return `${ownerId} has ${count} of ${limit} ${describe(setting)}`;
}

/** The state of one owner in this process. */
interface Owner {
  count: number;
  countedAtMs: number;
  /** The operator was notified, and the owner has not been below the limit since. */
  isNearReported: boolean;
  /** Creations that have begun and not ended. A count may or may not contain them. */
  running: Set<Promise<unknown>>;
  /** Ends when the last creation that counts has ended: they take turns. */
  lastTurn: Promise<unknown>;
}

interface QuotasDeps {
  limits: Readonly<Record<CountedQuota, number>>;
  monotonicMs: () => number;
  /** Called once for each owner that reaches 80 % of a quota; again when it was below meanwhile. */
  onNear: (near: NearQuota) => void;
}

export function createQuotas({ limits, monotonicMs, onNear }: QuotasDeps): Quotas {
  /** The least recently used first. */
  const owners = new Map<string, Owner>();

  function hasRoom({ count, countedAtMs }: Owner, limit: number, amount: number): boolean {
    const isValid = monotonicMs() - countedAtMs < COUNT_IS_VALID_MS;
    return isValid && count + amount - 1 < limit * COUNT_AGAIN_FROM;
  }

  function noteNear(owner: Owner, { setting, companyId, ownerId }: Creation<unknown>): void {
    const { count } = owner;
    const limit = limits[setting];
    const isNear = count >= limit * NEAR;
    if (isNear && !owner.isNearReported) onNear({ setting, companyId, ownerId, count, limit });
    owner.isNearReported = isNear;
  }

  function run<Created>(owner: Owner, creation: Creation<Created>): Promise<Created> {
    const running = begin(owner, creation);
    noteNear(owner, creation);
    return running;
  }

  async function countThenCreate<Created>(
    owner: Owner,
    creation: Creation<Created>,
  ): Promise<Created> {
    const { setting, count, amount = 1 } = creation;
    const limit = limits[setting];
    await Promise.allSettled(owner.running);
    owner.count = await count(limit);
    owner.countedAtMs = monotonicMs();
    if (owner.count + amount > limit) throw quotaExceeded(setting, limit);
    return run(owner, creation);
  }

  return {
    createWithin(creation) {
      const owner = touchOwner(owners, creation);
      const { setting, amount = 1 } = creation;
      if (hasRoom(owner, limits[setting], amount)) return run(owner, creation);
      const turn = owner.lastTurn.then(() => countThenCreate(owner, creation));
      owner.lastTurn = turn.catch(() => undefined);
      return turn;
    },
    assertWithin(setting, count) {
      if (count > limits[setting]) throw quotaExceeded(setting, limits[setting]);
    },
    noteEmpty(setting, ownerId) {
      touchOwner(owners, { setting, ownerId }).countedAtMs = monotonicMs();
    },
  };
}

/** Returns the owner, as the one used last. Forgets the one whose use is longest ago when there are too many. */
function touchOwner(
  owners: Map<string, Owner>,
  { setting, ownerId }: Pick<Creation<unknown>, 'setting' | 'ownerId'>,
): Owner {
  const key = `${setting}/${ownerId}`;
  const owner = owners.get(key) ?? newOwner();
  owners.delete(key);
  owners.set(key, owner);
  const [leastRecent] = owners.keys();
  if (owners.size > MAX_OWNERS && leastRecent !== undefined) owners.delete(leastRecent);
  return owner;
}

function newOwner(): Owner {
  return {
    count: 0,
    countedAtMs: -Infinity,
    isNearReported: false,
    running: new Set(),
    lastTurn: Promise.resolve(),
  };
}

function begin<Created>(
  owner: Owner,
  { create, amount = 1 }: Pick<Creation<Created>, 'create' | 'amount'>,
): Promise<Created> {
  owner.count += amount;
  const running = create();
  const ended = running
    .catch(() => undefined)
    .finally(() => {
      owner.running.delete(ended);
    });
  owner.running.add(ended);
  return running;
}

/** Throws ApiError 409 when the names and values together have more bytes than a webhook may have. */
export function checkHeaderBytes(
  headers: readonly { key: string; value: string }[] | undefined,
  limit: number,
): void {
  // Names and values are Latin-1: one byte for each character.
  const bytes = (headers ?? []).reduce((sum, { key, value }) => sum + key.length + value.length, 0);
  if (bytes > limit) throw quotaExceeded('headerBytes', limit);
}
