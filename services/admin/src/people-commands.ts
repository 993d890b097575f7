import {
  type GroupRole,
  groupRoleText,
  MAX_GROUP_CHARS,
  ROLES,
  type Role,
} from '@posthorn/domain/people.ts';
import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createCompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { createPeopleStore, type PeopleStore } from '@posthorn/platform/mongo/companies/people.ts';
import type { Command } from 'commander';
import { createRecordAdmin, databaseConfig, type RecordAdmin, runOnDatabase } from './command.ts';
import type { OutputOptions } from './output.ts';

export interface GroupsDeps {
  companies: Pick<CompanyStore, 'hasCompany'>;
  people: Pick<
    PeopleStore,
    'readMapping' | 'writeMapping' | 'sessionsChangedBy' | 'removeSessions'
  >;
  record: RecordAdmin;
  nowMs: () => number;
}

const MAX_GROUPS = 100;
const isRole = (text: string): text is Role => ROLES.some((role) => role === text);

/** Reads `group=role`, and adds it to the earlier ones. Throws for a text of another form. */
export function parseGroup(text: string, earlier: readonly GroupRole[] = []): GroupRole[] {
  const end = text.lastIndexOf('=');
  const [group, role] = [text.slice(0, Math.max(0, end)), text.slice(end + 1)];
  const chars = Array.from(group).length;
  if (chars < 1 || chars > MAX_GROUP_CHARS || !isRole(role)) {
    throw new Error(
      `--group must be a group of 1 to ${MAX_GROUP_CHARS} characters and one of ${ROLES.join(', ')}, such as helpdesk=support.`,
    );
  }
  if (earlier.length >= MAX_GROUPS) throw new Error(`There may be ${MAX_GROUPS} groups at most.`);
  return [...earlier, { group, role }];
}

/**
 * Replaces the roles of groups in a company, unless none are given, and ends the sessions whose role changes by it: within
 * two seconds. Returns them. Throws for an unknown company.
 */
export async function setGroups(
  { companies, people, record, nowMs }: GroupsDeps,
  companyId: string,
  groups: readonly GroupRole[] | undefined,
): Promise<{ companyId: string; groups: string[] }> {
  if (!(await companies.hasCompany(companyId))) {
    throw new Error(`There is no company ${companyId}.`);
  }
  if (groups === undefined) {
    const mapping = await people.readMapping(companyId);
    return { companyId, groups: mapping.map(groupRoleText) };
  }
  const action = 'people_settings.updated' as const;
  const target = { kind: 'company' as const, id: companyId };
  await record({ companyId, action, target, fields: { groups } }, async () => {
    await people.writeMapping(companyId, groups, nowMs());
    for await (const sessions of people.sessionsChangedBy(companyId, groups)) {
      await people.removeSessions(
        companyId,
        sessions.map(({ _id }) => _id),
      );
    }
  });
  return { companyId, groups: groups.map(groupRoleText) };
}

interface GroupsOptions extends OutputOptions {
  group?: GroupRole[];
}

/** Adds `groups` to the group `company` (docs/people.md). */
export function addGroupsCommand(company: Command): void {
  company
    .command('groups <companyId>')
    .description('print the roles that groups of the issuer have, or replace them')
    .option('--group <group=role>', 'such as helpdesk=support; may be repeated', parseGroup)
    .option('--json', 'print JSON')
    .action((companyId: string, { group, ...output }: GroupsOptions) =>
      runOnDatabase(output, databaseConfig, (db, _config, { nowMs }) =>
        setGroups(
          {
            companies: createCompanyStore(db),
            people: createPeopleStore(db),
            record: createRecordAdmin(db),
            nowMs,
          },
          companyId,
          group,
        ),
      ),
    );
}
