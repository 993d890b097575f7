import { beforeEach, describe, expect, test } from '@jest/globals';
import { NO_COMPANY } from '@posthorn/domain/audit.ts';
import type { CompanyStatus } from '@posthorn/domain/company.ts';
import type { AdminAction } from './command.ts';
import {
  type CompanyLifeDeps,
  deleteCompany,
  resumeCompany,
  suspendCompany,
} from './company-life.ts';

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

  test.each([undefined, 'comp_2', ''])('is not deleted with the confirmation %j', async (given) => {
    await expect(deleteCompany(deps, ID, given)).rejects.toThrow('give --confirm comp_1.');
    expect(status).toBe('active');
  });

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
