import { authMethodOf } from '@posthorn/domain/auth-methods.ts';
import { firstIdAt, type IdPrefix } from '@posthorn/domain/ids.ts';
import { secretFromBytes } from '@posthorn/domain/request/signature.ts';
import { newValues } from '@posthorn/domain/webhook-fields.ts';
import type { Webhook } from '@posthorn/domain/webhook.ts';
import {
  type CollectionName,
  collection,
  type DocumentOf,
} from '@posthorn/platform/mongo/collections.ts';
import { apiKeyWith, hashOfKey } from '@posthorn/platform/mongo/companies/companies.ts';
import type { AppDocument } from '@posthorn/platform/mongo/documents.ts';
import { sealWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import type { mongo } from 'mongoose';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The customers of a platform: companies with an API key and a project each. Webhook n belongs to company
 * n % companies, and is the only one of app n, as where a platform has an app for each of its customers.
 */
export interface Population {
  companies: number;
  webhooks: number;
  /** The servers of the webhooks, which differ by address; webhooks of one server differ by path. */
  origins: number;
  /** Of the URL of a webhook; http by default. */
  schemeOf?: (webhook: number) => 'http' | 'https';
}

/** The creation time of every stored document. */
const CREATED_AT = new Date('2026-01-01T00:00:00Z');
const NUMBER_CHARS = 16;

/** Digits are valid in ids, so that the n-th id follows from n, and a later run finds what an earlier one stored. */
function idOf(prefix: IdPrefix, n: number): string {
  return firstIdAt(prefix, CREATED_AT.getTime()) + String(n).padStart(NUMBER_CHARS, '0');
}

export const appIdOf = (n: number): string => idOf('app', n);

export const apiKeyOf = (company: number): string =>
  apiKeyWith(hash('sha256', `bench/${company}`, 'buffer'));

/** Outside the ranges of free ports and of outgoing connections: the URLs are the same in the next run. */
const PORT = 9_830;
const ADDRESSES_PER_BLOCK = 250;

/** Returns where the server of an origin listens. */
export function addressOf(origin: number): { host: string; port: number } {
  const block = Math.floor(origin / ADDRESSES_PER_BLOCK);
  return { host: `127.1.${block}.${(origin % ADDRESSES_PER_BLOCK) + 1}`, port: PORT };
}

const STATE_FILE = 'population.json';

interface FillDeps {
  stackDir: string;
  db: mongo.Db;
  vault: Vault;
  signal: AbortSignal;
  log: (line: string) => void;
}

/** Stores the population, unless an earlier run on the same stores has. Throws when they have another one. */
export async function storePopulation(population: Population, deps: FillDeps): Promise<void> {
  const path = join(deps.stackDir, STATE_FILE);
  const { companies, webhooks, origins } = population;
  const stateOf = (isComplete: boolean): string =>
    JSON.stringify({ companies, webhooks, origins, isComplete });
  if (existsSync(path)) {
    if (readFileSync(path, 'utf8') !== stateOf(true)) {
      throw new Error(
        `The kept stores have another population, or a part of one. Delete ${deps.stackDir}.`,
      );
    }
    deps.log('The population is stored already');
    return;
  }
  writeFileSync(path, stateOf(false));
  const startedAtMs = performance.now();
  await fill(population, deps);
  if (deps.signal.aborted) return;
  writeFileSync(path, stateOf(true));
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  deps.log(
    `Stored ${population.companies} companies, ${population.webhooks} webhooks in ${seconds} s`,
  );
}

async function fill(population: Population, { db, vault, signal, log }: FillDeps): Promise<void> {
  const insert = <Name extends CollectionName>(name: Name, documents: DocumentOf[Name][]) =>
    collection(db, name).insertMany(
      documents as mongo.OptionalUnlessRequiredId<DocumentOf[Name]>[],
      UNSAFE,
    );
  await inPages(population.companies, signal, async (companies) => {
    await Promise.all([
      insert('companies', companies.map(companyDocument)),
      insert('apiKeys', companies.map(keyDocument)),
      insert('projects', companies.map(projectDocument)),
    ]);
  });
  let stored = 0;
  await inPages(population.webhooks, signal, async (webhooks) => {
    const sealed = webhooks.map((n) => sealWebhook(vault, webhookOf(n, population)));
    await Promise.all([
      insert(
        'apps',
        webhooks.map((n) => appDocument(n, population)),
      ),
      insert('webhooks', sealed),
    ]);
    stored += webhooks.length;
    if (stored % LOG_EVERY === 0) log(`Stored ${stored} of ${population.webhooks} webhooks`);
  });
}

/** Without waiting for the journal: a population that is lost in a crash is stored again. */
const UNSAFE = { ordered: false, writeConcern: { w: 1 } } as const;
const PAGE = 1_000;
const PAGES_AT_ONCE = 4;
const LOG_EVERY = 100_000;

/** Passes the numbers from 0 to count - 1 in pages, some at once. */
async function inPages(
  count: number,
  signal: AbortSignal,
  work: (numbers: number[]) => Promise<void>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count && !signal.aborted) {
      const first = next;
      next = Math.min(count, first + PAGE);
      await work(Array.from({ length: next - first }, (_, n) => first + n));
    }
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, worker));
}

