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
import { sealWebhook } from '@posthorn/platform/mongo/webhooks/webhooks.ts';
import type { Vault } from '@posthorn/platform/security/vault.ts';
import type { mongo } from 'mongoose';
import { hash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inWorkers } from './loops.ts';

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

interface FillDeps {
  stackDir: string;
  db: mongo.Db;
  vault: Vault;
  signal: AbortSignal;
  log: (line: string) => void;
}

/** Stores the population, unless an earlier run on the same stores has. Throws when they have another one. */
export async function storePopulation(population: Population, deps: FillDeps): Promise<void> {
  const path = join(deps.stackDir, 'population.json');
  const { companies, webhooks, origins } = population;
  const stateOf = (isComplete: boolean): string =>
    JSON.stringify({ companies, webhooks, origins, isComplete });
  if (existsSync(path)) {
    if (readFileSync(path, 'utf8') === stateOf(true)) return;
    const what = 'The kept stores have another population, or a part of one.';
    throw new Error(`${what} Delete ${deps.stackDir}.`);
  }
  writeFileSync(path, stateOf(false));
  await fill(population, deps);
  if (!deps.signal.aborted) writeFileSync(path, stateOf(true));
}

/** Without waiting for the journal: a population that is lost in a crash is stored again. */
const UNSAFE = { ordered: false, writeConcern: { w: 1 } } as const;
const LOG_EVERY = 100_000;

async function fill(population: Population, { db, vault, signal, log }: FillDeps): Promise<void> {
  const { companies, webhooks } = population;
  const pages = { size: 1_000, atOnce: 4, signal };
  const insert = <Name extends CollectionName>(name: Name, documents: DocumentOf[Name][]) =>
    collection(db, name).insertMany(
      documents as mongo.OptionalUnlessRequiredId<DocumentOf[Name]>[],
      UNSAFE,
    );
  const numbers = (from: number, length: number) => Array.from({ length }, (_, n) => from + n);
  await inWorkers(companies, pages, async (from, length) => {
    const page = numbers(from, length);
    await insert('companies', page.map(companyDocument));
    await insert('apiKeys', page.map(keyDocument));
    await insert('projects', page.map(projectDocument));
  });
  await inWorkers(webhooks, pages, async (from, length) => {
    const page = numbers(from, length);
    const sealed = page.map((n) => sealWebhook(vault, webhookOf(n, population)));
    await Promise.all([insert('apps', page.map(appDocument)), insert('webhooks', sealed)]);
    if (from % LOG_EVERY === 0) log(`Storing ${webhooks} webhooks: at ${from}`);
  });

  function appDocument(n: number): DocumentOf['apps'] {
    const projectId = idOf('proj', n % companies);
    return { ...inCompany(n % companies), ...named(`Customer ${n}`), _id: appIdOf(n), projectId };
  }
}

const inCompany = (company: number) => ({
  companyId: idOf('comp', company),
  createdAt: CREATED_AT,
});

const named = (name: string) => ({
  name,
  description: '',
  environment: 'production' as const,
  updatedAt: CREATED_AT,
});

function companyDocument(n: number): DocumentOf['companies'] {
  return { _id: idOf('comp', n), name: `Company ${n}`, createdAt: CREATED_AT };
}

function keyDocument(n: number): DocumentOf['apiKeys'] {
  const key = apiKeyOf(n);
  const shown = { name: 'bench', prefix: key.slice(0, 12), hash: hashOfKey(key) };
  return { _id: idOf('key', n), ...inCompany(n), ...shown };
}

function projectDocument(n: number): DocumentOf['projects'] {
  return { _id: idOf('proj', n), ...inCompany(n), ...named('bench'), description: null };
}

function webhookOf(n: number, { companies, origins, schemeOf }: Population): Webhook {
  const { host, port } = addressOf(n % origins);
  const url = `${schemeOf?.(n) ?? 'http'}://${host}:${port}/${n}`;
  const owner = { companyId: idOf('comp', n % companies), projectId: idOf('proj', n % companies) };
  return webhookWith(n, { ...owner, url, appId: appIdOf(n) });
}

type GivenWebhook = Pick<Webhook, 'companyId' | 'projectId'> & Parameters<typeof newValues>[0];

/** The n-th webhook of the stores. */
function webhookWith(n: number, { companyId, projectId, ...given }: GivenWebhook): Webhook {
  const secret = secretFromBytes(hash('sha256', `bench/${n}`, 'buffer'));
  return {
    ...newValues(given),
    id: idOf('wh', n),
    companyId,
    projectId,
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

/** Stores webhooks of an app that exists, past the API: on one busy core some of 10,000 creations were 503. */
export async function storeWebhooks(
  given: readonly GivenWebhook[],
  { db, vault }: Pick<FillDeps, 'db' | 'vault'>,
): Promise<void> {
  const sealed = given.map((each, n) => sealWebhook(vault, webhookWith(n, each)));
  await collection(db, 'webhooks').insertMany(sealed, UNSAFE);
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
