import type { CompanyStore } from '@posthorn/platform/mongo/companies/companies.ts';
import { Router, type Request, type Response } from 'express';
import { z } from 'zod';
import { sessionEnded, type Authenticate } from '../../../api-keys/authenticate.ts';
import { assertJson } from '../../../http/request/assert-json.ts';
import { readBody } from '../../../http/request/read-body.ts';
import { createReceiveBody } from '../../../http/request/receive-body.ts';
import { refuseMethod } from '../../../http/refuse-method.ts';
import type { RequestDeadlines } from '../../../http/request-deadlines.ts';
import { describeSession } from './describe-session.ts';
import type { SessionCookies } from './session-cookies.ts';
import type { Session } from './session.ts';
import type { SignedIn, SignIn, SignInSource } from './sign-in.ts';

export interface SessionPagesDeps {
  signIn: SignIn;
  authenticate: Authenticate;
  cookies: SessionCookies;
  companies: Pick<CompanyStore, 'nameOf'>;
  /** Ends the session also for who has a copy of its cookie, when a link began it. */
  endSession: (session: Session) => Promise<void>;
  deadlines: Pick<RequestDeadlines, 'within'>;
}

export const SESSION_PATH = '/dashboard/api/session';

const token = z.string('must be text').min(1, 'must not be empty').max(200, 'is too long');
const ONE_OF = 'send either apiKey or link';
const signInBody = z
  .object({
    apiKey: token.optional(),
    companyId: token.optional(),
    link: token.optional(),
  })
  .refine(({ apiKey, link }) => (apiKey === undefined) !== (link === undefined), ONE_OF);

/** A key, a company and a link are far shorter. */
const MAX_BYTES = 4_096;

/** Signs in and out (docs/contract.md C19). These are for the dashboard only, and not in the OpenAPI document. */
export function sessionPages(deps: SessionPagesDeps): Router {
  const { signIn, authenticate, cookies, deadlines, endSession } = deps;
  const router = Router({ caseSensitive: true, strict: true });
  const receive = createReceiveBody({ tryReserve: () => true }, MAX_BYTES);

  router.post(SESSION_PATH, assertJson, receive, async (request, response) => {
    const { value } = readBody(request.body as Buffer, signInBody);
    const source = sourceOf(request, response);
    const { apiKey, companyId, link = '' } = value;
    const signedIn = await deadlines.within(
      response,
      apiKey === undefined
        ? signIn.byLink(link, source)
        : signIn.byKey({ apiKey, companyId }, source),
    );
    cookies.set(request, response, signedIn.session);
    await send(deps, response, 'Signed in', signedIn);
  });

  router.get(SESSION_PATH, async (request, response) => {
    const session = cookies.read(request);
    if (!session) throw sessionEnded();
    const { keyHash } = session;
    const { ip: address } = request;
    const key = await deadlines.within(response, authenticate({ keyHash, address }));
    await send(deps, response, 'Session found', { session, key });
  });

  router.delete(SESSION_PATH, async (request, response) => {
    const session = cookies.read(request);
    if (session) await deadlines.within(response, endSession(session));
    cookies.clear(request, response);
    response.json({ success: true, message: 'Signed out' });
  });

  router.all(SESSION_PATH, refuseMethod(['GET', 'POST', 'DELETE']));
  return router;
}

function sourceOf(request: Request, response: Response): SignInSource {
  return { address: request.ip, requestId: String(response.locals.requestId) };
}

async function send(
  { companies, deadlines }: SessionPagesDeps,
  response: Response,
  message: string,
  { session, key }: SignedIn,
): Promise<void> {
  const name = await deadlines.within(response, companies.nameOf(session.companyId));
  response.json({ success: true, message, data: describeSession(session, key, name ?? '') });
}