function companyDocument(n: number): DocumentOf['companies'] {
  return { _id: idOf('comp', n), name: `Company ${n}`, createdAt: CREATED_AT };
}

function keyDocument(n: number): DocumentOf['apiKeys'] {
  const key = apiKeyOf(n);
  return {
    _id: idOf('key', n),
    companyId: idOf('comp', n),
    name: 'bench',
    prefix: key.slice(0, 12),
    hash: hashOfKey(key),
    createdAt: CREATED_AT,
  };
}

function projectDocument(n: number): DocumentOf['projects'] {
  return {
    _id: idOf('proj', n),
    companyId: idOf('comp', n),
    name: 'bench',
    description: null,
    environment: 'production',
    createdAt: CREATED_AT,
    updatedAt: CREATED_AT,
  };
}

function appDocument(n: number, { companies }: Population): AppDocument {
  return {
    _id: appIdOf(n),
    companyId: idOf('comp', n % companies),
    projectId: idOf('proj', n % companies),
    name: `Customer ${n}`,
    description: '',
    environment: 'production',
    createdAt: CREATED_AT,
    updatedAt: CREATED_AT,
  };
}

function webhookOf(n: number, { companies, origins, schemeOf }: Population): Webhook {
  const { host, port } = addressOf(n % origins);
  const secret = secretFromBytes(hash('sha256', `bench/${n}`, 'buffer'));
  return {
    ...newValues({
      url: `${schemeOf?.(n) ?? 'http'}://${host}:${port}/${n}`,
      appId: appIdOf(n),
    }),
    id: idOf('wh', n),
    companyId: idOf('comp', n % companies),
    projectId: idOf('proj', n % companies),
    secret,
    previousSecret: null,
    rotations: null,
    cancelBeforeMs: null,
    held: null,
    disabledReason: null,
    authMethod: authMethodOf({}, undefined, secret),
    createdAtMs: CREATED_AT.getTime(),
    updatedAtMs: CREATED_AT.getTime(),
  };
}

/** Returns numbers from 0 to below 1. */
type Random = () => number;

/**
 * Returns a function that draws numbers from 0 to size - 1: n in proportion to 1 / (n + 1) ** exponent. Exponent 0 is
 * uniform, 1 is Zipf's law.
 */
export function createZipf(size: number, exponent: number, random: Random): () => number {
  const sums = new Float64Array(size);
  let total = 0;
  for (let n = 0; n < size; n += 1) {
    total += (n + 1) ** -exponent;
    sums[n] = total;
  }
  return () => {
    const drawn = random() * total;
    let [low, high] = [0, size - 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((sums[middle] ?? total) > drawn) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

interface PickerSpec {
  companies: number;
  /** How many webhooks get messages: the first one of each company, then the second one of each, and so on. */
  workingSet: number;
  /** Of the companies, by `createZipf`. The webhooks of a company are drawn uniformly. */
  exponent: number;
}

/** Returns a function that draws webhooks. */
export function createPicker(
  { companies, workingSet, exponent }: PickerSpec,
  random: Random,
): () => number {
  const pickCompany = createZipf(Math.min(companies, workingSet), exponent, random);
  return () => {
    const company = pickCompany();
    const own = Math.ceil((workingSet - company) / companies);
    return company + companies * Math.floor(random() * own);
  };
}
