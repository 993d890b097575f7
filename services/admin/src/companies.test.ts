import { beforeEach, describe, expect, test } from '@jest/globals';
import { type CompanyStore, hashOfKey } from '@posthorn/platform/mongo/companies/companies.ts';
import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import type { GroupRole } from '@posthorn/domain/people.ts';
import type { CompanyStatus } from '@posthorn/domain/company.ts';
import type { ApiKeyDocument, CompanyDocument } from '@posthorn/platform/mongo/documents.ts';
import { countingIds } from '../../../test/support/samples/sample-message.ts';
import type { AdminAction, RecordAdmin } from './command.ts';
import {
  type CompanyDeps,
  type CompanyLifeDeps,
  createApiKey,
  createCompany,
  deleteCompany,
  listApiKeys,
  listCompanies,
  resumeCompany,
  revokeApiKey,
  suspendCompany,
} from './companies.ts';

let stored: CompanyDocument[];
let keys: ApiKeyDocument[];
let recorded: (AdminAction & { isBefore: boolean })[];
let mappings: Map<string, readonly GroupRole[]>;
let deps: CompanyDeps;

beforeEach(() => {
  [stored, keys, recorded] = [[], [], []];
  mappings = new Map();
  const companies: CompanyStore = {
    insertCompany: (company) => Promise.resolve(void stored.push(company)),
    hasCompany: (id) => Promise.resolve(stored.some(({ _id }) => _id === id)),
    nameOf: (id) => Promise.resolve(stored.find(({ _id }) => _id === id)?.name ?? null),
    listCompanies: () => Promise.resolve(stored),
    insertKey: (key) => Promise.resolve(void keys.push(key)),
    listKeys: (id) => Promise.resolve(keys.filter(({ companyId }) => companyId === id)),
    findKeys: () => Promise.resolve(new Map()),
    usedSince: () => Promise.resolve([]),
    noteUse: () => Promise.resolve(new Map()),
    companyOfKey: (id) => Promise.resolve(keys.find(({ _id }) => _id === id)?.companyId ?? null),
    removeKey: (id) => {
      const before = keys.length;
      keys = keys.filter(({ _id }) => _id !== id);
      return Promise.resolve(keys.length < before);
    },
    linkKeyOf: () => Promise.resolve(null),
    removeLinkKey: () => Promise.resolve(false),
  };
  const record: RecordAdmin = async (action, make, fieldsOf) => {
    recorded.push({ ...action, isBefore: true });
    const result = await make();
    recorded.push({ ...action, fields: fieldsOf?.(result) ?? action.fields, isBefore: false });
    return result;
  };
  deps = {
    companies,
    people: {
      writeMapping: (companyId, groups) => Promise.resolve(void mappings.set(companyId, groups)),
    },
    record,
    hasApp: (companyId, appId) => Promise.resolve(companyId !== 'comp_x' && appId === 'app_1'),
    newId: countingIds(),
    nowMs: () => 5_000,
  };
});

describe('creating a company', () => {
  test('stores it with the hash of its first API key, and returns the key', async () => {
    const { companyId, apiKey } = await createCompany(deps, 'Acme');
    expect(stored).toEqual([{ _id: companyId, name: 'Acme', createdAt: new Date(5_000) }]);
    expect(keys).toMatchObject([{ companyId, name: 'first key', hash: hashOfKey(apiKey) }]);
    expect(JSON.stringify(keys)).not.toContain(apiKey);
  });

  test.each(['', 'x'.repeat(101)])('throws for the name %j', async (name) => {
    await expect(createCompany(deps, name)).rejects.toThrow('1 to 100 characters');
    expect(stored).toEqual([]);
  });
});

describe('the API keys of a company', () => {
  test('are created, listed without their hash and revoked once', async () => {
    const { companyId } = await createCompany(deps, 'Acme');
    const { keyId } = await createApiKey(deps, companyId, {});
    const listed = await listApiKeys(deps, companyId);
    expect(listed).toMatchObject([{ name: 'first key' }, { keyId, name: 'made by admin' }]);
    expect(Object.keys(listed[1] ?? {})).toEqual(['keyId', 'name', 'prefix', 'createdAt']);
    expect(await revokeApiKey(deps, keyId)).toEqual({ revoked: keyId });
    await expect(revokeApiKey(deps, keyId)).rejects.toThrow(`There is no API key ${keyId}.`);
  });

  test('are limited to what is asked for, and shown with it', async () => {
    const { companyId } = await createCompany(deps, 'Acme');
    const scopes = ['read', 'messages:write', 'read'] as const;
    await createApiKey(deps, companyId, { scopes, appId: 'app_1', expiresAtMs: 9_000 });
    expect(keys[1]).toMatchObject({ scopes: ['messages:write', 'read'], appId: 'app_1' });
    expect((await listApiKeys(deps, companyId))[1]).toMatchObject({
      scopes: 'messages:write,read',
      appId: 'app_1',
      expiresAt: new Date(9_000),
    });
  });

  test('are not created for an app that the company does not have', async () => {
    const { companyId } = await createCompany(deps, 'Acme');
    const creating = createApiKey(deps, companyId, { appId: 'app_2' });
    await expect(creating).rejects.toThrow('The company has no app app_2.');
    expect(keys).toHaveLength(1);
  });

  test('are refused for an unknown company', async () => {
    const problem = 'There is no company comp_x.';
    await expect(createApiKey(deps, 'comp_x', {})).rejects.toThrow(problem);
    await expect(listApiKeys(deps, 'comp_x')).rejects.toThrow(problem);
    expect(keys).toEqual([]);
  });
});

