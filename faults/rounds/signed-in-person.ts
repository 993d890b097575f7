import {
  CLIENT_ID,
  type ScriptedIssuer,
  startScriptedIssuer,
} from '../../test/support/people/scripted-issuer.ts';
import type { Scene } from '../round.ts';

/** A person whose session gateways of two versions take (docs/people.md, "Two versions at once"). */
export interface SignedInPerson {
  /** Adds a finding for each gateway that refuses the session, or that takes it for more than `read`. */
  check: (when: string) => Promise<void>;
  /** Ends the session, and waits until every gateway refuses it. Returns what was found. */
  end: () => Promise<string[]>;
}

/** The settings with which gateways know the issuer. The first gateway is the one that finishes sign-ins. */
export interface IssuerOfRound {
  env: Record<string, string>;
  /** Signs somebody in as `viewer`. The gateways must have been started with `env`. */
  signIn: () => Promise<SignedInPerson>;
  close: () => Promise<void>;
}

export async function startIssuerOfRound(scene: Scene): Promise<IssuerOfRound> {
  const issuer = await startScriptedIssuer();
  return {
    env: {
      OIDC_ISSUER: issuer.url,
      OIDC_CLIENT_ID: CLIENT_ID,
      PUBLIC_URL: scene.baseUrls[0] ?? '',
    },
    signIn: async () => createPerson(scene, await sessionCookie(scene, issuer)),
    close: issuer.close,
  };
}

const GROUP = 'observers';

async function sessionCookie(
  { baseUrls, companies }: Scene,
  issuer: ScriptedIssuer,
): Promise<string> {
  const [baseUrl = ''] = baseUrls;
  const [{ apiKey } = { apiKey: '' }] = companies;
  const groups = [{ group: GROUP, role: 'viewer' }];
  await sendJson(`${baseUrl}/api/v1/people-settings`, 'PUT', { groups }, { 'x-api-key': apiKey });
  const begun = await sendJson(`${baseUrl}/dashboard/api/oidc`, 'POST', {});
  const { data } = (await begun.json()) as { data: { url: string } };
  const back = issuer.signIn(data.url, { sub: 'vic', claims: { groups: [GROUP] } });
  const headers = { cookie: cookieIn(begun) };
  return cookieIn(await fetch(back, { headers, redirect: 'manual' }));
}

/** Returns the cookie that a response sets, as the browser sends it; throws without one. */
function cookieIn({ headers, status }: Response): string {
  const pairs = headers.getSetCookie().map((cookie) => cookie.split(';', 1)[0] ?? '');
  const [set] = pairs.filter((pair) => !pair.endsWith('='));
  if (set === undefined) throw new Error(`the sign-in has set no cookie: ${status}`);
  return set;
}

function createPerson({ baseUrls, companies, until }: Scene, cookie: string): SignedInPerson {
  const findings: string[] = [];
  const session = { cookie, 'x-posthorn-session': '1' };
  const send = (baseUrl: string, path: string, body?: object): Promise<Response> =>
    sendJson(baseUrl + path, body ? 'POST' : 'GET', body, session);
  const statusesOf = (path: string, body?: object): Promise<number[]> =>
    Promise.all(baseUrls.map(async (baseUrl) => (await send(baseUrl, path, body)).status));
  return {
    async check(when) {
      const [reads, writes] = [
        await statusesOf('/api/v1/projects'),
        await statusesOf('/api/v1/projects', { name: 'Of a viewer' }),
      ];
      if (reads.some((status) => status !== 200)) {
        findings.push(`a viewer may not read ${when}: ${reads.join(', ')}`);
      }
      if (writes.some((status) => status !== 403)) {
        findings.push(`a viewer is not refused a change ${when}: ${writes.join(', ')}`);
      }
    },
    async end() {
      const [baseUrl = ''] = baseUrls;
      const [{ apiKey } = { apiKey: '' }] = companies;
      const headers = { 'x-api-key': apiKey };
      const listed = await fetch(`${baseUrl}/api/v1/people`, { headers });
      const { data } = (await listed.json()) as { data: { id: string }[] };
      const path = `/api/v1/people/${data[0]?.id ?? ''}/end-sessions`;
      await sendJson(baseUrl + path, 'POST', {}, headers);
      const isOver = async (): Promise<boolean> =>
        (await statusesOf('/api/v1/projects')).every((status) => status === 401);
      await until('the end of the session at every gateway', isOver, 30_000);
      return findings;
    },
  };
}

function sendJson(
  url: string,
  method: string,
  body: object | undefined,
  headers: Record<string, string> = {},
): Promise<Response> {
  if (body === undefined) return fetch(url, { method, headers });
  const json = { ...headers, 'content-type': 'application/json' };
  return fetch(url, { method, headers: json, body: JSON.stringify(body) });
}
