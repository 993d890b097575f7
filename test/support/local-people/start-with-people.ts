import { freePorts } from '../../../tools/local-stack/machine/ports.ts';
import { type LocalIssuer, startIssuer } from '../../../tools/local-stack/people/issuer.ts';
import { issuerUrlAt } from '../../../tools/local-stack/people/issuer-url.ts';
import { LOCAL_PEOPLE, LOCAL_ROLES } from '../../../tools/local-stack/people/people.ts';
import { createApiClient } from '../api/api-client.ts';
import { dataOf } from '../api/expect-answers.ts';
import { leaksIn } from '../people/leaks.ts';
import type { OwnCompany } from '../process/posthorn.ts';
import { joinShared, type SharedName } from '../process/shared-posthorn.ts';

/** A company whose people sign in at an issuer of their own, with a gateway that no other test file uses. */
export interface WithPeople extends OwnCompany {
  issuer: LocalIssuer;
  /** The host of the issuer as pages show it. */
  issuerHost: string;
  /** A group of the four people, under the name that it has here. */
  groupOf: (name: string) => string;
  /** The roles of their groups in the company. */
  roles: { group: string; role: string }[];
  /** Everything secret that the addresses of sign-ins have carried in the browser of `startPeopleBrowser`. */
  secrets: string[];
  /** The secrets, codes, tokens and claims that the gateway has logged, at every level. */
  leaks: () => string[];
}

const CLIENT = { id: 'posthorn', secret: 'the-secret-of-a-test-client' };

/** Starts an issuer and a gateway, and gives the groups of Ada, Sam and Vic their roles. */
export async function startWithPeople(
  name: SharedName,
  settings: Record<string, string> = {},
): Promise<WithPeople> {
  const [shared, ports] = await Promise.all([joinShared(name), freePorts(2)]);
  const [port = 0, issuerPort = 0] = ports;
  const baseUrl = `http://127.0.0.1:${port}`;
  // A group lets people into every company of the installation that names it, also into those of other test files.
  const groupOf = (group: string): string => `${group}-of-${shared.companyId}`;
  const roles = LOCAL_ROLES.map(({ group, role }) => ({ group: groupOf(group), role }));
  const issuer = await startIssuer({
    port: issuerPort,
    people: LOCAL_PEOPLE.map((person) => ({ ...person, groups: person.groups.map(groupOf) })),
    client: CLIENT,
    publicUrl: baseUrl,
  });
  const url = issuerUrlAt(issuerPort);
  const secrets = [shared.apiKey, CLIENT.secret];
  const claims = LOCAL_PEOPLE.flatMap(({ email, groups }) => [email, ...groups.map(groupOf)]);
  const own = {
    PORT: String(port),
    PUBLIC_URL: baseUrl,
    OIDC_ISSUER: url,
    OIDC_CLIENT_ID: CLIENT.id,
    OIDC_CLIENT_SECRET: CLIENT.secret,
    LOG_LEVEL: 'trace',
    ...settings,
  };
  const gateway = await shared.start('gateway', own);
  const api = createApiClient(baseUrl, shared.apiKey);
  dataOf(await api.put('/api/v1/people-settings', { groups: roles }));
  return {
    ...shared,
    env: { ...shared.env, ...own },
    api,
    baseUrl,
    issuer,
    issuerHost: new URL(url).host,
    groupOf,
    roles,
    secrets,
    leaks: () => leaksIn(gateway.output(), [...secrets, ...claims]),
    async stop() {
      await shared.stop();
      await issuer.close();
    },
  };
}
