import {
  type ClaimedGroups,
  type Claims,
  type Profile,
  readGroups,
  readProfile,
} from '@posthorn/domain/people.ts';
import { type Identity, sidHashOf } from '@posthorn/platform/mongo/companies/people.ts';
import type { Logger } from '@posthorn/platform/service/logger.ts';
import { createRemoteJWKSet, customFetch as joseFetch, jwtVerify, type JWTPayload } from 'jose';
import * as oidc from 'openid-client';
import { ApiError } from '../api-error.ts';
import type { SignInConfig } from '../config.ts';
import { createIssuerFetch, IssuerUnavailableError, isUnavailable } from './issuer-fetch.ts';
import type { SignInMetrics } from './sign-in-metrics.ts';

/** The secrets of one sign-in at the issuer, 256 random bits each. */
export interface Challenge {
  state: string;
  nonce: string;
  /** Of PKCE (RFC 7636). */
  verifier: string;
}

/** A person as the issuer describes them. */
export interface Issued {
  identity: Identity;
  profile: Profile;
  groups: ClaimedGroups;
  /** Null when the issuer names no session. */
  sidHash: string | null;
  idToken: string;
}

/** Whom a logout token signs out: one session, or every session of a person. */
export type LoggedOut =
  { kind: 'session'; sidHash: string } | { kind: 'person'; identity: Identity };

/**
 * The OpenID Connect issuer of the installation. Every function throws ApiError: `sign_in_unavailable` when the issuer
 * cannot be reached, `sign_in_refused` and `sign_in_invalid` as their names say.
 */
export interface Issuer {
  /** Returns the address at which the person signs in. `isAgain`: the issuer asks, also where it knows the person. */
  begin: (challenge: Challenge, isAgain: boolean) => Promise<string>;
  /** Takes the query with which the issuer sent the browser back. */
  finish: (query: string, challenge: Challenge) => Promise<Issued>;
  /** Returns the address that ends the session at the issuer; null when it has none, or cannot be reached. */
  endSessionUrl: (idToken: string | null) => Promise<string | null>;
  readLogoutToken: (token: string) => Promise<LoggedOut>;
}

/** The issuer, and how people sign in there. */
export interface Oidc {
  config: SignInConfig;
  issuer: Issuer;
}

interface IssuerDeps {
  config: SignInConfig;
  metrics: Pick<SignInMetrics, 'requested'>;
  logger: Pick<Logger, 'warn'>;
  nowMs: () => number;
}

export const CALLBACK_PATH = '/dashboard/api/oidc/callback';
const SIGN_IN_PATH = '/dashboard/sign-in';

const REQUEST_SECONDS = 5;
const CLOCK_SKEW_SECONDS = 30;
/** The metadata of the issuer, such as the addresses of its endpoints, are read again after this time. */
const METADATA_MS = 3_600_000;

export function createIssuer(deps: IssuerDeps): Issuer {
  const { config, logger } = deps;
  const discover = createDiscover(deps);
  const callback = config.publicUrl + CALLBACK_PATH;
  const guard = createGuard(logger);
  return {
    begin: (challenge, isAgain) =>
      guard('sign-in', async () => {
        const { client } = await discover();
        const parameters = {
          redirect_uri: callback,
          scope: config.scopes,
          response_type: 'code',
          state: challenge.state,
          nonce: challenge.nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(challenge.verifier),
          code_challenge_method: 'S256',
          ...(isAgain && { prompt: 'login' }),
        };
        return oidc.buildAuthorizationUrl(client, parameters).href;
      }),
    finish: (query, challenge) =>
      guard('sign-in', async () => {
        const { client } = await discover();
        // PUBLIC_URL, and not the address of the request: the library exchanges the code with the address before the query.
        const url = new URL(callback + query);
        const tokens = await oidc.authorizationCodeGrant(client, url, {
          expectedState: challenge.state,
          expectedNonce: challenge.nonce,
          pkceCodeVerifier: challenge.verifier,
          idTokenExpected: true,
        });
        return readIssued(client, config, tokens);
      }),
    async endSessionUrl(idToken) {
      const { client } = await discover().catch(() => ({ client: null }));
      if (client?.serverMetadata().end_session_endpoint === undefined) return null;
      return oidc.buildEndSessionUrl(client, {
        post_logout_redirect_uri: config.publicUrl + SIGN_IN_PATH,
        ...(idToken !== null && { id_token_hint: idToken }),
      }).href;
    },
    readLogoutToken: (token) =>
      guard('logout token', async () => readLogoutToken(await discover(), config, token)),
  };
}

interface Discovered {
  client: oidc.Configuration;
  /** Verifies logout tokens, which the client does not. */
  keys: ReturnType<typeof createRemoteJWKSet>;
}

/**
 * Reads the metadata at the first use and each hour, never at the start. While the issuer is away, the metadata of before
 * are used on.
 */
function createDiscover({ config, metrics, nowMs }: IssuerDeps): () => Promise<Discovered> {
  let known: { found: Discovered; atMs: number } | null = null;
  let running: Promise<Discovered> | null = null;
  const read = async (): Promise<Discovered> => {
    const found = await discoverNow(config, metrics);
    known = { found, atMs: nowMs() };
    return found;
  };
  return async () => {
    if (known && nowMs() - known.atMs < METADATA_MS) return known.found;
    running ??= read().finally(() => {
      running = null;
    });
    try {
      return await running;
    } catch (error) {
      if (known) return known.found;
      throw new IssuerUnavailableError('the metadata of the issuer cannot be read', {
        cause: error,
      });
    }
  };
}

