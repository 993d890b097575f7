import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import Provider, { type Configuration } from 'oidc-provider';
import { createMemory } from './issuer-memory.ts';
import { choicePage, failedPage, signedOutPage, signOutPage } from './issuer-pages.ts';
import { issuerUrlAt } from './issuer-url.ts';
import type { LocalPerson } from './people.ts';

export interface IssuerOptions {
  port: number;
  people: readonly LocalPerson[];
  client: { id: string; secret: string };
  /** `PUBLIC_URL` of the gateways that people sign in to. */
  publicUrl: string;
}

/** An OpenID Connect issuer on loopback, which asks for no password. */
export interface LocalIssuer {
  url: string;
  close: () => Promise<void>;
}

export async function startIssuer(options: IssuerOptions): Promise<LocalIssuer> {
  const { port, people } = options;
  const url = issuerUrlAt(port);
  const provider = new Provider(url, configurationOf(options));
  provider.on('backchannel.error', (_context, error) => {
    console.error(`The gateway could not be told of a sign-out: ${error.message}`);
  });
  const serveRest = provider.callback();
  const server = createServer((request, response) => {
    const isChoice = request.url?.startsWith(CHOICE_PATH) === true;
    const serving = isChoice
      ? choose(provider, people, request, response)
      : serveRest(request, response);
    serving.catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(400, HTML);
      response.end(failedPage(String(error)));
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return { url, close: () => closeServer(server) };
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

const CHOICE_PATH = '/choose/';
/** In seconds. A session of a day is renewed without a question. */
const LIFETIMES = {
  AccessToken: 600,
  Grant: 86_400,
  IdToken: 600,
  Interaction: 600,
  Session: 86_400,
};
const HTML = { 'content-type': 'text/html; charset=utf-8' };

/** Shows the people, and goes on as the one who was chosen. */
async function choose(
  provider: Provider,
  people: readonly LocalPerson[],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== 'POST') {
    await provider.interactionDetails(request, response);
    response.writeHead(200, HTML).end(choicePage(people));
    return;
  }
  const id = new URLSearchParams(await text(request)).get('person');
  const chosen = people.find((each) => each.id === id);
  if (!chosen) throw new Error('This person is not known here.');
  await provider.interactionFinished(request, response, { login: { accountId: chosen.id } });
}

function configurationOf({ people, client, publicUrl }: IssuerOptions): Configuration {
  return {
    adapter: createMemory(),
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [`${publicUrl}/dashboard/api/oidc/callback`],
        post_logout_redirect_uris: [`${publicUrl}/dashboard/sign-in`],
        backchannel_logout_uri: `${publicUrl}/dashboard/api/oidc/back-channel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    // A browser that still has a session of an earlier start is asked again.
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    jwks: { keys: [newSigningKey()] },
    scopes: ['openid', 'profile', 'email'],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email'] },
    // The groups are in the ID token, and not in the answer of UserInfo alone.
    conformIdTokenClaims: false,
    fetch: fetchFromGateway,
    findAccount: (_context, id) => accountOf(people, id),
    interactions: { url: (_context, { uid }) => CHOICE_PATH + uid },
    loadExistingGrant: grantAll,
    ttl: LIFETIMES,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context, form) => {
          context.body = signOutPage(form);
        },
        postLogoutSuccessSource: (context) => {
          context.body = signedOutPage();
        },
      },
    },
    renderError: (context, { error, error_description: why = '' }) => {
      context.type = 'html';
      context.body = failedPage(`${error}: ${why}`);
    },
  };
}

function newSigningKey() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const kid = randomBytes(8).toString('hex');
  return { ...privateKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' } as const;
}

type FoundAccount = ReturnType<NonNullable<Configuration['findAccount']>>;

function accountOf(people: readonly LocalPerson[], id: string): FoundAccount {
  const found = people.find((each) => each.id === id);
  if (!found) return undefined;
  const { name, email, groups } = found;
  return { accountId: id, claims: () => ({ sub: id, name, email, groups: [...groups] }) };
}

const GATEWAY_TIMEOUT_MS = 30_000;

/** By itself oidc-provider sends nothing to addresses of this machine, and waits for 2.5 s, which is little where a test shares a slow one. */
const fetchFromGateway: NonNullable<Configuration['fetch']> = (url, options) => {
  const own = { ...options, signal: AbortSignal.timeout(GATEWAY_TIMEOUT_MS) };
  Reflect.deleteProperty(own, 'dispatcher');
  return fetch(url, own);
};

/** The only client is granted its scopes without a question. */
const grantAll: Configuration['loadExistingGrant'] = async ({ oidc }) => {
  const { client, session, provider } = oidc;
  if (!client || session?.accountId === undefined) return undefined;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope('openid profile email');
  await grant.save();
  return grant;
};