test('companies are listed with id, name and time of creation', async () => {
  const { companyId } = await createCompany(deps, 'Acme');
  expect(await listCompanies(deps)).toEqual([
    { companyId, name: 'Acme', createdAt: new Date(5_000), status: 'active' },
  ]);
});

test('every change is recorded before it is made, and nothing of a refused one', async () => {
  const { companyId, apiKey } = await createCompany(deps, 'Acme');
  const firstKey = keys[0]?._id;
  const { keyId } = await createApiKey(deps, companyId, {});
  await revokeApiKey(deps, keyId);
  await expect(revokeApiKey(deps, keyId)).rejects.toThrow('There is no API key');
  const before = recorded.filter(({ isBefore }) => isBefore);
  expect(before).toMatchObject([
    { companyId, action: 'company.created', target: { kind: 'company', id: companyId } },
    { companyId, action: 'api_key.created', target: { kind: 'apiKey', id: keyId } },
    { companyId, action: 'api_key.revoked', target: { kind: 'apiKey', id: keyId } },
  ]);
  expect(recorded.at(1)?.fields).toEqual({ name: 'Acme', keyId: firstKey });
  expect(JSON.stringify(recorded)).not.toContain(apiKey);
});

describe('the life of a company', () => {
  const ID = 'comp_1';

  let status: CompanyStatus | null;
  let deps: CompanyLifeDeps;
  let recorded: AdminAction[];

  function becomes(next: CompanyStatus): () => Promise<void> {
    return () => {
      status = next;
      return Promise.resolve();
    };
  }

  beforeEach(() => {
    status = 'active';
    recorded = [];
    deps = {
      record: (action, make) => {
        recorded.push(action);
        return make();
      },
      life: {
        statusOf: (id) => Promise.resolve(id === ID ? status : null),
        suspend: becomes('suspended'),
        resume: becomes('active'),
        beginRemoval: becomes('removing'),
      },
    };
  });

  describe('a company', () => {
    test('is suspended and resumed', async () => {
      expect(await suspendCompany(deps, ID)).toEqual({ companyId: ID, status: 'suspended' });
      expect(await suspendCompany(deps, ID)).toEqual({ companyId: ID, status: 'suspended' });
      expect(await resumeCompany(deps, ID)).toEqual({ companyId: ID, status: 'active' });
    });

    test.each([undefined, 'comp_2', ''])(
      'is not deleted with the confirmation %j',
      async (given) => {
        await expect(deleteCompany(deps, ID, given)).rejects.toThrow('give --confirm comp_1.');
        expect(status).toBe('active');
      },
    );

    test('is deleted when its id is given twice, and then neither suspended nor resumed', async () => {
      const removing = { companyId: ID, status: 'removing' };
      expect(await deleteCompany(deps, ID, ID)).toEqual(removing);
      expect(await deleteCompany(deps, ID, ID)).toEqual(removing);
      const problem = 'The company comp_1 is being deleted.';
      await expect(suspendCompany(deps, ID)).rejects.toThrow(problem);
      await expect(resumeCompany(deps, ID)).rejects.toThrow(problem);
      expect(status).toBe('removing');
    });

    test('that does not exist is refused', async () => {
      const problem = 'There is no company comp_x.';
      await expect(suspendCompany(deps, 'comp_x')).rejects.toThrow(problem);
      await expect(resumeCompany(deps, 'comp_x')).rejects.toThrow(problem);
      await expect(deleteCompany(deps, 'comp_x', 'comp_x')).rejects.toThrow(problem);
    });
  });

  test('what is done to a company is recorded, and its deletion where it outlives the company', async () => {
    await suspendCompany(deps, ID);
    await resumeCompany(deps, ID);
    await deleteCompany(deps, ID, ID);
    const target = { kind: 'company', id: ID };
    expect(recorded).toMatchObject([
      { companyId: ID, action: 'company.suspended', target },
      { companyId: ID, action: 'company.resumed', target },
      { companyId: NO_COMPANY, action: 'company.deleted', target },
    ]);
  });
});
