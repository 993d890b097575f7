import { randomBytes } from 'node:crypto';
import type { IdPrefix } from '@posthorn/domain/ids.ts';
import { collection } from '@posthorn/platform/mongo/collections.ts';
import type { mongo } from 'mongoose';
import { hashOfKey } from './authenticate.ts';

const KEY_BYTES = 32;
const SHOWN_CHARS = 12;

export interface CompanyDeps {
  db: mongo.Db;
  newId: (prefix: IdPrefix) => string;
  nowMs: () => number;
}

/** Makes a company with a first API key; the key is shown here and never again. */
export async function createCompany(
  deps: CompanyDeps,
  name: string,
): Promise<{ companyId: string; apiKey: string }> {
  const companyId = deps.newId('comp');
  const createdAt = new Date(deps.nowMs());
  await collection(deps.db, 'companies').insertOne({ _id: companyId, name, createdAt });
  const { apiKey } = await createApiKey(deps, companyId, 'first key');
  return { companyId, apiKey };
}

export async function createApiKey(
  { db, newId, nowMs }: CompanyDeps,
  companyId: string,
  name: string,
): Promise<{ keyId: string; apiKey: string }> {
  const apiKey = `phk_${randomBytes(KEY_BYTES).toString('base64url')}`;
  const keyId = newId('key');
  await collection(db, 'apiKeys').insertOne({
    _id: keyId,
    companyId,
    name,
    prefix: apiKey.slice(0, SHOWN_CHARS),
    hash: hashOfKey(apiKey),
    createdAt: new Date(nowMs()),
  });
  return { keyId, apiKey };
}

/** False when there is no such company. */
export async function companyExists(db: mongo.Db, companyId: string): Promise<boolean> {
  return (await collection(db, 'companies').findOne({ _id: companyId })) !== null;
}

/** False when there is no such key. Running gateways refuse it within two seconds. */
export async function revokeApiKey(db: mongo.Db, keyId: string): Promise<boolean> {
  return (await collection(db, 'apiKeys').deleteOne({ _id: keyId })).deletedCount === 1;
}