async function discoverNow(
  config: SignInConfig,
  metrics: IssuerDeps['metrics'],
): Promise<Discovered> {
  const { issuer, clientId, clientSecret } = config;
  const server = new URL(issuer);
  const fetch = createIssuerFetch(metrics);
  // oxlint-disable-next-line typescript/no-deprecated -- the settings allow http on this machine only
  const permit = server.protocol === 'http:' ? [oidc.allowInsecureRequests] : [];
  const execute: ((client: oidc.Configuration) => void)[] = [
    oidc.enableNonRepudiationChecks,
    ...permit,
  ];
  const metadata = { [oidc.clockTolerance]: CLOCK_SKEW_SECONDS };
  const found = await oidc.discovery(server, clientId, metadata, oidc.None(), {
    execute,
    timeout: REQUEST_SECONDS,
    [oidc.customFetch]: fetch,
  });
  const described = found.serverMetadata();
  fetch.useEndpoints(described);
  const client = new oidc.Configuration(
    described,
    clientId,
    metadata,
    authenticationFor(clientSecret, described.token_endpoint_auth_methods_supported),
  );
  client.timeout = REQUEST_SECONDS;
  client[oidc.customFetch] = fetch;
  for (const enable of execute) enable(client);
  if (described.jwks_uri === undefined) throw new TypeError('the issuer has no jwks_uri');
  const keys = createRemoteJWKSet(new URL(described.jwks_uri), {
    timeoutDuration: REQUEST_SECONDS * 1_000,
    [joseFetch]: fetch,
  });
  return { client, keys };
}

/** OpenID Connect Discovery 1.0, 3: `client_secret_basic` is what an issuer takes that names no method. */
function authenticationFor(
  secret: string | undefined,
  methods: readonly string[] = ['client_secret_basic'],
): oidc.ClientAuth {
  if (secret === undefined) return oidc.None();
  return methods.includes('client_secret_basic')
    ? oidc.ClientSecretBasic(secret)
    : oidc.ClientSecretPost(secret);
}

type Tokens = Awaited<ReturnType<typeof oidc.authorizationCodeGrant>>;

/** Reads the ID token, and UserInfo once when the token does not speak of groups. The access token is dropped. */
async function readIssued(
  client: oidc.Configuration,
  { groupsClaim }: SignInConfig,
  tokens: Tokens,
): Promise<Issued> {
  const claims = tokens.claims();
  if (!claims || tokens.id_token === undefined) throw new TypeError('there is no ID token');
  const { iss: issuer, sub: subject, sid } = claims;
  const ofToken = readGroups(claims, groupsClaim);
  const hasUserInfo = client.serverMetadata().userinfo_endpoint !== undefined;
  const more: Claims =
    ofToken.kind === 'absent' && hasUserInfo
      ? await oidc.fetchUserInfo(client, tokens.access_token, subject)
      : {};
  const groups = ofToken.kind === 'absent' ? readGroups(more, groupsClaim) : ofToken;
  return {
    identity: { issuer, subject },
    profile: readProfile({ ...more, ...claims }),
    groups,
    sidHash: typeof sid === 'string' ? sidHashOf(issuer, sid) : null,
    idToken: tokens.id_token,
  };
}

/** OpenID Connect Back-Channel Logout 1.0, 2.4. */
const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout';
const MAX_AGE_SECONDS = 120;
/** A secret that both sides know signs no token here, and neither does nobody (`none`). */
const ALGORITHMS = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');

async function readLogoutToken(
  { client, keys }: Discovered,
  { clientId }: SignInConfig,
  token: string,
): Promise<LoggedOut> {
  const { issuer } = client.serverMetadata();
  const { payload } = await jwtVerify(token, keys, {
    issuer,
    audience: clientId,
    algorithms: ALGORITHMS,
    maxTokenAge: MAX_AGE_SECONDS,
    clockTolerance: CLOCK_SKEW_SECONDS,
    requiredClaims: ['iat', 'events'],
  });
  const { sub: subject, sid } = payload;
  if (!isLogout(payload)) throw new TypeError('this is no logout token');
  if (typeof sid === 'string') return { kind: 'session', sidHash: sidHashOf(issuer, sid) };
  if (typeof subject === 'string') return { kind: 'person', identity: { issuer, subject } };
  throw new TypeError('the logout token names neither a session nor a person');
}

function isLogout({ events, nonce }: JWTPayload): boolean {
  const isNamed = typeof events === 'object' && events !== null && LOGOUT_EVENT in events;
  return isNamed && nonce === undefined;
}

/**
 * Turns every failure into ApiError. The log has the code of the library and the texts of the issuer: errors of the library
 * carry whole tokens and claims, which belong into no log.
 */
function createGuard(logger: Pick<Logger, 'warn'>) {
  return async <Result>(step: string, work: () => Promise<Result>): Promise<Result> => {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ApiError) throw error;
      const code = codeFor(error);
      logger.warn({ code, reason: reasonOf(error) }, `the ${step} has failed at the issuer`);
      throw new ApiError(code);
    }
  };
}

function codeFor(error: unknown) {
  if (isUnavailable(error)) return 'sign_in_unavailable';
  return error instanceof oidc.AuthorizationResponseError ? 'sign_in_refused' : 'sign_in_invalid';
}

const MAX_REASON_CHARS = 300;

function reasonOf(error: unknown): string {
  const { error: name, error_description: text } = (error ?? {}) as Record<string, unknown>;
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  const parts = typeof name === 'string' ? [name, text] : [code, message];
  const reason = parts.filter((part) => typeof part === 'string').join(': ');
  return reason.slice(0, MAX_REASON_CHARS);
}
