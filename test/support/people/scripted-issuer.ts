import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { createHash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const CLIENT_ID = 'posthorn';

type PrivateKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];

interface Key {
  kid: string;
  privateKey: PrivateKey;
  jwk: object;
}

/** What the issuer does wrong. */
export interface Faults {
  /** Claims of the ID token in place of right ones; undefined leaves one out. */
  claims?: Record<string, unknown>;
  /** Signs with a key that is not published, with the published one as the secret of an HMAC, or with nothing. */
  signature?: 'other_key' | 'hmac' | 'none';
  /** Parameters of the way back in place of right ones. */
  answer?: Record<string, string | undefined>;
  /** The `sub` of UserInfo. */
  userInfoSubject?: string;
}

interface Authorized {
  claims: JWTPayload;
  userInfo: object;
  challenge: string;
  redirectUri: string;
  nonce: string;
  faults: Faults;
}

/** Who signs in, and what the issuer says about them. */
export interface Login {
  sub: string;
  /** In the ID token. */
  claims?: JWTPayload;
  /** Of UserInfo only. */
  userInfo?: object;
  faults?: Faults;
}

export interface ScriptedIssuer {
  url: string;
  /** The paths of all requests, oldest first. */
  requests: string[];
  /** Everything secret that it has issued: no log may have any of it. */
  secrets: string[];
  /** The texts that the issuer has sent about people: those that are long enough to mean nothing else in a log. */
  claims: Set<string>;
  /** Lets somebody sign in at the address of a sign-in. Returns the address that the browser goes back to. */
  signIn: (authorizationUrl: string, login: Login) => string;
  /** Signs with a new key from now on, and publishes that alone. */
  rotate: () => Promise<void>;
  logoutToken: (claims: JWTPayload, faults?: Faults) => Promise<string>;
  /** `hanging`: requests get no response. `broken`: they get 503. */
  behave: (state: 'well' | 'hanging' | 'broken') => void;
  close: () => Promise<void>;
}

async function newKey(): Promise<Key> {
  const kid = randomUUID();
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  return {
    kid,
    privateKey,
    jwk: { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' },
  };
}

const nowSeconds = (): number => Math.floor(Date.now() / 1_000);

/** Returns the token without a signature: `alg` is `none`. */
function unsigned(claims: JWTPayload): string {
  const encode = (part: object): string => Buffer.from(JSON.stringify(part)).toString('base64url');
  return `${encode({ alg: 'none' })}.${encode(claims)}.`;
}

/** An OpenID Connect issuer on loopback that makes the mistakes which a test asks for. */
export async function startScriptedIssuer(port = 0): Promise<ScriptedIssuer> {
  let key = await newKey();
  const otherKey = await newKey();
  let state: 'well' | 'hanging' | 'broken' = 'well';
  const authorized = new Map<string, Authorized>();
  const userInfos = new Map<string, object>();
  const requests: string[] = [];
  const secrets: string[] = [];
  const told = new Set<string>();
  const server = createServer((request, response) => {
    requests.push(String(request.url));
    if (state === 'hanging') return;
    if (state === 'broken') response.writeHead(503).end();
    else void respond(request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const sign = async (claims: JWTPayload, { signature }: Faults): Promise<string> => {
    if (signature === 'none') return unsigned(claims);
    if (signature === 'hmac') {
      const secret = new TextEncoder().encode(JSON.stringify(key.jwk));
      return new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: key.kid }).sign(secret);
    }
    const signer = signature === 'other_key' ? { ...otherKey, kid: key.kid } : key;
    const token = new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: signer.kid });
    return token.sign(signer.privateKey);
  };

  async function token(body: URLSearchParams): Promise<{ status: number; body: object }> {
    const code = body.get('code') ?? '';
    const found = authorized.get(code);
    authorized.delete(code);
    const challenge = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url');
    const isRight =
      found?.challenge === challenge && found.redirectUri === body.get('redirect_uri');
    if (!found || !isRight) return { status: 400, body: { error: 'invalid_grant' } };
    const accessToken = randomUUID();
    userInfos.set(accessToken, found.userInfo);
    const at = nowSeconds();
    const right = { iss: url, aud: CLIENT_ID, iat: at, exp: at + 300, nonce: found.nonce };
    const claims = { ...right, ...found.claims, ...found.faults.claims };
    const idToken = await sign(JSON.parse(JSON.stringify(claims)) as JWTPayload, found.faults);
    secrets.push(accessToken, idToken);
    const tokens = { access_token: accessToken, id_token: idToken };
    return { status: 200, body: { ...tokens, token_type: 'Bearer', expires_in: 300 } };
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: object): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    switch (String(request.url)) {
      case '/.well-known/openid-configuration':
        send(200, metadataOf(url));
        break;
      case '/jwks':
        send(200, { keys: [key.jwk] });
        break;
      case '/token': {
        const { status, body } = await token(new URLSearchParams(Buffer.concat(chunks).toString()));
        send(status, body);
        break;
      }
      case '/userinfo': {
        const [, bearer = ''] = (request.headers.authorization ?? '').split(' ');
        const found = userInfos.get(bearer);
        send(found ? 200 : 401, found ?? {});
        break;
      }
      default:
        send(404, {});
    }
  }

  return {
    url,
    requests,
    secrets,
    claims: told,
    signIn(authorizationUrl, { sub, claims = {}, userInfo = {}, faults = {} }) {
      const asked = new URL(authorizationUrl).searchParams;
      const redirectUri = asked.get('redirect_uri') ?? '';
      const code = randomUUID();
      secrets.push(code, asked.get('state') ?? '', asked.get('nonce') ?? '');
      for (const text of textsOf([claims, userInfo])) told.add(text);
      authorized.set(code, {
        claims: { sub, ...claims },
        userInfo: { sub: faults.userInfoSubject ?? sub, ...userInfo },
        challenge: asked.get('code_challenge') ?? '',
        redirectUri,
        nonce: asked.get('nonce') ?? '',
        faults,
      });
      const right = { code, state: asked.get('state') ?? '', iss: url };
      const answer: Record<string, string | undefined> = { ...right, ...faults.answer };
      const back = new URL(redirectUri);
      for (const [name, value] of Object.entries(answer)) {
        if (value !== undefined) back.searchParams.set(name, value);
      }
      return back.href;
    },
    async rotate() {
      key = await newKey();
    },
    async logoutToken(claims, faults = {}) {
      const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };
      const at = nowSeconds();
      const right = { iss: url, aud: CLIENT_ID, iat: at, exp: at + 120, jti: randomUUID(), events };
      const all = JSON.parse(JSON.stringify({ ...right, ...claims })) as JWTPayload;
      const signed = await sign(all, faults);
      secrets.push(signed);
      return signed;
    },
    behave: (next) => {
      state = next;
    },
    async close() {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

const MIN_TOLD_CHARS = 8;

/** Returns the texts of a value, at any depth, that no log has by chance. */
function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return value.length < MIN_TOLD_CHARS ? [] : [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

const metadataOf = (url: string) => ({
  issuer: url,
  authorization_endpoint: `${url}/authorize`,
  token_endpoint: `${url}/token`,
  userinfo_endpoint: `${url}/userinfo`,
  jwks_uri: `${url}/jwks`,
  end_session_endpoint: `${url}/end`,
  response_types_supported: ['code'],
  subject_types_supported: ['public'],
  id_token_signing_alg_values_supported: ['RS256'],
  authorization_response_iss_parameter_supported: true,
});
